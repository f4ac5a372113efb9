"""Spellings that mean one thing: squares of roots, roots of squares, norms."""

from __future__ import annotations

from dataclasses import replace

from slomodel.front.elaboration.values import Value, combine
from slomodel.functions import abs, pow, root, sqrt, square
from slomodel.ir.expr import Const, Einsum, Expr, Map


def power_of(base: Value, exponent: Value) -> Value:
    """`base ^ exponent`; `norm2(x)^2` is the sum of squares, `sumsq(x)^0.5` is `norm2(x)`."""
    node, number = base.expr, exponent.expr
    if isinstance(number, Const):
        inside = _root_of(node)
        if inside is not None and number.value == 2.0:
            return replace(base, expr=inside, row=None)
        if inside is not None and number.value == 4.0:
            return combine(square, replace(base, expr=inside, row=None))
        if number.value == 0.5:
            return square_root(base)
    return combine(pow, base, exponent)


def squared(value: Value) -> Value:
    inside = _root_of(value.expr)
    return combine(square, value) if inside is None else replace(value, expr=inside)


def square_root(value: Value) -> Value:
    """`sqrt`: of a sum of squares the norm, of a square the absolute value."""
    node = value.expr
    if isinstance(node, Map) and node.function is square:
        return combine(abs, replace(value, expr=node.operands[0]))
    return combine(root if _is_sum_of_squares(node) else sqrt, value)


def _root_of(node: Expr) -> Expr | None:
    """`s` when the node is the root of a sum of squares `s`."""
    return node.operands[0] if isinstance(node, Map) and node.function is root else None


def _is_sum_of_squares(node: Expr) -> bool:
    if not isinstance(node, Einsum) or len(node.operands) != 2:
        return False
    alike = node.operands[0] is node.operands[1] and node.inputs[0] == node.inputs[1]
    return alike and len(set(node.output)) == len(node.output)
