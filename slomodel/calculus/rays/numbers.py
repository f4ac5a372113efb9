"""Graphs that enclose real numbers, by midpoint and radius or by lower and upper end.

Every constructor adds nodes that round outward, so that the graph, evaluated in IEEE doubles to
nearest by any target, is a proof. With u = 2^-53, η = 1e-290 and for each operation of +, -, *, /,
fl(a ∘ b) = (a ∘ b)(1 + d) + e, |d| <= u, |e| <= 2^-1022 (flushed underflow included):

- a lower end l computed by one operation becomes l - (4u|l| + η), which is below the exact one;
- a radius is a sum of products of nonnegative numbers with at most 16 roundings on any path, times
  1 + 32u, plus η: the exact sum is below it.

An overflow gives NaN: inf - (4u inf + η) is inf - inf. Infinite ends on their own side are valid
("no bound known"), and a NaN end means the same, so that a comparison with NaN must never be read
as proof. Additions in a contraction may have any order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import reduce

from slomodel.functions import (
    abs,
    add,
    div,
    gt,
    land,
    le,
    lnot,
    lor,
    lt,
    maximum,
    minimum,
    mul,
    neg,
    square,
    sub,
    where,
)
from slomodel.ir.expr import Const, Expr

UNIT = 2.0**-53
EXTENDED_UNIT = 2.0**-64
TINY = 1e-290
_GROWTH = 1.0 + 32.0 * UNIT
_LARGE_GROWTH = 1.0 + 2.0**-40
LARGE = 1e308
INF = Const(math.inf)
_TWO = Const(2.0)


_ARITHMETIC: ContextVar[float] = ContextVar("rounding unit of the arithmetic", default=UNIT)


def unit() -> float:
    """The rounding unit u of the arithmetic by which the graph under construction is evaluated."""
    return _ARITHMETIC.get()


@contextmanager
def in_extended_precision() -> Iterator[None]:
    """Graphs that are built inside the block enclose numbers in arithmetic with u = 2^-64.

    Constants of the graph are still doubles, exactly.
    """
    token = _ARITHMETIC.set(EXTENDED_UNIT)
    try:
        yield
    finally:
        _ARITHMETIC.reset(token)


def total(terms: Sequence[Expr]) -> Expr:
    """The sum of one or more terms."""
    return reduce(add, terms)


def slack(value: Expr, steps: float = 2.0) -> Expr:
    """`steps` ulps of a value, plus an amount above any underflow."""
    return add(mul(2.0 * steps * unit(), abs(value)), TINY)


def enlarged(terms: Sequence[Expr]) -> Expr:
    """An upper bound on the sum of computed terms >= 0 of at most 12 roundings each."""
    return add(mul(_GROWTH, total(terms)), TINY)


def raised(terms: Sequence[Expr]) -> Expr:
    """An upper bound on a sum of products of computed numbers >= 0, of at most 8000 roundings."""
    return add(mul(_LARGE_GROWTH, total(terms)), TINY)


def least(a: Expr, b: Expr) -> Expr:
    """The lesser of two upper bounds, of which a NaN says nothing if it is `a`."""
    return where(lt(a, b), a, b)


@dataclass(frozen=True, slots=True)
class MidRad:
    """Numbers within `rad` of `mid`, elementwise; None is the radius 0."""

    mid: Expr
    rad: Expr | None = None

    @property
    def magnitude(self) -> Expr:
        """Upper bounds on the absolute values."""
        size = abs(self.mid)
        return size if self.rad is None else enlarged([size, self.rad])

    @property
    def range(self) -> Range:
        """The same numbers by their ends."""
        if self.rad is None:
            return Range(self.mid, self.mid)
        reach = enlarged([self.rad, mul(4.0 * unit(), abs(self.mid))])
        return Range(sub(self.mid, reach), add(self.mid, reach))

    @property
    def ends(self) -> Range:
        """The range, a point where the radius is computed to be 0."""
        if self.rad is None:
            return self.range
        known = gt(self.rad, 0.0)
        return Range(where(known, self.range.lo, self.mid), where(known, self.range.hi, self.mid))

    def rounded(self, *errors: Expr | None, steps: float = 1.0) -> MidRad:
        """The number with the rounding error of its midpoint, in ulps, and further errors added."""
        known = [error for error in errors if error is not None]
        return MidRad(self.mid, enlarged([*known, mul(2.0 * steps * unit(), abs(self.mid))]))

    @property
    def size(self) -> Expr:
        """|mid| + rad as computed, not rounded up."""
        return abs(self.mid) if self.rad is None else add(abs(self.mid), self.rad)

    def __add__(self, other: MidRad) -> MidRad:
        return MidRad(add(self.mid, other.mid)).rounded(self.rad, other.rad)

    def __neg__(self) -> MidRad:
        return MidRad(neg(self.mid), self.rad)

    def __sub__(self, other: MidRad) -> MidRad:
        return self + (-other)

    def __mul__(self, other: MidRad) -> MidRad:
        return combined([(1.0, [self, other])])

    def __truediv__(self, other: MidRad) -> MidRad:
        """|a/b - p/q| <= (e_a + |p/q| e_b)/(|q| - e_b) for e_b < |q|; inf or NaN elsewhere."""
        quotient = div(self.mid, other.mid)
        errors = [] if self.rad is None else [self.rad]
        distance = abs(other.mid)
        if other.rad is not None:
            errors.append(mul(mul(1.0 + 8.0 * UNIT, abs(quotient)), other.rad))
            left = sub(distance, enlarged([other.rad]))
            distance = where(gt(left, 0.0), left, 0.0)
        return MidRad(quotient).rounded(*([div(total(errors), distance)] if errors else ()))

    def times(self, factor: float) -> MidRad:
        """The multiple by a number."""
        return combined([(factor, [self])])

    @property
    def squared(self) -> MidRad:
        return combined([(1.0, [self, self])])


def combined(terms: Sequence[tuple[float, Sequence[MidRad]]]) -> MidRad:
    """The sum of weights > 0 times products.

    With U the sum of the products of |mid| + rad and L that of |mid|, both weighted, the sum is
    within U - L of that of the midpoints. For n terms of at most p factors every computed number is
    off by at most γ_k U with k = p + n + 1, three times in all, and the radius is rounded thrice,
    each time by at most u U: all of it is below (4(p + n) + 12)u U.
    """
    mids, uppers = [], []
    for weight, factors in terms:
        scale = [] if weight == 1.0 else [Const(weight)]
        mids.append(reduce(mul, [*scale, *(one.mid for one in factors)]))
        uppers.append(reduce(mul, [*scale, *(one.size for one in factors)]))
    if len(terms) == 1 and len(terms[0][1]) == 1 and terms[0][0] == 1.0:
        return terms[0][1][0]
    count = len(terms) + max(len(factors) for _, factors in terms)
    upper, lost = total(uppers), (4.0 * count + 12.0) * unit()
    if all(factor.rad is None for _, factors in terms for factor in factors):
        return MidRad(total(mids), add(mul(lost, upper), TINY))
    lower = total([abs(mid) for mid in mids])
    if 1.0 + lost == 1.0:  # more precise than the constants
        return MidRad(total(mids), add(add(sub(upper, lower), mul(lost, upper)), TINY))
    return MidRad(total(mids), add(sub(mul(1.0 + lost, upper), lower), TINY))


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `lo` to `hi`, elementwise; a point where both are one node."""

    lo: Expr
    hi: Expr

    @property
    def is_point(self) -> bool:
        return self.lo is self.hi

    @property
    def magnitude(self) -> Expr:
        """The largest absolute values."""
        return abs(self.lo) if self.is_point else maximum(neg(self.lo), self.hi)

    @property
    def midrad(self) -> MidRad:
        """Midpoints and radii; where an end is infinite the radius is."""
        if self.is_point:
            return MidRad(self.lo)
        lo, hi = maximum(self.lo, -LARGE), minimum(self.hi, LARGE)
        mid = add(mul(0.5, lo), mul(0.5, hi))
        return MidRad(mid, enlarged([maximum(sub(self.hi, mid), sub(mid, self.lo))]))

    def __add__(self, other: Range) -> Range:
        if self.is_point and other.is_point:
            sum_ = add(self.lo, other.lo)
            return outward(sum_, sum_)
        return outward(add(self.lo, other.lo), add(self.hi, other.hi))

    def __neg__(self) -> Range:
        lo = neg(self.hi)
        return Range(lo, lo) if self.is_point else Range(lo, neg(self.lo))

    def __sub__(self, other: Range) -> Range:
        return self + (-other)

    def __mul__(self, other: Range) -> Range:
        if self == other:
            return self.squared
        for a, b in ((self, other), (other, self)):
            if b.is_point and isinstance(b.lo, Const):
                lo, hi = mul(a.lo, b.lo), mul(a.hi, b.lo)
                return outward(lo, hi) if b.lo.value >= 0.0 else outward(hi, lo)
        lefts = [self.lo] if self.is_point else [self.lo, self.hi]
        rights = [other.lo] if other.is_point else [other.lo, other.hi]
        products = [mul(a, b) for a in lefts for b in rights]
        return outward(reduce(minimum, products), reduce(maximum, products))

    def __truediv__(self, other: Range) -> Range:
        return self * other.reciprocal

    @property
    def reciprocal(self) -> Range:
        """1/x, unbounded where 0 may be among the x."""
        apart = lor(gt(self.lo, 0.0), lt(self.hi, 0.0))
        result = outward(div(1.0, self.hi), div(1.0, self.lo))
        return result.where(apart)

    def times(self, factor: float) -> Range:
        """The multiple by a number."""
        if factor == 1.0:
            return self
        return self * Range(Const(factor), Const(factor))

    @property
    def squared(self) -> Range:
        if self.is_point:
            value = square(self.lo)
            result = outward(value, value)
        else:
            least = maximum(maximum(self.lo, neg(self.hi)), 0.0)
            result = outward(square(least), square(self.magnitude))
        return result.within(0.0, math.inf)

    def where(self, known: Expr) -> Range:
        """These numbers where `known` holds, and any number elsewhere."""
        return Range(where(known, self.lo, -math.inf), where(known, self.hi, math.inf))

    def within(self, lo: float, hi: float) -> Range:
        """The part between two numbers that are known to bound the exact values."""
        low = self.lo if lo == -math.inf else maximum(self.lo, lo)
        high = self.hi if hi == math.inf else minimum(self.hi, hi)
        return Range(low, high)

    def meet(self, other: Range) -> Range:
        """The intersection, in which an unknown end of `other` has no effect."""
        is_open = (other.lo is neg(INF), other.hi is INF)
        return Range(
            self.lo if is_open[0] else where(gt(other.lo, self.lo), other.lo, self.lo),
            self.hi if is_open[1] else where(lt(other.hi, self.hi), other.hi, self.hi),
        )

    def hull(self, other: Range) -> Range:
        """The numbers between any two of either."""
        return Range(minimum(self.lo, other.lo), maximum(self.hi, other.hi))


