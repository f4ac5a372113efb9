"""The scripts of examples/paper run from the command line, and print the numbers of the runs."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent.parent / "examples" / "paper"


def run(script: str, out: Path, *options: str) -> str:
    """What a script prints with its files below `out`."""
    command = [sys.executable, str(FOLDER / f"{script}.py"), "--out", str(out), *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    assert (out / f"{script}.png").read_bytes().startswith(b"\x89PNG")
    return ended.stdout


@pytest.mark.slow
def test_a_table_is_that_of_its_runs_and_goes_on(tmp_path: Path) -> None:
    few = ("--seconds", "0.05", "--cases", "tensor 2", "--methods", "norm-armijo", "auto")
    run("table_tensor", tmp_path, "--rounds", "1", *few)
    files = sorted(tmp_path.rglob("*.json"))
    first = {path: path.stat().st_mtime_ns for path in files}
    assert [path.name for path in files] == ["auto-0-0.05s.json", "norm-armijo-0-0.05s.json"]
    text = run("table_tensor", tmp_path, "--rounds", "2", *few)
    assert {path: path.stat().st_mtime_ns for path in files} == first
    runs = [json.loads(path.read_text()) for path in sorted(tmp_path.rglob("norm-armijo*.json"))]
    assert [one["round_"] for one in runs] == [0, 1]
    (row,) = (line for line in text.splitlines() if line.startswith("| norm-armijo |"))
    cells = [cell.strip() for cell in row.split("|")[2:-1]]
    norms, gaps = ([one[key] for one in runs] for key in ("gradient_norm", "fun"))
    expected = [min(norms), np.mean(norms), min(gaps), np.mean(gaps)]
    assert cells[:4] == [f"{value:.1e}" for value in expected]
    assert cells[5:] == ["3.8e-08", "5.8e-07", "8.2e-07", "6.5e-04"]
    assert (tmp_path / "table_tensor.md").read_text() in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "cases"),
    [
        ("table_tensor", ["tensor 1", "tensor 3"]),
        ("table_autoencoder", ["U[0, 0.001]", "U[0, 1]"]),
        ("table_deep_linear", ["U[0, 0.001]", "U[0, 1]"]),
        ("table_beyond", ["neural_net tanh digits", "sym_tensor7", "cp_tensor"]),
        ("hard_instance", []),
    ],
)
def test_every_script_in_a_round_of_a_second(script: str, cases: list[str], tmp_path: Path) -> None:
    given = ["--cases", *cases] if cases else []
    text = run(script, tmp_path, "--rounds", "1", "--seconds", "1", "--workers", "2", *given)
    for name in (*cases, "bpg", "pgd", "tgd", "norm-armijo"):
        assert f" {name} |" in text or f"### {name}\n" in text


@pytest.mark.slow
def test_sampled_constants_lie_below_proofs(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "table_constants.py"), "--out", str(tmp_path)]
    options = ["--rounds", "1", "--cases", "table_deep_linear: U[0, 0.1]"]
    text = subprocess.run([*command, *options], capture_output=True, text=True, check=True).stdout
    rows = [line.split("|") for line in text.splitlines() if " steps |" in line]
    assert len(rows) == 3
    for *_, below, above, _ in rows:
        assert float(below) < 1.0 <= float(above)


@pytest.mark.parametrize(
    ("script", "case", "refused"),
    [
        pytest.param("table_autoencoder", "U[0, 0.1]", False, marks=pytest.mark.slow),
        ("table_deep_linear", "U[0, 1]", False),
        pytest.param("table_beyond", "neural_net tanh digits", True, marks=pytest.mark.slow),
    ],
)
def test_a_short_run_of_the_other_tables(
    script: str, case: str, refused: bool, tmp_path: Path
) -> None:
    few = ("--rounds", "1", "--seconds", "0.02", "--cases", case, "--methods", "bpg", "auto")
    run(script, tmp_path, *few)
    found = {path.stem: json.loads(path.read_text()) for path in tmp_path.rglob("*.json")}
    auto, bpg = found["auto-0-0.02s"], found["bpg-0-0.02s"]
    assert (bpg["nfev"] == 0) == refused
    assert auto["funs"][-1] < auto["funs"][0]


@pytest.mark.slow
def test_map_of_the_toy(tmp_path: Path) -> None:
    text = run("figure_toy", tmp_path, "--rounds", "5", "--steps", "2")
    least = {line.split(" / ")[0]: line for line in text.splitlines() if " / true" in line}
    assert float(least["proved"].split("least ")[1].split(",")[0]) >= 0.999
    assert float(least["sampled"].split("largest ")[1]) <= 1.001


@pytest.mark.slow
def test_exponents_of_the_hard_instance(tmp_path: Path) -> None:
    text = run("hard_instance", tmp_path, "--rounds", "1", "--seconds", "2", "--methods", "tgd")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| tgd |")]
    exponents = [float(row[4].split("±")[0]) for row in rows]
    assert len(exponents) == 2
    # At most ε^-2; logarithms flatten it. A proof takes a third of a second.
    assert all(-2.0 < exponent < -0.7 for exponent in exponents)
