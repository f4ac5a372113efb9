"""Logarithms of sums of exponentials of which some are multiplied by 0, or masked."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel
from tests.marks import only

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")

DATA = {"w": np.array([0.0, 1.0]), "s": np.array(0.0), "E": np.eye(2)}
LOG_3 = float(np.log1p(np.exp(3.0)))
SIGMOID_3 = float(1.0 / (1.0 + np.exp(-3.0)))

# declarations, what is minimised, point, value, gradient
ROWS: list[tuple[str, str, tuple[float, ...], float, tuple[float, ...]]] = [
    ("data s var a", "log(1 + s * exp(a))", (800.0,), 0.0, (0.0,)),
    ("data s var a", "log1p(exp(a) * s / 3)", (800.0,), 0.0, (0.0,)),
    ("data s var a, c", "log(exp(c) + s * exp(a))", (800.0, -900.0), -900.0, (0.0, 1.0)),
    ("data s var a, c", "log(exp(c) + s * sinh(a))", (800.0, -900.0), -900.0, (0.0, 1.0)),
    ("data s var a, c", "log(s * 2^a + 3^c)", (1100.0, 0.0), 0.0, (0.0, float(np.log(3.0)))),
    ("data s var a, c", "(1 + exp(c)) / (1 + s * exp(a))", (800.0, 0.0), 2.0, (0.0, 1.0)),
    *(
        ("data w[2] var a[2]", text, (800.0, -900.0), -900.0, (0.0, 1.0))
        for text in (
            "log(sum(w .* exp(a)))",
            "log(w @ exp(a))",
            "log(sum(w[k] * exp(a[k]) for k in 2))",
            "log(sum(w[k] * exp(a[k]) for k in 2 if w[k] > 0))",
            "log(sum(exp(a[k]) for k in 2 if w[k] > 0))",
            "log(sum(where(w > 0, exp(a), 0)))",
            "log(w[0] * exp(a[0]) + w[1] * exp(a[1]))",
            "log(2 * sum(w .* exp(a) / 2))",
        )
    ),
    ("data w[2] var a[2]", "log(1 + sum(w .* exp(a)))", (800.0, 3.0), LOG_3, (0.0, SIGMOID_3)),
    ("data w[2] var a[2]", "log1p(sum(w .* exp(a)))", (800.0, 3.0), LOG_3, (0.0, SIGMOID_3)),
    ("data E[2, 2] var a[2]", "sum(log1p(E @ exp(a)))", (3.0, 3.0), 2 * LOG_3, 2 * (SIGMOID_3,)),
    ("var a, b", "log(1 + b^2 * exp(a))", (800.0, 0.0), 0.0, (0.0, 0.0)),
    ("var a, b, c", "log(exp(c) + b^2 * exp(a))", (800.0, 0.0, -900.0), -900.0, (0.0, 0.0, 1.0)),
    ("var a, b", "log(b^2 + exp(a))", (-800.0, 0.0), -800.0, (1.0, 0.0)),
    ("var a, b", "log(exp(a) - 1 + b^2)", (800.0, 1.0), 800.0, (1.0, 0.0)),
    ("var a, b", "log(exp(a) - 1 + b^2)", (1e-9, 1.0), 1e-9, (1.0, 2.0)),
    ("var a, b", "log(cosh(a) + b^2)", (-800.0, 1.0), 800.0 - np.log(2.0), (-1.0, 0.0)),
    ("var a, b", "log(sinh(a) + sinh(b))", (800.0, 1.0), 800.0 - np.log(2.0), (1.0, 0.0)),
    ("var a", "log(0.5 * cosh(a))", (-800.0,), 800.0 - np.log(4.0), (-1.0,)),
    # log(1 - p + p exp(a))
    ("var a, p", "log(1 - p + p * exp(a))", (-50.0, 1.0), -50.0, (1.0, -np.expm1(50.0))),
    ("var a, p", "log(1 + p * (exp(a) - 1))", (1e-9, 0.25), 0.25e-9, (0.25, 1e-9)),
    ("var a, p", "log(p + (1 - p) * exp(-a))", (1e-9, 0.25), -0.75e-9, (-0.75, 1e-9)),
    ("var a, p", "log(p * exp(a) + 1 - p)", (800.0, 0.25), 800.0 - np.log(4.0), (1.0, 4.0)),
]


@pytest.mark.parametrize("backend", only("numpy", ["numpy", "c"]))
@pytest.mark.parametrize(("declared", "text", "point", "value", "slopes"), ROWS)
def test_value_gradient_and_hessian(
    declared: str,
    text: str,
    point: tuple[float, ...],
    value: float,
    slopes: tuple[float, ...],
    backend: str,
) -> None:
    data = {name: array for name, array in DATA.items() if f"data {name}" in declared}
    model = slomodel.compile(f"{declared} minimize {text}", data=data, backend=backend)
    np.testing.assert_allclose(model.value(point), value, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(model.gradient(point), slopes, rtol=2e-9, atol=1e-60)
    if "b" not in declared:
        assert np.isfinite(model.hvp(point, np.ones(len(point)))).all()


def test_a_weight_at_0_keeps_its_derivative() -> None:
    """log(1 + w exp(a)) at w = 0: the derivative by w is exp(a), the second one -exp(2 a)."""
    model = slomodel.compile("var w, a minimize log(1 + w * exp(a))", backend="numpy")
    for a in (3.0, 301.0):
        value, slopes = model.value_and_gradient([0.0, a])
        assert value == 0.0
        np.testing.assert_allclose(slopes, [np.exp(a), 0.0], rtol=1e-13)
        product = model.hvp([0.0, a], [1.0, 0.0])
        np.testing.assert_allclose(product, [-np.exp(2 * a), np.exp(a)], rtol=1e-12)


@pytest.mark.parametrize("w", [1e-300, 1e-200, 1e-20, -1e-300])
def test_small_weights_beside_large_exponents(w: float) -> None:
    """log1p(w exp(a)) keeps its digits where w exp(a) is small though exp(a) overflows."""
    model = slomodel.compile("var w, a minimize log(1 + w * exp(a))", backend="numpy")
    for a in (-np.log(abs(w)) - 40.0, -np.log(abs(w)) - 1.0):
        value, slopes = model.value_and_gradient([w, a])
        term = np.sign(w) * np.exp(np.log(abs(w)) + a)
        np.testing.assert_allclose(value, np.log1p(term), rtol=1e-12)
        np.testing.assert_allclose(slopes, [term / w / (1 + term), term / (1 + term)], rtol=1e-12)


@pytest.mark.parametrize("y", [410.0, 450.0, 600.0])
@pytest.mark.parametrize("text", ["x * exp(y) / (1 + x * exp(y))", "log(exp(y) * x + exp(-x))"])
def test_the_derivative_by_a_variable_at_0_has_the_exponential(text: str, y: float) -> None:
    model = slomodel.compile(f"var x, y minimize {text}", backend="numpy")
    np.testing.assert_allclose(model.gradient([0.0, y]), [np.exp(y), 0.0], rtol=1e-12)


@pytest.mark.parametrize("low", [500.0, 800.0])
@pytest.mark.parametrize("text", ["x * exp(y) + exp(x + {})", "2 * x * cosh(y) + exp(x + {})"])
def test_the_derivative_by_a_variable_at_0_beside_large_terms(text: str, low: float) -> None:
    """The derivative of log(x exp(y) + exp(x + c)) at x = 0 is exp(y - c) + 1, where exp(y - c) is
    finite, though y - c is too large for the scale of the other term.
    """
    model = slomodel.compile(f"var x, y minimize log({text.format(low)})", backend="numpy")
    y = low + 600.0
    assert model.value([0.0, y]) == low
    np.testing.assert_allclose(model.gradient([0.0, y]), [np.exp(600.0), 0.0], rtol=1e-12)
    model = slomodel.compile("var x[2], y[2] minimize log(sum(x .* exp(y)))", backend="numpy")
    slopes = model.gradient([0.0, 1.0, y, low])
    np.testing.assert_allclose(slopes, [np.exp(600.0), 1.0, 0.0, 1.0], rtol=1e-12)


def test_a_variable_at_0_beside_small_data() -> None:
    text = "data w var x, y minimize log(w * x * exp(y) + exp(-x))"
    model = slomodel.compile(text, data={"w": 1e-190}, backend="numpy")
    np.testing.assert_allclose(model.gradient([0.0, 437.0]), [-0.38808853, 0.0], rtol=1e-7)


@pytest.mark.parametrize("other", ["cosh", "sinh"])
def test_exponentials_stay_apart_beside_small_factors(other: str) -> None:
    model = slomodel.compile(f"var x, y minimize exp(x) * y * {other}(x)", backend="numpy")
    assert model.value([360.0, 0.0]) == 0.0
    expected = np.exp(420.0) * 1e-100 * np.exp(420.0) / 2
    assert model.value([420.0, 1e-100]) == pytest.approx(expected, rel=1e-12)


def test_data_without_0_need_no_conditions() -> None:
    text = "data w[2] var a[2] minimize log(sum(w .* exp(a)))"
    model = slomodel.compile(text, data={"w": [0.25, 0.75]}, backend="numpy")
    assert "np.equal(" not in model.source("numpy")
    np.testing.assert_allclose(model.gradient([800.0, 800.0]), [0.25, 0.75], rtol=1e-14)
    again = model.bind(w=[0.0, 1.0])
    assert "np.equal(" in again.source("numpy")
    np.testing.assert_allclose(again.gradient([800.0, -900.0]), [0.0, 1.0])


def test_what_cannot_overflow_is_left_alone() -> None:
    """A Student's t density with an unknown number of degrees of freedom takes one logarithm."""
    text = """dim N
        data y[N]
        var mu, s, k
        minimize -sum(student_t_lpdf(y[i], exp(k) + 1, mu, exp(s)) for i in N)"""
    model = slomodel.compile(text, data={"y": np.arange(3.0)}, backend="numpy")
    assert model.source().count("np.expm1") == 0


