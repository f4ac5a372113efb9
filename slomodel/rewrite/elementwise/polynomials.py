"""Polynomials in the parts of an elementwise graph, with exact coefficients.

They show what cancels in a sum: (x + 1) - x is 1, and (x + 1) x - (x + 2)(x - 1) is 2. Constants
count as the doubles that they are, so that terms cancel only where they do in exact arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

from slomodel.functions import add, div, mul, neg, pow, square, sub
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Expr, is_map
from slomodel.rewrite.elementwise.matching import Part

_MOST_TERMS = 12
"""Longer polynomials are not expanded: their terms rarely cancel."""
_MOST_LEVELS = 8
_LARGEST = 10**250
_MOST_CACHED = 1 << 14
"""Parts whose polynomials are cached: rules read those of a node and of nodes not far below it."""

Rational = Fraction | int
"""Whole numbers are ints: they are added and multiplied many times as fast as Fractions."""

Monomial = tuple[tuple[Part, int], ...]
"""Powers of different parts in order of appearance; the empty product is 1.

Two monomials are equal if their sets are. The sets themselves would be written in the order of
addresses, and generated code would differ in its last bits from one process to the next.
"""
UNIT: Monomial = ()


@dataclass(frozen=True, slots=True)
class SumOfProducts:
    """The sum of coefficients times monomials; 0 without terms. No coefficient is 0."""

    terms: tuple[tuple[Monomial, Rational], ...]

    @property
    def monomials(self) -> frozenset[frozenset[tuple[Part, int]]]:
        """The monomials that are not constant."""
        return frozenset(frozenset(monomial) for monomial, _ in self.terms if monomial)

    @property
    def constant(self) -> Rational | None:
        """The value of a polynomial without variables; None for others."""
        is_number = not any(monomial for monomial, _ in self.terms)
        return sum(c for _, c in self.terms) if is_number else None

    def __add__(self, other: SumOfProducts) -> SumOfProducts:
        return _polynomial([*self.terms, *other.terms])

    def __sub__(self, other: SumOfProducts) -> SumOfProducts:
        return self + other.scaled(-1)

    def scaled(self, factor: Rational) -> SumOfProducts:
        """The polynomial times a number that is not 0."""
        return SumOfProducts(tuple([(monomial, factor * c) for monomial, c in self.terms]))

    def product(self, other: SumOfProducts) -> SumOfProducts | None:
        """The product, expanded; None if it is too long or its coefficients are extreme."""
        if len(self.terms) * len(other.terms) > _MOST_TERMS:
            return None
        pairs = product(self.terms, other.terms)
        return _moderate(_polynomial([(_joined(one, two), c * d) for (one, c), (two, d) in pairs]))

    def written(self, shape: Shape) -> Expr:
        """The polynomial as a graph of the given shape."""
        total: Expr | None = None
        for monomial, c in self.terms:
            factor: Expr | None = None
            for part, p in monomial:
                power = part.along(shape) if p == 1 else pow(part.along(shape), float(p))
                factor = power if factor is None else mul(factor, power)
            size = float(-c if c < 0 and total is not None else c)
            own = Const(size) if factor is None else factor if size == 1.0 else mul(size, factor)
            total = own if total is None else (sub if c < 0 else add)(total, own)
        return Const(0.0) if total is None else total


@lru_cache(maxsize=_MOST_CACHED)
def polynomial(part: Part, levels: int = _MOST_LEVELS) -> SumOfProducts | None:
    """A part as a polynomial in what is not a sum, product or square; None if it is too long."""
    node = part.node
    if isinstance(node, Const):
        is_number = node.dtype == "real" and node.value - node.value == 0.0
        return _moderate(_polynomial([(UNIT, rational(node.value))])) if is_number else None
    if not levels or not is_map(node, add, sub, neg, mul, square, div):
        return _itself(part)
    own = part.parts()
    if is_map(node, div) and not isinstance(own[1].node, Const):
        return _itself(part)
    inner = [polynomial(one, levels - 1) for one in own]
    first, last = inner[0], inner[-1]
    if first is None or last is None:
        return None
    if is_map(node, add, sub):
        return _moderate(first + last if is_map(node, add) else first - last)
    if is_map(node, neg):
        return first.scaled(-1)
    if is_map(node, div):
        return _moderate(first.scaled(Fraction(1) / last.terms[0][1])) if last.terms else None
    return first.product(last)


def _itself(part: Part) -> SumOfProducts:
    """This part as a polynomial of degree one in itself."""
    return SumOfProducts(((((part, 1),), 1),))


def rational(value: float | Fraction) -> Rational:
    """The exact value of a finite number."""
    exact = Fraction(value)
    return exact.numerator if exact.denominator == 1 else exact


def _polynomial(terms: list[tuple[Monomial, Rational]]) -> SumOfProducts:
    sums: dict[frozenset[tuple[Part, int]], tuple[Monomial, Rational]] = {}
    for monomial, c in terms:
        key = frozenset(monomial)
        known = sums.get(key)
        sums[key] = (monomial, c) if known is None else (known[0], known[1] + c)
    return SumOfProducts(tuple([one for one in sums.values() if one[1]]))


def _joined(one: Monomial, other: Monomial) -> Monomial:
    if not one or not other:
        return one or other
    powers = dict(one)
    for part, p in other:
        powers[part] = powers.get(part, 0) + p
    return tuple(powers.items())


def _moderate(sums: SumOfProducts) -> SumOfProducts | None:
    """The polynomial, if it is short and its coefficients are far from the ends of the doubles."""
    is_short = len(sums.terms) <= _MOST_TERMS
    return sums if is_short and all(_is_moderate(c) for _, c in sums.terms) else None


def _is_moderate(c: Rational) -> bool:
    above, below = abs(c.numerator), c.denominator
    return above <= _LARGEST * below and below <= _LARGEST * above
