"""Steps with proved descent: their majorant, their runs, and the inequalities of these."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import slomodel
from slomodel.calculus.rays.bounds import RayBounds
from slomodel.errors import DomainError
from slomodel.solve import Functions, solve
from slomodel.solve.line_search.certified import (
    SIGMA,
    CertifiedSearch,
    balanced,
    majorant,
    proved_step,
)
from slomodel.solve.line_search.proved_values import ProvedValues
from slomodel.solve.subroutine import Iterate

RNG = np.random.default_rng(5)
DATA = {"A": RNG.normal(size=(60, 5)), "y": np.sign(RNG.normal(size=60))}
LOGISTIC = """
dim N, d
data A[N, d], y[N]
var x[d] init normal(0, 1)
minimize sum(softplus(-y .* (A @ x))) + 0.1*sum(x^2 / (1 + x^2))
"""
NETWORK = """
dim N, d, h = 4
data A[N, d], y[N]
var W[h, d], v[h] init normal(0, 1)
minimize mean((tanh(A @ W') @ v - y)^2)
"""


def _bounds(slope: float, upper: float, T: float, curvature: float, third: float) -> RayBounds:
    ends = {"upper": upper, "third_upper": third}
    ends |= {"remainder_upper": upper, "third_remainder_upper": third}
    errors = {"value_error": 0.0, "slope_error": 0.0, "curvature_error": 0.0}
    return RayBounds(T, 0.0, slope, curvature, **ends, **errors)


@pytest.mark.parametrize("seed", range(20))
def test_a_step_minimises_the_majorant(seed: int) -> None:
    """On a grid, the lesser of parabola and cubic is nowhere lower than at the step by much."""
    rng = np.random.default_rng(seed)
    s, M, T = -float(rng.exponential()), float(rng.normal()), float(rng.exponential())
    c, m3 = min(M, float(rng.normal())), float(rng.normal())
    M = max(M, c + max(m3, 0.0) * T)
    found = _bounds(s, M, T, c, m3)
    step = proved_step(found)
    assert step is not None
    shorter = proved_step(found, 0.8)
    assert shorter is not None
    parabola = min(T, -s / M) if M > 0.0 else T
    fall = s * parabola + M * parabola**2 / 2
    assert shorter.limited or majorant(found, shorter.t) <= 0.96 * (1.0 - 1e-8) * fall
    assert shorter.t in (step.t, 0.8 * step.t)

    def lesser(t: np.ndarray) -> np.ndarray:
        cubic = s * t + c * t**2 / 2 + m3 * t**3 / 6
        return np.minimum(s * t + M * t**2 / 2, cubic)

    at = float(lesser(np.array(step.t)))
    quadratic = T if s + M * T <= 0.0 else -s / M
    assert at <= s * quadratic + M * quadratic**2 / 2 + 1e-12
    assert at <= SIGMA * s * step.t + 1e-12
    grid = lesser(np.linspace(0.0, T, 2001))
    sufficient = grid <= SIGMA * s * np.linspace(0.0, T, 2001)
    assert at <= grid[sufficient].min() + 1e-3 * abs(s) * T


def test_nothing_is_proved_without_a_slope_or_a_bound() -> None:
    assert proved_step(_bounds(1.0, 1.0, 1.0, 1.0, 0.0)) is None
    assert proved_step(_bounds(-1.0, math.inf, 1.0, 1.0, 0.0)) is None


@pytest.mark.parametrize(
    ("text", "direction"), [(LOGISTIC, "gradient"), (LOGISTIC, "lbfgs"), (NETWORK, "newton-cg")]
)
def test_runs_descend_and_satisfy_the_theorem(text: str, direction: str) -> None:
    model = slomodel.compile(text, data=DATA)
    found = model.solve(
        "norm-armijo", line_search="certified", direction=direction, verify=True, max_iter=300
    )
    reference = model.solve("norm-armijo", direction=direction, max_iter=3000)
    assert np.all(np.diff(found.history.fun) <= 1e-12 * abs(found.history.fun[0]))
    assert found.certificate is not None
    assert found.certificate.holds, found.certificate.summary
    assert found.parameters["line_search"] == "certified"
    if text is LOGISTIC:
        assert found.success
        assert found.fun == pytest.approx(reference.fun, rel=1e-6)


class _QuadraticWithErrors:
    """f = x²/2 + 10 with values and gradients off by up to these errors, at random."""

    def __init__(self, error: float) -> None:
        self.error = error
        self.calls = 0
        self._rng = np.random.default_rng(2)

    def value(self, x: np.ndarray) -> float:
        self.calls += 1
        return 10.0 + float(x @ x) / 2.0 + self.error * self._rng.uniform(-1.0, 1.0)

    def value_with_error(
        self, x: np.ndarray, out: np.ndarray, again: bool = False
    ) -> tuple[float, float, float]:
        out[:] = x
        return self.value(x), self.error, float(np.linalg.norm(x))


@pytest.mark.parametrize("error", [0.0, 1e-9, 1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("first", [0.3, 1.1, 1.9, 40.0])
def test_steps_that_values_prove_have_their_descent(error: float, first: float) -> None:
    """σ = 0.4 is the descent of δ <= 1.2; where errors could hide it there is no step."""
    f = _QuadraticWithErrors(error)
    start = Iterate(np.full(2, 0.1), 10.01, np.full(2, 0.1), math.sqrt(0.02))
    search = ProvedValues(f, start, 0.5, 0.4)  # type: ignore[arg-type]
    found = search.search(start, -start.g, start.gnorm, first)
    if found is None:
        assert error > 1e-9
        assert f.calls <= 10
        return
    assert error <= 1e-3
    assert 10.01 - 10.0 - float(found.point.x @ found.point.x) / 2.0 >= 0.4 * found.delta * 0.02
    assert found.delta in [first / 2**k for k in range(8)]
    assert 0.5 * min(first, 1.1) <= found.delta <= 1.2


def test_far_from_a_minimum_certified_runs_take_the_steps_of_armijo() -> None:
    """Each is proved by the value that Armijo's search computes; near the minimum, by rays."""
    model = slomodel.compile(NETWORK, data=DATA)
    runs = [
        model.solve("norm-armijo", line_search=search, direction="lbfgs", max_iter=15)
        for search in ("armijo", "certified")
    ]
    assert runs[0].history.fun == pytest.approx(runs[1].history.fun, rel=1e-9)
    assert runs[1].nfev <= runs[0].nfev + 1
    assert model.value_with_error(runs[1].x)[1] <= 1e-12


@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
def test_values_that_overflow_have_no_bound_on_their_errors() -> None:
    model = slomodel.compile("var x, a minimize a / cosh(x^2) + sinh(a - x)", backend="numpy")
    for x in ([-1e8, 0.5], [1e8, 1e8], [800.0, -800.0], [1e200, 0.0]):
        assert model.value_with_error(np.array(x))[1] == math.inf


def test_steps_descend_in_60_digits() -> None:
    """By what the line search asks for, with the gradient as computed."""
    model = slomodel.compile(LOGISTIC, data=DATA, backend="numpy")
    points: list[np.ndarray] = []
    found = model.solve(
        "norm-armijo",
        line_search="certified",
        direction="gradient",
        gtol=1e-300,
        max_iter=60,
        callback=lambda state: points.append(state.x.copy()),
    )
    assert len(points) > 10
    with mpmath.workdps(60):
        rows = [
            [mpmath.mpf(-y) * mpmath.mpf(a) for a in row]
            for row, y in zip(*DATA.values(), strict=True)
        ]
        values = []
        for point in points:
            x = [mpmath.mpf(one) for one in point.tolist()]
            losses = (mpmath.log1p(mpmath.exp(mpmath.fdot(row, x))) for row in rows)
            penalty = mpmath.fsum(one**2 / (1 + one**2) for one in x)
            values.append(mpmath.fsum(losses) + mpmath.mpf(0.1) * penalty)
        for before, after, f, new in zip(points, points[1:], values, values[1:], strict=False):
            g = model.gradient(before)
            assert f - new >= 0.299 * np.linalg.norm(g) * np.linalg.norm(after - before)
    assert found.status in ("precision", "max_iter", "converged")


class _LooseOverLongRays:
    """M grows with the ray as bounds by centred forms do: 1 over short ones, e^40 over T = 1."""

    def ray_bounds(
        self, x: np.ndarray, v: np.ndarray, T: float, precise: bool = False
    ) -> RayBounds:
        return _bounds(-1.0, math.exp(40.0 * T), T, 1.0, math.inf)

    def value_and_gradient(self, x: np.ndarray, out: np.ndarray) -> tuple[float, float]:
        out[:] = -1.0
        return float(-x[0]), 1.0


class _UnprovedOverLongRays(_LooseOverLongRays):
    """Over rays longer than 1e-3 nothing is proved, the slope at 0 neither."""

    def ray_bounds(
        self, x: np.ndarray, v: np.ndarray, T: float, precise: bool = False
    ) -> RayBounds:
        if T > 1e-3:
            found = _bounds(-1.0, math.inf, T, 1.0, math.inf)
            return found._replace(slope_error=math.inf, curvature_error=math.inf)
        return _bounds(-1.0, 1.0, T, 1.0, 0.0)


class _SlopeBelowItsError(_LooseOverLongRays):
    """The slope -1 has an error of 2 by rounding and of T² by the range of the ray."""

    def ray_bounds(
        self, x: np.ndarray, v: np.ndarray, T: float, precise: bool = False
    ) -> RayBounds:
        return _bounds(-1.0, 1.0, T, 1.0, 0.0)._replace(slope_error=2.0 + T * T)


def test_a_long_ray_without_any_proof_is_shortened() -> None:
    start = Iterate(np.zeros(1), 0.0, -np.ones(1), 1.0)
    search = CertifiedSearch(_UnprovedOverLongRays(), start)  # type: ignore[arg-type]
    found = search.search(start, np.ones(1), 1.0, 1.0)
    assert found is not None
    assert 2e-4 <= found.delta <= 1e-3
    assert not search.unproved


def test_a_slope_below_its_error_ends_the_search() -> None:
    start = Iterate(np.zeros(1), 0.0, -np.ones(1), 1.0)
    search = CertifiedSearch(_SlopeBelowItsError(), start)  # type: ignore[arg-type]
    assert search.search(start, np.ones(1), 1.0, 100.0) is None
    assert "rounding error" in search.unproved
    assert search.trials <= 8


@pytest.mark.parametrize("proposed", [0.1, 0.5, 1.3, 1.5])
def test_a_proposed_step_is_taken_where_its_descent_is_proved(proposed: float) -> None:
    """With φ = -t + t²/2 a step t descends by 0.3 t if and only if t <= 1.4."""

    class Parabola(_LooseOverLongRays):
        def ray_bounds(
            self, x: np.ndarray, v: np.ndarray, T: float, precise: bool = False
        ) -> RayBounds:
            return _bounds(-1.0, 1.0, T, 1.0, 0.0)

    start = Iterate(np.zeros(1), 0.0, -np.ones(1), 1.0)
    search = CertifiedSearch(Parabola(), start, 0.3, 0.8)  # type: ignore[arg-type]
    found = search.search(start, np.ones(1), 1.0, 8.0, proposed)
    assert found is not None
    assert found.delta == (proposed if proposed <= 1.4 else 0.8)
    assert search.trials == 1


def test_a_shorter_ray_is_tried_where_a_long_one_proves_little() -> None:
    """The longest step of all T solves t = exp(-40 t): the search comes within a factor of 2."""
    start = Iterate(np.zeros(1), 0.0, -np.ones(1), 1.0)
    search = CertifiedSearch(_LooseOverLongRays(), start)  # type: ignore[arg-type]
    found = search.search(start, np.ones(1), 1.0, 1.0)
    assert found is not None
    longest = 0.0674
    assert longest == pytest.approx(math.exp(-40.0 * longest), rel=0.1)
    assert 0.5 * longest <= found.delta <= longest
    assert search.trials <= 8


def test_a_maximum_is_climbed() -> None:
    model = slomodel.compile("var x, y\nmaximize log(1 + exp(-x^2 - y^2)) - (x - 1)^2/10")
    found = model.solve("norm-armijo", line_search="certified", x0=[1.0, 0.7])
    assert found.success
    assert np.all(np.diff(found.history.fun) >= -1e-14)


def test_a_resumed_run_takes_the_same_steps(tmp_path) -> None:
    model = slomodel.compile(LOGISTIC, data=DATA)
    options = {"line_search": "certified", "direction": "lbfgs"}
    whole = model.solve("norm-armijo", **options, max_iter=12)
    file = tmp_path / "run.npz"
    model.solve("norm-armijo", **options, max_iter=5, checkpoint=file)
    again = model.solve("norm-armijo", **options, max_iter=12, resume=file)
    assert np.array_equal(whole.x, again.x)


def test_where_nothing_can_be_proved_the_run_stops() -> None:
    with pytest.warns(slomodel.NonsmoothWarning):
        model = slomodel.compile("var x\nminimize abs(x) + x^2")
    found = model.solve("norm-armijo", line_search="certified", x0=[0.0 + 1e-3])
    assert abs(found.x[0]) <= 1e-3


def test_plain_functions_have_no_bounds_along_rays() -> None:
    plain = Functions(lambda x: float(x @ x), lambda x: 2.0 * x, 2)
    with pytest.raises(DomainError, match="certified"):
        solve(plain, np.ones(2), method="norm-armijo", line_search="certified")


@pytest.mark.parametrize(("start", "upper"), [(1.0, 5.0), (0.0, 8e4), (-3.0, 1e6), (2.0, 2.1)])
def test_a_balanced_ray_reaches_the_minimiser_of_its_parabola(start: float, upper: float) -> None:
    """c T + b T³ = |s|, b = (M - c)/T₀² and c the curvature at 0, or 0 where that is negative."""
    bounds = _bounds(-1.0, upper, 2.0, start, math.inf)
    T, c = balanced(bounds), max(start, 0.0)
    assert 0.0 < T <= 2.0
    assert c * T + (upper - c) / 4.0 * T**3 == pytest.approx(1.0, rel=0.05)
