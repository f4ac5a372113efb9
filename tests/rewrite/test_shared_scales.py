"""Sums of exponentials beside their logarithms: computed once, from the scaled forms."""

import mpmath
import numpy as np
import pytest

import slomodel
from slomodel.functions import exp, stop_gradient
from slomodel.ir.expr import Extreme, is_map
from slomodel.ir.walk import postorder

MODEL = """dim n, K
data t[n], y[n]
var a[K], b[K], c
let rate[i in n] = c^2 + sum(exp(a[k] + b[k] * t[i]) / (1 + t[i]^2) for k in K)
minimize sum(rate - y .* log(rate))"""
T, Y = np.array([-1.0, 0.2, 0.7, 2.0]), np.array([1.0, 0.0, 3.0, 2.0])


def wanted(x: list[mpmath.mpf]) -> mpmath.mpf:
    a, b, c = x[:3], x[3:6], x[6]
    total = mpmath.mpf(0)
    for t, y in zip(map(mpmath.mpf, T), Y, strict=True):
        terms = [mpmath.exp(p + q * t) for p, q in zip(a, b, strict=True)]
        rate = c**2 + sum(terms) / (1 + t**2)
        total += rate - y * mpmath.log(rate)
    return total


@pytest.mark.parametrize("scale", [1.0, 100.0, 300.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_values_and_gradients_inside_and_beyond_the_zone(scale: float, sign: float) -> None:
    model = slomodel.compile(MODEL, data={"t": T, "y": Y}, dims={"K": 3}, backend="numpy")
    x = np.array([sign * scale, 0.3, -0.4, 0.5, sign * scale / 3, 0.1, 1e-3])
    value, gradient = model.value_and_gradient(x)
    with mpmath.workdps(400):
        exact = [mpmath.mpf(one) for one in x]
        assert value == pytest.approx(float(wanted(exact)), rel=1e-12)
        step = mpmath.mpf(10) ** -60
        for k in range(7):
            ends = [[*exact[:k], exact[k] + s * step, *exact[k + 1 :]] for s in (1, -1)]
            slope = float((wanted(ends[0]) - wanted(ends[1])) / (2 * step))
            assert gradient[k] == pytest.approx(slope, rel=1e-11, abs=1e-12)


def test_the_exponentials_are_computed_once_and_bounds_read_the_sums_as_written() -> None:
    model = slomodel.compile(MODEL, data={"t": T, "y": Y}, dims={"K": 3}, backend="numpy")
    problem = model._problem

    def wide(root: object) -> int:
        return sum(is_map(one, exp) and one.rank == 2 for one in postorder(root))  # type: ignore[arg-type]

    assert wide(problem.objective) == 1
    plain = postorder(problem.plain[problem.objective])
    assert not any(is_map(one, stop_gradient) for one in plain)


@pytest.mark.parametrize("scale", [1.0, 40.0, 800.0])
def test_complements_of_weighted_sums_of_what_is_at_most_1_have_no_scale(scale: float) -> None:
    text = """dim n, K, m = 3
    data W[n, K]
    var f[K, m]
    let p = W @ sigmoid(f)
    minimize -sum(log(1 - p))"""
    rng = np.random.default_rng(0)
    W, f = rng.uniform(0.1, 0.4, (3, 2)), scale * rng.normal(size=(2, 3))
    model = slomodel.compile(text, data={"W": W}, backend="numpy")
    assert not any(isinstance(one, Extreme) for one in postorder(model._problem.objective))
    s = np.exp(-np.logaddexp(0.0, -f))
    assert model.value(f.ravel()) == pytest.approx(-np.log1p(-W @ s).sum(), rel=1e-14)
    slope = W.T @ (1 / (1 - W @ s)) * s * np.exp(-np.logaddexp(0.0, f))
    np.testing.assert_allclose(model.gradient(f.ravel()), slope.ravel(), rtol=1e-13)


@pytest.mark.parametrize("above", ["expm1(y)", "sinh(y)", "2^y"])
@pytest.mark.parametrize("below", ["expm1(y + 1)", "3 * cosh(y)", "2 * 2^y"])
def test_quotients_with_growing_functions_are_scaled_once(above: str, below: str) -> None:
    """They were scaled again and again: compilation did not end."""
    text = f"var x, y\nminimize (x - {above}) / (x + {below})"
    model = slomodel.compile(text, backend="numpy")
    functions = {
        "expm1(y)": np.expm1,
        "sinh(y)": np.sinh,
        "2^y": lambda y: 2.0**y,
        "expm1(y + 1)": lambda y: np.expm1(y + 1),
        "3 * cosh(y)": lambda y: 3 * np.cosh(y),
        "2 * 2^y": lambda y: 2 * 2.0**y,
    }

    def value(x: complex, y: complex) -> complex:
        return (x - functions[above](y)) / (x + functions[below](y))

    for point in ([0.3, 0.7], [-2.0, 5.0], [3.0, 40.0]):
        x, y = point
        assert model.value(point) == pytest.approx(value(x, y), rel=1e-13)
        slopes = value(x + 1e-30j, y).imag / 1e-30, value(x, y + 1e-30j).imag / 1e-30
        np.testing.assert_allclose(model.gradient(point), slopes, rtol=1e-11, atol=1e-14)
        assert np.isfinite(model.hvp(point, [1.0, 2.0])).all()
    assert np.isfinite(model.gradient([3.0, 900.0])).all()


def test_quotients_of_sigmoids_of_log_sum_exps_end() -> None:
    text = "dim n\ndata a[n], c\nvar x\nminimize x^2 + sigmoid(logsumexp(a)) / sigmoid(c)"
    model = slomodel.compile(text, data={"a": [0.0, 0.0], "c": 0.0}, backend="numpy")
    assert model.value([3.0]) == pytest.approx(9 + 4 / 3, rel=1e-14)
