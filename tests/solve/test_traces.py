"""Recorded runs of the line searches are reproduced as far as each is stable."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from solve.objectives import cases, recorded_problem, traces
from solve.watched import watched_rows

from slomodel.solve import Solution, solve
from slomodel.solve.methods.table import method_of

# Ours and the recording evaluate f by different formulas; the stable rows hold to 1e-9.
RELATIVE = 1e-8
# x agrees to about 1e-13 and no stable part has a Hessian norm above 100; δ is δ̄/‖g‖.
GRADIENT_ERROR = 1e-11
NAMES = ("delta_bar", "theta", "sigma", "initial_step")
CASES = cases("norm-armijo") + cases("std-armijo")


def options(case: dict[str, Any]) -> dict[str, Any]:
    """The options of the case's method."""
    return {name: value for name, value in case["params"].items() if name in NAMES}


def solution(case: dict[str, Any]) -> Solution:
    params = case["params"]
    return solve(
        recorded_problem(case["problem"]),
        traces()["problems"][case["problem"]]["x0"],
        method=case["method"],
        gtol=params["gtol"],
        scaled=False,
        max_iter=params["max_iter"],
        **options(case),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_rows(case: dict[str, Any]) -> None:
    x0 = np.array(traces()["problems"][case["problem"]]["x0"])
    method, _ = method_of(case["method"], options(case), x0, case["params"]["gtol"])
    ours = watched_rows(case, method)
    stable = case["stability"]["stable_upto_k"]
    compared = [row for row in case["rows"] if 0 < row["k"] <= stable]
    assert compared
    for row in compared:
        own = ours[row["k"] - 1]
        assert not own["by_rounding"]
        for name in ("trials", "nfev", "ngev"):
            assert own[name] == row[name], (row["k"], name)
        for name in ("f", "step"):
            assert_allclose(own[name], row[name], rtol=RELATIVE, atol=1e-14, err_msg=name)
        assert_allclose(own["gnorm"], row["gnorm"], rtol=RELATIVE, atol=GRADIENT_ERROR)
        for name in ("delta", "delta_first"):
            share = GRADIENT_ERROR / row["gnorm"]
            assert_allclose(own[name], row[name], rtol=RELATIVE + share, err_msg=name)
        assert_allclose(own["x"], row["x"], rtol=RELATIVE, atol=1e-12)


FULLY_STABLE = [case for case in CASES if case["stability"]["stable_upto_k"] == case["nit"]]


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
