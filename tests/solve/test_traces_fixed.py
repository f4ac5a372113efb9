"""Recorded runs of gd, ngd, adgd and bpg are reproduced as far as each is stable."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from solve.objectives import cases, recorded_problem, traces

from slomodel.solve import Solution, State, solve

RELATIVE = 1e-8
METHODS = ("gd", "ngd", "adgd", "bpg")
CASES = [case for method in METHODS for case in cases(method)]
EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
OPTIONS = ("L", "p", "d", "lam0")


@cache
def recorded(name: str) -> tuple[Solution, list[State]]:
    """The run of a case and its states."""
    (case,) = [case for case in CASES if case["id"] == name]
    params, states = case["params"], list[State]()
    found = solve(
        recorded_problem(case["problem"]),
        traces()["problems"][case["problem"]]["x0"],
        method=case["method"],
        gtol=params["gtol"],
        scaled=False,
        max_iter=params["max_iter"],
        callback=states.append,
        **{name: params[name] for name in OPTIONS if name in params},
    )
    return found, states


def test_there_are_cases_of_each() -> None:
    assert [len(cases(method)) for method in METHODS] == [4, 3, 5, 3]


@EACH
def test_rows(case: dict[str, Any]) -> None:
    found, states = recorded(case["id"])
    stable = case["stability"]["stable_upto_k"]
    compared = [row for row in case["rows"] if row["k"] <= stable]
    assert len(compared) > 10
    for row in compared:
        state = states[row["k"]]
        assert_allclose(state.x, row["x"], rtol=RELATIVE, atol=1e-12)
        assert_allclose(state.fun, row["f"], rtol=RELATIVE, atol=1e-14)
        assert_allclose(state.gradient_norm, row["gnorm"], rtol=RELATIVE, atol=1e-11)
        assert_allclose(state.step, row["step"] or 0.0, rtol=RELATIVE, atol=1e-9)
        assert state.njev == row["ngev"]
        assert state.epoch == row["epoch"]
    assert found.violations == 0


@EACH
def test_end(case: dict[str, Any]) -> None:
    found, states = recorded(case["id"])
    if case["stability"]["stable_upto_k"] < case["nit"]:
        return
    assert found.status == {"gtol": "converged"}.get(case["status"], case["status"])
    assert (found.nit, found.njev) == (case["nit"], case["ngev"])
    assert_allclose(states[-1].x, case["x_final"], rtol=RELATIVE, atol=1e-12)
    # A run that ends at a limit gives its lowest point.
    lowest = min(state.fun for state in states)
    assert found.fun == (states[-1].fun if found.success else lowest)
    assert recorded_problem(case["problem"]).value(found.x) == found.fun
    assert np.array_equal(found.x, states[int(np.argmin(found.history.fun))].x) or found.success