@pytest.mark.parametrize(("w", "a"), [(1e-200, 900.0), (1e-300, 1500.0), (1e-190, 740.0)])
@pytest.mark.parametrize("declared", ["data w\nvar a", "var w, a"])
def test_small_weights_are_not_taken_as_zero(declared: str, w: float, a: float) -> None:
    """The scale leaves small factors out, so that exponents beside them may exceed the limits."""
    is_data = declared.startswith("data")
    data = {"w": w} if is_data else {}
    x = np.array([a] if is_data else [w, a])
    for text in ("log(1 + w * exp(a))", "log(3 + w * exp(a))", "log1p(2 * w * cosh(a))"):
        model = slomodel.compile(f"{declared}\nminimize {text}", data=data, backend="numpy")
        # The constants are below the spacing of doubles beside the exponential.
        assert model.value(x) == pytest.approx(a + np.log(w), rel=1e-13)


@pytest.mark.parametrize("backend", only("numpy", ["numpy", "numexpr", "c"]))
def test_second_derivatives_of_logarithms_of_very_large_and_small_numbers(backend: str) -> None:
    """In them 1/A^2 leaves the range of doubles where A' / A does not."""
    rows = slomodel.compile(
        "data W[2, 2] var a[2] minimize sum(log(W @ exp(a)))",
        data={"W": [[1.0, 0.0], [1.0, 1.0]]},
        backend=backend,
    )
    np.testing.assert_allclose(rows.gradient([3.0, 1000.0]), [1.0, 1.0], rtol=1e-14)
    np.testing.assert_allclose(rows.hvp([3.0, 1000.0], [1.0, 1.0]), [0.0, 0.0], atol=1e-15)
    for text, point, second in (
        ("log(cosh(x) * cosh(x) + 2)", 200.0, 0.0),
        ("log(1e-300 * expm1(x) * exp(x) + 2)", 345.0, 0.60848469),
        ("log(x^30 + 1)", 1e6, -3e-11),
    ):
        model = slomodel.compile(f"var x minimize {text}", backend=backend)
        np.testing.assert_allclose(model.hvp([point], [1.0]), [second], rtol=1e-8, atol=1e-15)


