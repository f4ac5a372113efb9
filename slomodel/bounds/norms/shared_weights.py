"""Sums Σ C_i (a_i·v)(b_i·v) whose weights C_i = F_i + δ_i move by less together than each of them.

With ‖δ‖ <= d, rows b_i no longer than l_i with support S, and M = Σ l_i² a_i a_iᵀ,

    Σ |δ_i (a_i·v)(b_i·v)| <= d (Σ (a_i·v)² (b_i·v)²)^½ <= d (vᵀMv)^½ ‖v_S‖
                           <= d (vᵀMv/θ + θ ‖v_S‖²)/2   for any θ > 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.midpoint_radius import Bounded, exact
from slomodel.bounds.arithmetic.rounding import SMALLEST_NORMAL, Array, up_div, up_mul
from slomodel.bounds.norms.loewner import Rows, quadratic_sum

_STEPS = 4
"""Steps of the power method for estimates; whatever they are, bounds are proved."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedWeights:
    """C = F + δ for F in the intervals `near` (m,) and ‖δ‖ <= `apart`."""

    near: Interval
    apart: float

    def pays(self, whole: Interval, first: Rows, second: Rows) -> bool:
        """Whether this seems closer than the intervals `whole` (m,) of C."""
        far = np.maximum(self.near.lo - whole.lo, whole.hi - self.near.hi)
        far = np.maximum(np.where(np.isfinite(far), far, np.inf), 0.0)
        if not np.isfinite(self.apart):
            return False
        if not np.isfinite(far).all():
            return True
        lengths = (second.length / np.maximum(first.length, SMALLEST_NORMAL), second.length)
        alone = [
            estimated_norm(first, far * lengths[0]),
            estimated_norm(second, far / np.maximum(lengths[0], SMALLEST_NORMAL)),
        ]
        together = self.apart * np.sqrt(estimated_norm(first, lengths[1] ** 2))
        return bool(together < np.sqrt(alone[0]) * np.sqrt(alone[1]))

    def matrix(self, first: Rows, second: Rows) -> Bounded[float]:
        """A matrix that dominates Σ δ (a·v)(b·v), of either sign."""
        M = quadratic_sum((first,), {(0, 0): up_mul(second.length, second.length)})
        size = float(np.sqrt(estimated_norm(first, second.length**2)))
        theta = size if 0.0 < size < np.inf else 1.0
        support = np.ones(second.value.shape[1])
        if not second.error.any():
            support = np.asarray((second.value != 0.0).any(axis=0), dtype=np.float64)
        half = 0.5 * self.apart
        S: Array = support * float(up_mul(half, theta))
        return M.times(float(up_div(half, theta))) + exact(np.diag(S))


def estimated_norm(rows: Rows, weights: Array) -> float:
    """About the norm of Σ w a aᵀ for w >= 0."""
    A, size = rows.value, 0.0
    with np.errstate(all="ignore"):
        v = A.T @ (weights * rows.length) + 1e-3 * np.cos(np.arange(A.shape[1]))
        for _ in range(_STEPS):
            v = A.T @ (weights * (A @ (v / max(float(np.linalg.norm(v)), SMALLEST_NORMAL))))
            size = float(np.linalg.norm(v))
    return size if np.isfinite(size) else float(np.inf)
