"""The options of `slomodel solve`: each reaches the solver, and the result shows it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import slomodel
from slomodel.cli import main
from slomodel.solve import METHODS

MODELS = {
    "rosen": "var x[3] init -1.2 minimize sum(100*(x[i+1]-x[i]^2)^2 + (1-x[i])^2 for i in 2)",
    "factors": "data M[3, 2]\nvar U[3, 1], V[2, 1] init 0\nminimize sumsq(M - U @ V')",
    "rising": "var x[2] init 1\nmaximize sumsq(x)",
    "tiny": "var x[2] init 1\nminimize 1e-9 * sumsq(x - 3)",
    "wide": "var x[101] init 1\nminimize sumsq(x)",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in MODELS.items():
        Path(f"{name}.slo").write_text(text, encoding="utf-8")
    Path("M.csv").write_text("1,2\n2,4\n3,6\n", encoding="utf-8")


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ("solve", *arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def told(*arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run(*arguments, "--json").stdout)
    return document


def test_help_reports_the_kinds_of_data_and_the_tolerance() -> None:
    text = " ".join(run("--help").stdout.split())
    assert "npz, npy, csv, tsv, json or mtx" in text
    assert "FILE.csv:COLUMN" in text
    assert "times min(1, max(|f|, gradient norm at the start))" in text
    assert "nonfinite" in text


def test_balls_and_constants() -> None:
    sampled = ("--lipschitz", "sampled", "--samples", "7", "--safety", "1.5")
    found = told(
        "rosen.slo", "--method", "tgd", "--D", "2", "--d", "0.25", *sampled, "--max-iter", "5"
    )
    expected = {"D": 2.0, "d": 0.25, "lipschitz": "sampled", "samples": 7, "safety": 1.5}
    assert {key: found["parameters"][key] for key in expected} == expected
    found = told("rosen.slo", "--method", "pgd", "--lipschitz", "5e3", "--max-iter", "3")
    assert found["parameters"]["lipschitz"] == 5e3
    assert "lipschitz: expected" in run("rosen.slo", "--method", "pgd", "--lipschitz", "x").stderr


def test_line_search_threads_and_dtype() -> None:
    assert told("rosen.slo", "--line-search", "armijo", "--threads", "1")["success"]
    assert "threads" in run("rosen.slo", "--threads", "0").stderr
    single, double = (told("rosen.slo", "--dtype", kind)["fun"] for kind in ("float32", "float64"))
    assert single != double
    assert "expected one of float64, float32" in run("rosen.slo", "--dtype", "float16").stderr


def test_unscaled_tolerance() -> None:
    assert told("tiny.slo", "--no-scaled")["nit"] == 0
    for scaled in ((), ("--scaled",)):
        assert told("tiny.slo", *scaled)["values"]["x"] == pytest.approx([3.0, 3.0], rel=1e-4)


@pytest.mark.parametrize("seed", ["-1", "1.5", "a"])
def test_bad_seeds(seed: str) -> None:
    result = run("rosen.slo", "--seed", seed)
    assert result.exit_code in (1, 2)
    assert "seed" in result.stderr
    assert result.stdout == ""


def test_a_stationary_start_is_reported() -> None:
    result = run("factors.slo", "--data", "M=M.csv", "--method", "norm-armijo")
    assert "converged (the start is stationary)" in result.stdout
    assert "saddle or a maximum" in " ".join(result.stdout.split())
    assert " 1 value, 1 gradient " in result.stdout


def test_a_maximum_is_unbounded_above() -> None:
    found = told("rising.slo")
    assert found["status"] == "unbounded"
    assert "unbounded above" in found["message"]


def test_values_where_they_are_few() -> None:
    assert told("factors.slo", "--data", "M=M.csv", "--max-iter", "0")["values"] == {
        "U": [[0.0], [0.0], [0.0]],
        "V": [[0.0], [0.0]],
    }
    assert told("wide.slo")["values"] is None


def test_verify_prints_the_certificate() -> None:
    options = ("tiny.slo", "--method", "pgd", "--lipschitz", "1e-8", "--max-iter", "5", "--verify")
    assert "an epoch stays within D of its start" in run(*options).stdout
    certificate = told(*options)["certificate"]
    assert certificate["sources"] == ["number"]
    assert [line["violated"] for line in certificate["lines"]] == [0] * 6
    assert told("tiny.slo")["certificate"] is None


def test_methods_are_listed_with_what_they_need() -> None:
    listed = CliRunner().invoke(main, ("methods",)).stdout
    document = json.loads(CliRunner().invoke(main, ("methods", "--json")).stdout)["methods"]
    assert document.keys() == METHODS.keys()
    for name, facts in document.items():
        assert name in listed
        assert facts["needs"] in listed
        assert name in run("--help").stdout


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("agp", ("--lift", "paper", "--D", "0.5")),
        ("gd", ("--L", "1e-8")),
        ("bpg", ("--L", "1e-8", "--p", "2")),
        ("ngd", ("--d", "0.1")),
        ("adgd", ("--lam0", "1e-3")),
    ],
)
def test_options_of_the_other_methods(method: str, options: tuple[str, ...]) -> None:
    found = told("tiny.slo", "--method", method, *options, "--max-iter", "3")
    assert found["method"] == method
    for name, value in zip(options[::2], options[1::2], strict=True):
        told_value = found["parameters"][name.removeprefix("--")]
        assert told_value == (value if name == "--lift" else float(value))


@pytest.mark.parametrize("kind", ["csv", "tsv", "npz", "json"])
def test_all_data_of_one_file(kind: str) -> None:
    Path("line.slo").write_text(
        "dim n data t[n], y[n] var a, b minimize sumsq(y - a - b*t)", encoding="utf-8"
    )
    table = {"t": [1.0, 2.0, 4.0], "other": [0.0, 0.0, 1.0], "y": [3.0, 5.0, 9.0]}
    if kind == "npz":
        np.savez("all.npz", **table)
    elif kind == "json":
        Path("all.json").write_text(json.dumps(table), encoding="utf-8")
    else:
        rows = [list(table), *zip(*table.values(), strict=True)]
        mark = "," if kind == "csv" else "\t"
        text = "".join(mark.join(map(str, row)) + "\n" for row in rows)
        Path(f"all.{kind}").write_text(text, encoding="utf-8")
    found = told("line.slo", "--data", f"all.{kind}")
    assert [found["values"][name] for name in "ab"] == pytest.approx([1.0, 2.0])
    model = slomodel.compile(Path("line.slo"), data=Path(f"all.{kind}"), backend="numpy")
    assert model.value([1.0, 2.0]) == pytest.approx(0.0)
    Path("y.csv").write_text("4\n6\n10\n", encoding="utf-8")
    found = told("line.slo", "--data", f"all.{kind}", "--data", "y=y.csv")
    assert found["values"]["a"] == pytest.approx(2.0)


def test_a_file_that_names_no_data() -> None:
    Path("names.csv").write_text("u,v\n1,2\n", encoding="utf-8")
    result = run("factors.slo", "--data", "names.csv")
    assert result.exit_code == 1
    assert "`names.csv` names no data of the model" in result.stderr
    assert "it holds `u`, `v`; the data are `M`" in result.stderr
    assert "there is no file" in run("factors.slo", "--data", "none.npz").stderr
    assert "the data are `M`" in run("factors.slo", "--data", "M.csv").stderr


def test_a_missing_size_that_positions_bound_from_below() -> None:
    Path("g.slo").write_text(
        "dim N, G\ndata g[N] in G\nvar u[G]\nminimize sumsq(u[g] - 1)", encoding="utf-8"
    )
    np.save("g.npy", np.array([0, 7, 2]))
    result = run("g.slo", "--data", "g=g.npy")
    assert result.exit_code == 1
    assert "--set G=8" in result.output
    assert run("g.slo", "--data", "g=g.npy", "--set", "G=9").exit_code == 0


def test_the_first_values_of_long_variables_are_printed() -> None:
    assert "[101] = 0, 0, 0, 0, 0, 0, …" in " ".join(run("wide.slo").stdout.split())
