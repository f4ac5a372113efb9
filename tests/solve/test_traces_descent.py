"""Recorded runs of pgd and tgd are reproduced as far as each is stable."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from solve.objectives import Vector, cases, recorded_constants, recorded_problem, traces

from slomodel.solve import Solution, State, solve

# Ours and the recording evaluate f by different formulas; the stable rows hold to 1e-9.
RELATIVE = 1e-8
CASES = [*cases("pgd"), *cases("tgd")]
EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])


@cache
def recorded(name: str) -> tuple[Solution, list[Vector], list[float]]:
    """The run of a case, its points, and the radii that constants were asked for over."""
    (case,) = [case for case in CASES if case["id"] == name]
    params, points, radii = case["params"], [], []
    constants = recorded_constants(case["problem"])

    def asked(centre: Vector, radius: float) -> tuple[float, float]:
        radii.append(radius)
        return constants(centre, radius)

    def keep(state: State) -> None:
        points.append(state.x)

    found = solve(
        recorded_problem(case["problem"]),
        traces()["problems"][case["problem"]]["x0"],
        method=case["method"],
        gtol=params["gtol"],
        scaled=False,
        max_iter=params["max_iter"],
        D=params["D"],
        d=params.get("d"),
        lipschitz=asked,
        callback=keep,
    )
    return found, points, radii


def test_there_are_cases_of_both() -> None:
    assert (len(cases("pgd")), len(cases("tgd"))) == (5, 6)
    assert all(case["stability"]["stable_upto_k"] == case["nit"] for case in CASES)


@EACH
def test_rows(case: dict[str, Any]) -> None:
    found, points, _ = recorded(case["id"])
    history, epoch_of = found.history, found.history.epoch
    compared = [row for row in case["rows"] if row["k"] <= case["stability"]["stable_upto_k"]]
    assert len(compared) > 10
    for row in compared:
        k = row["k"]
        assert_allclose(points[k], row["x"], rtol=RELATIVE, atol=1e-12)
        assert_allclose(history.fun[k], row["f"], rtol=RELATIVE, atol=1e-14)
        assert_allclose(history.gradient_norm[k], row["gnorm"], rtol=RELATIVE, atol=1e-11)
        assert_allclose(history.step[k], row["step"] or 0.0, rtol=RELATIVE, atol=1e-14)
        assert epoch_of[k] == row["epoch"]
        if 0 < k < found.nit:
            assert (epoch_of[k + 1] > epoch_of[k]) == row["epoch_end"]


@EACH
def test_epochs(case: dict[str, Any]) -> None:
    found, points, radii = recorded(case["id"])
    assert set(radii) == {case["params"]["D"]}
    assert len(found.epochs) == len(case["epochs"]) == len(radii)
    for ours, theirs in zip(found.epochs, case["epochs"], strict=True):
        assert (ours.first, ours.count) == (theirs["epoch"], 1)
        assert ours.iterations == theirs["iterations"]
        assert case["params"]["D"] == ours.D
        assert_allclose(ours.L1, theirs["L1"], rtol=RELATIVE)
        assert ours.L2 is None
        assert (ours.source, ours.violations) == ("function", 0)
        centre = np.linalg.norm(points[theirs["centre_k"]])
        assert_allclose(ours.centre_norm, centre, rtol=1e-14)


@EACH
def test_end(case: dict[str, Any]) -> None:
    found, points, _ = recorded(case["id"])
    assert found.status == {"gtol": "converged"}.get(case["status"], case["status"])
    assert (found.nit, found.njev, found.violations) == (case["nit"], case["ngev"], 0)
    assert_allclose(found.x, case["x_final"], rtol=RELATIVE, atol=1e-12)
    assert_allclose(found.fun, case["f_final"], rtol=RELATIVE)
    assert_array_equal(found.x, points[-1])
