"""Graphs of scalars as sums of monomials, with equal monomials as one.

Derivatives by the rules of sums and products repeat what they differentiate: the fourth one of a
logarithm is a sum of six multiples of 1/x⁴. Collected it is -6/x⁴, which takes fewer operations
at a point, and whose range is exact, where that of a sum of equal terms is of them one by one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce

from slomodel.functions import add, div, mul, neg, square, sub
from slomodel.ir.exact import without_rounding
from slomodel.ir.expr import Const, Expr, Map
from slomodel.ir.walk import postorder

_MOST_TERMS = 40
"""Monomials of a node beyond which a graph stays as it is."""

Monomial = tuple[tuple[int, int], ...]
"""Factors by their numbers, in order, with their exponents > 0."""
Terms = Mapping[Monomial, Fraction]


def collected(graph: Expr) -> Expr:
    """A graph of scalars of the same exact values, if that takes fewer operations."""
    with without_rounding():
        result = _Collection().of(graph)
    return graph if result is None or _operations(result) >= _operations(graph) else result


def _operations(graph: Expr) -> int:
    return sum(isinstance(node, Map) for node in postorder(graph))


@dataclass(slots=True)
class _Collection:
    """Sums of monomials in factors that are not sums or products.

    A reciprocal is a factor of its own, so that x times 1/x stays undefined at 0.
    """

    factors: dict[Expr, int] = field(default_factory=dict)
    terms: dict[Expr, Terms] = field(default_factory=dict)

    def of(self, graph: Expr) -> Expr | None:
        """The graph anew; None for too many terms, or constants that are rounded."""
        for node in postorder(graph):
            terms = self._terms(node)
            if terms is None or len(terms) > _MOST_TERMS:
                return None
            self.terms[node] = terms
        return self._graph(self.terms[graph])

    def _terms(self, node: Expr) -> Terms | None:
        if isinstance(node, Const) and node.dtype == "real":
            exact = math.isfinite(node.value) and node.exact == Fraction(node.value)
            return {(): Fraction(node.value)} if exact else None
        if not isinstance(node, Map):
            return self._factor(node)
        own = [self.terms[operand] for operand in node.operands]
        function = node.function
        if function is add:
            return _sum(own[0], own[1], 1)
        if function is sub:
            return _sum(own[0], own[1], -1)
        if function is neg:
            return _sum({}, own[0], -1)
        if function is mul:
            return _product(own[0], own[1])
        if function is square:
            return _product(own[0], own[0])
        if function is div:
            return _product(own[0], self._factor(div(1.0, node.operands[1])))
        return self._factor(node)

    def _factor(self, node: Expr) -> Terms:
        return {((self.factors.setdefault(node, len(self.factors)), 1),): Fraction(1)}

    def _graph(self, terms: Terms) -> Expr:
        """The sum of the monomials, with their common factors taken out."""
        ordered = sorted(terms.items())
        powers = [dict(monomial) for monomial, _ in ordered]
        if not powers:
            return Const(0.0)
        common = {k: min(own.get(k, 0) for own in powers) for k in powers[0]}
        rest = [{k: e - common.get(k, 0) for k, e in own.items()} for own in powers]
        if len(rest) == 1:
            return self._product(ordered[0][1], common)
        pairs = [(weight, own) for own, (_, weight) in zip(rest, ordered, strict=True)]
        pairs.sort(key=lambda pair: pair[0] < 0)
        total = self._product(*pairs[0])
        for weight, own in pairs[1:]:
            total = (add if weight > 0 else sub)(total, self._product(abs(weight), own))
        return mul(self._product(Fraction(1), common), total) if any(common.values()) else total

    def _product(self, weight: Fraction, powers: Mapping[int, int]) -> Expr:
        every = list(self.factors)
        numbers = [] if abs(weight) == 1 else [Const(float(abs(weight)))]
        factors = [*numbers, *(_power(every[k], e) for k, e in powers.items() if e)]
        result = reduce(mul, factors) if factors else Const(1.0)
        return neg(result) if weight < 0 else result


def _sum(a: Terms, b: Terms, sign: int) -> Terms:
    result = dict(a)
    for monomial, weight in b.items():
        result[monomial] = result.get(monomial, Fraction(0)) + sign * weight
    return {monomial: weight for monomial, weight in result.items() if weight}


def _product(a: Terms, b: Terms) -> Terms:
    result: dict[Monomial, Fraction] = {}
    for p, v in a.items():
        for q, w in b.items():
            powers = Counter(dict(p))
            powers.update(dict(q))
            joined = tuple(sorted(powers.items()))
            result[joined] = result.get(joined, Fraction(0)) + v * w
    return {monomial: weight for monomial, weight in result.items() if weight}


def _power(factor: Expr, exponent: int) -> Expr:
    """A power by squares and products."""
    if exponent == 1:
        return factor
    half = square(_power(factor, exponent // 2))
    return mul(half, factor) if exponent % 2 else half
