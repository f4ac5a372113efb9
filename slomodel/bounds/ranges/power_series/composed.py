"""The composition of a scalar function with a power series.

With u = u_0 + v, φ(u) = Σ φ_k v^k for φ_k = φ^(k)(u_0)/k!, where Σ |φ_k| ‖v‖^k < ∞. The sum up to
the degree p of the table is computed by Horner's rule; of the others, v = q + e with ‖e‖ <= ε and
no constant term in q, q^k is above that degree, and the rest is at most ε Σ k |φ_k| ‖v‖^(k-1): both
follow from an upper bound on S(w) = Σ_{k>p} |φ_k| w^k, as S is convex.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slomodel.bounds.arithmetic.power_series import (
    PowerSeries,
    TaylorCoefficients,
    composition,
    enlarged,
    exactly,
)
from slomodel.bounds.arithmetic.rounding import Array, Truths

_MOST_RATIO = 0.99
"""Largest ratio of geometric sums: 1 less the ratio is then known to 1e-13."""
_WIDER = 1.0 / 64.0
"""Factor by which ‖v‖ is enlarged for a bound on the derivative of S."""
Beyond = Callable[[Array], Array]
"""S(w), an upper bound up to roundings."""


def composed(u: PowerSeries, coefficients: TaylorCoefficients, beyond: Beyond) -> PowerSeries:
    """φ(u) from its coefficients at the constant term of u, and S."""
    v = u.without_constant
    w = v.norm
    # Blocks of terms that share powers of v would save products, but not what cancels in the tail.
    result = composition(v, coefficients)
    tail, error = enlarged(beyond(w)), result.error
    if u.error.any():
        rise = enlarged(beyond(w * (1.0 + _WIDER))) / (w * (0.9 * _WIDER))
        error = enlarged(error + enlarged(np.where(u.error > 0.0, u.error * rise, 0.0)))
    return PowerSeries(v.table, result.c, enlarged(result.tail + tail), error)


def geometric(first: Array, ratio: Array) -> Array:
    """first (1 + q + q² + …) for the ratio q, infinite where that is close to 1."""
    return np.asarray(np.where(ratio < _MOST_RATIO, first / np.maximum(1.0 - ratio, 1e-3), np.inf))


def everywhere(u: PowerSeries, value: float) -> PowerSeries:
    """A number, with axes of length 1 for those of u."""
    return PowerSeries.constant(u.table, exactly(np.full((1,) * len(u.shape), value)))


def scaled(u: PowerSeries, factor: Array | float) -> PowerSeries:
    """The series times small powers of two, 0 or their negatives."""
    size = np.abs(factor)
    return PowerSeries(u.table, u.c * factor, u.tail * size, u.error * size)


def chosen(condition: Truths, a: PowerSeries, b: PowerSeries) -> PowerSeries:
    """a where a condition holds, and b elsewhere."""
    degree = max(a.degree, b.degree)
    return PowerSeries(
        a.table,
        np.where(condition, a.padded(degree), b.padded(degree)),
        np.where(condition, a.tail, b.tail),
        np.where(condition, a.error, b.error),
    )
