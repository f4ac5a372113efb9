"""1 - p, and its logarithm, for probabilities p with a lower asymptote.

With p = w + (1 - w) F, as in item responses with guessing and psychometric functions, 1 - p is
(1 - w)(1 - F) exactly, and 1 - F has full accuracy as a tail: 1 - sigmoid(x) = sigmoid(-x). The
difference itself loses all digits where F is near 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from slomodel.functions import (
    add,
    erf,
    erfc,
    exp,
    expm1,
    log,
    log1p,
    lognormcdf,
    mul,
    neg,
    normcdf,
    sigmoid,
    softplus,
    sub,
)
from slomodel.ir.expr import Const, Expr, Input, Map, is_map
from slomodel.rewrite.elementwise.matching import Part, parts_of
from slomodel.rewrite.elementwise.patterns import Guard, Match, StableForm, number, operand

x, y = operand("x"), operand("y")
c, d, e = (number(one) for one in "cde")

_ROOT_2 = math.sqrt(2.0)


@dataclass(frozen=True, slots=True)
class _Tail:
    """A function F, written as `whole`, with 1 - F and its logarithm, for these numbers in it."""

    whole: Expr
    tail: Expr
    log_of_tail: Expr | None
    numbers: Mapping[Input, float] = field(default_factory=dict)


_TAILS = (
    _Tail(sigmoid(x), sigmoid(neg(x)), neg(softplus(x))),
    _Tail(normcdf(x), normcdf(neg(x)), lognormcdf(neg(x))),
    _Tail(
        add(mul(d, erf(x)), e),
        mul(0.5, erfc(x)),
        lognormcdf(mul(-_ROOT_2, x)),
        {d: 0.5, e: 0.5},
    ),
    _Tail(mul(d, erfc(x)), mul(0.5, erfc(neg(x))), lognormcdf(mul(_ROOT_2, x)), {d: 0.5}),
    _Tail(mul(d, expm1(x)), exp(x), x, {d: -1.0}),
    # Of any sign: a product with it may have a logarithm where it has none.
    _Tail(sub(1.0, x), x, None),
)


@dataclass(frozen=True, slots=True)
class _Form:
    """A product in place of a difference, and what the logarithm of both is.

    The logarithms of the factors are added: each is accurate where its factor is near 1 too.
    """

    product: StableForm
    logarithm: StableForm | None


def _equal(values: Mapping[Input, float]) -> Guard:
    def guard(m: Match) -> bool:
        return all(m[one] == value for one, value in values.items())

    return guard


def _forms() -> tuple[list[_Form], list[StableForm]]:
    """The forms of differences, and of log1p(-p)."""
    forms, of_log1p = [], []

    def add_form(pattern: Expr, other: Expr, log_of_other: Expr, one: _Tail, guard: Guard) -> None:
        both = None
        if one.log_of_tail is not None:
            both = StableForm(pattern, add(log_of_other, one.log_of_tail), guard)
        forms.append(_Form(StableForm(pattern, mul(other, one.tail), guard), both))

    for one in _TAILS:
        subtracted = _equal({**one.numbers, c: -1.0})
        for weight, other, log_of_other in (
            (y, sub(1.0, y), log1p(neg(y))),
            (sub(1.0, y), y, log(y)),
        ):
            p = add(weight, mul(other, one.whole))
            add_form(add(1.0, mul(c, p)), other, log_of_other, one, subtracted)
            difference = sub(other, mul(other, one.whole))
            add_form(difference, other, log_of_other, one, _equal(one.numbers))
            if one.log_of_tail is not None:
                both = add(log_of_other, one.log_of_tail)
                of_log1p.append(StableForm(log1p(mul(c, p)), both, subtracted))
    return forms, of_log1p


_FORMS, _OF_LOG1P = _forms()


class Complements:
    """Differences 1 - p of one graph as products; the logarithms of these products are known."""

    def __init__(self) -> None:
        self._logarithms: dict[Expr, Expr] = {}

    def of_sum(self, node: Map) -> Expr | None:
        """1 - p as (1 - w)(1 - F)."""
        if not _may_match(node):
            return None
        for form in _FORMS:
            applied = form.product.applied(node)
            if applied is not None:
                both = None if form.logarithm is None else form.logarithm.applied(node)
                if both is not None:
                    self._logarithms[applied] = both
                return applied
        return None

    def of_log(self, node: Map) -> Expr | None:
        """log(1 - p) as log(1 - w) + log(1 - F)."""
        (inside,) = parts_of(node)
        both = self._logarithms.get(inside.node)
        return None if both is None else Part(both, inside.axes).along(node.shape)

    def of_log1p(self, node: Map) -> Expr | None:
        """log1p(-p) as log(1 - w) + log(1 - F)."""
        if not is_map(node.operands[0], neg, add, sub, mul):
            return None
        result = (form.applied(node) for form in _OF_LOG1P)
        return next((one for one in result if one is not None), None)


def _may_match(node: Map) -> bool:
    """Whether one operand is 1, or a product is subtracted; most sums are rejected by this."""
    return Const(1.0) in node.operands or (node.function is sub and is_map(node.operands[1], mul))
