"""Conditions on data and positions: whether they are decided alike wherever they are computed.

A model's kernels and that of its rays compute the same conditions, and the branch that one takes
must be the branch of the other. Comparisons of data and positions, and of single sums, products and
roots of them, have the same bits everywhere. What is rounded twice need not: rewriting may merge
the operations, as in sqrt(t)^2, sums are added in other orders, libraries have other formulas, and
in another precision all roundings differ. Such conditions are decided by enclosures, and where
these meet, neither branch is certain.
"""

from __future__ import annotations

import slomodel.functions as table
from slomodel.calculus.rays.numbers import EXTENDED_UNIT, unit
from slomodel.ir.expr import (
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Input,
    Iota,
    Listing,
    Map,
    Reshape,
)
from slomodel.ir.walk import postorder

_EXACT_OF_INTEGERS = frozenset({table.add, table.sub, table.mul, table.square})
"""Below 2^53, which positions and sizes do not reach."""
ROUNDED_ONCE = _EXACT_OF_INTEGERS | {table.div, table.sqrt}
"""Correctly rounded on every target, as IEEE 754 requires."""


def is_decided_alike(condition: Expr) -> bool:
    """Whether a condition has the same truth values in every kernel, and in this arithmetic."""
    integers: set[Expr] = set()
    rounded: set[Expr] = set()
    for node in postorder(condition):
        if _is_integer(node, integers):
            integers.add(node)
            continue
        follows = not rounded.isdisjoint(node.operands)
        rounds = isinstance(node, Map) and node.function in ROUNDED_ONCE
        if rounds and (follows or unit() == EXTENDED_UNIT):
            return False
        if rounds or follows:
            rounded.add(node)
        if isinstance(node, Map):
            if not rounds and not node.function.exact:
                return False
        elif isinstance(node, Einsum):
            if len(node.operands) != 1 or not set(node.inputs[0]) <= set(node.output):
                return False
        elif not isinstance(node, (Input, Const, Iota, Listing, Gather, Reshape, Extreme)):
            return False
    return True


def _is_integer(node: Expr, integers: set[Expr]) -> bool:
    """Whether a node is a number of positions and sizes that is exact, as its operands are."""
    if isinstance(node, Const):
        return node.dtype == "real" and node.value.is_integer()
    if isinstance(node, (Iota, Einsum)) and not node.operands:
        return True
    if isinstance(node, Input):
        return node.dtype == "whole"
    exact = isinstance(node, Map) and (node.function.exact or node.function in _EXACT_OF_INTEGERS)
    exact |= isinstance(node, (Gather, Reshape, Extreme))
    return exact and node.dtype != "bool" and integers.issuperset(node.operands)