@pytest.mark.parametrize("has_zero", [False, True])
@pytest.mark.parametrize("weight", ["P[j, i]", "P[j, 0]", "P[j, i] * P[0, j]"])
def test_weights_of_exponentials_in_a_recurrence(weight: str, has_zero: bool) -> None:
    text = f"""dim T = 4, S = 2
    data P[S, S]
    var x[S], X[S, S]
    let A[t in T, i in S] = where(
        t == 0, x[i], log(sum({weight} * exp(A[t - 1, j] + X[j, i]) for j in S)))
    minimize sum(A[T - 1, i] * x[i] for i in S)"""
    P = np.array([[0.2, 1.0], [0.0 if has_zero else 0.5, 0.25]])
    model = slomodel.compile(text, data={"P": P}, backend="numpy")

    def value(point: np.ndarray) -> float:
        x, X = point[:2], point[2:].reshape(2, 2)
        w = {"P[j, i]": P, "P[j, 0]": P[:, :1], "P[j, i] * P[0, j]": P * P[:1].T}[weight]
        a = x
        for _ in range(3):
            a = np.log((w * np.exp(a[:, np.newaxis] + X)).sum(axis=0))
        return float(a @ x)

    point, v = np.array([0.3, -0.4, 0.5, 1.0, -1.0, 0.2]), np.arange(6.0)
    assert model.value(point) == pytest.approx(value(point), rel=1e-13)
    slope = (value(point + 1e-6 * v) - value(point - 1e-6 * v)) / 2e-6
    assert model.gradient(point) @ v == pytest.approx(slope, rel=1e-8)
