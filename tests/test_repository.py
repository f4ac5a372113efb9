"""Sizes of files and functions, names of classes and models, prose, and no path of one machine."""

import re
from pathlib import Path

import pytest
from sizes import (
    ROOT,
    file_length,
    function_lengths,
    relative,
    repeated_class_names,
    report,
    short_files,
    texts,
)

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 80
# These two ceilings only go down: lower them with every change that leaves fewer.
MAX_SHORT_FILES = 37
MAX_REPEATED_CLASS_NAMES = 0
MACHINE_PATH = re.compile(r"(?<![\w.}\"'])/(?:work|home|root|Users|tmp)/\w")
MAX_PROSE_LINE = 100
PROSE = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    ROOT / "grammar" / "reference.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
MAPPED = ("model", "solve/run", "codegen/loops", "codegen/native")
"""Rooms of more than twenty files: their docstrings are maps of them."""
VIOLATION = re.compile(r"^- `(?P<name>[\w./]+::\w+)`", re.MULTILINE)


def test_files_are_short() -> None:
    long = {
        relative(path): lines for path in texts() if (lines := file_length(path)) > MAX_FILE_LINES
    }
    assert long == {}


def test_functions_are_short_or_catalogued() -> None:
    catalogue = set(VIOLATION.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    python = [path for path in texts() if path.suffix == ".py"]
    long = {name for path in python for name, n in function_lengths(path) if n > MAX_FUNCTION_LINES}
    assert long == catalogue, "a long function missing in the catalogue, or an entry out of date"


def test_short_files_are_few() -> None:
    short = short_files()
    assert len(short) <= MAX_SHORT_FILES, short


def test_a_class_name_means_one_thing() -> None:
    repeated = repeated_class_names()
    assert len(repeated) <= MAX_REPEATED_CLASS_NAMES, repeated


def test_the_report_shows_ten_files_and_ten_functions() -> None:
    lines = report().splitlines()
    at = [k for k, line in enumerate(lines) if line.startswith("Longest")]
    assert [lines[k] for k in at] == ["Longest files:", "Longest functions:"]
    for k in at:
        lengths = [int(line.split()[0]) for line in lines[k + 1 : k + 11]]
        assert lengths == sorted(lengths, reverse=True)


def test_no_path_of_one_machine() -> None:
    found = {relative(path): MACHINE_PATH.findall(path.read_text("utf-8")) for path in texts()}
    assert {name: paths for name, paths in found.items() if paths} == {}


@pytest.mark.parametrize("path", sorted((ROOT / "models").glob("*.slo")), ids=lambda p: p.stem)
def test_file_name_is_model_name(path: Path) -> None:
    first = next(line for line in path.read_text(encoding="utf-8").splitlines() if line[0] != "#")
    assert first == f"model {path.stem}"


@pytest.mark.parametrize("room", MAPPED)
def test_the_map_of_a_room_names_its_files(room: str) -> None:
    folder = ROOT / "slomodel" / room
    text = (folder / "__init__.py").read_text("utf-8")
    words = set(re.findall(r"\w+", text[: text.index('"""', 3)]))
    files = {path.stem for path in folder.iterdir() if path.suffix == ".py"} - {"__init__"}
    assert files - words == set(), f"name them in the docstring of slomodel/{room}/__init__.py"


def test_prose_has_short_lines() -> None:
    """Apart from tables and code, and from pages that programs print."""
    long = []
    for path in PROSE:
        text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        found = [line for line in text.splitlines() if len(line) > MAX_PROSE_LINE]
        long += [(relative(path), line) for line in found if line[0] != "|"]
    assert long == []


def test_the_changelog_says_nothing_twice() -> None:
    """Merges of changes side by side have left sentences in it twice."""
    text = " ".join((ROOT / "CHANGELOG.md").read_text("utf-8").split())
    clauses = [clause for clause in re.split(r"[.;:] | - ", text) if len(clause) > 40]
    assert [clause for clause in set(clauses) if clauses.count(clause) > 1] == []


def test_no_module_is_named_for_nothing() -> None:
    empty_names = {"utils.py", "helpers.py", "misc.py", "common.py", "part2.py"}
    assert [relative(path) for path in texts() if path.name in empty_names] == []
