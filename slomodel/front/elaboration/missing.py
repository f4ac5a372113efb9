"""Which data may hold NaN: those that reach the objective only through `masked`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from slomodel.ir.expr import Expr, Input
from slomodel.ir.walk import inputs
from slomodel.problem import Check


def may_be_missing(
    objective: Expr, checks: Sequence[Check], masked: Collection[Expr]
) -> set[Input]:
    """The data below the choices of `masked` alone; `masked` holds those nodes."""
    roots = (objective, *(check.condition for check in checks))
    seen: set[Expr] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        operands = node.operands
        stack.extend((operands[0], *operands[2:]) if node in masked else operands)
    return {node for node in inputs(*roots) if node.role == "data" and node not in seen}
