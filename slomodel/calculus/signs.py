"""Signs that follow from the form of a graph."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import slomodel.functions as table
from slomodel.functions.compound import hypot
from slomodel.ir.expr import Const, Einsum, Expr, Gather, Map, Reshape

_NEVER_NEGATIVE = (
    *(table.square, table.abs, table.relu, table.exp, table.sqrt, table.root, hypot),
)
_KEEPING_SIGNS = (table.add, table.mul, table.div, table.maximum, table.minimum)
# Kept, so that asking for each node of a long graph takes time in proportion to its length.
_nonnegative: WeakKeyDictionary[Expr, bool] = WeakKeyDictionary()
_positive: WeakKeyDictionary[Expr, bool] = WeakKeyDictionary()


def _is_never_negative(node: Expr) -> bool:
    if isinstance(node, Const):
        return node.value >= 0.0
    return isinstance(node, Map) and node.function in _NEVER_NEGATIVE


def is_nonnegative(node: Expr) -> bool:
    """Whether a node consists of squares and the like, so that it is nowhere negative."""
    if node in _nonnegative:
        return _nonnegative[node]
    stack, seen = [node], {node}
    while stack:
        one = stack.pop()
        if _nonnegative.get(one, False):
            continue
        if isinstance(one, Einsum):
            factors = list(zip(one.operands, one.inputs, strict=True))
            below = [operand for operand, own in factors if factors.count((operand, own)) % 2]
        elif isinstance(one, Map) and one.function in _KEEPING_SIGNS:
            below = list(one.operands)
        elif _is_never_negative(one):
            continue
        elif isinstance(one, (Gather, Reshape)):
            below = [one.operands[0]]
        else:
            _nonnegative[node] = False
            return False
        stack += [operand for operand in below if operand not in seen]
        seen.update(below)
    _nonnegative.update(dict.fromkeys(seen, True))
    return True


def is_positive(node: Expr) -> bool:
    """Whether a node is a positive constant plus what is nowhere negative, and so is never 0.

    Products and exponentials are left out, as they underflow to 0.
    """
    stack, seen = [node], set()
    while stack:
        one = stack.pop()
        if one in seen or not _positive.get(one, True):
            continue
        seen.add(one)
        if _positive.get(one, False) or (isinstance(one, Const) and one.value > 0.0):
            _positive[node] = True
            return True
        if isinstance(one, Map) and one.function is table.add and is_nonnegative(one):
            stack += one.operands
        elif isinstance(one, (Gather, Reshape)):
            stack.append(one.operands[0])
    _positive.update(dict.fromkeys(seen, False))
    return False
