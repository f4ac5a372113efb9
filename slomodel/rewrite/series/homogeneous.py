"""Expansions of homogeneous formulas near the equality of two quantities.

With a = b (1 + t) a homogeneous formula of a and b is b^k (A(t) + B(t) log(b)), with power series A
and B; with a = b + t one of exponentials is exp(k b) (A(t) + B(t) b).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from slomodel.functions import (
    add,
    div,
    exp,
    log,
    log1p,
    log2,
    log10,
    mul,
    neg,
    pow,
    sqrt,
    square,
    sub,
    xlogx,
    xlogx1p,
    xlogy,
)
from slomodel.ir.expr import Const, Map
from slomodel.rewrite.elementwise.matching import Part
from slomodel.rewrite.series.laurent import (
    SERIES,
    Laurent,
    NoSeries,
    constant,
    exponential,
    logarithm,
    series_of,
)

_ZERO, _ONE = Fraction(0), Fraction(1)
_LARGEST_EXPONENT = 64.0
"""Larger powers have coefficients whose exact fractions are long."""
_ALGEBRA = frozenset(
    (add, sub, neg, mul, div, square, sqrt, pow, exp, log, log1p, xlogx, xlogx1p, xlogy)
)
_BASES = {log2: math.log(2.0), log10: math.log(10.0)}


@dataclass(frozen=True, slots=True)
class Expansion:
    """s^k (A + B L) with L = log(s), of a quantity with a = s (1 + t) or log(a) = L + t."""

    k: Fraction
    a: Laurent
    b: Laurent | None = None

    def plus(self, other: Expansion, sign: int = 1) -> Expansion:
        if self.k != other.k:
            for one, rest, factor in ((self, other, sign), (other, self, 1)):
                if one.b is None and one.a.is_zero:
                    return rest.scaled(Fraction(factor))
            raise NoSeries
        return Expansion(
            self.k, self.a + other.a.scaled(Fraction(sign)), _sum(self.b, other.b, sign)
        )

    def scaled(self, factor: Fraction) -> Expansion:
        return Expansion(
            self.k, self.a.scaled(factor), None if self.b is None else self.b.scaled(factor)
        )

    def times(self, other: Expansion) -> Expansion:
        if self.b is not None and other.b is not None:
            raise NoSeries
        one, two = (self, other) if other.b is None else (other, self)
        b = None if one.b is None else one.b * two.a
        return Expansion(self.k + other.k, one.a * two.a, b)

    def plain(self) -> Laurent:
        """A, without a logarithm beside it."""
        if self.b is not None or self.a.is_zero:
            raise NoSeries
        return self.a

    def reciprocal(self) -> Expansion:
        return Expansion(-self.k, self.plain().reciprocal())

    def power(self, p: Fraction) -> Expansion:
        return Expansion(p * self.k, self.plain().power(p))

    def logarithm(self) -> Expansion:
        a = self.plain()
        c = a.coefficients[0]
        if a.order or c <= 0:
            raise NoSeries
        terms = len(a.coefficients)
        value = constant(Fraction(math.log(c)), terms)
        if any(a.coefficients[1:]):
            value = value + logarithm(a.scaled(1 / c))
        return Expansion(_ZERO, value, constant(self.k, terms) if self.k else None)

    def exponential(self) -> Expansion:
        if self.k:
            raise NoSeries
        slope = _ZERO if self.b is None else self.b.coefficients[0]
        if self.b is not None and (self.b.order or any(self.b.coefficients[1:])):
            raise NoSeries
        return Expansion(slope, exponential(self.a))


def _sum(one: Laurent | None, other: Laurent | None, sign: int) -> Laurent | None:
    if other is None:
        return one
    total = other.scaled(Fraction(sign)) if one is None else one + other.scaled(Fraction(sign))
    return None if total.is_zero else total


def has_expansion(node: Map) -> bool:
    function = node.function
    if function is pow:
        return isinstance(node.operands[1], Const)
    return function in _ALGEBRA or function in _BASES or function.name in SERIES


def expansion_of(part: Part, known: dict[Part, Expansion], n: int) -> Expansion:
    """The expansion of a part. Raises NoSeries."""
    stack = [part]
    while stack:
        one = stack[-1]
        if one in known:
            stack.pop()
            continue
        if isinstance(one.node, Const):
            if not math.isfinite(one.node.value):
                raise NoSeries
            known[one] = Expansion(_ZERO, constant(Fraction(one.node.value), n))
            continue
        waiting = [inner for inner in one.parts() if inner not in known]
        if waiting:
            stack += waiting
            continue
        assert isinstance(one.node, Map)
        known[one] = _of_map(one.node, [known[inner] for inner in one.parts()], n)
        stack.pop()
    return known[part]


def _of_map(node: Map, own: Sequence[Expansion], n: int) -> Expansion:
    function, first = node.function, own[0]
    one = Expansion(_ZERO, constant(_ONE, n))
    if function in _ALGEBRA:
        return (
            _ALGEBRAIC[function](*own)
            if function in _ALGEBRAIC
            else _of_logarithms(function, own, one, node)
        )
    if function in _BASES:
        return first.logarithm().scaled(1 / Fraction(_BASES[function]))
    if first.k or first.b is not None:
        raise NoSeries
    return Expansion(_ZERO, series_of(function.name, first.a))


def _of_logarithms(
    function: object, own: Sequence[Expansion], one: Expansion, node: Map
) -> Expansion:
    first = own[0]
    if function is log1p:
        return first.plus(one).logarithm()
    if function in (xlogx, xlogx1p):
        base = first if function is xlogx else first.plus(one)
        return base.times(base.logarithm())
    if function is xlogy:
        return first.times(own[1].logarithm())
    exponent = node.operands[1]
    assert isinstance(exponent, Const)
    if math.fabs(exponent.value) > _LARGEST_EXPONENT or not math.isfinite(exponent.value):
        raise NoSeries
    return first.power(Fraction(exponent.value))


_ALGEBRAIC: dict[object, Callable[..., Expansion]] = {
    add: lambda a, b: a.plus(b),
    sub: lambda a, b: a.plus(b, -1),
    neg: lambda a: a.scaled(Fraction(-1)),
    mul: lambda a, b: a.times(b),
    div: lambda a, b: a.times(b.reciprocal()),
    square: lambda a: a.times(a),
    sqrt: lambda a: a.power(Fraction(1, 2)),
    exp: lambda a: a.exponential(),
    log: lambda a: a.logarithm(),
}
