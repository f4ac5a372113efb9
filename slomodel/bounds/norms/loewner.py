"""Sums Σ d_i a_i a_iᵀ and Σ t_i a_i⊗a_i⊗a_i over rows a_i, and bounds of their norms.

Matrices are computed in doubles; what their roundings, and the errors of the rows, may do to the
norm is added up beside them as one number. With rows of length l_i a sum of m products of n
numbers, in any order, is off by at most γ_(m+2) Σ |d_i| l_i² in norm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import (
    SMALLEST,
    Array,
    gamma,
    up,
    up_add,
    up_mul,
    up_norm,
    up_sum,
)
from slomodel.bounds.norms.spectral import DENSE_EIGEN, spectral_norm

Slots = tuple[int, ...]
_TINY = 1e-250


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows within `error` (m,) of those of A (m, n), and no longer than `length` (m,)."""

    A: Array
    length: Array
    error: Array
    fourths: dict[bytes, float] = field(default_factory=dict, init=False, repr=False)
    """Cached bounds on Σ d_i (a_i·v)⁴ by the weights d (m,)."""

    @classmethod
    def of(cls, rows: Interval) -> Rows:
        mid = rows.mid
        return cls(mid, np.asarray(up_norm(rows.magnitude, 1)), np.asarray(up_norm(rows.rad, 1)))

    def take(self, which: NDArray[np.intp]) -> Rows:
        return Rows(self.A[which], self.length[which], self.error[which])


@dataclass(frozen=True, slots=True)
class Sum:
    """A symmetric array near the exact one, and how far off that may be in norm."""

    array: Array
    slack: float


def dot(a: Array, b: Array) -> float:
    """At least a·b of numbers >= 0."""
    return float(up_sum(up_mul(a, b)))


def quadratic_sum(rows: Sequence[Rows], weights: Mapping[Slots, Array]) -> Sum:
    """Σ_(p<=q) of Σ_i d_i a_p,i a_q,iᵀ, with its transpose where p < q."""
    n = rows[0].A.shape[1]
    total, slack = np.zeros((n, n)), 0.0
    for (p, q), d in weights.items():
        a, b = rows[p], rows[q]
        if not d.any():
            continue
        part = (a.A.T * d) @ b.A
        total += part if p == q else part + part.T
        size, twice = np.abs(d), 1.0 if p == q else 2.0
        rounding = up_mul(gamma(len(d) + 8), dot(size, up_mul(a.length, b.length)))
        rounding = up_add(rounding, _underflowed(n, b.length))
        moved = up_add(up_mul(a.length, b.error), up_mul(a.error, b.length))
        own = up_add(float(rounding), up_mul(3.0, dot(size, moved)))
        slack = float(up_add(slack, up_mul(twice, own)))
    return Sum(total, float(up_add(slack, _TINY)))


def _underflowed(entries: int, later: Array) -> float:
    """Upper bound on the norm of the underflow errors of d_i a_i in Σ d_i a_i b_iᵀ.

    Each element of d_i a_i is off by at most the smallest double, which ‖b_i‖ multiplies; `entries`
    is the number of elements of a_i and `later` (m,) has the ‖b_i‖.
    """
    return float(up_mul(up_mul(SMALLEST, float(entries)), float(up_sum(later))))


def largest_eigenvalue(one: Sum) -> float:
    """At least λ_max of the exact matrix, and at least 0."""
    return max(upper_end(one), 0.0)


def upper_end(one: Sum) -> float:
    """At least λ_max of the exact matrix, below 0 too: λ_max(S) <= λ_max(S + sI) - s."""
    if not np.isfinite(one.array).all():
        return float(np.inf)
    S = 0.5 * one.array + 0.5 * one.array.T
    if 0 < len(S) <= DENSE_EIGEN:
        least, rounding = _dense_end(S), up_mul(4e-16, float(up_norm(S)))
        return float(up_add(least, up_add(one.slack, rounding)))
    norm = spectral_norm(S)
    rounding = up_mul(4e-16, up_add(float(up_norm(S)), up_mul(4.0, norm)))
    least = norm
    if norm > 0.0 and float(np.min(np.diag(S))) < 0.0:
        shifted = S + norm * np.eye(len(S))
        least = min(norm, float(up_add(spectral_norm(shifted), -norm)))
    return float(up_add(least, up_add(one.slack, rounding)))


