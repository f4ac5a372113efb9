"""Single exponentials and what grows like them: their scales, and their products with exp(-s)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import inputs
from slomodel.rewrite.elementwise.matching import Part, is_scale, whole
from slomodel.rewrite.work import is_varying_input

ZONE = 300.0
"""Exponents up to this magnitude are not scaled: two such factors and 10^8 terms stay in range."""
LARGEST = 709.0
"""About the largest exponent of a double."""
_LARGEST_BESIDE_DATA = 400.0
"""The largest exponent beside data that are 0; derivatives divide by sums that may be exp(-300)."""
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
    if isinstance(inner.node, Const) or _is_scaled(inner.node):
        return None
    x = inner.along(node.shape)
    if node.function is expm1:
        return maximum(x, 0.0)
    if node.function in _TWO_SIDED:
        return abs(x)
    logarithm = _log_of_base(node)
    return None if logarithm is None else mul(logarithm, x)


def _is_scaled(exponent: Expr) -> bool:
    """Whether a scale has been subtracted from an exponent, or is all of it: it does not grow.

    Else scaled forms would be scaled again without end.
    """
    inner = exponent.operands[0] if is_map(exponent, limited) else exponent
    if is_map(inner, where) and is_map(inner.operands[0], gt):
        return inner.operands[0].operands[1] is Const(ZONE)  # Close to 0, as in `times_growing`.
    return is_scale(inner) or (is_map(inner, sub) and is_scale(inner.operands[1]))


@dataclass(frozen=True, slots=True)
class Absent:
    """Conditions under which an exponential has no effect, as a factor beside it is 0.

    `by_data`: that factor is data. `by_variables`: it depends on variables, so that derivatives by
    these have the exponential as a factor; its exponent is limited to `largest`.
    """

    by_data: Expr | None
    by_variables: Expr | None
    largest: Expr | float

    def or_else(self, other: Absent | None) -> Absent:
        """Where this or another one holds."""
        if other is None:
            return self
        return Absent(
            _either(self.by_data, other.by_data),
            _either(self.by_variables, other.by_variables),
            self.largest,
        )

    def limit(self, scale: float = 1.0) -> Expr:
        """The limit of an exponent, times a number; infinite where no factor is 0."""
        result: Expr = Const(math.copysign(math.inf, scale))
        if self.by_variables is not None:
            result = where(self.by_variables, mul(scale, self.largest), result)
        if self.by_data is not None:
            result = where(self.by_data, scale * _LARGEST_BESIDE_DATA, result)
        return result


def _either(one: Expr | None, other: Expr | None) -> Expr | None:
    return one or other if one is None or other is None else lor(one, other)


def scaled_exp(exponent: Expr, absent: Absent | None) -> Expr:
    """exp of an exponent; `absent` says where a factor beside it is 0."""
    return exp(_limited(exponent, absent))


def _limited(exponent: Expr, absent: Absent | None) -> Expr:
    """An exponent, limited where a factor beside its exponential is 0."""
    return exponent if absent is None else limited(exponent, -math.inf, absent.limit())


def _log_of_base(node: Map) -> float | None:
    """log(c) of a power c^x of a number c > 0, c != 1."""
    if node.function is not pow or not isinstance(node.operands[0], Const):
        return None
    base = node.operands[0].value
    return math.log(base) if 0.0 < base < math.inf and base != 1.0 else None


def times_growing(node: Map, shift: Expr, absent: Absent | None) -> Expr:
    """node * exp(-shift) for expm1(x), cosh(x), sinh(x) and c^x."""
    x = whole(node).parts()[-1].along(node.shape)
    logarithm = _log_of_base(node)
    if logarithm is not None:
        exponent = sub(x, mul(1.0 / logarithm, shift))
        if absent is not None:
            end = absent.limit(1.0 / logarithm)
            ends = (-math.inf, end) if logarithm > 0.0 else (end, math.inf)
            exponent = limited(exponent, *ends)
        return pow(node.operands[0], exponent)
    if node.function is expm1:
        return sub(expm1(_limited(sub(x, shift), absent)), expm1(neg(shift)))
    above, below = scaled_exp(sub(x, shift), absent), scaled_exp(sub(neg(x), shift), absent)
    far = mul(0.5, _TWO_SIDED[node.function](above, below))
    is_far = gt(abs(x), ZONE)
    return where(is_far, far, mul(node.function(where(is_far, 0.0, x)), exp(neg(shift))))


def absent_among(factors: Sequence[Expr], largest: Expr | float) -> Absent | None:
    """Where one of the factors, of the same shape, is 0; None if none of them ever is."""
    kinds: tuple[list[Expr], list[Expr]] = [], []
    for one in factors:
        kinds[_varies(one)].append(one)
    by_data, by_variables = map(_zero_among, kinds)
    if by_data is None and by_variables is None:
        return None
    return Absent(by_data, by_variables, largest)


def _varies(factor: Expr) -> bool:
    return any(map(is_varying_input, inputs(factor)))


def _zero_among(factors: Sequence[Expr]) -> Expr | None:
    zeros = [
        eq(one, 0.0)
        for one in factors
        if (not one.value if isinstance(one, Const) else not is_positive(one))
    ]
    return balanced(lor, zeros) if zeros else None


def where_present(scale: Expr | float, factors: Sequence[Expr], data_only: bool = False) -> Expr:
    """The scale of a term; -inf where one of its factors is 0, or one of those of data."""
    scale = Const(scale) if isinstance(scale, float) else scale
    zero = _zero_among([one for one in factors if not (data_only and _varies(one))])
    return scale if zero is None else where(zero, -math.inf, scale)
