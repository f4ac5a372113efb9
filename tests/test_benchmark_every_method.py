"""Computations from outcomes in the comparison of `auto` with every single method."""

from pathlib import Path

import pytest

from benchmarks.every_method import PRICES, UNSOLVED, keep, kept, ratios, summary, table
from benchmarks.runs import Cost, Outcome


def ended(values: int, seconds: float, solved: bool = True) -> Outcome:
    cost = Cost(values, values // 2, 0, seconds)
    return Outcome(1.0, 1e-9, "converged", cost, cost if solved else None)


OUTCOMES = {
    "easy": {
        "auto": ended(20, 2.0),
        "lbfgs": ended(40, 1.0),
        "newton": None,
        "BFGS": ended(2, 0.1),
    },
    "hard": {
        "auto": ended(90, 9.0, solved=False),
        "lbfgs": ended(10, 0.5),
        "newton": ended(4, 4.0),
    },
    "hopeless": {"auto": ended(9, 1.0, solved=False), "lbfgs": None},
}


def test_ratios_are_to_the_best_single_method() -> None:
    found = ratios(OUTCOMES, PRICES["evaluations"])
    assert found["auto"] == {"easy": 0.5, "hard": UNSOLVED}
    assert found["lbfgs"] == {"easy": 1.0, "hard": 2.5}
    assert found["newton"] == {"easy": UNSOLVED, "hard": 1.0}
    assert found["BFGS"] == {"easy": 0.05}
    assert ratios(OUTCOMES, PRICES["milliseconds"])["newton"]["hard"] == pytest.approx(8.0)


def test_tables() -> None:
    lines = table(OUTCOMES, PRICES["evaluations"], markdown=False).splitlines()
    assert lines[1].split() == ["easy", "30", "60", "-", "3", "lbfgs", "0.50"]
    assert lines[2].split() == ["hard", "x", "15", "6", "-", "newton", "100.00"]
    assert lines[3].split()[-2:] == ["none", "-"]
    auto = summary(OUTCOMES, markdown=False).splitlines()[1].split()
    assert auto[:5] == ["auto", "3", "1", "7.07", "100"]


def test_outcomes_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    assert kept(file) == {}
    keep(file, {"group": OUTCOMES})
    assert kept(file) == {"group": OUTCOMES}
