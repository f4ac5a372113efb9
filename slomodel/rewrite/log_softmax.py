"""Logarithms of softmax, which are finite for elements that underflow."""

from __future__ import annotations

from slomodel.functions import add, div, exp, log, neg, softplus, sub
from slomodel.functions.shifted import shifted_sum
from slomodel.ir import build
from slomodel.ir.expr import Einsum, Expr, Gather, Map
from slomodel.rewrite.matching import Part, exponential_sum, is_map, is_shifted, parts_of


def log_softmax(node: Map) -> Expr | None:
    """log(exp(x) / sum(exp(x))) as x - m - log(sum(exp(x - m))), both parts at most 0.

    Also of elements of softmax.
    """
    inside = node.operands[0]
    quotient = inside.operands[0] if isinstance(inside, Gather) else inside
    if not is_map(quotient, div):
        return None
    assert isinstance(quotient, Map)
    found = _shifted(quotient) or _of_one(quotient) or _of_two(quotient)
    if found is None or not isinstance(inside, Gather):
        return found
    return build.gather(found, inside.index, inside.shape)


def _shifted(quotient: Map) -> Expr | None:
    """Of softmax as it is computed: exponentials shifted by the largest, over their sum."""
    above, below = parts_of(quotient)
    exponent = above.inner(exp)
    is_sum = isinstance(below.node, Einsum) and below.node.operands == (above.node,)
    if exponent is None or not is_sum or not is_shifted(exponent.node):
        return None
    total = Part(log(below.node), below.axes)
    return sub(exponent.along(quotient.shape), total.along(quotient.shape))


def _of_one(quotient: Map) -> Expr | None:
    """Of the exponential of one element over the sum of all."""
    above, below = parts_of(quotient)
    exponent, summed = above.inner(exp), exponential_sum(below.node)
    if exponent is None or summed is None or summed.order:
        return None
    element = exponent.node
    if not isinstance(element, Gather) or element.operands[0] is not summed.x:
        return None
    shift, total = shifted_sum(summed.x, summed.axes)
    shape = quotient.shape
    less = sub(exponent.along(shape), Part(shift, below.axes).along(shape))
    return sub(less, Part(log(total), below.axes).along(shape))


def _of_two(quotient: Map) -> Expr | None:
    """log(exp(x) / (exp(x) + exp(y))) is -softplus(y - x)."""
    above, below = parts_of(quotient)
    x = above.inner(exp)
    if x is None or not is_map(below.node, add):
        return None
    terms = below.parts()
    for one, other in (terms, terms[::-1]):
        y = other.inner(exp)
        if one == above and y is not None:
            shape = quotient.shape
            return neg(softplus(sub(y.along(shape), x.along(shape))))
    return None
