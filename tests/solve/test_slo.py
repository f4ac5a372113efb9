"""Algorithm 1's frame, driven by a truncated gradient subroutine written here."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from solve.objectives import Vector, cases, recorded_problem, traces

from slomodel.solve import solve
from slomodel.solve.constants.source import BallFunction, GivenFunction
from slomodel.solve.methods.ball import ball_with_constant
from slomodel.solve.objective import Evaluator
from slomodel.solve.run.driver import minimize
from slomodel.solve.run.monitor import Monitor
from slomodel.solve.run.run_state import RunState
from slomodel.solve.run_options import RunOptions
from slomodel.solve.subroutine import (
    AcceptedStep,
    ConstantsOver,
    EpochRegion,
    Halt,
    Iterate,
    TheoremInequality,
)


@dataclass(frozen=True)
class Truncated:
    """x − g·min(1/L1, d/‖g‖), the paper's eqn:meta-TG."""

    D: float
    d: float
    name: str = "truncated"
    own_test: bool = False
    linearises: bool = False
    second_descent: None = None
    overshoot: float = 1.0

    @property
    def parameters(self) -> dict[str, float | str]:
        return {}

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        return ()

    def region(self, start: Iterate, constants: ConstantsOver | None) -> EpochRegion:
        return ball_with_constant(start, self.D, self.d, constants)

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> "TruncatedRun":
        return TruncatedRun(self, evaluate)


@dataclass
class TruncatedRun:
    method: Truncated
    evaluate: Evaluator

    def enter(self, region: EpochRegion) -> EpochRegion:
        return region

    def step(self, current: Iterate, region: EpochRegion) -> AcceptedStep | Halt:
        assert region.L1 is not None
        assert region.L2 is None
        rate = self.method.overshoot * min(1.0 / region.L1, region.d / current.gnorm)
        x = current.x - rate * current.g
        g = np.empty_like(x)
        new = Iterate(x, self.evaluate.value(x), g, self.evaluate.gradient(x, g))
        return AcceptedStep(new, rate * current.gnorm, at_boundary=False)


def run_of(problem: str, method: Truncated, controls: RunOptions, source: BallFunction) -> RunState:
    evaluate = Evaluator(recorded_problem(problem), controls)
    x0 = np.array(traces()["problems"][problem]["x0"])
    run = RunState(Iterate(x0, np.nan, np.empty_like(x0), np.nan), controls)
    monitor = Monitor(evaluate, None, None)
    minimize(method, evaluate, monitor, run, GivenFunction(source))
    assert monitor.recorder.history().epoch[-1] <= run.epoch
    return run


def test_epochs_of_a_recorded_run() -> None:
    (case,) = [case for case in cases("tgd") if case["problem"] == "quartic"]
    params = case["params"]
    asked: list[float] = []

    def source(centre: Vector, radius: float) -> tuple[float, float]:
        asked.append(radius)
        return max(4.0, 12.0 * (float(np.linalg.norm(centre)) + radius) ** 2 - 4.0), np.inf

    controls = RunOptions(gtol=params["gtol"], scaled=False, max_iter=params["max_iter"])
    run = run_of("quartic", Truncated(params["D"], params["d"]), controls, source)
    assert run.status == "converged"
    assert set(asked) == {params["D"]}
    records = run.epochs.records()
    assert [r.iterations for r in records] == [e["iterations"] for e in case["epochs"]]
    assert_allclose([r.L1 for r in records], [e["L1"] for e in case["epochs"]], rtol=1e-8)
    assert [r.first for r in records] == list(range(1, len(records) + 1))
    assert_allclose(run.current.x, case["x_final"], rtol=1e-8)


def test_constants_of_agp_are_queried_over_three_times_the_radius() -> None:
    radii: list[float] = []

    def source(centre: Vector, radius: float) -> tuple[float, float]:
        radii.append(radius)
        return 50.0, 7.0

    x0 = traces()["problems"]["quartic"]["x0"]
    solve(recorded_problem("quartic"), x0, method="agp", D=0.5, lipschitz=source, max_iter=5)
    assert set(radii) == {1.5}


def test_a_step_out_of_the_ball_is_a_bug() -> None:
    method = Truncated(0.25, 0.2, overshoot=3.0)
    with pytest.raises(AssertionError, match="left the set"):
        run_of("expsum", method, RunOptions(), lambda centre, radius: (1.0, 1.0))
