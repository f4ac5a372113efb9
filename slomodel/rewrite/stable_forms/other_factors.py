"""Products and quotients of few functions, whatever else is among their factors.

Rules match a product of two functions, or a quotient, whose factors are written beside each other.
A constant may stand at any place, as in exp(-x^2/2)/sqrt(2 pi)/normcdf(x) and
exp(x)/(3 (exp(x) + exp(y))), and so may a factor y beside exponentials and tails. Of the node
without these factors the stable form is taken, and multiplied and divided by them one after
another. The law: factors are multiplied in another order, one rounding each. Beside a factor y,
which may be small or 0, the form must not overflow where the product as it is written does not: in
exp(x) y cosh(x) the exponentials stay apart, and expm1(x) y exp(-x) is -y expm1(-x).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from slomodel.functions import (
    add,
    cosh,
    div,
    erfc,
    exp,
    expm1,
    mul,
    neg,
    normcdf,
    pow,
    sigmoid,
    sinh,
    square,
    sub,
    where,
)
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Einsum, Expr, Map, is_map
from slomodel.rewrite.elementwise.matching import Part, is_shifted, product_of, whole

_MOST_DEPTH = 6
_SMALLEST, _LARGEST = 1e-100, 1e100
"""Products of constants within these leave what they multiply in the range of doubles."""
_GROWING = (exp, expm1, cosh, sinh)
_EXPONENTIAL = (*_GROWING, sigmoid, normcdf, erfc)


def without_other_factors(node: Map, better: Callable[[Expr], Expr | None]) -> Expr | None:
    """The stable form of a product or quotient, times constants and other factors in it."""
    if Const(0.0) in node.operands or (is_map(node, mul) and _has_constant(node)):
        return None  # Of the other factor the stable form has been taken.
    has_unknown = False
    for is_left in (_is_plain, _is_constant):
        factors = _LeftOutFactors(is_left, node.shape)
        core = factors.core(whole(node), _MOST_DEPTH)
        has_unknown |= factors.have_unknown_sizes()
        if core is None or core is node or not is_map(core, mul, div) or core.shape != node.shape:
            continue
        form = better(core)
        if form is not None and has_unknown and not _growing_in(form) <= _growing_in(core):
            continue
        joins = is_left is _is_constant and not has_unknown and is_map(node, mul)
        if form is None and joins and _has_exponential_above(core):
            form = core  # A later pass scales it, as one quotient.
        if form is not None and factors.are_moderate():
            result = form
            while form is not None:
                result, form = form, better(form)
            for one in factors.above:
                result = mul(one, result)
            for one in factors.below:
                result = div(result, one)
            return None if result is node else result
    return None


@dataclass(slots=True)
class _LeftOutFactors:
    """The factors above and below that are left out of a product."""

    is_left: Callable[[Expr], bool]
    shape: Shape
    above: list[Expr] = field(default_factory=list)
    below: list[Expr] = field(default_factory=list)

    def core(self, part: Part, depth: int, is_divisor: bool = False) -> Expr | None:
        """The product of the other factors as it is written; None for 1."""
        node, shape = part.node, self.shape
        if not depth or not is_map(node, mul, div, neg):
            if not self.is_left(node):
                return part.along(shape)
            if node is not Const(1.0):
                (self.below if is_divisor else self.above).append(part.along(shape))
            return None
        first, *rest = part.parts()
        left = self.core(first, depth - 1, is_divisor)
        if is_map(node, neg):
            self.above.append(Const(-1.0))
            return left
        if is_map(node, mul):
            right = self.core(rest[0], depth - 1, is_divisor)
            return _product(left, right, shape)
        right = self.core(rest[0], depth - 1, not is_divisor)
        if right is None:
            return left
        if is_map(right, div):
            above, below = (one.along(shape) for one in whole(right).parts())
            return div(below if left is None else mul(left, below), above)
        return div(Const(1.0) if left is None else left, right)

    def have_unknown_sizes(self) -> bool:
        return not all(isinstance(one, Const) for one in (*self.above, *self.below))

    def are_moderate(self) -> bool:
        """Whether the constants leave what they multiply in the range of doubles."""
        products = [
            product_of([one for one in own if isinstance(one, Const)])
            for own in (self.above, self.below)
        ]
        return all(
            isinstance(one, Const) and _SMALLEST < math.fabs(one.value) < _LARGEST
            for one in products
        )


def _product(left: Expr | None, right: Expr | None, shape: Shape) -> Expr | None:
    """left * right, where either may be 1/x."""
    if left is None or right is None:
        return right if left is None else left
    for one, other in ((left, right), (right, left)):
        if is_map(other, div) and other.operands[0] is Const(1.0):
            return div(one, whole(other).parts()[1].along(shape))
    return mul(left, right)


def _has_constant(node: Map) -> bool:
    return any(isinstance(operand, Const) for operand in node.operands)


def _has_exponential_above(node: Expr) -> bool:
    return is_map(node, div) and is_map(node.operands[0], *_EXPONENTIAL)


def _growing_in(product: Expr) -> set[Expr]:
    """The exponents of exponentials among the factors and terms of a product.

    A form with no others overflows nowhere where the product as it is written does not.
    """
    result: set[Expr] = set()
    stack, seen = [product], {product}
    while stack:
        node = stack.pop()
        if is_map(node, *_GROWING) and not is_shifted(node.operands[0]):
            (inner,) = whole(node).parts()
            exponent = inner.along(node.shape)
            result |= {exponent, neg(exponent)} if is_map(node, cosh, sinh) else {exponent}
        if is_map(node, square, pow) and is_map(node.operands[0], *_GROWING):
            result.add(node)
        if is_map(node, add, sub, mul, div, neg, where):
            operands = node.operands[1:] if is_map(node, where) else node.operands
            stack += [operand for operand in operands if operand not in seen]
            seen.update(operands)
    return result


def _is_constant(node: Expr) -> bool:
    return isinstance(node, Const)


def _is_plain(node: Expr) -> bool:
    """Whether a factor is not an exponential, a tail, or a sum with one."""
    if is_map(node, *_EXPONENTIAL):
        return False
    is_sum = is_map(node, add, sub) or isinstance(node, Einsum)
    return not (is_sum and any(is_map(one, *_EXPONENTIAL, mul, div) for one in node.operands))
