"""Arrays of intervals with outward rounding: every result contains all real results.

An endpoint may be infinite; an infinite endpoint is never attained, so 0 times it is 0. Truth
values are intervals too: 1 is true, 0 false, [0, 1] undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from slomodel.bounds.arithmetic.rounding import (
    LARGEST,
    SMALLEST_NORMAL,
    Array,
    Axis,
    Truths,
    all_finite,
    all_nonzero,
    down,
    down_add,
    down_sum,
    down_ulps,
    outward,
    put,
    sum_of_points,
    up,
    up_add,
    up_sum,
    up_ulps,
)


@dataclass(frozen=True, slots=True)
class Interval:
    """The set of arrays between `lo` and `hi`, elementwise; equal shapes, lo <= hi, no NaN.

    A point interval stores one array twice. Construct instances with `interval` or `point`.
    """

    lo: Array
    hi: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lo.shape

    @property
    def is_point(self) -> bool:
        return self.lo is self.hi

    @property
    def mid(self) -> Array:
        """A number in each interval; 0 where it is unbounded on both sides."""
        if self.is_point:
            return self.lo
        with np.errstate(all="ignore"):
            lo, hi = np.maximum(self.lo, -LARGEST), np.minimum(self.hi, LARGEST)
            return np.asarray(np.minimum(np.maximum(0.5 * lo + 0.5 * hi, lo), hi))

    @property
    def rad(self) -> Array:
        """Upper bound on the distance of `mid` from the endpoints."""
        if self.is_point:
            return np.zeros_like(self.lo)
        return self.rad_about(self.mid)

    def rad_about(self, mid: Array) -> Array:
        """`rad` for a known `mid`; a difference is rounded to 0 only where it is exactly 0."""
        with np.errstate(all="ignore"):
            farthest = np.maximum(self.hi - mid, mid - self.lo)
            return np.asarray(np.where(farthest == 0.0, 0.0, up(farthest)))

    @property
    def magnitude(self) -> Array:
        """The largest absolute value of each interval."""
        if self.is_point:
            return np.asarray(np.abs(self.lo))
        return np.asarray(np.maximum(np.abs(self.lo), np.abs(self.hi)))

    @property
    def mignitude(self) -> Array:
        """The smallest absolute value of each interval."""
        return np.asarray(np.maximum(np.maximum(self.lo, -self.hi), 0.0))

    def contains(self, value: float) -> Truths:
        return np.asarray((self.lo <= value) & (value <= self.hi))

    def each(self, view: Callable[[Array], Array]) -> Interval:
        """The same view (an index, a new shape) applied to both endpoints."""
        lo = np.asarray(view(self.lo))
        return Interval(lo, lo) if self.is_point else Interval(lo, np.asarray(view(self.hi)))

    @classmethod
    def concatenated(cls, parts: Sequence[Interval], axis: int = 0) -> Interval:
        """The arrays of intervals one after another along an axis; at least one."""
        if len(parts) == 1:
            return parts[0]
        lo = np.concatenate([one.lo for one in parts], axis)
        if all(one.is_point for one in parts):
            return cls(lo, lo)
        return cls(lo, np.concatenate([one.hi for one in parts], axis))

    def broadcast(self, shape: tuple[int, ...]) -> Interval:
        """The arrays broadcast to a shape."""
        return self.each(lambda array: np.broadcast_to(array, shape))

    def widened(self, by: ArrayLike) -> Interval:
        """All numbers within a distance >= 0 of a number in the interval."""
        far = np.asarray(by, dtype=np.float64)
        return interval(down_add(self.lo, -far), up_add(self.hi, far))

    def __neg__(self) -> Interval:
        lo = -self.hi
        return Interval(lo, lo) if self.is_point else Interval(lo, -self.lo)

    def __add__(self, other: Interval) -> Interval:
        with np.errstate(all="ignore"):
            low = self.lo + other.lo
            high = low if self.is_point and other.is_point else self.hi + other.hi
            # Exponents as differences of data are exact, also where both ends are stored.
            if high is low or (np.array_equal(low, high) and _are_points(self, other)):
                result = sum_of_points(self.lo, other.lo)
            else:
                result = outward(low, high, zeros=True)
        if result is not None:
            return Interval(*result)
        return interval(down_add(self.lo, other.lo), up_add(self.hi, other.hi))

    def __sub__(self, other: Interval) -> Interval:
        return self + (-other)

    def __mul__(self, other: Interval) -> Interval:
        return multiply(self, other)

    def __truediv__(self, other: Interval) -> Interval:
        return divide(self, other)


def _are_points(*intervals: Interval) -> bool:
    return all(np.array_equal(one.lo, one.hi) for one in intervals)


def interval(lo: ArrayLike, hi: ArrayLike) -> Interval:
    """The interval with these endpoints; NaN means unbounded, overflow is brought back."""
    low, high = np.asarray(lo, dtype=np.float64), np.asarray(hi, dtype=np.float64)
    if all_finite(low) and (low is high or all_finite(high)):
        return Interval(low, high)
    low = put(np.isnan(low), -np.inf, np.minimum(low, LARGEST))
    high = put(np.isnan(high), np.inf, np.maximum(high, -LARGEST))
    return Interval(np.asarray(low), np.asarray(high))


def point(x: ArrayLike) -> Interval:
    """The point interval of an array; NaN is anything, ±inf all beyond the largest double."""
    array = np.asarray(x, dtype=np.float64)
    return Interval(array, array) if all_finite(array) else interval(array, array)


def around(center: ArrayLike, radius: ArrayLike) -> Interval:
    """The interval of all numbers within a distance of the centre."""
    c, r = np.asarray(center, dtype=np.float64), np.asarray(radius, dtype=np.float64)
    return interval(down_add(c, -r), up_add(c, r))


def from_zero(x: ArrayLike) -> Interval:
    """The interval [0, x] for x >= 0, elementwise."""
    high = np.asarray(x, dtype=np.float64)
    return Interval(np.zeros(high.shape), high)


def hull(a: Interval, b: Interval) -> Interval:
    """The smallest interval that holds both."""
    return Interval(np.minimum(a.lo, b.lo), np.maximum(a.hi, b.hi))


def meet(a: Interval, b: Interval) -> Interval:
    """Intersection; where two enclosures of one value are wrongly disjoint, `a`."""
    lo, hi = np.maximum(a.lo, b.lo), np.minimum(a.hi, b.hi)
    return Interval(np.where(lo <= hi, lo, a.lo), np.where(lo <= hi, hi, a.hi))


def within(a: Interval, lo: float, hi: float) -> Interval:
    """`a` intersected with a range known to contain the value."""
    low, high = a.lo, a.hi
    if lo > -np.inf:
        low, high = np.maximum(low, lo), np.maximum(high, lo)
    if hi < np.inf:
        low, high = np.minimum(low, hi), np.minimum(high, hi)
    return Interval(low, low) if a.is_point else Interval(low, high)


def _ends(a: Interval, b: Interval, op: Callable[[Array, Array], Array]) -> tuple[Array, Array]:
    """Least and greatest result at the endpoints; indeterminate ones (0 inf, inf / inf) are 0."""
    lefts = [a.lo] if a.is_point else [a.lo, a.hi]
    rights = [b.lo] if b.is_point else [b.lo, b.hi]
    results = [np.asarray(op(left, right)) for left in lefts for right in rights]
    lo, hi = reduce(np.minimum, results), reduce(np.maximum, results)
    if np.count_nonzero(np.isnan(lo)):
        results = [np.where(np.isnan(result), 0.0, result) for result in results]
        lo, hi = reduce(np.minimum, results), reduce(np.maximum, results)
    return lo, hi


def _product_of_points(a: Array, b: Array) -> Interval:
    """Products of points; exact for a factor ±2^k where nothing under- or overflows."""
    with np.errstate(all="ignore"):
        p = np.multiply(a, b)
        size = np.abs(p)
        exact = (np.abs(np.frexp(a)[0]) == 0.5) | (np.abs(np.frexp(b)[0]) == 0.5)
        exact &= (size >= SMALLEST_NORMAL) & (size <= LARGEST)
        exact |= (a == 0.0) | (b == 0.0)
        if all_nonzero(exact):
            return point(p)
        return interval(np.where(exact, p, down(p)), np.where(exact, p, up(p)))


def multiply(a: Interval, b: Interval) -> Interval:
    """All products; x y is monotone in each factor, so extremes are at the endpoints."""
    if a.is_point and b.is_point:
        return _product_of_points(a.lo, b.lo)
    with np.errstate(all="ignore"):
        lo, hi = _ends(a, b, np.multiply)
        result = outward(lo, hi)
    low, high = result or (np.asarray(down(lo)), np.asarray(up(hi)))
    if not (all_nonzero(lo) and all_nonzero(hi)):
        floor, ceiling = _signs_of_product(a, b)
        np.maximum(low, 0.0, out=low, where=floor)
        np.minimum(high, 0.0, out=high, where=ceiling)
    return Interval(low, high) if result is not None else interval(low, high)


def _signs_of_product(a: Interval, b: Interval) -> tuple[Truths, Truths]:
    """Where all products are certainly >= 0, and <= 0: endpoints that are exactly 0, not rounded
    to it.
    """
    a_above, a_below, b_above, b_below = a.lo >= 0.0, a.hi <= 0.0, b.lo >= 0.0, b.hi <= 0.0
    zero = (a_above & a_below) | (b_above & b_below)
    above = zero | (a_above & b_above) | (a_below & b_below)
    return above, zero | (a_above & b_below) | (a_below & b_above)


def divide(a: Interval, b: Interval) -> Interval:
    """All quotients by nonzero divisors; all real numbers where 0 is interior to the divisor."""
    if all_nonzero(b.lo > 0.0) or all_nonzero(b.hi < 0.0):
        with np.errstate(all="ignore"):
            lo, hi = _ends(a, b, np.divide)
            result = outward(lo, hi) if all_nonzero(lo) and all_nonzero(hi) else None
        if result is not None:
            return Interval(*result)
    crossing = (b.lo < 0.0) & (b.hi > 0.0) | ((b.lo == 0.0) & (b.hi == 0.0))
    # A divisor approaches an endpoint 0 from one side: its signed zero gives the infinity.
    divisor = Interval(
        put((b.lo == 0.0) & (b.hi > 0.0), 0.0, b.lo), put((b.hi == 0.0) & (b.lo < 0.0), -0.0, b.hi)
    )
    with np.errstate(all="ignore"):
        lo, hi = _ends(a, divisor, np.divide)
    positive = ((a.lo >= 0.0) & (b.lo >= 0.0)) | ((a.hi <= 0.0) & (b.hi <= 0.0))
    negative = ((a.lo >= 0.0) & (b.hi <= 0.0)) | ((a.hi <= 0.0) & (b.lo >= 0.0))
    zero = (a.lo == 0.0) & (a.hi == 0.0)
    lo, hi = down(lo), up(hi)
    low = put(zero | (positive & (lo < 0.0)), 0.0, lo)
    high = put(zero | (negative & (hi > 0.0)), 0.0, hi)
    return interval(put(crossing, -np.inf, low), put(crossing, np.inf, high))


def square(a: Interval) -> Interval:
    """All squares: from that of the smallest to that of the largest absolute value."""
    size = a.magnitude
    with np.errstate(all="ignore"):
        largest = np.square(size)
        least = largest if a.is_point else np.square(a.mignitude)
        result = outward(least, largest)
    low, high = result or (down(least), up(largest))
    high = high if all_nonzero(size) else put(size == 0.0, 0.0, high)
    return interval(np.maximum(low, 0.0), high)


def absolute(a: Interval) -> Interval:
    """All absolute values, exact."""
    return Interval(a.mignitude, a.magnitude)


def whole_power(a: Interval, k: int) -> Interval:
    """All x^k for a whole k: by parity monotone in |x| or in x; x^0 is 1."""
    if k == 0:
        return point(np.ones(a.shape))
    if k < 0:
        return divide(point(np.ones(a.shape)), whole_power(a, -k))
    if k == 1:
        return a
    if k == 2:
        return square(a)
    size = absolute(a)
    base = Interval(size.lo, size.hi) if k % 2 == 0 else a
    with np.errstate(all="ignore"):
        lo, hi = np.power(base.lo, float(k)), np.power(base.hi, float(k))
    low = np.where(base.lo == 0.0, 0.0, down_ulps(lo))
    high = np.where(base.hi == 0.0, 0.0, up_ulps(hi))
    keeps = base.lo >= 0.0
    return interval(np.where(keeps, np.maximum(low, 0.0), low), high)


def increasing(function: Callable[[Array], Array], a: Interval) -> Interval:
    """Range of an increasing function of the C library."""
    with np.errstate(all="ignore"):
        lo = down_ulps(np.asarray(function(a.lo), dtype=np.float64))
        hi = up_ulps(np.asarray(function(a.hi), dtype=np.float64))
    return interval(lo, hi)


def total(a: Interval, axis: Axis = None) -> Interval:
    """Sum along axes, including the error of summation."""
    return interval(down_sum(a.lo, axis), up_sum(a.hi, axis))


def maximum(a: Interval, b: Interval) -> Interval:
    return Interval(np.maximum(a.lo, b.lo), np.maximum(a.hi, b.hi))


def minimum(a: Interval, b: Interval) -> Interval:
    return Interval(np.minimum(a.lo, b.lo), np.minimum(a.hi, b.hi))


def truths(true: Truths, false: Truths) -> Interval:
    """Truth values from the elements that certainly hold and those that certainly do not."""
    return Interval(np.where(true, 1.0, 0.0), np.where(false, 0.0, 1.0))


def less(a: Interval, b: Interval) -> Interval:
    """Whether a < b: decided where the intervals do not overlap."""
    return truths(a.hi < b.lo, a.lo >= b.hi)


def less_equal(a: Interval, b: Interval) -> Interval:
    return truths(a.hi <= b.lo, a.lo > b.hi)


def equal(a: Interval, b: Interval) -> Interval:
    same = (a.lo == a.hi) & (b.lo == b.hi) & (a.lo == b.lo)
    return truths(same, (a.hi < b.lo) | (a.lo > b.hi))


def choose(condition: Interval, a: Interval, b: Interval) -> Interval:
    """`a` where the condition certainly holds, `b` where it certainly does not, else their hull."""
    both = hull(a, b)
    true, false = condition.lo == 1.0, condition.hi == 0.0
    return Interval(
        np.where(true, a.lo, np.where(false, b.lo, both.lo)),
        np.where(true, a.hi, np.where(false, b.hi, both.hi)),
    )
