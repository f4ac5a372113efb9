"""Sums Σ d_i a_i a_iᵀ and Σ t_i a_i⊗a_i⊗a_i over rows a_i, and bounds on their norms.

Matrices are computed in doubles; their errors are bounds, in norm, on the effect of rounding and of
the errors of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.midpoint_radius import Bounded, exact, midpoints, normalised
from slomodel.bounds.arithmetic.rounding import (
    SMALLEST_NORMAL,
    Array,
    up_add,
    up_div,
    up_ldexp,
    up_mul,
    up_norm,
    up_sum,
)
from slomodel.bounds.arithmetic.sums_of_products import error_of_sum
from slomodel.bounds.norms.spectral_norm import DENSE_EIGEN, spectral_norm

Slots = tuple[int, ...]
_STEPS_OF_OVERLAP = 4
"""Steps of the power method for an estimate that only weighs two bounds against each other."""
_APART = 1e-3
"""Added to the first vector, so that it is not orthogonal to others by symmetry."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows (m, n) with their errors; computed and exact rows are no longer than `length` (m,)."""

    near: Bounded[Array]
    length: Array
    fourths: dict[bytes, float] = field(default_factory=dict, init=False, repr=False)
    """Cached bounds on Σ d_i (a_i·v)⁴, keyed by the weights d (m,)."""
    estimates: list[float] = field(default_factory=list, init=False, repr=False)
    """The overlap, once it has been computed."""

    @classmethod
    def of(cls, rows: Interval) -> Rows:
        return cls(midpoints(rows), np.asarray(up_norm(rows.magnitude, 1)))

    @property
    def value(self) -> Array:
        return self.near.value

    @property
    def error(self) -> Array:
        return self.near.error

    @property
    def overlap(self) -> float:
        """An estimate by the power method."""
        if not self.estimates:
            self.estimates.append(self._overlap())
        return self.estimates[0]

    def _overlap(self) -> float:
        known = np.isfinite(self.length) & (self.length > 0.0)
        unit = self.value[known] / self.length[known, np.newaxis]
        v, square = unit.sum(axis=0), 1.0
        with np.errstate(all="ignore"):
            v = v + _APART * np.cos(np.arange(len(v)))
            for _ in range(_STEPS_OF_OVERLAP):
                v = unit.T @ (unit @ (v / max(float(np.linalg.norm(v)), SMALLEST_NORMAL)))
                square = float(np.linalg.norm(v))
        return float(np.sqrt(square)) if 1.0 < square < np.inf else 1.0

    def take(self, which: NDArray[np.intp]) -> Rows:
        return Rows(Bounded(self.value[which], self.error[which]), self.length[which])


def dot(a: Array, b: Array) -> float:
    """Upper bound on a·b for numbers >= 0."""
    return float(up_sum(up_mul(a, b)))


def quadratic_sum(rows: Sequence[Rows], weights: Mapping[Slots, Array]) -> Bounded[float]:
    """Σ_(p<=q) of Σ_i d_i a_p,i a_q,iᵀ, with its transpose where p < q."""
    n = rows[0].value.shape[1]
    total, error = np.zeros((n, n)), 0.0
    for (p, q), d in weights.items():
        if d.any():
            part = (rows[p].value.T * d) @ rows[q].value
            total += part if p == q else part + part.T
            own = _error(d, [rows[p], rows[q]], len(weights))
            error = up_add(error, own if p == q else up_mul(2.0, own))
    return Bounded(total, float(error))


def _error(d: Array, rows: Sequence[Rows], sums: int) -> float:
    """Error of Σ d_i a_i ⊗ b_i .., with its transpose, within a total of `sums` additions."""
    entries, roundings = rows[0].value.shape[1] ** len(rows), len(d) + len(rows) + 1 + sums
    return error_of_sum(
        d, [row.length for row in rows], [one.error for one in rows], roundings, entries
    )


def largest_eigenvalue(one: Bounded[float]) -> float:
    """Upper bound on λ_max of the exact matrix and on 0."""
    return max(upper_end(one), 0.0)


def upper_end(one: Bounded[float]) -> float:
    """Upper bound, possibly negative, on λ_max of the exact symmetric matrix.

    For a shift s, λ_max(S) <= λ_max(S + sI) - s.
    """
    if not np.isfinite(one.value).all():
        return float(np.inf)
    S = one.symmetric()
    if 0 < len(S.value) <= DENSE_EIGEN:
        return float(up_add(_dense_end(S.value), S.error))
    norm = spectral_norm(S.value)
    least = float(up_add(norm, S.error))
    if norm > 0.0 and float(np.min(np.diag(S.value))) < 0.0:
        shifted = S.plus_identity(norm)
        end = up_add(spectral_norm(shifted.value), shifted.error)
        least = min(least, float(up_add(end, -norm)))
    return least


