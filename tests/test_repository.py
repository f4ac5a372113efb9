"""Sizes of files and functions, model names, and that no text holds a path of one machine."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("slomodel", "grammar", "models", "tests", "benchmarks", "examples", "docs")
SUFFIXES = (".py", ".slo", ".lark", ".md", ".toml")
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 80
MACHINE_PATH = re.compile(r"(?<![\w.}\"'])/(?:work|home|root|Users|tmp)/\w")
VIOLATION = re.compile(r"^- `(?P<name>[\w./]+::\w+)`", re.MULTILINE)


def texts() -> list[Path]:
    """Every text file of the project, in a fixed order."""
    below = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    found = [path for path in (*ROOT.iterdir(), *below) if path.suffix in SUFFIXES]
    return sorted(path for path in found if path.is_file())


def relative(path: Path) -> str:
    """Name from the repository's root, the same on every system."""
    return path.relative_to(ROOT).as_posix()


def function_lengths(path: Path) -> Iterator[tuple[str, int]]:
    """(`file::function`, its lines) for every function of a Python file, nested ones too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield f"{relative(path)}::{node.name}", lines


def test_files_are_short() -> None:
    long = {
        relative(path): lines
        for path in texts()
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MAX_FILE_LINES
    }
    assert long == {}


def test_functions_are_short_or_catalogued() -> None:
    catalogue = set(VIOLATION.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    python = [path for path in texts() if path.suffix == ".py"]
    long = {name for path in python for name, n in function_lengths(path) if n > MAX_FUNCTION_LINES}
    assert long == catalogue, "a long function missing in the catalogue, or an entry out of date"


@pytest.mark.parametrize("path", texts(), ids=relative)
def test_no_path_of_one_machine(path: Path) -> None:
    assert MACHINE_PATH.findall(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", sorted((ROOT / "models").glob("*.slo")), ids=lambda p: p.stem)
def test_file_name_is_model_name(path: Path) -> None:
    first = next(line for line in path.read_text(encoding="utf-8").splitlines() if line[0] != "#")
    assert first == f"model {path.stem}"


def test_no_module_is_named_for_nothing() -> None:
    empty_names = {"utils.py", "helpers.py", "misc.py", "common.py", "part2.py"}
    assert [relative(path) for path in texts() if path.name in empty_names] == []
