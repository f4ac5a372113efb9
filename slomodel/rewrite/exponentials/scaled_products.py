"""Products and quotients whose factors grow and decay with one quantity, scaled against overflow.

In exp(2 x) / (1 + exp(x))^2, expm1(x) y sigmoid(-x) or normcdf(x) / normcdf(y) factors leave the
range of doubles where the product does not. A factor A is taken as exp(s) (A exp(-s)), with s the
scale (`scales.py`), a constant for derivatives, or 0 for a factor well within the range. The law:
the product is exp(S) times that of the scaled factors, S the sum of all s; where these are 0 it is
computed as written.

How the factors grow is read off the coefficients of their exponents. The product is scaled only if
one factor grows in a direction in which another one decays, since choices and limits cost more than
most products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from slomodel.functions import (
    abs,
    add,
    cosh,
    div,
    erfc,
    exp,
    expm1,
    gt,
    land,
    lt,
    mul,
    neg,
    normcdf,
    pow,
    sigmoid,
    sinh,
    sqrt,
    square,
    stop_gradient,
    sub,
    where,
)
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.ir.function import ScalarFunction
from slomodel.rewrite.elementwise.matching import (
    Part,
    Reaches,
    exponent_of_power,
    is_scale,
    is_shifted,
    product_of,
    reaches_variable,
    scaled,
    whole,
)
from slomodel.rewrite.elementwise.polynomials import Rational, polynomial, rational
from slomodel.rewrite.exponentials.growth import ZONE
from slomodel.rewrite.exponentials.scaled_logs import ScaledLogarithms
from slomodel.rewrite.exponentials.scales import Scales

_MOST_FACTORS = 12
_MOST_POWER = 4.0
_LARGEST = 650.0
"""Exponents whose magnitudes add up to no more leave no product out of range."""
_ARITHMETIC = (neg, sqrt, square, mul, div, add, sub)
_TAILS: dict[ScalarFunction, tuple[int, Rational]] = {normcdf: (1, Fraction(-1, 2)), erfc: (-1, -1)}
"""Sign s and factor q of functions that decay like exp(q u^2) for u -> -s infinity."""

Rates = dict[frozenset[tuple[Part, int]], tuple[Rational, Rational]]
"""How the logarithm of a factor changes with a monomial of its exponents, upwards and downwards."""
_NONE = (0, 0)


class ScaledProducts:
    """Scaled products of one graph.

    `written` maps forms of products to these products, whose factors are seen.
    """

    def __init__(self, logarithms: ScaledLogarithms, written: Mapping[Expr, Map]) -> None:
        self._logarithms = logarithms
        self._written = written
        self._scales = Scales()
        self._varies = reaches_variable()
        self._rates = _GrowthRates()
        self._powers: dict[Expr, Map] = {}

    def of_any(self, node: Map) -> Expr | None:
        """The product or quotient in scaled form; None where no factors may cancel."""
        factors = self._factors(node)
        if factors is None or not self._may_cancel(factors) or self._is_scaled_later(node):
            return None
        powers = [math.fabs(p) for part, p in factors if self._scale_of(part.node) is not None]
        if not powers:
            return None
        zone = _LARGEST / sum(powers)
        shape, total = node.shape, None
        above: list[Expr] = []
        below: list[Expr] = []
        for part, p in factors:
            found = self._scaled(part.node, zone)
            rest, shift = (part.node, None) if found is None else found
            wide = Part(rest, part.axes).along(shape)
            size = math.fabs(p)
            (above if p > 0.0 else below).append(wide if size == 1.0 else pow(wide, size))
            if shift is not None:
                excess = mul(p, Part(shift, part.axes).along(shape))
                total = excess if total is None else add(total, excess)
        if total is None:
            return None
        # Beside another factor, which may be small or 0, half of S overflows later.
        half = exp(mul(0.5, total))
        product = mul(mul(product_of(above), half), half)
        return div(product, product_of(below)) if below else product

    def of_power(self, node: Map) -> Expr | None:
        """(A exp(-s))^p exp(p s) for A^p, where p is not a whole number: A may overflow alone."""
        base, exponent = whole(node).parts()
        if isinstance(exponent.node, Const) and exponent.node.value.is_integer():
            return None  # Its overflow is that of the power, and limited in divisors.
        if not is_map(base.node, add, sub):
            return None
        terms = [part.node for part in base.parts()]
        if any(one.rank < base.node.rank and self._scale_of(one) is not None for one in terms):
            return None  # Few exponentials in many powers, each of which would have a scale.
        # Below, no exponent in a divisor is limited.
        found = self._scaled(base.node, ZONE)
        if found is None:
            return None
        rest, shift = (Part(one, base.axes).along(node.shape) for one in found)
        p = exponent.along(node.shape)
        result = mul(pow(rest, p), exp(mul(p, shift)))
        self._powers[result] = node
        return result

    def written_power(self, node: Expr) -> Expr:
        """A^p for its scaled form; the node itself for others."""
        return self._powers.get(node, node)

    def over_power(self, node: Map) -> Expr | None:
        """y/A^p with the scale above, where it tends to 0 and not to infinity."""
        above, below = whole(node).parts()
        divisor = scaled(below)
        if divisor.core is None or divisor.core.node not in self._powers:
            return None
        power, scale = (part.along(node.shape) for part in divisor.core.parts())
        if not is_map(scale, exp):
            return None
        total = mul(above.along(node.shape), exp(neg(scale.operands[0])))
        return div(total, mul(divisor.coefficient, power))

    def _factors(self, node: Map) -> list[tuple[Part, float]] | None:
        """The factors with their powers; None if they are too many, or scaled already."""
        result: list[tuple[Part, float]] = []
        stack = [(whole(node), 1.0)]
        while stack:
            part, p = stack.pop()
            written = self._written.get(part.node)
            part = part if written is None else Part(written, part.axes)
            inner = part.inner(exp)
            is_done = inner is not None and (is_scale(inner.node) or is_shifted(inner.node))
            if is_done or len(result) + len(stack) > _MOST_FACTORS:
                return None
            own = exponent_of_power(part.node)
            if is_map(part.node, neg):
                result.append((Part(Const(-1.0), ()), 1.0))
                stack.append((part.parts()[0], p))
            elif is_map(part.node, mul, div):
                left, right = part.parts()
                stack += [(right, -p if is_map(part.node, div) else p), (left, p)]
            elif own is not None and p * p == 1.0 and 0.0 < own <= _MOST_POWER:
                result.append((part.parts()[0], own * p))
            else:
                result.append((part, p))
        return result if len(result) > 1 else None

    def _scale_of(self, node: Expr) -> Expr | None:
        return self._scales.of(node) if self._scales.is_short(node) else None

    def _is_scaled_later(self, product: Map) -> bool:
        """Whether a quotient in it is one that `limited_exponents` scales."""
        stack: list[Expr] = [product]
        while stack:
            node = stack.pop()
            if (
                isinstance(node, Map)
                and node.function is div
                and all(map(self._rates.may_overflow, whole(node).parts()))
                and self._logarithms.of_written_quotient(node) is not None
            ):
                return True
            if is_map(node, mul, div, neg):
                stack += node.operands
        return False

    def _may_cancel(self, factors: Sequence[tuple[Part, float]]) -> bool:
        """Whether one factor grows where another one decays, or two tails are divided.

        Factors that are the same at all points are left as they are.
        """
        own = [(part, p) for part, p in factors if self._varies(part.node)]
        tails = [p > 0.0 for part, p in own if is_map(part.node, sigmoid, *_TAILS)]
        if len(set(tails)) > 1:
            return True
        rates = [_times(found, rational(p)) for part, p in own if (found := self._rates.of(part))]
        return any(
            a * b < 0
            for one, other in combinations(rates, 2)
            for key, pair in one.items()
            for a, b in zip(pair, other.get(key, _NONE), strict=True)
        )

    def _scaled(self, node: Expr, zone: float) -> tuple[Expr, Expr] | None:
        """A factor as exp(shift) * rest, with the shift 0 within the zone; None without scale."""
        scale = self._scale_of(node)
        if scale is None:
            return None
        is_tail = is_map(node, sigmoid, *_TAILS)
        is_far = lt(scale, -zone) if is_tail else gt(abs(scale), zone)
        shift = stop_gradient(where(land(is_far, lt(abs(scale), math.inf)), scale, 0.0))
        if is_tail and isinstance(node, Map):
            # Its logarithm has an error that grows with it; the function itself has not.
            far = exp(where(is_far, sub(scale, shift), 0.0))
            (inner,) = node.operands
            return where(is_far, far, node.function(where(is_far, 0.0, inner))), shift
        return self._logarithms.times(node, shift), shift


def _times(rates: Rates, factor: Rational) -> Rates:
    return {key: (factor * up, factor * down) for key, (up, down) in rates.items()}


class _GrowthRates:
    """The rates of the factors of one graph.

    Cached, as a factor is a part of many products: the paths through a graph may double with each
    level.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Part, int], Rates] = {}
        self._has_exponential = Reaches(
            lambda node: is_map(node, *_OF_EXPONENT, *_TAILS),
            lambda node: is_map(node, *_ARITHMETIC),
        )

    def of(self, part: Part, depth: int = _MOST_FACTORS) -> Rates:
        """The rates of a factor; empty if it has no exponentials of short polynomials."""
        if not depth or not self._has_exponential(part.node):
            return {}
        known = self._known.get((part, depth))
        if known is None:
            known = self._known[part, depth] = self._computed(part, depth)
        return known

    def may_overflow(self, part: Part) -> bool:
        return any(rate > 0 for pair in self.of(part).values() for rate in pair)

    def _computed(self, part: Part, depth: int) -> Rates:
        node = part.node
        assert isinstance(node, Map)
        if node.function in _OF_EXPONENT:
            return _of_exponent(part.parts()[0], _OF_EXPONENT[node.function])
        if node.function in _TAILS:
            return _of_tail(part.parts()[0], *_TAILS[node.function])
        left, *others = (self.of(one, depth - 1) for one in part.parts())
        if is_map(node, neg):
            return left
        if is_map(node, sqrt, square):
            return _times(left, Fraction(1, 2) if node.function is sqrt else 2)
        (right,) = others
        if is_map(node, mul, div):
            right = _times(right, -1) if is_map(node, div) else right
            return _combined(left, right, lambda a, b: a + b)
        return _combined(left, right, max)


