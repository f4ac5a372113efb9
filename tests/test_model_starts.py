"""`solve(starts=…)` of a model, and `slomodel solve --starts`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import slomodel
from slomodel.cli import main
from slomodel.solve import Solution

# Two kinds of minima, of values 0 and 1.
DOUBLE = """
model double
var x[3] init normal(0, 1)
minimize sumsq(x^2 - 1) + sum(1 - x) / 6
"""


@pytest.fixture(scope="module")
def model() -> slomodel.Model:
    return slomodel.compile(DOUBLE)


@pytest.fixture(scope="module")
def found(model: slomodel.Model) -> Solution:
    return model.solve(starts=8, seed=5)


def test_every_run_is_the_one_of_its_seed(model: slomodel.Model, found: Solution) -> None:
    assert sorted(run.seed for run in found.runs) == list(range(5, 13))
    assert [run.fun for run in found.runs] == sorted(run.fun for run in found.runs)
    assert found.fun == found.runs[0].fun
    for run in found.runs:
        alone = model.solve(seed=run.seed)
        assert (run.x.tobytes(), run.nfev, run.status) == (
            alone.x.tobytes(),
            alone.nfev,
            alone.status,
        )
    assert "8 starts: 8 converged" in found.summary


def test_the_number_of_workers_changes_no_bit(model: slomodel.Model, found: Solution) -> None:
    shared = model.solve(starts=8, seed=5, workers=3)
    assert [run.seed for run in shared.runs] == [run.seed for run in found.runs]
    assert [run.x.tobytes() for run in shared.runs] == [run.x.tobytes() for run in found.runs]
    assert shared.summary == found.summary


def test_all_runs_are_saved(found: Solution, tmp_path: Path) -> None:
    found.save(tmp_path / "runs.npz")
    loaded = slomodel.load_solution(tmp_path / "runs.npz")
    assert loaded.summary == found.summary
    np.testing.assert_array_equal(
        [run.history.fun[0] for run in loaded.runs], [run.history.fun[0] for run in found.runs]
    )
    assert loaded.runs[3].variables["x"].tolist() == found.runs[3].variables["x"].tolist()
    assert loaded.runs[0].runs == ()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"starts": 0}, "starts: expected a whole number ≥ 1, found 0"),
        ({"starts": 2, "workers": 0}, "workers: expected a whole number ≥ 1, found 0"),
        ({"workers": 2}, "workers are for several starts"),
        ({"starts": 2, "x0": np.zeros(3)}, "x0 cannot be combined with several starts"),
        ({"starts": 2, "checkpoint": "c.npz"}, "checkpoint cannot be combined with several starts"),
        ({"starts": 2, "resume": "c.npz"}, "resume cannot be combined with several starts"),
        (
            {"starts": 2, "workers": 2, "callback": print},
            "callback cannot be combined with several workers",
        ),
        ({"starts": 2, "workers": 2, "gtoll": 1.0}, "did you mean 'gtol'"),
        ({"starts": 2, "workers": 2, "gtol": -1.0}, "gtol: expected"),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(value),
)
def test_what_does_not_go_together(
    model: slomodel.Model, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(slomodel.DomainError) as caught:
        model.solve(**options)
    assert told in str(caught.value)


def test_starts_that_would_all_be_the_same() -> None:
    with pytest.raises(slomodel.DomainError, match="draws no variable at random"):
        slomodel.compile("var x[2] init 1 minimize sumsq(x)").solve(starts=2)
    assert slomodel.compile("var x[2] init 1 minimize sumsq(x)").solve(starts=1).success


def test_a_callback_sees_every_run(model: slomodel.Model) -> None:
    began: list[int] = []

    def note(state: slomodel.State) -> bool:
        began.append(state.k)
        return state.k == 2

    stopped = model.solve(starts=3, callback=note)
    assert began == [0, 1, 2] * 3
    assert {run.status for run in stopped.runs} == {"user_stopped"}


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("double.slo").write_text(DOUBLE, encoding="utf-8")
    arguments = ("solve", "double.slo", "--starts", "4", "--seed", "5", "--workers", "2")
    told = json.loads(CliRunner().invoke(main, (*arguments, "--json")).stdout)
    assert told["starts"] == 4
    assert sorted(run["seed"] for run in told["runs"]) == [5, 6, 7, 8]
    assert told["runs"][0]["fun"] == told["fun"]
    shown = CliRunner().invoke(main, (*arguments, "--out", "runs.npz"))
    assert (shown.exit_code, "4 starts: 4 converged" in shown.stdout) == (0, True)
    assert len(slomodel.load_solution("runs.npz").runs) == 4
