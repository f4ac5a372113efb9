"""Laws of every step: descent, Armijo or the rule of the floor, length at most δ̄."""

from dataclasses import dataclass
from itertools import pairwise
from math import hypot

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize as scipy_minimize
from scipy.optimize import rosen, rosen_der
from solve.objectives import Vector, recorded_problem, traces

from slomodel.solve import Functions, Objective, State, solve
from slomodel.solve.line_search.interpolating import _shortened
from slomodel.solve.norms import EPS
from slomodel.solve.stagnation.resolution import ROUNDING

# The solver assumes ROUNDING·eps and may measure a few times more near a minimum.
NOISE = 4.0 * ROUNDING * EPS
PROBLEMS = sorted(traces()["problems"])
SMALL = st.floats(-2.0, 2.0)


@dataclass(frozen=True)
class Step:
    """Two neighbouring points of a run with values and gradients."""

    x: Vector
    new: Vector
    f: float
    f_new: float
    g: Vector
    g_new: Vector

    def passes(self, sigma: float, lowest: float, noise: float) -> bool:
        """Armijo, or f within its noise and ‖g‖ lower; rounding of σδ⟨g,v⟩ allowed."""
        decrease = sigma * float(self.g @ (self.new - self.x))
        slack = 4.0 * EPS * (hypot(*self.g) * hypot(*self.x) + abs(decrease))
        armijo = self.f_new <= self.f + decrease + slack and self.f_new < self.f
        level = abs(self.f_new - self.f) <= noise and self.f_new <= lowest + noise
        return armijo or (level and hypot(*self.g_new) <= hypot(*self.g) * (1.0 + 4.0 * EPS))


def steps_of(objective: Functions, x0: Vector, **options: object) -> list[Step]:
    seen: list[State] = []
    solve(objective, x0, callback=seen.append, max_iter=60, **options)
    return [
        Step(a.x, b.x, a.fun, b.fun, objective.jac(a.x), objective.jac(b.x))
        for a, b in pairwise(seen)
    ]


def ulp_spread(objective: Functions, x: Vector) -> float:
    """The largest change of f over a few ulps of x."""
    shifts = 1.0 + EPS * np.arange(-4.0, 5.0)
    return max(abs(objective.value(x * shift) - objective.value(x)) for shift in shifts)


@settings(max_examples=150)
@given(
    name=st.sampled_from(PROBLEMS),
    start=st.lists(SMALL, min_size=6, max_size=6),
    delta_bar=st.sampled_from([0.05, 1.0, 30.0]),
    sigma=st.floats(0.01, 0.9),
    theta=st.floats(0.1, 0.9),
    direction=st.sampled_from(["gradient", "lbfgs", "cg"]),
    initial_step=st.sampled_from(["full", "bb", "unit", "memory"]),
)
def test_every_step_keeps_the_laws(
    name: str, start: list[float], delta_bar: float, sigma: float, **options: object
) -> None:
    objective = recorded_problem(name)
    steps = steps_of(
        objective,
        np.array(start[: objective.n]),
        delta_bar=delta_bar,
        sigma=sigma,
        gtol=0.0,
        **options,
    )
    lowest, spread = np.inf, 0.0
    for step in steps:
        lowest, spread = min(lowest, step.f), max(spread, ulp_spread(objective, step.x))
        noise = NOISE * abs(step.f) + 4.0 * spread
        assert step.passes(sigma, lowest, noise)
        assert step.f_new <= lowest + noise
        length = hypot(*(step.new - step.x))
        assert 0.0 < length <= delta_bar * (1 + 4 * EPS) + EPS * hypot(*step.x)


def test_a_poor_direction_is_replaced_and_the_memory_kept() -> None:
    def count(alpha: float) -> int:
        objective = Functions(rosen, rosen_der, 10)
        return solve(objective, np.tile([-1.2, 1.0], 5), method="auto", alpha=alpha).nit

    assert count(1e-4) < count(0.999)


@pytest.mark.parametrize("direction", ["gradient", "lbfgs"])
def test_a_first_step_below_the_resolution_of_x_is_not_the_end(direction: str) -> None:
    wall = Functions(
        lambda x: float(x[0] + 1e20 * max(0.0, -x[0])),
        lambda x: np.array([1.0 if x[0] >= 0.0 else 1.0 - 1e20]),
        1,
    )
    found = solve(wall, [-0.5], direction=direction, initial_step="bb", max_iter=2)
    assert found.history.fun[1] == 0.5
    assert (found.status, found.nit) == ("max_iter", 2)
    assert found.fun < 0.5


def test_theta_and_delta_bar_give_the_trials() -> None:
    cubic = Functions(lambda x: float(x[0] ** 2), lambda x: 2.0 * x, 1)
    tried: list[float] = []

    @dataclass
    class Listening:
        n: int = 1

        def value(self, x: Vector) -> float:
            tried.append(float(x[0]))
            return cubic.value(x)

        def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
            return cubic.value_and_gradient(x, out)

    listening: Objective = Listening()
    solve(listening, [1.0], delta_bar=8.0, theta=0.25, max_iter=1, initial_step="full")
    assert_allclose(tried, [1.0, -7.0, -1.0, 0.5])


def logistic() -> tuple[Functions, Vector]:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 8))
    y = np.sign(X @ generator.normal(size=8) + generator.normal(size=60))
    return (
        Functions(
            lambda w: float(np.logaddexp(0.0, -y * (X @ w)).sum() + 0.5 * w @ w),
            lambda w: X.T @ (-y / (1.0 + np.exp(y * (X @ w)))) + w,
            8,
        ),
        np.zeros(8),
    )


CLASSICS = {
    "rosenbrock 2": (Functions(rosen, rosen_der, 2), np.array([-1.2, 1.0])),
    "rosenbrock 30": (Functions(rosen, rosen_der, 30), np.tile([-1.2, 1.0], 15)),
    "logistic": logistic(),
    "expsum": (recorded_problem("expsum"), np.array([3.0, -2.0, 1.0])),
}


@pytest.mark.parametrize("name", CLASSICS)
def test_same_minimiser_as_scipy_for_about_as_many_values(name: str) -> None:
    objective, x0 = CLASSICS[name]
    ours = solve(objective, x0, method="auto")
    peer = scipy_minimize(
        objective.fun, x0, jac=objective.jac, method="L-BFGS-B", options={"gtol": 1e-7, "ftol": 0.0}
    )
    assert ours.status == "converged"
    assert_allclose(ours.x, peer.x, atol=1e-5)
    assert ours.fun <= peer.fun + 1e-9
    assert ours.nfev <= 1.5 * peer.nfev + 5


def test_bb_needs_fewer_values_than_full() -> None:
    objective = recorded_problem("expsum")
    full, bb = (solve(objective, [3.0, -2.0, 1.0], initial_step=s) for s in ("full", "bb"))
    assert bb.nfev < full.nfev / 2


def test_trials_whose_squares_vanish_are_shortened_all_the_same() -> None:
    for delta in (1e-100, 1e-161, 1e-170, 1e-300):
        trial = _shortened(1.0, -1.0, delta, 2.0, (4.0 * delta, 3.0))
        assert 0.0 < trial < delta
