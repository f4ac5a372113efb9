"""`slomodel new`, `schema` and `completion`; outputs of --json against the schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from slomodel.cli import main
from slomodel.cli.group import COMMANDS
from slomodel.cli.new import KINDS, SCHEMAS

LINE = """
dim n, G
data y[n], g[n] in G labels
var x[G] >= 0
let line = x[g]
minimize sumsq(y - line)
"""
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOMODEL_BACKEND", "numpy")
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, list(arguments))


def faults(value: object, schema: dict[str, Any], where: str = "") -> list[str]:
    """How a document departs from a schema; keys that the schema does not describe count too."""
    wanted = schema.get("type", list(TYPES))
    kinds = [wanted] if isinstance(wanted, str) else wanted
    is_flag = isinstance(value, bool) and "boolean" not in kinds
    if is_flag or not any(isinstance(value, TYPES[kind]) for kind in kinds):
        return [f"{where} is {value!r:.40}, not {kinds}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where} is {value!r}")
    if isinstance(value, dict):
        own = schema.get("properties", {})
        found += [
            f"{where}.{key} is missing" for key in schema.get("required", ()) if key not in value
        ]
        for key, inner in value.items():
            described = own.get(key, schema.get("additionalProperties"))
            if described is None:
                found.append(f"{where}.{key} is not described")
            else:
                found += faults(inner, described, f"{where}.{key}")
    if isinstance(value, list) and "items" in schema:
        for k, inner in enumerate(value):
            found += faults(inner, schema["items"], f"{where}[{k}]")
    return found


def checked(name: str, output: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(output)
    schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    assert faults(document, schema) == []
    return document


DATA = ("--data", "y=line.csv", "--data", "g=line.csv:g")
COMMAND_LINES = {
    "check": ("line.slo", *DATA),
    "solve": (
        *("line.slo", *DATA, "--verify", "--method", "pgd", "--max-iter", "5"),
        *("--evaluate", "line", "--starts", "2", "--seed", "3"),
    ),
    "report": ("line.slo", *DATA, "-o", "line.html"),
    "bounds": ("line.slo", *DATA, "--radius", "1"),
    "certify": ("line.slo", *DATA),
    "codegen": ("line.slo", "--set", "n=3", "--set", "G=2", "--target", "numpy"),
    "random-data": ("line.slo", "-o", "data.npz"),
    "fmt": ("line.slo",),
    "functions": (),
    "methods": (),
    "new": ("fresh",),
}


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_json_is_as_the_schema_says(name: str) -> None:
    Path("line.slo").write_text(LINE.replace(">= 0", ">= 0 init normal(1, 0.1)"))
    Path("line.csv").write_text("g,y\na,1\nb,2.5\na,-1\n")
    done = run(name, *COMMAND_LINES[name], "--json")
    assert done.exit_code == 0, done.output
    checked(name, done.stdout)


def test_standard_errors_and_errors_have_schemas() -> None:
    Path("line.slo").write_text(LINE)
    Path("line.csv").write_text("g,y\na,1\nb,2.5\na,1.5\n")
    found = run("solve", "line.slo", *DATA, "--standard-errors", "auto", "--json")
    document = checked("solve", found.stdout)
    np.testing.assert_allclose(document["values"]["x"], [1.25, 2.5], rtol=1e-6)
    checked("error", run("check", "none.slo", "--json").stdout)


def test_every_command_with_json_has_a_schema() -> None:
    names = {path.stem for path in SCHEMAS.glob("*.json")} - {"error"}
    with_json = {name for name in COMMANDS if "  --json" in run(name, "--help").output}
    assert with_json == names == set(COMMAND_LINES)
    for name in names:
        assert json.loads(run("schema", name).output)["$id"] == f"slomodel/1/{name}.json"


@pytest.mark.parametrize("kind", KINDS)
def test_new_models_solve(kind: str) -> None:
    assert run("new", "mine", "--like", kind).exit_code == 0
    assert "NAME" not in Path("mine.slo").read_text()
    document = json.loads(run("solve", "mine.slo", "--json").stdout)
    assert document["success"], document["message"]
    assert document["model"] == "mine"


def test_new_overwrites_nothing_and_names_are_names() -> None:
    Path("mine.csv").write_text("precious")
    done = run("new", "mine")
    assert done.exit_code == 1
    assert "exists already" in done.output
    assert not Path("mine.slo").exists()
    assert Path("mine.csv").read_text() == "precious"
    assert "letters, digits" in run("new", "my-model").output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_call_back(shell: str) -> None:
    assert "_SLOMODEL_COMPLETE" in run("completion", shell).output


def test_completion_knows_the_commands() -> None:
    variables = {
        "_SLOMODEL_COMPLETE": "bash_complete",
        "COMP_WORDS": "slomodel so",
        "COMP_CWORD": "1",
    }
    done = CliRunner(env=variables).invoke(main, [], prog_name="slomodel")
    assert done.output.split() == ["plain,solve"]
