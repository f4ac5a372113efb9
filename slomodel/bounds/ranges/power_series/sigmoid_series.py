"""Series of the logistic function, softplus and log Σ exp, which converge up to their poles.

The coefficients σ_k of σ(u) = 1/(1 + e^-u) at u_0 follow from σ' = σ(1 - σ), those of softplus are
σ_(k-1)/k. As σ(u) = 1/2 + Σ_m 1/(u - iπ(2m + 1)), with d = √(u_0² + π²)

    |σ_k| <= 2 Σ_{m>=0} (u_0² + π²(2m + 1)²)^(-(k+1)/2) <= 2 (1 + d/6) d^(-k-1)   for k >= 2,

by the integral of (1 + (2πm/d)²)^(-3/2). For u_0 < 0, σ(u) = Σ_j ±e^(ju): with y = e^(u_0 + w) and
2^q y < 1, Σ_{k>=q} |σ_k| w^k <= w^q/q! Σ_j j^q y^j <= w^q/q! y/(1 - 2^q y), and that of softplus is
at most w^q/q! y/(1 - 2^(q-1) y). As log(1 + e^u), a
series would need e^(u_0)(e^w - 1) < 1 + e^(u_0), a third of the distance to the pole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from math import factorial

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import point
from slomodel.bounds.arithmetic.power_series import PowerSeries, TaylorCoefficients
from slomodel.bounds.arithmetic.rounding import SMALLEST_NORMAL, Array
from slomodel.bounds.arithmetic.upper_bounds import FLOOR
from slomodel.bounds.ranges.power_series.composed import chosen, composed, geometric
from slomodel.bounds.ranges.values import value_range

_WIDER = 1.0 + 2.0**-30
"""Far beyond the roundings of the bounds on higher coefficients."""


def _coefficients(at: Array, count: int) -> TaylorCoefficients:
    """σ_1, .., σ_count at u_0, from those at -|u_0|, as polynomials in σ."""
    falling = np.exp(-np.abs(at))
    y = np.maximum(falling / (1.0 + falling), SMALLEST_NORMAL)  # upper bounds where it underflows
    powers = np.cumprod(np.broadcast_to(y, (count + 1, *at.shape)), axis=0)
    table = _polynomials(count)
    values = np.tensordot(table, powers, 1)
    terms = np.tensordot(np.abs(table), powers, 1)
    # σ(-u) = 1 - σ(u)
    signs = np.where(at > 0.0, _alternating(count, at.ndim), 1.0)
    # 12 roundings a power for σ, and those of powers and of the sum, at half a step each.
    return TaylorCoefficients.nearly(values * signs, 2 * (count + 4), terms)


@cache
def _polynomials(count: int) -> Array:
    """The coefficients (count, count + 1) of σ_1, .. in σ, σ², ..; exact but for one rounding.

    (k + 1) σ_(k+1) = σ_k' = P_k'(σ) σ(1 - σ) for σ_k = P_k(σ).
    """
    rows, own = [], [Fraction(1)] + [Fraction(0)] * count
    for k in range(1, count + 1):
        moved = [Fraction(0)] * (count + 1)
        for j, a in enumerate(own):
            moved[j] += (j + 1) * a / k
            if j < count:
                moved[j + 1] -= (j + 1) * a / k
        own = moved
        rows.append([float(a) for a in own])
    return np.array(rows).reshape((count, count + 1))


def _alternating(count: int, rank: int) -> Array:
    """1, -1, 1, .. along a first axis, for coefficients 1, 2, .."""
    return np.reshape((-1.0) ** np.arange(count), (-1, *(1,) * rank))


def _beyond(at: Array, q: int, order: int) -> Callable[[Array], Array]:
    """Σ_{k>=q} |φ_k| w^k of σ, order 0, or of softplus, order 1."""
    distance = np.sqrt(at * at + np.pi**2) * (1.0 - 2.0**-50)
    first = 2.0 * (1.0 + distance / 6.0) / (distance if order == 0 else np.asarray(float(q)))
    growth = 2.0 ** (q - order)

    def sums(w: Array) -> Array:
        by_poles = geometric(first * (w / distance) ** q, w / distance)
        y = np.exp(w - np.abs(at)) * _WIDER
        left = 1.0 - growth * y
        powers = w**q / factorial(q) * y / np.maximum(left, 1e-3)
        result = np.minimum(by_poles, np.where(left > 1e-3, powers, np.inf)) * _WIDER
        return np.asarray(np.where(w > 0.0, np.maximum(result, FLOOR), result))

    return sums


def sigmoid(u: PowerSeries) -> PowerSeries:
    """1/(1 + e^-u)."""
    p, at = u.table.degree, u.c[0]
    own = _coefficients(at, p).after(value_range(table.sigmoid, point(at)))
    return composed(u, own, _beyond(at, p + 1, 0))


def softplus(u: PowerSeries) -> PowerSeries:
    """log(1 + e^u)."""
    p, at = u.table.degree, u.c[0]
    own = _coefficients(at, p - 1).after(value_range(table.sigmoid, point(at)))
    numbers = np.reshape(np.arange(1.0, p + 1.0), (-1, *(1,) * at.ndim))
    rest = own.over(numbers)
    first = value_range(table.softplus, point(at))
    return composed(u, rest.after(first), _beyond(at, p + 1, 1))


def log_sum_exp(u: PowerSeries, axes: Sequence[int]) -> PowerSeries:
    """log Σ exp u over some axes, by pairs: the larger plus softplus of the difference."""
    rank = len(u.shape)
    kept = [axis for axis in range(rank) if axis not in axes]

    def flat(array: Array) -> Array:
        moved = np.transpose(array, (0, *(1 + axis for axis in (*axes, *kept))))
        return moved.reshape((len(array), -1, *moved.shape[1 + len(axes) :]))

    whole = u.each(flat)
    while whole.shape[0] > 1:
        half = whole.shape[0] // 2
        pairs = _of_pairs(_between(whole, 0, half), _between(whole, half, 2 * half))
        last = _between(whole, 2 * half, whole.shape[0])
        whole = _joined(pairs, last) if last.shape[0] else pairs
    return whole.each(lambda array: array[:, 0])


def _between(u: PowerSeries, first: int, last: int) -> PowerSeries:
    return u.each(lambda array: array[:, first:last])


def _joined(a: PowerSeries, b: PowerSeries) -> PowerSeries:
    degree = max(a.degree, b.degree)
    return PowerSeries(
        a.table,
        np.concatenate([a.padded(degree), b.padded(degree)], axis=1),
        np.concatenate([a.tail, b.tail]),
        np.concatenate([a.error, b.error]),
    )


def _of_pairs(a: PowerSeries, b: PowerSeries) -> PowerSeries:
    is_first = a.c[0] >= b.c[0]
    high, low = chosen(is_first, a, b), chosen(is_first, b, a)
    # exp(-inf) = 0, exactly.
    none = (low.c[0] == -np.inf) & (low.tail == 0.0) & (low.error == 0.0)
    low = chosen(none, high, low)
    return chosen(none, high, high + softplus(low - high))
