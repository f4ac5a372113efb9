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
from math import factorial

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.power_series import PowerSeries
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.arithmetic.upper_bounds import FLOOR
from slomodel.bounds.ranges.power_series.composed import chosen, composed, geometric
from slomodel.bounds.ranges.values import value_range

_WIDER = 1.0 + 2.0**-30
"""Far beyond the roundings of the bounds on higher coefficients."""


def _coefficients(at: Array, count: int) -> list[Interval]:
    """σ_0, .., at u_0, from those at -|u_0|, which have few digits lost."""
    negative = -np.abs(at)
    result = [value_range(table.sigmoid, point(negative))]
    for k in range(count):
        # (k + 1) σ_(k+1) = σ_k - Σ σ_j σ_(k-j)
        total = result[k]
        for j in range(k + 1):
            total = total - result[j] * result[k - j]
        result.append(total / point(np.full(at.shape, k + 1.0)))
    # σ(-u) = 1 - σ(u)
    sign = [np.where(at > 0.0, (-1.0) ** (k + 1), 1.0) for k in range(count + 1)]
    own = [one * point(s) for one, s in zip(result, sign, strict=True)]
    return [value_range(table.sigmoid, point(at)), *own[1:]]


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
    return composed(u, _coefficients(at, p), _beyond(at, p + 1, 0))


def softplus(u: PowerSeries) -> PowerSeries:
    """log(1 + e^u)."""
    p, at = u.table.degree, u.c[0]
    first = value_range(table.softplus, point(at))
    numbers = [point(np.full(at.shape, float(k))) for k in range(1, p + 1)]
    rest = [a / k for a, k in zip(_coefficients(at, p - 1), numbers, strict=True)]
    return composed(u, [first, *rest], _beyond(at, p + 1, 1))


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
