"""Stagnation: which point counts as the best, and when a run has nothing left to gain."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from solve.objectives import Vector, parabola

import slomodel
from slomodel.solve import Functions, Status
from slomodel.solve.directions.direction import IDLE_STEPS
from slomodel.solve.methods.ball import ball_of_a_step
from slomodel.solve.norms import EPS, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.run.driver import minimize
from slomodel.solve.run.monitor import Monitor
from slomodel.solve.run.run_state import RunState
from slomodel.solve.run_options import RunOptions
from slomodel.solve.stagnation.resolution import Resolution, spread_across
from slomodel.solve.stagnation.stagnation import LOWERED, SHORT, Stagnation
from slomodel.solve.subroutine import (
    ConstantsOver,
    EpochRegion,
    Halt,
    Iterate,
    TheoremInequality,
)


def point(f: float, gnorm: float) -> Iterate:
    return Iterate(np.array([f]), f, np.array([gnorm]), gnorm)


def test_best_is_the_least_gradient_among_points_that_f_cannot_distinguish() -> None:
    resolution = Resolution(point(1.0, 8.0))
    resolution.record(point(0.5, 4.0))
    assert resolution.best is None
    last = point(0.5 - EPS, 1.0)
    resolution.record(last)
    resolution.record(point(0.5 - 2.0 * EPS, 2.0))
    assert resolution.best is not None
    assert resolution.best.gnorm == 1.0
    assert resolution.best.x is not last.x
    resolution.record(point(0.4, 3.0))
    assert resolution.best is None


def test_noise_of_what_cancels_between_variables_is_seen() -> None:
    def loss(x: Vector) -> float:
        return float(np.logaddexp(x[0], x[1]) - x[0])

    x = np.array([1e5, 1e5 - 0.2])
    at = Iterate(x, loss(x), np.array([-0.45, 0.45]), 0.64)
    objective = Functions(loss, lambda x: np.zeros(2), 2)
    evaluate = Evaluator(objective, RunOptions())
    assert spread_across(evaluate, at) > 0.1 * EPS * norm(x)


def test_noise_is_measured_before_long_searches_at_the_floor() -> None:
    # Watson's function: its residuals are far larger than their sum of squares resolves.
    text = """dim n = 12
        let t[i in 29] = (i + 1)/29
        var x[n]
        minimize sum((sum(j*x[j]*t[i]^(j-1) for j in range(1, n)) - sum(x[j]*t[i]^j for j in n)^2
            - 1)^2 for i in 29) + x[0]^2 + (x[1] - x[0]^2 - 1)^2"""
    model = slomodel.compile(text, backend="numpy")
    for seed in range(3):
        found = model.solve(seed=seed, gtol=1e-9)
        assert found.success, found.message
        assert found.nfev < 400


@pytest.mark.parametrize(
    ("factor_f", "factor_g", "length", "ends"),
    [
        (1.0, 1.0, 1.0, True),
        (1.0, 0.99999, 1.0, True),
        (1.0, 0.5 * LOWERED, 1.0, False),
        (0.5, 1.0, 1.0, False),
        (1.0 - 1e-6, 1.0, 0.1 * SHORT, True),
        (2.0, 1.0, 0.1 * SHORT, False),
    ],
    ids=[
        *("nothing", "ulps of the gradient", "gradient", "value"),
        *("value by tiny steps", "value beyond all bounds by tiny steps"),
    ],
)
def test_a_run_ends_when_nothing_is_gained(
    factor_f: float, factor_g: float, length: float, ends: bool
) -> None:
    f, gnorm = (-1.0 if factor_f > 1.0 else 1.0), 1.0
    evaluate = Evaluator(parabola(), RunOptions())
    stagnation = Stagnation.of_searches(evaluate, point(f, gnorm))
    answers = []
    for _ in range(IDLE_STEPS):
        f, gnorm = f * factor_f, gnorm * factor_g
        answers.append(stagnation.after(point(f, gnorm), length))
    assert answers == [False] * (IDLE_STEPS - 1) + [ends]


@dataclass
class Halting:
    """A subroutine that ends at once with a better point."""

    better: Iterate
    name: str = "halting"
    own_test: bool = False
    linearises: bool = False
    second_descent: None = None

    @property
    def parameters(self) -> dict[str, float | str]:
        return {}

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        return ()

    def region(self, start: Iterate, constants: ConstantsOver | None) -> EpochRegion:
        return ball_of_a_step(start, 1.0)

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> "Halting":
        return self

    def enter(self, region: EpochRegion) -> EpochRegion:
        return region

    def step(self, current: Iterate, region: EpochRegion) -> Halt:
        return Halt(Status.precision, "seen", self.better)


def test_the_better_point_of_a_halt_is_the_result() -> None:
    controls = RunOptions()
    evaluate = Evaluator(parabola(), controls)
    run = RunState(Iterate(np.zeros(2), 0.0, np.zeros(2), 0.0), controls)
    better = Iterate(np.ones(2), 0.5, np.ones(2), 1.0)
    minimize(Halting(better), evaluate, Monitor(evaluate, None, None), run)
    assert (run.status, run.detail) == (Status.precision, "seen")
    assert_array_equal(run.current.x, 1.0)
