"""Stable forms of hyperbolic functions written by exponentials, and of the logistic slope."""

from __future__ import annotations

from slomodel.functions import (
    add,
    cosh,
    div,
    exp,
    expm1,
    log,
    logcosh,
    mul,
    neg,
    sech2,
    sigmoid,
    sinh,
    softplus,
    square,
    tanh,
)
from slomodel.ir.expr import Const, Expr, Map
from slomodel.rewrite.matching import (
    Part,
    factors,
    is_map,
    parts_of,
    scaled,
    two_terms,
)


def power_of_exponential(node: Map) -> Expr | None:
    """exp(x)^2 is exp(2 x), whose exponent is exact."""
    exponent = parts_of(node)[0].inner(exp)
    return None if exponent is None else exp(mul(2.0, exponent.along(node.shape)))


def reciprocal(node: Map) -> Expr | None:
    """1 / exp(x): exp(-x) keeps the digits that a subnormal exp(x) lacks."""
    above, below = parts_of(node)
    exponent = below.inner(exp)
    is_one = isinstance(above.node, Const) and above.node.value == 1.0
    return exp(neg(exponent.along(node.shape))) if exponent is not None and is_one else None


def halves(node: Map) -> Expr | None:
    """c exp(x) + c exp(-x) is 2 c cosh(x), and with a minus 2 c sinh(x)."""
    first, second = two_terms(node)
    one, other = (term.core.inner(exp) if term.core else None for term in (first, second))
    if one is None or other is None or not _are_opposite(one, other):
        return None
    if abs(first.coefficient) != abs(second.coefficient):
        return None
    function = cosh if first.coefficient == second.coefficient else sinh
    positive, coefficient = (one, first.coefficient)
    if scaled(one).coefficient < 0.0:
        positive, coefficient = (other, second.coefficient)
    return mul(2.0 * coefficient, function(positive.along(node.shape)))


def centred_sigmoid(node: Map) -> Expr | None:
    """c sigmoid(x) - c / 2 is c / 2 tanh(x / 2)."""
    constant, term = sorted(two_terms(node), key=lambda one: one.core is not None)
    inside = term.core.inner(sigmoid) if term.core is not None else None
    if inside is None or constant.core is not None:
        return None
    half = 0.5 * term.coefficient
    if constant.coefficient != -half:
        return None
    return mul(half, tanh(mul(0.5, inside.along(node.shape))))


def _are_opposite(one: Part, other: Part) -> bool:
    a, b = scaled(one), scaled(other)
    return a.core is not None and a.core == b.core and a.coefficient == -b.coefficient


def logarithm(node: Map) -> Expr | None:
    """log(exp(x)), and log(c cosh(x)) with c >= 1, whose two parts do not cancel."""
    term = scaled(parts_of(node)[0])
    if term.core is None or term.coefficient < 1.0:
        return None
    exponent, inside = term.core.inner(exp), term.core.inner(cosh)
    if exponent is not None and term.coefficient == 1.0:
        return exponent.along(node.shape)
    if inside is None:
        return None
    found = logcosh(inside.along(node.shape))
    return found if term.coefficient == 1.0 else add(log(Const(term.coefficient)), found)


def shifted_softplus(node: Map) -> Expr | None:
    """softplus(x) - x is softplus(-x)."""
    first, second = two_terms(node)
    for one, other in ((first, second), (second, first)):
        inside = one.core.inner(softplus) if one.core is not None else None
        if inside is None or other.core is None:
            continue
        x = scaled(inside)
        if x.core == other.core and other.coefficient == -one.coefficient * x.coefficient:
            return mul(one.coefficient, softplus(neg(inside.along(node.shape))))
    return None


def quotient(node: Map) -> Expr | None:
    """sinh(x) / cosh(x), (exp(x) - 1) / (exp(x) + 1), y exp(x) / (1 + exp(x))^2."""
    above, below = parts_of(node)
    squared = below.inner(square)
    if squared is not None:
        return _slope(above, squared, node)
    top, bottom = scaled(above), scaled(below)
    if top.core is None or bottom.core is None:
        return None
    x, inside = top.core.inner(sinh), top.core.inner(expm1)
    if x is not None and bottom.core.inner(cosh) == x:
        found = mul(top.coefficient, tanh(x.along(node.shape)))
        return div(found, bottom.coefficient)
    if inside is not None and _exponent_above_one(bottom.core) == inside:
        found = mul(top.coefficient, tanh(mul(0.5, inside.along(node.shape))))
        return div(found, bottom.coefficient)
    return None


def _exponent_above_one(part: Part) -> Part | None:
    """`x` of 1 + exp(x)."""
    if not is_map(part.node, add):
        return None
    one, other = part.parts()
    for constant, rest in ((one, other), (other, one)):
        if isinstance(constant.node, Const) and constant.node.value == 1.0:
            return rest.inner(exp)
    return None


def _slope(above: Part, below: Part, node: Map) -> Expr | None:
    """A product with exp(x) over (1 + exp(x))^2: sech(x / 2)^2 / 4, the logistic slope."""
    exponent = _exponent_above_one(below)
    if exponent is None:
        return None
    x = exponent.along(node.shape)
    parts = factors(above)
    place = next((k for k, part in enumerate(parts) if part.inner(exp) == exponent), None)
    if place is None:
        return mul(above.along(node.shape), square(sigmoid(neg(x))))
    result = mul(0.25, sech2(mul(0.5, x)))
    for k, part in enumerate(parts):
        result = result if k == place else mul(part.along(node.shape), result)
    return result
