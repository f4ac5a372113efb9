"""The function log Σ exp: its derivatives are cumulants of a random variable with the weights p."""

from __future__ import annotations

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, interval
from slomodel.bounds.arithmetic.rounding import (
    Array,
    down,
    down_add,
    down_others,
    up,
    up_add,
    up_div,
    up_mul,
    up_others,
    up_sqrt,
)
from slomodel.bounds.ranges.values import value_range

_SKEW = float(up_sqrt(up_div(2.0, 27.0)))
_RANGE = float(up_sqrt(2.0))


def shares(u: Interval) -> Interval:
    """p_k = exp u_k / Σ_j exp u_j over intervals u (h, N).

    It increases with u_k and decreases with the others.
    """
    top = np.max(u.hi, axis=0)
    e = value_range(table.exp, interval(down_add(u.lo, -top), up_add(u.hi, -top)))
    low = -up_div(-e.lo, up_add(e.lo, up_others(e.hi)))
    high = up_div(e.hi, down_add(e.hi, down_others(e.lo)))
    return Interval(np.maximum(low, 0.0), np.minimum(high, 1.0))


def largest_variance(p: Interval) -> Array:
    """Upper bounds (N,) on ‖diag p - p pᵀ‖ over weights p in intervals (h, N).

    The norm is at most max p; its row sums of absolute values are at most 2 p_k (1 - p_k), so it is
    also at most 1/2.
    """
    nearest: Array = np.clip(0.5, p.lo, p.hi)
    row = 2.0 * up_mul(nearest, up_add(np.ones_like(nearest), -nearest))
    return np.asarray(np.minimum(0.5, np.minimum(np.max(row, axis=0), np.max(p.hi, axis=0))))


def cumulant_bounds(variance: Array) -> tuple[Array, Array, Array]:
    """Upper bounds on ‖D²F‖, ‖D³F‖, ‖D⁴F‖ of F(u) = log Σ exp u_k, where ‖D²F‖ <= `variance` c.

    D^k F[v, .., v] is the k-th cumulant of the numbers v_k with the weights p. For ‖v‖ = 1 they lie
    in an interval of length R <= √2, and σ² = D²F[v, v] <= c. The magnitude of the third cumulant
    is at most R σ², and at most R³/(6 √3). The fourth is μ_4 - 3 σ⁴ with σ⁴ <= μ_4 <= R² σ², hence
    between -2 σ⁴ and 2 σ² - 3 σ⁴, which increases up to σ² = 1/3.
    """
    skew = np.minimum(_SKEW, up(_RANGE * variance))
    below = 2.0 * up_mul(variance, variance)
    rising = up_mul(variance, up(2.0 - down(3.0 * variance)))
    above = np.where(variance < 0.333, rising, up(1.0 / 3.0))
    return variance, np.asarray(skew), np.maximum(below, above)
