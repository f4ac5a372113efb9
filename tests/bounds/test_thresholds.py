"""Every number by which bounds decide how much work to do has a unit and a reason beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import slomodel

BOUNDS = Path(slomodel.__file__).parent / "bounds"
NUMERIC = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Tuple, ast.Name)


def is_threshold(node: ast.stmt) -> bool:
    """Whether the statement names numbers in capitals."""
    if not isinstance(node, ast.Assign):
        return False
    names = [one.id for one in ast.walk(node.targets[0]) if isinstance(one, ast.Name)]
    parts = [one for one in ast.walk(node.value) if not isinstance(one, ast.expr_context)]
    numbers = [one.value for one in parts if isinstance(one, ast.Constant)]
    return (
        all(name.strip("_").isupper() for name in names)
        and all(isinstance(one, NUMERIC) for one in parts)
        and any(isinstance(value, int | float) for value in numbers)
    )


def without_reason(path: Path) -> Iterator[str]:
    """Those neither followed by a text nor below a comment, by themselves or as one of a pair."""
    text = path.read_text(encoding="utf-8")
    lines, body = text.splitlines(), ast.parse(text).body
    for k, node in enumerate(body):
        if not is_threshold(node):
            continue
        first = last = k
        while (
            is_threshold(body[first - 1]) and body[first - 1].end_lineno == body[first].lineno - 1
        ):
            first -= 1
        while last + 1 < len(body) and is_threshold(body[last + 1]):
            last += 1
        after = body[last + 1] if last + 1 < len(body) else None
        is_told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        is_near = last - k < 2
        if not ((is_told and is_near) or lines[body[first].lineno - 2].startswith("#")):
            yield f"{path.relative_to(BOUNDS)}: {lines[node.lineno - 1]}"


def test_every_threshold_has_a_reason() -> None:
    assert [one for path in sorted(BOUNDS.rglob("*.py")) for one in without_reason(path)] == []
