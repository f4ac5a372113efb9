"""Quotients by powers rewritten as powers with negative exponents.

The derivative of c / x⁶ is -6 c x⁵ / x¹² as a quotient and -6 c x⁻⁷ as a power. Bounds on the
former combine the largest x⁵ of an array with the smallest x¹², possibly of different elements.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from math import isfinite

import slomodel.functions as table
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.calculus.signs import is_nonnegative
from slomodel.ir import build
from slomodel.ir.expr import Const, Expr, Map, remake


@once_per_part
def with_negative_powers(part: ObjectivePart) -> ObjectivePart:
    """The part with a / xᵖ rewritten as a x⁻ᵖ, and nested powers and roots below it merged.

    Both forms have the same domain and the same value on it.
    """
    order, varying = part.order, part.varying
    done: dict[Expr, Expr] = {}
    constant: set[Expr] = set()
    for node in order:
        remade = remake(node, tuple(done[operand] for operand in node.operands))
        done[node] = _rewritten(remade, constant) if node in varying else remade
        if node not in varying:
            constant.add(remade)
    return part.rewritten(done, part.known)


def _rewritten(node: Expr, constant: Collection[Expr]) -> Expr:
    if not isinstance(node, Map):
        return node
    if node.function is table.div:
        base, p = _power(node.operands[1])
        if p > 0.0 and p not in (0.5, 1.0):
            return _like(node, table.mul(build.aligned(node)[0], _along(node, 1, base, -p)))
    base, p = _power(node)
    if p < 0.0 and base is not node.operands[0]:
        return _like(node, build.apply(table.pow, base, build.const(p)))
    quotient = node.operands[0]
    if p > 1.0 and p.is_integer() and base is quotient and _is_reciprocal(quotient, constant):
        assert isinstance(quotient, Map)
        above, below = build.aligned(quotient)
        return _like(node, table.mul(table.pow(above, p), _negative(below, p)))
    return node


def _is_reciprocal(node: Expr, constant: Collection[Expr]) -> bool:
    """Whether a node is a quotient whose numerator does not depend on x."""
    return isinstance(node, Map) and node.function is table.div and node.operands[0] in constant


def _negative(below: Expr, p: float) -> Expr:
    base, p = _power(below, -p)
    return build.apply(table.pow, base, build.const(p))


def _along(node: Map, k: int, base: Expr, p: float) -> Expr:
    """baseᵖ along the axes of operand k, whose shape the base has."""
    power = build.apply(table.pow, base, build.const(p))
    return build.broadcast(power, node.axes[k], node.shape) if base.rank else power


def _like(node: Map, result: Expr) -> Expr:
    return result if result.shape == node.shape else build.broadcast(result, (), node.shape)


def _power(node: Expr, exponent: float = 1.0) -> tuple[Expr, float]:
    """x and p with node^exponent = xᵖ, both defined for the same x.

    (xᵃ)ᵇ is x^(ab), exactly, for integers a and b. For a non-integer a, xᵃ is undefined for x < 0:
    then ab must not be an integer either, or x is never below 0.
    """
    base, p = node, exponent
    while isinstance(base, Map):
        below, inner = _one_power(base)
        if inner in (0.0, 1.0) or (inner.is_integer() and not p.is_integer()):
            break
        product = p * inner
        if not isfinite(product) or Fraction(p) * Fraction(inner) != Fraction(product):
            break
        if not inner.is_integer() and product.is_integer() and not is_nonnegative(below):
            break
        base, p = below, product
    return base, p


def _one_power(node: Map) -> tuple[Expr, float]:
    """x and p with node = xᵖ for the node's own function; cubes are written as x² x in graphs."""
    x = node.operands[0]
    if node.function in (table.root, table.sqrt):
        return x, 0.5
    if node.function is table.square:
        return x, 2.0
    if node.function is table.pow and isinstance(node.operands[1], Const):
        return x, float(node.operands[1].value)
    if node.function is table.mul and isinstance(x, Map) and x.function is table.square:
        cube = node.operands[1] is x.operands[0] and node.axes[0] == node.axes[1]
        return (x.operands[0], 3.0) if cube else (node, 1.0)
    return node, 1.0
