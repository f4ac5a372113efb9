"""Signs, constants and reciprocals merged exactly, so that stable forms match any spelling.

a - (-b) is a + b, x / (1 / y) is x y, and 2 (x / 2) is x. The law: sums are the same, and products
have fewer roundings; constants are merged where their product is exact.
"""

from __future__ import annotations

from fractions import Fraction
from math import frexp, isfinite

from slomodel.calculus.signs import parity_of
from slomodel.functions import add, div, exp, mul, neg, stop_gradient, sub
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.rewrite.elementwise.matching import Part, parts_of, scaled, two_terms, whole

_MOST_DEPTH = 4


def merged_signs(node: Map) -> Expr | None:
    """A sum or negative without signs that others absorb; None where there are none."""
    shape = node.shape
    if is_map(node, neg):
        (inner,) = parts_of(node)
        if not is_map(inner.node, sub):
            return None
        left, right = (part.along(shape) for part in inner.parts())
        return sub(right, left)
    one, other = parts_of(node)
    is_added = is_map(node, add)
    if is_map(other.node, neg):
        return (sub if is_added else add)(one.along(shape), other.parts()[0].along(shape))
    if not is_added and isinstance(other.node, Const) and other.node.value < 0.0:
        return add(one.along(shape), -other.node.value)
    if not is_added and is_map(other.node, sub):
        c, y = other.parts()
        if isinstance(c.node, Const) and c.node.value < 0.0:
            return add(one.along(shape), add(-c.node.value, y.along(shape)))
    # -a + b stays: other rules and the steps of loops look for sums.
    return None


def without_cancelled_terms(node: Map) -> Expr | None:
    """1 - (1 - u) as u, (x + u) - x as u, also where constants cancel in part; else None."""
    groups = [_terms(part, sign) for part, sign in zip(parts_of(node), _signs(node), strict=True)]
    if len(groups[0]) + len(groups[1]) < 3:
        return None
    for i, (one, sign) in enumerate(groups[0]):
        for j, (other, opposite) in enumerate(groups[1]):
            left = _left(one, sign, other, opposite)
            if left is None:
                continue
            rest = [*groups[0][:i], *groups[0][i + 1 :], *groups[1][:j], *groups[1][j + 1 :]]
            total: Expr = left
            for part, own in rest:
                total = (add if own > 0 else sub)(total, part.along(node.shape))
            return total
    return None


def _signs(node: Map) -> tuple[int, int]:
    return (1, -1 if node.function is sub else 1)


def _terms(part: Part, sign: int) -> list[tuple[Part, int]]:
    """The two terms of a sum with their signs; any other part by itself."""
    if not isinstance(part.node, Map) or not is_map(part.node, add, sub):
        return [(part, sign)]
    return [(one, sign * own) for one, own in zip(part.parts(), _signs(part.node), strict=True)]


def _left(one: Part, sign: int, other: Part, opposite: int) -> Const | None:
    """What two terms that cancel leave, a number without rounding; None where they do not."""
    if isinstance(one.node, Const) and isinstance(other.node, Const):
        a, b = sign * one.node.value, opposite * other.node.value
        total = a + b
        if a * b >= 0.0 or not isfinite(total) or Fraction(a) + Fraction(b) != Fraction(total):
            return None
        return Const(total)
    return Const(0.0) if one == other and sign == -opposite else None


def merged_factors(node: Map) -> Expr | None:
    """A product or quotient without reciprocals and constants that others absorb; else None."""
    shape = node.shape
    if is_map(node, div):
        one, other = parts_of(node)
        if is_map(other.node, div):
            c, y = other.parts()
            if isinstance(c.node, Const) and not isinstance(y.node, Const) and c.node.value:
                return div(mul(one.along(shape), y.along(shape)), c.node)
        if is_map(one.node, neg) and is_map(other.node, sub):
            a, b = (part.along(shape) for part in other.parts())
            return div(one.parts()[0].along(shape), sub(b, a))
    if not _has_constants(node):
        return None
    term = scaled(Part(node, tuple(range(node.rank))))
    if term.core is None or not _is_power_of_two(term.coefficient):
        return None
    result = _times(term.coefficient, term.core, shape)
    return None if result is node else result


def _has_constants(node: Map) -> bool:
    """Whether there is a constant factor beside another one, or beside a sum with a constant."""
    count, one = 0, _other_factor(node)
    while one is not None and count < _MOST_DEPTH:
        count += 1
        inner = _other_factor(one) if isinstance(one, Map) else None
        if inner is None:
            return count > 1 or is_map(one, add, sub)
        one = inner
    return False


def _other_factor(node: Map) -> Expr | None:
    """x of c x, x c, x / c and -x."""
    if is_map(node, neg):
        return node.operands[0]
    if not is_map(node, mul, div):
        return None
    first, second = node.operands
    if isinstance(second, Const):
        return first
    return second if isinstance(first, Const) and is_map(node, mul) else None


def _is_power_of_two(c: float) -> bool:
    return frexp(c)[0] in (0.5, -0.5)


def _times(c: float, part: Part, shape: Shape) -> Expr | None:
    """c times a part: of c (a + b x) with constants a and b, c a + c b x."""
    if c == 1.0:
        return part.along(shape)
    if isinstance(part.node, Map) and is_map(part.node, add, sub) and part.node.shape == shape:
        one, other = two_terms(part.node)
        constant, term = (one, other) if one.core is None else (other, one)
        if constant.core is None and term.core is not None:
            a, b = c * constant.coefficient, c * term.coefficient
            exact = (
                Fraction(c) * Fraction(constant.coefficient),
                Fraction(c) * Fraction(term.coefficient),
            )
            if (Fraction(a), Fraction(b)) == exact and 1.0 in (abs(a), abs(b)):
                return add(a, mul(b, term.core.along(shape)))
        return None
    return neg(part.along(shape)) if c == -1.0 else mul(c, part.along(shape))


def merged_exponent(node: Map) -> Expr | None:
    """exp(2 (x / 2)) as exp(x): a form squares exponentials by doubling their exponents."""
    (inner,) = node.operands
    merged = merged_factors(inner) if is_map(inner, mul, div) and isinstance(inner, Map) else None
    return None if merged is None else exp(merged)


def of_negative(node: Map) -> Expr | None:
    """f(-x) as -f(x) for an odd function f, and as f(x) for an even one."""
    is_shift = node.function is stop_gradient  # Shifts of exponents are known by it.
    if is_shift or len(node.operands) != 1 or not is_map(node.operands[0], neg):
        return None
    parity = parity_of(node.function)
    if not parity:
        return None
    inner = whole(node).parts()[0].parts()[0].along(node.shape)
    return node.function(inner) if parity > 0 else neg(node.function(inner))
