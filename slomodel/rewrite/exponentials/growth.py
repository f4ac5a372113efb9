"""Single exponentials and what grows like them: their scales, and their products with exp(-s)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from slomodel.calculus.signs import is_positive
from slomodel.functions import (
    abs,
    add,
    cosh,
    eq,
    erfc,
    exp,
    expm1,
    gt,
    lognormcdf,
    lor,
    maximum,
    mul,
    neg,
    normcdf,
    pow,
    sigmoid,
    sinh,
    softplus,
    sub,
    where,
)
from slomodel.functions.compound import limited
from slomodel.functions.translate import balanced
from slomodel.ir.expr import Const, Expr, Map
from slomodel.ir.function import ScalarFunction
from slomodel.rewrite.elementwise.matching import Part, whole

ZONE = 300.0
"""Exponents up to this magnitude are not scaled: two such factors and 10^8 terms stay in range."""
_LARGEST = 400.0
"""The largest exponent beside a factor 0; derivatives divide by sums that may be exp(-300)."""
_LOGARITHMS: dict[ScalarFunction, Callable[[Expr], Expr]] = {
    exp: lambda u: u,
    sigmoid: lambda u: neg(softplus(neg(u))),
    normcdf: lognormcdf,
    erfc: lambda u: add(math.log(2.0), lognormcdf(mul(-math.sqrt(2.0), u))),
}
"""Functions that count as exponentials, and their logarithms."""


_TWO_SIDED = {cosh: add, sinh: sub}
"""Half of the sum or difference of exp(x) and exp(-x)."""


def exponent_of(part: Part) -> Expr | None:
    """log of a node that is an exponential or has a logarithm of full accuracy, of its shape."""
    node = part.node
    if not isinstance(node, Map) or node.function not in _LOGARITHMS:
        return None
    return _LOGARITHMS[node.function](whole(node).parts()[0].along(node.shape))


def growth(node: Map) -> Expr | None:
    """log of the scale of expm1(x), cosh(x), sinh(x) or c^x for a number c; None for others."""
    *_, inner = whole(node).parts()
    if isinstance(inner.node, Const):
        return None
    x = inner.along(node.shape)
    if node.function is expm1:
        return maximum(x, 0.0)
    if node.function in _TWO_SIDED:
        return abs(x)
    logarithm = _log_of_base(node)
    return None if logarithm is None else mul(logarithm, x)


def scaled_exp(exponent: Expr, absent: Expr | None) -> Expr:
    """exp of an exponent; `absent` says where a factor beside it is 0."""
    return exp(_limited(exponent, absent))


def _limited(exponent: Expr, absent: Expr | None) -> Expr:
    """An exponent, limited where a factor beside its exponential is 0."""
    if absent is None:
        return exponent
    return limited(exponent, -math.inf, where(absent, _LARGEST, math.inf))


def _log_of_base(node: Map) -> float | None:
    """log(c) of a power c^x of a number c > 0, c != 1."""
    if node.function is not pow or not isinstance(node.operands[0], Const):
        return None
    base = node.operands[0].value
    return math.log(base) if 0.0 < base < math.inf and base != 1.0 else None


def times_growing(node: Map, shift: Expr, absent: Expr | None) -> Expr:
    """node * exp(-shift) for expm1(x), cosh(x), sinh(x) and c^x."""
    x = whole(node).parts()[-1].along(node.shape)
    logarithm = _log_of_base(node)
    if logarithm is not None:
        exponent = sub(x, mul(1.0 / logarithm, shift))
        if absent is not None:
            least = where(absent, _LARGEST / logarithm, math.copysign(math.inf, logarithm))
            ends = (-math.inf, least) if logarithm > 0.0 else (least, math.inf)
            exponent = limited(exponent, *ends)
        return pow(node.operands[0], exponent)
    if node.function is expm1:
        return sub(expm1(_limited(sub(x, shift), absent)), expm1(neg(shift)))
    above, below = scaled_exp(sub(x, shift), absent), scaled_exp(sub(neg(x), shift), absent)
    far = mul(0.5, _TWO_SIDED[node.function](above, below))
    is_far = gt(abs(x), ZONE)
    return where(is_far, far, mul(node.function(where(is_far, 0.0, x)), exp(neg(shift))))


def absent_among(factors: Sequence[Expr]) -> Expr | None:
    """Where one of the factors, of the same shape, is 0; None if none of them ever is."""
    zeros = [
        eq(one, 0.0)
        for one in factors
        if (not one.value if isinstance(one, Const) else not is_positive(one))
    ]
    return balanced(lor, zeros) if zeros else None


def where_present(scale: Expr | float, factors: Sequence[Expr]) -> Expr:
    """The scale of a term; -inf where one of its factors is 0."""
    scale = Const(scale) if isinstance(scale, float) else scale
    absent = absent_among(factors)
    return scale if absent is None else where(absent, -math.inf, scale)
