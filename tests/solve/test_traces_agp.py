"""Recorded runs of agp are reproduced as far as each is stable: points, flags, candidates."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from solve.objectives import Vector, cases, recorded_constants, recorded_problem, traces

from slomodel.solve import Solution, State, solve

RELATIVE = 1e-8
CASES = cases("agp")
EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
FACTS = ("flag", "t", "nc_u", "nc_j", "w", "b1", "chosen")


@cache
def recorded(name: str) -> tuple[Solution, list[State], list[float]]:
    """The run of a case, its states, and the radii that constants were asked for over."""
    (case,) = [case for case in CASES if case["id"] == name]
    params, states, radii = case["params"], list[State](), list[float]()
    constants = recorded_constants(case["problem"])

    def asked(centre: Vector, radius: float) -> tuple[float, float]:
        radii.append(radius)
        return constants(centre, radius)

    found = solve(
        recorded_problem(case["problem"]),
        traces()["problems"][case["problem"]]["x0"],
        method="agp",
        gtol=params["gtol"],
        scaled=False,
        max_iter=params["max_iter"],
        D=params["D"],
        lift="paper",
        lipschitz=asked,
        callback=states.append,
    )
    return found, states, radii


def test_the_cases_have_every_flag_and_candidate() -> None:
    rows = [row for case in CASES for row in case["rows"] if "flag" in row]
    assert {row["flag"] for row in rows} == {1, 2, 3, 4, 5}
    assert {row["chosen"] for row in rows} == {"p", "b1", "b2"}
    assert {row.get("w") for row in rows} == {None, "y0", "z"}


@EACH
def test_rows(case: dict[str, Any]) -> None:
    found, states, _ = recorded(case["id"])
    stable = case["stability"]["stable_upto_k"]
    for row in case["rows"]:
        k = row["k"]
        if k > stable:
            continue
        state = states[k]
        assert_allclose(state.x, row["x"], rtol=RELATIVE, atol=1e-9)
        assert_allclose(state.fun, row["f"], rtol=RELATIVE, atol=1e-12)
        assert_allclose(state.gradient_norm, row["gnorm"], rtol=RELATIVE, atol=1e-8)
        assert_allclose(state.step, row["step"] or 0.0, rtol=RELATIVE, atol=1e-9)
        assert state.epoch == row["epoch"]
        if k == 0:
            continue
        call = found.calls[k - 1]
        assert {name: call.get(name) for name in FACTS} == {n: row.get(n) for n in FACTS}, k
        assert_allclose(call["alpha"], row["alpha"], rtol=RELATIVE)
        assert_allclose(call["kappa"], row["kappa"], rtol=RELATIVE)
        # The recording counts the value at a point on the boundary with the next step.
        assert 0 <= state.nfev - row["nfev"] <= 1
        assert state.njev == row["ngev"]
        if k < found.nit:
            assert (states[k + 1].epoch > state.epoch) == row["epoch_end"]
    assert found.violations == 0


@EACH
def test_epochs_and_end(case: dict[str, Any]) -> None:
    found, states, radii = recorded(case["id"])
    assert_allclose(radii, 3.0 * case["params"]["D"])
    if case["stability"]["stable_upto_k"] < case["nit"]:
        return
    for ours, theirs in zip(found.epochs, case["epochs"], strict=True):
        assert (ours.first, ours.iterations) == (theirs["epoch"], theirs["iterations"])
        assert_allclose((ours.L1, ours.L2), (theirs["L1"], theirs["L2"]), rtol=RELATIVE)
    assert found.status == {"gtol": "converged"}.get(case["status"], case["status"])
    assert found.nit == case["nit"]
    assert_allclose(states[-1].x, case["x_final"], rtol=RELATIVE, atol=1e-9)
    assert np.all(np.diff(found.history.fun) <= 0.0)
