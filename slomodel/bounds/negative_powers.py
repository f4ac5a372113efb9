"""Quotients by powers as powers with negative exponents.

c / x⁶ has the derivative -6 c x⁵ / x¹² as a quotient, and -6 c x⁻⁷ as a power: bounds of the first
multiply the largest x⁵ and the smallest x¹² of an array, though of different elements.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction
from math import isfinite

import slomodel.functions as table
from slomodel.bounds.setting import Setting
from slomodel.functions.compound import hypot
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Gather, Map, Reshape, remake
from slomodel.ir.walk import dependents, postorder

KEY = "with negative powers"


def with_negative_powers(setting: Setting) -> Setting:
    """The setting with a / xᵖ as a x⁻ᵖ, and powers and roots below a negative power as one; kept.

    Both sides have a value for the same x, and the same one.
    """
    kept = setting.kept.get(KEY)
    if isinstance(kept, Setting):
        return kept
    order = postorder(setting.objective)
    moving = dependents(order, set(setting.variables).__contains__)
    done: dict[Expr, Expr] = {}
    fixed: set[Expr] = set()
    for node in order:
        again = remake(node, tuple(done[operand] for operand in node.operands))
        done[node] = _rewritten(again, fixed) if node in moving else again
        if node not in moving:
            fixed.add(again)
    objective = done[setting.objective]
    if objective is setting.objective:
        made = setting
    else:
        spans = {done[node]: span for node, span in setting.spans.items() if node in done}
        made = replace(setting, objective=objective, spans={**spans, **setting.spans}, kept={})
    setting.kept[KEY] = made
    return made


def _rewritten(node: Expr, fixed: Collection[Expr]) -> Expr:
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
    if p > 1.0 and p.is_integer() and base is quotient and _is_reciprocal(quotient, fixed):
        assert isinstance(quotient, Map)
        above, below = build.aligned(quotient)
        return _like(node, table.mul(table.pow(above, p), _negative(below, p)))
    return node


def _is_reciprocal(node: Expr, fixed: Collection[Expr]) -> bool:
    """Data or a constant divided by something."""
    return isinstance(node, Map) and node.function is table.div and node.operands[0] in fixed


def _negative(below: Expr, p: float) -> Expr:
    base, p = _power(below, -p)
    return build.apply(table.pow, base, build.const(p))


def _along(node: Map, k: int, base: Expr, p: float) -> Expr:
    """baseᵖ along the axes of operand k, of whose shape the base is."""
    power = build.apply(table.pow, base, build.const(p))
    return build.broadcast(power, node.axes[k], node.shape) if base.rank else power


def _like(node: Map, made: Expr) -> Expr:
    return made if made.shape == node.shape else build.broadcast(made, (), node.shape)


def _power(node: Expr, exponent: float = 1.0) -> tuple[Expr, float]:
    """x and p with node^exponent = xᵖ, both with a value for the same x.

    Of xᵃ to the power b that is x^(ab), exactly, for whole a and b. For a that is not whole xᵃ has
    no value for x < 0: then ab must not be whole either, or x is never below 0.
    """
    base, p = node, exponent
    while isinstance(base, Map):
        below, inner = _one_power(base)
        if inner in (0.0, 1.0) or (inner.is_integer() and not p.is_integer()):
            break
        product = p * inner
        if not isfinite(product) or Fraction(p) * Fraction(inner) != Fraction(product):
            break
        if not inner.is_integer() and product.is_integer() and not _is_nonnegative(below):
            break
        base, p = below, product
    return base, p


_NEVER_NEGATIVE = (
    *(table.square, table.abs, table.relu, table.exp, table.sqrt, table.root, hypot),
)
_KEEPING_SIGNS = (table.add, table.mul, table.div, table.maximum, table.minimum)


def _is_never_negative(node: Expr) -> bool:
    if isinstance(node, Const):
        return node.value >= 0.0
    return isinstance(node, Map) and node.function in _NEVER_NEGATIVE


def _is_nonnegative(node: Expr) -> bool:
    """Whether a node is made of squares and the like, so that no value of it is below 0."""
    stack, seen = [node], {node}
    while stack:
        one = stack.pop()
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
            return False
        stack += [operand for operand in below if operand not in seen]
        seen.update(below)
    return True


def _one_power(node: Map) -> tuple[Expr, float]:
    """x and p with node = xᵖ by its function alone; a cube is made as x² x."""
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
