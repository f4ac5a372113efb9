"""Sizes of the repository's files and functions, and class names that are defined twice.

`python tests/sizes.py` prints the report that `make check` ends with.
"""

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("slomodel", "grammar", "models", "tests", "benchmarks", "examples", "docs")
SUFFIXES = (".py", ".slo", ".lark", ".md", ".toml")
SHORT = 60


def texts() -> list[Path]:
    """Every text file of the project, in a fixed order."""
    below = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    found = [path for path in (*ROOT.iterdir(), *below) if path.suffix in SUFFIXES]
    return sorted(path for path in found if path.is_file())


def package() -> list[Path]:
    """The Python files of slomodel."""
    return sorted((ROOT / "slomodel").rglob("*.py"))


def relative(path: Path) -> str:
    """Path from the repository's root, the same on every system."""
    return path.relative_to(ROOT).as_posix()


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a Python file, by less than half of the time with the collector off."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        if was_enabled:
            gc.enable()


def statements(root: ast.AST) -> Iterator[ast.AST]:
    """The statements of a syntax tree, the nested ones included."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, field, None)
            pending += inner if isinstance(inner, list) else ()


def file_length(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@dataclass(frozen=True, slots=True)
class Outline:
    """What the checks read of a Python file, so that it is parsed once."""

    functions: tuple[tuple[str, int], ...]
    """(`file::function`, number of lines) for every function, nested or not."""
    classes: tuple[str, ...]
    has_statements: bool
    """Whether anything but docstrings stands in it."""


@cache
def outline(path: Path) -> Outline:
    """The outline of a Python file."""
    tree = parsed(path)
    return Outline(
        tuple(
            (f"{relative(path)}::{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1)
            for node in statements(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ),
        tuple(node.name for node in tree.body if isinstance(node, ast.ClassDef)),
        not all(isinstance(node, ast.Expr) for node in tree.body),
    )


def function_lengths(path: Path) -> tuple[tuple[str, int], ...]:
    """(`file::function`, number of lines) for every function of a Python file, nested or not."""
    return outline(path).functions


def short_files() -> list[str]:
    """Files of slomodel with fewer than 60 lines that hold code.

    An `__init__.py` with a docstring alone is not counted: it makes a folder a package and says
    what is in it, so that no other file could take its lines. The report states how many there are.
    """
    return [
        relative(path)
        for path in package()
        if file_length(path) < SHORT and not is_only_a_docstring(path)
    ]


def is_only_a_docstring(path: Path) -> bool:
    """Whether a file is an `__init__.py` without any statement but its docstring."""
    return path.name == "__init__.py" and not outline(path).has_statements


def repeated_class_names() -> dict[str, list[str]]:
    """Names of classes that several files of slomodel define, each with those files."""
    files = defaultdict(list)
    for path in package():
        for name in outline(path).classes:
            files[name].append(relative(path))
    return {name: where for name, where in sorted(files.items()) if len(where) > 1}


def report() -> str:
    """The ten longest files and functions, and the counts that have a ceiling."""
    python = [path for path in texts() if path.suffix == ".py"]
    files = [(relative(path), file_length(path)) for path in python]
    functions = [pair for path in python for pair in function_lengths(path)]
    lines = []
    for title, sizes in (("files", files), ("functions", functions)):
        lines.append(f"Longest {title}:")
        longest = sorted(sizes, key=lambda pair: (-pair[1], pair[0]))[:10]
        lines += [f"{length:6}  {name}" for name, length in longest]
    repeated = repeated_class_names()
    short = short_files()
    names = sum(map(is_only_a_docstring, package()))
    lines.append(f"Files of slomodel with code and fewer than {SHORT} lines: {len(short)}")
    lines.append(f"Files of slomodel with the docstring of a package alone: {names}")
    lines.append(f"Class names that several files define: {len(repeated)}")
    lines += [f"        {name}: {', '.join(where)}" for name, where in repeated.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(report())
