"""norm-armijo along L-BFGS directions beside L-BFGS-B of SciPy on the published problems."""

import math

import numpy as np
import pytest

import slomodel
from benchmarks import solver_times
from benchmarks.problems import GROUPS, Problem, published
from benchmarks.runs import PEERS, SOLVERS
from benchmarks.solvers import row_of, summary
from tests.nist_problems import recorded


@pytest.fixture(scope="module")
def problems() -> dict[str, Problem]:
    return {problem.name: problem for problem in published()}


@pytest.mark.slow
def test_lbfgs_beside_scipy(problems: dict[str, Problem]) -> None:
    rows = [row for p in problems.values() if (row := row_of(p, "lbfgs", 60.0)) is not None]
    assert len(rows) == 20
    assert sum(row.reached for row in rows) >= 18, summary(rows)
    assert np.median([row.ratio for row in rows]) <= 2.0, summary(rows)
    assert np.median([row.ratio_reached for row in rows]) <= 2.0, summary(rows)
    assert {row.ours.status for row in rows} <= {"converged", "precision"}


def test_a_value_is_reached(problems: dict[str, Problem]) -> None:
    sine, chain = problems["shared-sine-1000"], problems["quartic-chain-200"]
    assert sine.reached(-998.9473933009695)
    assert sine.reached(-999.5 + 1e-7)
    assert not sine.reached(-999.0)
    assert not sine.reached(-998.9475)
    assert chain.reached(1203.2845920207646 * (1.0 + 1e-9))
    assert not chain.reached(1203.2845920207646 * (1.0 + 1e-7))
    assert not chain.reached(math.nan)


def test_costs_are_counted() -> None:
    model = slomodel.compile("var x[2]\nminimize sum((x[i] - 1)^2 for i in 2) + x[0]^4")
    problem = Problem("", model, np.zeros(2), (0.40987,))
    for solver in (SOLVERS["newton"], PEERS["BFGS"]):
        found = solver(problem, 10.0)
        assert found is not None
        assert found.status == "converged"
        assert found.cost.evaluations > found.cost.values >= found.cost.gradients > 2
        assert (found.cost.products > 0) == (solver is SOLVERS["newton"])


def test_a_solver_that_does_not_suit_or_has_no_time(problems: dict[str, Problem]) -> None:
    assert SOLVERS["newton"](problems["arrow-head-1000"], 1.0) is None
    for solver in (SOLVERS["gradient"], PEERS["CG"]):
        found = solver(problems["oscillating-path-5"], 1e-3)
        assert found is not None
        assert found.status == "max_time"
        assert found.reached is None


def test_regressions_have_both_starts_in_two_units() -> None:
    found = list(GROUPS["nist"]())
    assert len(found) == 36
    misra = next(one for one in found if one.name == "Misra1a 2 scaled")
    first = recorded("Misra1a")["starts"][1]
    assert misra.model.value(misra.x0) == pytest.approx(1.7**2 * first["rss"], rel=1e-10)


def test_times_of_whole_runs() -> None:
    case = next(one for one in solver_times.cases() if one.name == "steep-trench-2")
    row = solver_times.row_of(case, repeats=1)
    assert {"auto", "L-BFGS-B", "BFGS"} <= row.keys()
    lines = solver_times.report({"steep-trench-2": row}).splitlines()
    assert lines[2].startswith("| auto | 1 of 1 | ")
    assert lines[-1].startswith("| steep-trench-2 | ")
