"""Basin hopping: `solve(hops=…)`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import slomodel
from slomodel.cli import main
from slomodel.errors import DomainError
from tests.marks import only

# Rastrigin's function: the minima are near whole numbers, and the least is 0 at 0.
RASTRIGIN = "minimize sum(x[i]^2 - 10*cos(6.283185307179586*x[i]) + 10 for i in 2)"
CLUSTER = """
dim n
var x[n,3] init normal(0, 1.8)
let d[i in n, j in n] = sum((x[i,k] - x[j,k])^2 for k in 3)
minimize sum(4*(1/d[i,j]^6 - 1/d[i,j]^3) for i in n, j in n if i < j)
"""


def test_the_least_of_many_minima() -> None:
    model = slomodel.compile("var x[2] init 3\n" + RASTRIGIN, backend="numpy")
    alone = model.solve()
    found = model.solve(hops=100)
    assert alone.fun > 10.0
    assert abs(found.fun) <= 1e-9
    assert "100 hops" in found.message
    values = [run.fun for run in found.runs]
    assert values == sorted(values)
    assert values[0] == found.fun
    assert len({round(value, 6) for value in values}) == len(values) > 3


def test_hops_are_determined_by_the_seed_in_any_units_of_f() -> None:
    model = slomodel.compile("var x[2] init 3\n" + RASTRIGIN, backend="numpy")
    scaled = slomodel.compile(
        "var x[2] init 3\n" + RASTRIGIN.replace("minimize ", "minimize 1024*"), backend="numpy"
    )
    one, again, other = (model.solve(hops=6, seed=seed) for seed in (1, 1, 2))
    assert one.x.tolist() == again.x.tolist()
    assert [run.fun for run in one.runs] != [run.fun for run in other.runs]
    np.testing.assert_allclose(
        [run.fun / 1024.0 for run in scaled.solve(hops=6, seed=1).runs],
        [run.fun for run in one.runs],
        rtol=1e-6,
        atol=1e-9,
    )


def test_a_maximum_in_sets() -> None:
    """Hops stay in closed sets, and are taken in the variables u of open ones."""
    text = """
    var x[2] in [-2, 2] init 1.7
    var s > 0 init 4
    maximize sum(sin(5*x[i]) - 0.2*x[i]^2 for i in 2) + sin(3*log(s)) - 0.1*log(s)^2
    """
    grid = np.linspace(-2.0, 2.0, 200_001)
    best = 2.0 * (np.sin(5.0 * grid) - 0.2 * grid**2).max()
    logs = np.linspace(-5.0, 5.0, 200_001)
    best += (np.sin(3.0 * logs) - 0.1 * logs**2).max()
    found = slomodel.compile(text, backend="numpy").solve(hops=80)
    assert abs(found.fun - best) <= 1e-6
    for run in found.runs:
        assert np.abs(run.variables["x"]).max() <= 2.0
        assert run.variables["s"] > 0.0


def test_hops_from_several_starts_and_from_a_start() -> None:
    model = slomodel.compile("var x[2] init normal(0, 3)\n" + RASTRIGIN)
    found = model.solve(hops=15, starts=2)
    assert (len(found.runs), found.starts) == (2, 2)
    assert all("15 hops" in run.message for run in found.runs)
    first = model.solve(hops=2, x0=np.full(2, 4.1))
    assert any(abs(run.fun - 32.0) < 2.0 for run in first.runs)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hops": 0}, "hops"),
        ({"hops": 2.5}, "hops"),
        ({"hops": 3, "checkpoint": "run.npz"}, "checkpoint cannot be combined with hops"),
        ({"hops": 3, "callback": lambda state: None}, "callback cannot be combined with hops"),
        ({"n_hops": 3}, "did you mean 'hops'"),
    ],
)
def test_options_that_do_not_go_with_hops(options: dict[str, object], words: str) -> None:
    model = slomodel.compile("var x[2] init 3\n" + RASTRIGIN, backend="numpy")
    with pytest.raises(DomainError, match=words):
        model.solve(**options)  # type: ignore[arg-type]


def test_no_time_left() -> None:
    found = slomodel.compile("var x[2] init 3\n" + RASTRIGIN, backend="numpy").solve(
        hops=50, max_time=0.0
    )
    assert found.status == "max_time"
    assert "0 hops" in found.message


EDGE = "var x init 1, y init 2\nminimize (x^2 - 1)^2 + 0.3*x + y - log(y)"


def test_ends_without_a_minimum_are_not_counted() -> None:
    found = slomodel.compile(EDGE, backend="numpy").solve(hops=8, seed=3)
    assert all(run.success for run in found.runs)
    minima = "1 minimum" if len(found.runs) == 1 else f"{len(found.runs)} different minima"
    assert f"{minima} found" in found.message
    assert found.summary.startswith(f"{len(found.runs)} ")


def test_a_start_outside_the_domain_is_named_itself() -> None:
    model = slomodel.compile("var x init -2\nminimize x + log(x)^2", backend="numpy")
    found = model.solve(hops=5)
    assert found.status == "nonfinite_start"
    assert "x = -2" in found.message
    assert "no minimum found" in found.message
    assert len(found.runs) == 1


def test_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "m.slo"
    file.write_text("var x[2] init 3\n" + RASTRIGIN + "\n", encoding="utf-8")
    found = CliRunner().invoke(main, ["solve", str(file), "--hops", "40", "--json"])
    document = json.loads(found.output)
    assert found.exit_code == 0
    assert "40 hops" in document["message"]
    assert len(document["runs"]) > 1


@pytest.mark.parametrize("seed", only(1, (0, 1, 2, 5)))
def test_clusters_of_thirteen_atoms(seed: int) -> None:
    model = slomodel.compile(CLUSTER, dims={"n": 13})
    assert abs(model.solve(hops=60, seed=seed).fun + 44.326801) <= 1e-5
