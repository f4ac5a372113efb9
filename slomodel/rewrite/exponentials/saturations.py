"""Saturations x^p/(b + x^p), whose powers may overflow; the slope cancels where they are near 1."""

from __future__ import annotations

import math

from slomodel.functions import abs, add, div, ge, gt, land, log, lt, mul, pow, square, where
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.rewrite.elementwise.matching import Part, factors, product_with, varies, whole

_FARTHEST = 345.0
"""Up to this logarithm of x^p its square does not overflow."""
_LARGEST = 1e130
"""Up to this b, exp(345) = 1e149 is far beyond b, and x^p/(b + x^p) is 1 to full accuracy there."""


def saturation(node: Map) -> Expr | None:
    """A quotient with x^p among its factors and in its divisor b + x^p; else None."""
    above, below = whole(node).parts()
    if not is_map(below.node, add):
        return None
    own = factors(above)
    first, second = below.parts()
    for part, other in ((first, second), (second, first)):
        if part not in own or not varies(part.node):
            continue
        value = _saturation(part, other, node.shape)
        if value is not None:
            return product_with(own, own.index(part), value, node.shape)
    return None


def _saturation(part: Part, other: Part, shape: Shape) -> Expr | None:
    power, beside = _power(part), _power(other)
    if power is None:
        return None
    b = other.node
    if isinstance(b, Const) and not 0.0 < b.value < _LARGEST:
        return None
    x, p = power[0].along(shape), power[1].along(shape)
    if beside is not None and beside[1] == power[1]:
        k = beside[0].along(shape)
        return _of_squares(x, k) if p is Const(2.0) else _written(div(x, k), p, Const(1.0))
    return _written(x, p, other.along(shape))


def _of_squares(x: Expr, k: Expr) -> Expr:
    """x²/(k² + x²) by the ratio that is at most 1: it is 1 at k = 0, and is curved there."""
    is_large = ge(abs(x), abs(k))
    ratio = square(div(where(is_large, k, x), where(is_large, x, k)))
    return div(where(is_large, 1.0, ratio), add(1.0, ratio))


def _written(x: Expr, p: Expr, b: Expr) -> Expr:
    """x^p/(b + x^p): 1 where x^p is far beyond b, and 1/(1 + b/x^p) where it is larger."""
    if isinstance(p, Const):
        # Powers that are not whole have no value for negative x.
        size = abs(x) if p.value.is_integer() else x
        is_beyond = gt(size, math.exp(_FARTHEST / p.value))
    else:
        is_beyond = gt(mul(p, log(x)), _FARTHEST)
    if not isinstance(b, Const):
        is_beyond = land(is_beyond, lt(abs(b), _LARGEST))
    power = pow(where(is_beyond, 1.0, x), p)
    is_large = gt(abs(power), abs(b))
    large = div(1.0, add(1.0, div(b, where(is_large, power, 1.0))))
    small = where(is_large, 0.0, power)
    return where(is_beyond, 1.0, where(is_large, large, div(small, add(b, small))))


def _power(part: Part) -> tuple[Part, Part] | None:
    """x and p of a power x^p of degree 2 or more, as it is written in canonical form."""
    node = part.node
    if is_map(node, pow):
        base, exponent = part.parts()
        is_known = not isinstance(exponent.node, Const) or exponent.node.value > 0.0
        return (base, exponent) if is_known else None
    whole_power = _whole_power(part)
    if whole_power is None or whole_power[1] < 2:
        return None
    return whole_power[0], Part(Const(float(whole_power[1])), ())


def _whole_power(part: Part) -> tuple[Part, int] | None:
    """x and p of a product of squares of x."""
    node = part.node
    if is_map(node, square):
        inner = _whole_power(part.parts()[0])
        return None if inner is None else (inner[0], 2 * inner[1])
    if is_map(node, mul) and is_map(part.parts()[0].node, square):
        squared, base = part.parts()
        return (base, 3) if squared.parts()[0] == base else (part, 1)
    return part, 1
