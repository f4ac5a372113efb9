"""The commands about a model's text and data: fmt and random-data."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from slomodel.cli import main

UGLY, NEAT = "var x;minimize x^2# c", "var  x\nminimize x^2  # c\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ugly.slo").write_text(UGLY, encoding="utf-8")
    Path("neat.slo").write_text(NEAT, encoding="utf-8")
    Path("wrong.slo").write_text("var x minimize 2x", encoding="utf-8")


def run(*arguments: str, text: str | None = None) -> Result:
    result = CliRunner().invoke(main, arguments, input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def test_fmt_writes_what_changes() -> None:
    result = run("fmt", "ugly.slo", "neat.slo")
    assert (result.exit_code, result.stdout) == (0, "formatted ugly.slo\n")
    assert Path("ugly.slo").read_text(encoding="utf-8") == NEAT


def test_fmt_check_writes_nothing() -> None:
    result = run("fmt", "--check", "ugly.slo", "neat.slo")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "ugly.slo is not in standard layout (slomodel fmt ugly.slo)\n"
    assert Path("ugly.slo").read_text(encoding="utf-8") == UGLY
    assert run("fmt", "--check", "neat.slo").exit_code == 0


def test_fmt_diff_writes_nothing() -> None:
    result = run("fmt", "--diff", "ugly.slo")
    assert result.exit_code == 0
    changed = {"-var x;minimize x^2# c", "+var  x", "+minimize x^2  # c"}
    assert changed <= set(result.stdout.split("\n"))
    assert Path("ugly.slo").read_text(encoding="utf-8") == UGLY


def test_fmt_goes_on_after_a_mistake() -> None:
    result = run("fmt", "wrong.slo", "none.slo", "ugly.slo")
    assert (result.exit_code, result.stdout) == (1, "formatted ugly.slo\n")
    assert "wrong.slo:1:17" in result.stderr
    assert "cannot read `none.slo`" in result.stderr


def test_fmt_of_standard_input() -> None:
    assert run("fmt", "-", text=UGLY).stdout == NEAT


def test_fmt_as_json_reports_every_file() -> None:
    result = run("fmt", "--json", "--check", "ugly.slo", "neat.slo", "wrong.slo")
    told = json.loads(result.stdout)["files"]
    assert result.exit_code == 1
    assert told[:2] == [
        {"file": "ugly.slo", "changed": True, "text": NEAT},
        {"file": "neat.slo", "changed": False, "text": NEAT},
    ]
    assert told[2]["messages"][0]["line"] == 1
    assert Path("ugly.slo").read_text(encoding="utf-8") == UGLY
    assert json.loads(run("fmt", "--json", "-", text=UGLY).stdout)["files"][0]["text"] == NEAT
    assert json.loads(run("fmt", "--json", "ugly.slo").stdout)["files"][0]["changed"]
    assert Path("ugly.slo").read_text(encoding="utf-8") == NEAT


CHECKED = """dim m, n, k = 2
data A[m, n], S[n, n, n] symmetric, W[m, n] mask, y[m], file[k], lam, mu = 0.5, far, z[n-1]
check y == 1 or y == -1
check lam >= mu and lam < 1
check far > 100
var x[n]
minimize sumsq(masked(A, W) @ x - y) + lam * einsum("ijk,i,j,k->", S, x, x, x) \
  + far * dot(z, x[1:]) + sum(file)
"""


def test_random_data_satisfies_every_declaration() -> None:
    Path("checked.slo").write_text(CHECKED, encoding="utf-8")
    result = run("random-data", "checked.slo", "-o", "data.npz", "--set", "n=5")
    assert (result.exit_code, result.stderr) == (0, "")
    with np.load("data.npz") as file:
        data = dict(file)
    assert {name: array.shape[1:] for name, array in data.items()} == {
        "A": (5,), "S": (5, 5), "W": (5,), "y": (), "file": (), "lam": (), "far": (), "z": ()
    }  # fmt: skip
    assert (len(data["file"]), len(data["z"])) == (2, 4)
    assert set(np.unique(data["y"])) <= {-1.0, 1.0}
    assert set(np.unique(data["W"])) == {0.0, 1.0}
    assert 0.5 <= data["lam"] < 1 and data["far"] > 100  # noqa: PT018
    np.testing.assert_allclose(data["S"], data["S"].transpose(2, 0, 1), atol=1e-15)
    options = [f"--data={name}=data.npz" for name in data]
    assert run("check", "checked.slo", *options).exit_code == 0
    again = run("random-data", "checked.slo", "-o", "again.npz", "--set", "n=5")
    assert again.exit_code == 0
    assert Path("again.npz").read_bytes()[-500:] == Path("data.npz").read_bytes()[-500:]


def test_random_data_of_every_model_of_the_project() -> None:
    for path in sorted((Path(__file__).parents[1] / "models").glob("*.slo")):
        drawn = run("random-data", str(path), "-o", "data.npz", "--json")
        assert drawn.exit_code == 0, drawn.stderr
        names = json.loads(drawn.stdout)["data"]
        options = [f"--data={name}=data.npz" for name in names]
        told = json.loads(run("check", str(path), "--json", *options).stdout)
        assert told["missing"] == []


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("data a check a > 1 and a < 1 var x minimize a * x", [], "error[E318]"),
        ("data a check a > 1 var x minimize a * x", ["--set=a=0"], "error[E314]"),
        ("dim n data A[n] var x minimize x * sum(A)", ["--set=n=1000000000000"], "error[E319]"),
        ("dim n data A[n] var x minimize x * sum(A)", ["--set=k=1"], "--set can give `n`"),
        ("dim n data A[n] var x minimize x * sum(A[:3])", ["--set=n=2"], "error[E313]"),
    ],
)
def test_random_data_that_there_is_not(text: str, options: list[str], said: str) -> None:
    result = run("random-data", "-", "-o", "data.npz", *options, text=text)
    assert (result.exit_code, result.stdout) == (1, "")
    assert said in result.stderr
    assert not Path("data.npz").exists()


def test_sizes_grow_until_the_model_fits() -> None:
    text = "dim n data A[n] var x minimize x * sum(A[i+10] for i in range(n - 10))"
    result = run("random-data", "-", "-o", "data.npz", text=text)
    assert (result.exit_code, result.stdout.split("\n")[0]) == (0, "A          [12]")