def _dense_end(S: Array) -> float:
    """At least λ_max of a symmetric matrix: from its computed eigenpairs V, Λ

        λ_max(S) <= λ_max(VΛVᵀ) + ‖S - VΛVᵀ‖_F,  λ_max(VΛVᵀ) <= λ + |λ| ‖VᵀV - I‖_F

    for the largest λ, as |‖Vᵀx‖² - 1| is at most the last norm for unit x. The products have the
    error of their sums, as in `spectral`.
    """
    largest = float(np.max(np.abs(S)))
    if largest == 0.0:
        return 0.0
    e = int(np.frexp(largest)[1])
    B, n = np.ldexp(S, -e), len(S)
    values, V = np.linalg.eigh(B)
    lengths = up_norm(V, 0)
    squares = up_mul(lengths, lengths)
    weight = dot(np.abs(values), squares)
    products = up_mul(gamma(2 * n + 8), up_add(float(up_sum(squares)), 1.0))
    defect = up_add(float(up_norm(V.T @ V - np.eye(n))), products)
    residual = float(up_norm(B - (V * values) @ V.T))
    rounding = up_mul(up_add(gamma(2 * n + 8), 4e-16), up_add(weight, float(up_norm(B))))
    top = float(values[-1])
    spread = up_add(up_mul(abs(top), defect), up_add(residual, up_add(rounding, _TINY)))
    end = up_add(top, spread)
    return float(up(np.ldexp(end, e)))


def cubic_sum(rows: Sequence[Rows], weights: Mapping[Slots, Array]) -> Sum:
    """Σ over slots (p, q, r) and i of t_i a_p,i ⊗ a_q,i ⊗ a_r,i, every order of slots given."""
    n = rows[0].A.shape[1]
    total, slack = np.zeros((n, n, n)), 0.0
    for (p, q, r), t in weights.items():
        if not t.any():
            continue
        a, b, c = rows[p], rows[q], rows[r]
        if p == q == r:
            total += _cubes(a.A, t)
        else:
            for j in range(n):
                total[j] += (b.A.T * (t * a.A[:, j])) @ c.A
        size = np.abs(t)
        lengths = up_mul(up_mul(a.length, b.length), c.length)
        slack = float(up_add(slack, up_mul(gamma(len(t) + 12), dot(size, lengths))))
        for later in (c.length, up_mul(b.length, c.length)):
            slack = float(up_add(slack, _underflowed(n**2, later)))
        for one, two, three in ((a, b, c), (b, a, c), (c, a, b)):
            moved = up_mul(one.error, up_mul(two.length, three.length))
            slack = float(up_add(slack, up_mul(7.0, dot(size, moved))))
    return Sum(total, float(up_add(slack, _TINY)))


def _cubes(A: Array, t: Array) -> Array:
    """Σ t_i a_i ⊗ a_i ⊗ a_i (n, n, n); entries of the same indices are computed once."""
    n = A.shape[1]
    total = np.zeros((n, n, n))
    for j in range(n):
        own = A[:, j:]
        part = (own.T * (t * A[:, j])) @ own
        total[j, j:, j:] = total[j:, j, j:] = total[j:, j:, j] = part
    return total


def symmetrised(one: Sum) -> Sum:
    """The mean over all orders of the axes, the entries of sorted indices at all orders of them."""
    T = mean_of_orders(one.array)
    rounding = up_mul(2e-15, float(up_norm(T)))
    i = np.sort(np.indices(T.shape).reshape(3, -1), axis=0)
    exactly = np.asarray(T[i[0], i[1], i[2]].reshape(T.shape))
    return Sum(exactly, float(up_add(one.slack, rounding)))


def mean_of_orders(T: Array) -> Array:
    T = (T + T.transpose(0, 2, 1) + T.transpose(1, 0, 2)) / 6.0
    return np.asarray(T + T.transpose(2, 1, 0))


class Measured(Protocol):
    """Rows of which the lengths (m,) are known."""

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


def quotient(a: Array, b: Array) -> Array:
    """a / b for lengths, so that (a / b) (b / a) >= 1; 0 where one is exactly 0."""
    with np.errstate(all="ignore"):
        ratio: Array = a / b * (1.0 + 1e-15)
    return np.where((a == 0.0) | (b == 0.0), 0.0, ratio)
