"""The function log Σ exp: its derivatives are cumulants of a random variable with the weights p."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, interval, point
from slomodel.bounds.arithmetic.rounding import (
    Array,
    down,
    down_add,
    down_mul,
    down_others,
    down_sum,
    gamma,
    up,
    up_add,
    up_div,
    up_mul,
    up_others,
    up_sqrt,
    up_sum,
)
from slomodel.bounds.ranges.values import value_range
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Axes, Expr

_SKEW = float(up_sqrt(up_div(2.0, 27.0)))
_RANGE = float(up_sqrt(2.0))

Numbers = TypeVar("Numbers", Array, NDArray[np.intp])


@dataclass(frozen=True, slots=True)
class SummedClasses:
    """An array of `shape` per sample and per class, over which each is summed."""

    shape: tuple[int, ...]
    order: Axes
    kept: int
    k: int

    @classmethod
    def of(cls, u: Expr, summed: Axes, sizes: Mapping[str, int]) -> SummedClasses:
        shape = concrete(u.shape, sizes)
        kept = tuple(axis for axis in range(u.rank) if axis not in summed)
        return cls(shape, (*kept, *summed), len(kept), prod(shape[axis] for axis in summed))

    def rows(self, array: Numbers) -> Numbers:
        """The array as (N, k)."""
        return np.transpose(np.broadcast_to(array, self.shape), self.order).reshape(-1, self.k)

    def array(self, rows: Array) -> Array:
        """Rows (N, k) as an array."""
        wide = tuple(self.shape[axis] for axis in self.order)
        return np.transpose(rows.reshape(wide), np.argsort(self.order))

    def sums(self, numbers: Array) -> Array:
        """Numbers (N,) as an array of the shape of the sum."""
        return numbers.reshape(tuple(self.shape[axis] for axis in self.order[: self.kept]))


def growths(p: Interval, moved: Array, mean: Array) -> Interval:
    """κ (N, k) with weights κp where u_j moves by m + [-D_j, D_j], with one m for all j.

    D is `moved`; the mean exponent under p is at least -`mean` (N, 1) beyond m, so that the mean of
    exp is at least exp(-mean).
    """
    rising = value_range(table.exp, point(moved)).hi
    falling = value_range(table.exp, point(-moved)).lo
    by_mean = value_range(table.exp, point(up_add(moved, np.broadcast_to(mean, moved.shape)))).hi
    below = down_sum(np.maximum(down_mul(p.lo, falling), 0.0), 1)[:, np.newaxis]
    by_sum = up_div(rising, np.maximum(below, 0.0))
    above = up_sum(up_mul(p.hi, rising), 1)[:, np.newaxis]
    least = np.maximum(-up_div(-falling, above), 0.0)
    return Interval(least, np.minimum(by_mean, by_sum))


def scaled_weights(p: Interval, growth: Interval) -> Interval:
    """The weights κp (N, k), which lie in [0, 1]."""
    low = np.clip(down_mul(p.lo, growth.lo), 0.0, 1.0)
    return Interval(low, np.clip(up_mul(p.hi, growth.hi), 0.0, 1.0))


def weights_within(
    samples: SummedClasses, weights: Interval, reach: Array, bend: Array
) -> Interval:
    """The weights, of u's shape, where u_j moves by (m + b_j)·d + e_j, |b_j·d| <= `reach`.

    m is the mean of all m + b_j under the weights at the centre, and 2|e_j| is at most `bend`.
    """
    p = weights.each(samples.rows)
    bent = up_mul(np.asarray(0.5), samples.rows(bend))
    mean = up_sum(up_mul(p.hi, bent), 1)[:, np.newaxis]
    growth = growths(p, up_add(samples.rows(reach), bent), mean)
    return scaled_weights(p, growth).each(samples.array)


def largest_spread(most: Array, far: Array) -> Array:
    """Upper bounds (N,) on the variance of numbers within `far` (N, k) of one number.

    Their weights are at most `most`. The variance is at most the mean of (w_j - t)², for every t,
    and at most half their sum, as ‖D²F‖ <= 1/2.
    """
    squares = np.where(np.isnan(far), np.inf, up_mul(far, far))
    half = up_mul(np.asarray(0.5), up_sum(squares, 1))
    return np.asarray(np.minimum(largest_mean(most, squares), half))


def largest_mean(most: Array, values: Array) -> Array:
    """Upper bounds (N,) on Σ p_j v_j for weights p <= `most` (N, k) of sum 1, for v >= 0.

    The greatest values have as much weight as they may.
    """
    order = np.argsort(-values, axis=1, kind="stable")
    v, q = (np.take_along_axis(array, order, 1) for array in (values, most))
    before = np.cumsum(q, axis=1) * (1.0 - gamma(2 * q.shape[1] + 4))
    before = np.concatenate([np.zeros((len(q), 1)), before[:, :-1]], axis=1)
    left = np.maximum(up_add(np.ones_like(before), -before), 0.0)
    return up_sum(up_mul(np.minimum(q, left), v), 1)


@dataclass(frozen=True, slots=True, eq=False)
class ApartFromMean:
    """The weights p of log Σ exp u at the centre, of u's shape, and upper bounds on ‖∇u_j - m‖ and
    on (∇u_j - m)·y over a region, m the mean of the ∇u_j; none over a ball.
    """

    weights: Interval
    lengths: Array
    reaches: Array | None


def shares(u: Interval) -> Interval:
    """p_k = exp u_k / Σ_j exp u_j over intervals u (h, N).

    It increases with u_k and decreases with the others.
    """
    top = np.max(u.hi, axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    e = value_range(table.exp, interval(down_add(u.lo, -top), up_add(u.hi, -top)))
    low = -up_div(-e.lo, up_add(e.lo, up_others(e.hi)))
    high = up_div(e.hi, down_add(e.hi, down_others(e.lo)))
    return Interval(np.fmax(low, 0.0), np.fmin(high, 1.0))  # inf / inf is unknown


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
