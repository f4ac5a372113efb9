"""Bounds over the part of a ball in the sets of the variables."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

import slomodel

Vector = NDArray[np.float64]

RNG = np.random.default_rng(5)
A = np.abs(RNG.standard_normal((4, 7)))
# A model, its centre, a radius, and the constants over the part of the ball in the set.
SHARP = {
    "many reciprocals": ("var x[9] in [0.1, 2] minimize sum(1/x[i] for i in 9)",
                         [1.0] * 9, 5.0, 2e3, 6e4),
    "logarithms": ("var x >= 0 minimize log(1 + x)", [1.0], 5.0, 1.0, 2.0),
    "many logarithms": ("var x[9] >= 0 minimize sum(log(1 + x[i]) for i in 9)",
                        [1.0] * 9, 5.0, 1.0, 2.0),
    "powers": ("var x[9] in [1, inf] minimize sum(x[i]^1.5 for i in 9)",
               [1.0] * 9, 5.0, 0.75, 0.375),
    "from zero": ("var x[8] >= 0 minimize sum(x[i]^2.5 for i in 8)",
                  [1.0] * 8, 5.0, 3.75 * math.sqrt(6.0), math.inf),
    "cubes": ("var x[9] in [0, 2] minimize sum(x[i]^3 for i in 9)",
              [1.0] * 9, 50.0, 12.0, 6.0),
    "unlimited radius": ("var x[8] in [-1, 1] minimize sum(x[i]^4 for i in 8)",
                         [0.0] * 8, math.inf, 12.0, 24.0),
    "ball": ("var x[8] in ball(0.5) minimize -sum(log(1 - x[i]) for i in 8)",
             [0.0] * 8, 5.0, 4.0, 16.0),
    "simplex": ("var p[8] in simplex minimize sum(p[i] * log(p[i] + 0.5) for i in 8)",
                [0.125] * 8, 5.0, 4.0, 12.0),
}  # fmt: skip
# Models of several kinds of structure, beside those above.
OTHERS: dict[str, tuple[str, list[float], float]] = {
    "poisson": ("dim m\ndim n\ndata A[m, n]\nvar x[n] >= 0\n"
                "minimize sum(A @ x) - sum(log(A @ x + 0.1))", [0.2] * 7, 3.0),
    "quotient": ("var a[4] in [0.5, 2], b[4] minimize sum(b[i]^2 / a[i] for i in 4) + log(sum(a))",
                 [1.0] * 4 + [0.3] * 4, 2.0),
    "products": ("var x[7] in [0, 1] minimize exp(sum(x[i] * x[i+1] for i in 6))",
                 [0.5] * 7, 9.0),
    "root": ("var x[7] >= 0.01 minimize sqrt(x[0]) * x[1]^2 + sqrt(sum(x))", [1.0] * 7, 4.0),
    "network": ("var W[3, 3] in [-1, 1], v[3] in [0, 1] minimize sum(v * tanh(W @ v))^2",
                [0.3] * 12, 20.0),
    "fixed": ("var x[8] in [1, 1], y[8] in [0.5, 3] minimize sum(log(x * y)^2)",
              [1.0] * 16, 2.0),
    "softmax": ("var x[8] >= 0 minimize log(sum(exp(x[i]) for i in 8)) + sum(sqrt(1 + x[i]))",
                [0.0] * 8, 3.0),
}  # fmt: skip


def model_of(text: str) -> slomodel.Model:
    data: Mapping[str, Vector] = {"A": A} if "data A" in text else {}
    return slomodel.compile(
        text.replace("sqrt(1 + x[i]))", "sqrt(1 + x[i]) for i in 8)"), data=data, backend="numpy"
    )


@pytest.mark.parametrize("name", SHARP)
def test_sharp(name: str) -> None:
    text, centre, radius, L1, L2 = SHARP[name]
    found = model_of(text).bounds(np.array(centre), radius, "quick")
    assert pytest.approx(L1, rel=1e-9) == found.L1
    assert found.L1 >= L1 * (1.0 - 1e-15)
    assert pytest.approx(L2, rel=1e-9) == found.L2
    assert found.L2 >= L2 * (1.0 - 1e-15)
    assert found.radius == radius


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [*SHARP, *OTHERS])
def test_hessians_in_the_set_are_below(name: str) -> None:
    text, start, radius = (SHARP | OTHERS)[name][:3]
    model, centre = model_of(text), np.array(start)
    found, within = model.bounds(centre, radius, "quick"), model._within
    assert within is not None
    assert math.isfinite(found.L1)
    reach = min(radius, 50.0)
    before: tuple[Vector, Vector] | None = None
    for k in range(6):
        z = RNG.standard_normal(len(centre))
        x = centre + z * (reach * (1.0 if k % 2 else RNG.random()) / np.linalg.norm(z))
        within.project(x, x)
        # The projection is not farther from the centre, a point of the set.
        assert np.linalg.norm(x - centre) <= reach * (1.0 + 1e-12)
        H = model.hessian(x)
        assert np.linalg.norm(H, 2) <= found.L1 * (1.0 + 1e-9)
        if before is not None:
            apart = np.linalg.norm(x - before[0])
            assert np.linalg.norm(H - before[1], 2) <= found.L2 * apart * (1.0 + 1e-6)
        before = x, H


@pytest.mark.parametrize("method", ["ascent", "pairs"])
def test_samples_stay_in_the_set(method: str) -> None:
    text, centre, radius, L1, L2 = SHARP["many reciprocals"]
    found = model_of(text).sample_bounds(np.array(centre), radius, samples=30, method=method)
    assert 0.0 < found.L1 <= L1
    assert 0.0 < found.L2 <= L2


def test_a_centre_outside_has_the_bounds_of_the_whole_ball() -> None:
    inside = slomodel.compile("var x[8] in [1, 2] minimize sum(x[i]^4 for i in 8)")
    free = slomodel.compile("var x[8] minimize sum(x[i]^4 for i in 8)")
    x = np.array([3.0] + [1.0] * 7)
    assert inside.bounds(x, 1.0).L1 == free.bounds(x, 1.0).L1 > 100.0


def test_infinite_ends_in_data_leave_bounds_finite() -> None:
    text = "data lo[8]\ndata hi[8]\nvar x[8] in [lo, hi]\nminimize sum(x[i]^3 for i in 8)"
    ends = {"lo": np.array([-np.inf] + [0.0] * 7), "hi": np.array([1.0] * 7 + [np.inf])}
    found = slomodel.compile(text, data=ends).bounds(np.zeros(8), 4.0)
    assert pytest.approx(24.0, rel=1e-9) == found.L1
    assert pytest.approx(6.0, rel=1e-9) == found.L2


@pytest.mark.parametrize("unit", [1e30, 1e-30])
def test_other_units(unit: float) -> None:
    model = slomodel.compile("data c\nvar x[4] >= 0 minimize sum(log(c + x[i]) for i in 4)",
                             data={"c": unit})  # fmt: skip
    found = model.bounds(np.full(4, unit), 5.0 * unit)
    assert 1.0 - 1e-12 <= found.L1 * unit * unit <= 1.0 + 1e-9


@pytest.mark.parametrize(("method", "D"), [("pgd", 2.0), ("tgd", "auto")])
def test_certified_steps(method: str, D: object) -> None:
    text = "var x[2] >= 0 minimize sum(log(1 + x[i]) for i in 2) + sum((x[i] - i)^2 for i in 2)"
    model = slomodel.compile(text, backend="numpy")
    found = model.solve(x0=np.full(2, 3.0), method=method, D=D, lipschitz="analytic", verify=True)
    assert found.success
    assert found.certificate.holds
    assert not found.certificate.estimated
    # Stationary points of log(1 + x) + (x − i)².
    best = [0.0, math.sqrt(2.0) / 2.0]
    np.testing.assert_allclose(found.x, best, atol=1e-5)


@pytest.mark.parametrize("declared", ["in simplex", "in ball(2)", "in [-1, 1]"])
def test_certified_steps_end_at_the_boundary(declared: str) -> None:
    model = slomodel.compile(f"var x[8] {declared}\nminimize sum((x[i] - i)^2 for i in 8)")
    found = model.solve(method="tgd", D="auto", verify=True)
    assert found.success
    assert found.certificate.holds
    wanted = np.empty(8)
    assert model._within is not None
    model._within.project(np.arange(8.0), wanted)
    np.testing.assert_allclose(found.x, wanted, atol=1e-6)
