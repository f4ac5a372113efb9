"""Recorded runs of norm-armijo are reproduced as far as each is stable."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from solve.objectives import cases, recorded_problem, traces

from slomodel.solve import Solution, solve
from slomodel.solve.controls import Controls
from slomodel.solve.methods import norm_armijo
from slomodel.solve.monitor import Monitor
from slomodel.solve.norm_armijo import NormArmijo, NormArmijoRun
from slomodel.solve.objective import Evaluator
from slomodel.solve.slo import Run, minimize
from slomodel.solve.subroutine import Halt, Iterate, Region, Step

# Ours and the recording evaluate f by different formulas; the stable rows hold to 1e-9.
RELATIVE = 1e-8
# x agrees to about 1e-13 and no stable part has a Hessian norm above 100; δ is δ̄/‖g‖.
GRADIENT_ERROR = 1e-11
NAMES = ("delta_bar", "theta", "sigma", "initial_step")


@dataclass
class Watched:
    """NormArmijo with every step written down."""

    inner: NormArmijo
    rows: list[dict[str, Any]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def stepper(self, evaluate: Evaluator, start: Iterate) -> "WatchedRun":
        return WatchedRun(self.inner.stepper(evaluate, start), evaluate, self.rows)


@dataclass
class WatchedRun:
    run: NormArmijoRun
    evaluate: Evaluator
    rows: list[dict[str, Any]]

    def step(self, current: Iterate, region: Region) -> Step | Halt:
        taken = self.run.step(current, region)
        assert isinstance(taken, Step)
        row = {"x": taken.point.x.copy(), "f": taken.point.f, "gnorm": taken.point.gnorm}
        row |= {"step": taken.length, "nfev": self.evaluate.nfev, "ngev": self.evaluate.njev}
        run = self.run
        row |= {"delta": run.delta, "delta_first": run.delta_first, "trials": run.trials}
        self.rows.append(row | {"by_rounding": taken.by_rounding})
        return taken


def watched_rows(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Every step of the case, one dict a step."""
    params = case["params"]
    x0 = np.array(traces()["problems"][case["problem"]]["x0"])
    method = Watched(norm_armijo({name: params[name] for name in NAMES}, x0))
    controls = Controls(gtol=params["gtol"], scaled=False, max_iter=params["max_iter"])
    evaluate = Evaluator(recorded_problem(case["problem"]), controls)
    start = Iterate(x0, np.nan, np.empty_like(x0), np.nan)
    minimize(method, evaluate, Monitor(evaluate, None, None), Run(start, controls))
    return method.rows


def solution(case: dict[str, Any]) -> Solution:
    params = case["params"]
    return solve(
        recorded_problem(case["problem"]),
        traces()["problems"][case["problem"]]["x0"],
        gtol=params["gtol"],
        scaled=False,
        max_iter=params["max_iter"],
        **{name: params[name] for name in NAMES},
    )


@pytest.mark.parametrize("case", cases("norm-armijo"), ids=lambda case: case["id"])
def test_rows(case: dict[str, Any]) -> None:
    ours = watched_rows(case)
    stable = case["stability"]["stable_upto_k"]
    compared = [row for row in case["rows"] if 0 < row["k"] <= stable]
    assert compared
    for row in compared:
        mine = ours[row["k"] - 1]
        assert not mine["by_rounding"]
        for name in ("trials", "nfev", "ngev"):
            assert mine[name] == row[name], (row["k"], name)
        for name in ("f", "step"):
            assert_allclose(mine[name], row[name], rtol=RELATIVE, atol=1e-14, err_msg=name)
        assert_allclose(mine["gnorm"], row["gnorm"], rtol=RELATIVE, atol=GRADIENT_ERROR)
        for name in ("delta", "delta_first"):
            share = GRADIENT_ERROR / row["gnorm"]
            assert_allclose(mine[name], row[name], rtol=RELATIVE + share, err_msg=name)
        assert_allclose(mine["x"], row["x"], rtol=RELATIVE, atol=1e-12)


FULLY_STABLE = [
    case for case in cases("norm-armijo") if case["stability"]["stable_upto_k"] == case["nit"]
]


@pytest.mark.parametrize("case", FULLY_STABLE, ids=lambda case: case["id"])
def test_end(case: dict[str, Any]) -> None:
    found = solution(case)
    assert found.status == {"gtol": "converged"}.get(case["status"], case["status"])
    assert (found.nit, found.nfev, found.njev) == (case["nit"], case["nfev"], case["ngev"])
    assert_allclose(found.x, case["x_final"], rtol=RELATIVE, atol=1e-12)
    assert_allclose(found.fun, case["f_final"], rtol=RELATIVE, atol=1e-14)


def test_history_has_the_rows_of_the_recording() -> None:
    case = next(case for case in FULLY_STABLE if case["problem"] == "wells")
    history = solution(case).history
    for row in case["rows"]:
        k = row["k"]
        assert_allclose(history.fun[k], row["f"], rtol=RELATIVE)
        assert_allclose(history.gradient_norm[k], row["gnorm"], rtol=RELATIVE)
        assert_allclose(history.step[k], row["step"] or 0.0, rtol=RELATIVE)
        assert history.epoch[k] == row["epoch"]
    assert np.all(np.diff(history.time) >= 0.0)
