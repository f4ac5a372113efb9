"""A method that records every step, with the fields of the recorded runs."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from solve.objectives import recorded_problem, traces

from slomodel.solve.methods.norm_armijo import NormArmijoRun
from slomodel.solve.methods.std_armijo import StdArmijoRun
from slomodel.solve.objective import Evaluator
from slomodel.solve.run.driver import minimize
from slomodel.solve.run.monitor import Monitor
from slomodel.solve.run.run_state import RunState
from slomodel.solve.run_options import RunOptions
from slomodel.solve.subroutine import AcceptedStep, EpochRegion, Halt, Iterate, Subroutine


@dataclass
class Watched:
    inner: Subroutine
    rows: list[dict[str, Any]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> "WatchedRun":
        run = self.inner.stepper(evaluate, start, tolerance)
        assert isinstance(run, NormArmijoRun | StdArmijoRun)
        return WatchedRun(run, evaluate, self.rows)


@dataclass
class WatchedRun:
    run: NormArmijoRun | StdArmijoRun
    evaluate: Evaluator
    rows: list[dict[str, Any]]

    def enter(self, region: EpochRegion) -> EpochRegion:
        return self.run.enter(region)

    def step(self, current: Iterate, region: EpochRegion) -> AcceptedStep | Halt:
        taken = self.run.step(current, region)
        assert isinstance(taken, AcceptedStep)
        row = {"x": taken.point.x.copy(), "f": taken.point.f, "gnorm": taken.point.gnorm}
        row |= {"step": taken.length, "nfev": self.evaluate.nfev, "ngev": self.evaluate.njev}
        run = self.run
        row |= {"delta": run.delta, "delta_first": run.delta_first, "trials": run.trials}
        self.rows.append(row | {"by_rounding": taken.by_rounding})
        return taken


def watched_rows(case: dict[str, Any], method: Subroutine) -> list[dict[str, Any]]:
    """Every step of `method` on a recorded case, one dict a step."""
    params = case["params"]
    x0 = np.array(traces()["problems"][case["problem"]]["x0"])
    watched = Watched(method)
    controls = RunOptions(gtol=params["gtol"], scaled=False, max_iter=params["max_iter"])
    evaluate = Evaluator(recorded_problem(case["problem"]), controls)
    start = Iterate(x0, np.nan, np.empty_like(x0), np.nan)
    minimize(watched, evaluate, Monitor(evaluate, None, None), RunState(start, controls))
    return watched.rows