def outward(lo: Expr, hi: Expr, steps: float = 2.0) -> Range:
    """The range between two computed numbers with errors of less than `steps` - 1 ulps."""
    return Range(sub(lo, slack(lo, steps)), add(hi, slack(hi, steps)))


@dataclass(frozen=True, slots=True)
class Truth:
    """Truth values: those that hold for certain, and those that may hold."""

    certain: Expr
    possible: Expr

    @property
    def is_known(self) -> bool:
        return self.certain is self.possible

    def __invert__(self) -> Truth:
        if self.is_known:
            return known(lnot(self.certain))
        return Truth(lnot(self.possible), lnot(self.certain))

    def __and__(self, other: Truth) -> Truth:
        return Truth(land(self.certain, other.certain), land(self.possible, other.possible))

    def __or__(self, other: Truth) -> Truth:
        return ~(~self & ~other)


def known(condition: Expr) -> Truth:
    """Truth values that are certain."""
    return Truth(condition, condition)


def less(a: Range, b: Range) -> Truth:
    """Whether a < b; undecided for NaN."""
    if a.is_point and b.is_point:
        return known(lt(a.lo, b.lo))
    return Truth(lt(a.hi, b.lo), lnot(le(b.hi, a.lo)))


def less_equal(a: Range, b: Range) -> Truth:
    """Whether a <= b; undecided for NaN."""
    if a.is_point and b.is_point:
        return known(le(a.lo, b.lo))
    return Truth(le(a.hi, b.lo), lnot(lt(b.hi, a.lo)))


def equal(a: Range, b: Range) -> Truth:
    """Whether a = b; undecided for NaN."""
    return less_equal(a, b) & less_equal(b, a)


def choose(condition: Truth, a: Range, b: Range) -> Range:
    """`a` where the condition holds, `b` where it does not, both where that is unknown."""
    if condition.is_known:
        holds = condition.certain
        if a.is_point and b.is_point:
            chosen = where(holds, a.lo, b.lo)
            return Range(chosen, chosen)
        return Range(where(holds, a.lo, b.lo), where(holds, a.hi, b.hi))
    both = a.hull(b)
    sure, never = condition.certain, lnot(condition.possible)
    return Range(
        where(sure, a.lo, where(never, b.lo, both.lo)),
        where(sure, a.hi, where(never, b.hi, both.hi)),
    )
