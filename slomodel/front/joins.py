"""Whether the two branches of a `where` meet with equal value and derivative, shown by SymPy."""

from __future__ import annotations

from slomodel.ir.expr import Expr


def is_smooth_join(condition: Expr, yes: Expr | None = None, no: Expr | None = None) -> bool:
    return False