def _dense_end(S: Array) -> float:
    """Upper bound on λ_max of a symmetric matrix from its computed eigenpairs V, Λ:

        λ_max(S) <= λ_max(VΛVᵀ) + ‖S - VΛVᵀ‖,  λ_max(VΛVᵀ) <= λ + |λ| ‖VᵀV - I‖

    for the largest λ, as |‖Vᵀx‖² - 1| is at most the last norm for unit x.
    """
    B, e = normalised(S)
    values, V = np.linalg.eigh(B.value)
    vectors, top = exact(V), float(values[-1])
    defect = (vectors.transposed @ vectors - exact(np.eye(len(S)))).norm
    residual = (B - vectors.columns_times(values) @ vectors.transposed).norm
    end = up_add(top, up_add(up_mul(abs(top), defect), residual))
    return float(up_ldexp(float(end), e))


def cubic_sum(rows: Sequence[Rows], weights: Mapping[Slots, Array]) -> Bounded[float]:
    """Σ over slots (p, q, r) and i of t_i a_p,i ⊗ a_q,i ⊗ a_r,i, for all permutations of slots."""
    n = rows[0].value.shape[1]
    total, error = np.zeros((n, n, n)), 0.0
    for (p, q, r), t in weights.items():
        if not t.any():
            continue
        a, b, c = rows[p], rows[q], rows[r]
        if p == q == r:
            total += _cubes(a.value, t)
        else:
            for j in range(n):
                total[j] += (b.value.T * (t * a.value[:, j])) @ c.value
        error = up_add(error, _error(t, [a, b, c], len(weights)))
    return Bounded(total, float(error))


def _cubes(A: Array, t: Array) -> Array:
    """Σ t_i a_i ⊗ a_i ⊗ a_i (n, n, n); entries with the same set of indices are computed once."""
    n = A.shape[1]
    total = np.zeros((n, n, n))
    for j in range(n):
        own = A[:, j:]
        part = (own.T * (t * A[:, j])) @ own
        total[j, j:, j:] = total[j:, j, j:] = total[j:, j:, j] = part
    return total


class Measured(Protocol):
    """Rows whose lengths (m,) are known."""

    @property
    def length(self) -> Array: ...


def by_lengths(rows: Sequence[Measured], weights: Mapping[Slots, Array]) -> dict[Slots, Array]:
    """Weights E_p with Σ |t_pq..| |a_p v| |a_q v| Π |a_r v| <= Σ_p E_p (a_p v)² for unit v.

    |a_r v| <= l_r, and |x y| <= (δ x² + y²/δ)/2 with δ = l_q / l_p for x = a_p v, y = a_q v.
    """
    result: dict[Slots, Array] = {}
    for (p, q, *others), t in weights.items():
        half: Array = up_mul(np.asarray(0.5), np.abs(t))
        for r in others:
            half = up_mul(half, rows[r].length)
        for own, other in ((p, q), (q, p)):
            part: Array = up_mul(half, quotient(rows[other].length, rows[own].length))
            before = result.get((own, own))
            result[own, own] = part if before is None else up_add(before, part)
    return result


class Overlapping(Protocol):
    """Rows with about the root of ‖Σ a aᵀ/‖a‖²‖ over those that are not 0."""

    @property
    def length(self) -> Array: ...

    @property
    def overlap(self) -> float: ...


def balances(rows: Sequence[Overlapping]) -> list[Array]:
    """The lengths (m,) of each argument's rows, times the overlap of these.

    2 |a_p·v| |a_q·v| <= δ (a_p·v)² + (a_q·v)²/δ for any δ > 0. Where the a_p of N elements have one
    direction and the a_q are orthogonal, the first adds up to Nδ and the second to 1/δ.
    """
    if len(rows) == 1:
        return [rows[0].length]
    return [up_mul(own.length, np.asarray(own.overlap)) for own in rows]


def ratios(lengths: Sequence[Array]) -> dict[Slots, Array]:
    """δ_pq = l_q / l_p for p ≠ q, with δ_pq δ_qp >= 1."""
    every = list(enumerate(lengths))
    return {(p, q): quotient(other, own) for p, own in every for q, other in every if p != q}


def quotient(a: Array, b: Array) -> Array:
    """a / b for lengths, rounded so that (a / b) (b / a) >= 1; 0 where either is exactly 0."""
    return np.where((a == 0.0) | (b == 0.0), 0.0, up_div(a, b))
