"""Intervals of `x ** p`."""

from __future__ import annotations

import numpy as np

import slomodel.functions as table
from slomodel.bounds.intervals.interval import Interval, interval, whole_power
from slomodel.bounds.intervals.rounding import Array, down_ulps, up_ulps

_FEW = 32


def power(x: Interval, p: Interval) -> Interval:
    """All x^p: any x for a whole p, x >= 0 for another p (the part of x below 0 is left out).

    For one p it is monotone in x > 0; else exp(p log x). Whole exponents keep the sign.
    """
    x, p = _broadcast(x, p)
    exponents = np.unique(p.lo) if np.array_equal(p.lo, p.hi) else np.empty(0)
    if not 0 < exponents.size <= _FEW:
        return _by_logarithm(x, p)
    results = [_one_exponent(x, float(q)) for q in exponents]
    lo, hi = results[0].lo, results[0].hi
    for q, other in zip(exponents[1:], results[1:], strict=True):
        lo, hi = np.where(p.lo == q, other.lo, lo), np.where(p.lo == q, other.hi, hi)
    return Interval(lo, hi)


def _broadcast(x: Interval, p: Interval) -> tuple[Interval, Interval]:
    shape = np.broadcast_shapes(x.shape, p.shape)

    def wide(array: Array) -> Array:
        return np.broadcast_to(array, shape)

    return x.each(wide), p.each(wide)


def _one_exponent(x: Interval, q: float) -> Interval:
    if q.is_integer() and abs(q) < 2**53:
        return whole_power(x, int(q))
    if not np.isfinite(q):
        return interval(np.full(x.shape, -np.inf), np.full(x.shape, np.inf))
    low, high = (x.lo, x.hi) if q > 0.0 else (x.hi, x.lo)
    with np.errstate(all="ignore"):
        lo = down_ulps(np.power(np.maximum(low, 0.0), q))
        hi = up_ulps(np.power(np.maximum(high, 0.0), q))
    outside = x.hi < 0.0
    at_zero = high == 0.0 if q > 0.0 else np.zeros(x.shape, dtype=bool)
    lo = np.where(outside, -np.inf, np.maximum(lo, 0.0))
    return interval(lo, np.where(outside, np.inf, np.where(at_zero, 0.0, hi)))


def _by_logarithm(x: Interval, p: Interval) -> Interval:
    from slomodel.bounds.intervals.values import value_range

    result = value_range(table.exp, p * value_range(table.log, x))
    bad = x.lo < 0.0  # a whole exponent inside p may take a negative base
    return interval(np.where(bad, -np.inf, result.lo), np.where(bad, np.inf, result.hi))