def _combined(one: Rates, other: Rates, combine: Callable[[Rational, Rational], Rational]) -> Rates:
    result: Rates = {}
    for key in (*one, *other):
        (a, b), (c, d) = one.get(key, _NONE), other.get(key, _NONE)
        result[key] = combine(a, c), combine(b, d)
    return result


_OF_EXPONENT: dict[ScalarFunction, Callable[[Rational], Rational]] = {
    exp: lambda c: c,
    expm1: lambda c: max(c, 0),
    cosh: lambda c: max(c, -c),
    sinh: lambda c: max(c, -c),
    sigmoid: lambda c: min(c, 0),
}
"""The rate of a function of u from that of u."""


def _of_exponent(inner: Part, rate: Callable[[Rational], Rational]) -> Rates:
    found = polynomial(inner)
    if found is None:
        return {}
    return {frozenset(monomial): (rate(c), rate(-c)) for monomial, c in found.terms if monomial}


def _of_tail(inner: Part, sign: int, factor: Rational) -> Rates:
    """The rates of exp(q u^2) where the tail decays, in squares and other monomials of u^2."""
    found = polynomial(inner)
    squared = None if found is None else found.product(found)
    if found is None or squared is None:
        return {}
    result = {frozenset(m): (factor * c, -factor * c) for m, c in squared.terms if m}
    below = {frozenset(m): (min(sign * c, 0), min(-sign * c, 0)) for m, c in found.terms if m}
    return {**result, **below}
