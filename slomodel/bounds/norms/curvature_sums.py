"""Bounds on H = Σ C_pq ∇u_p ∇u_qᵀ and on D³f over a ball from rows at the centre that move.

With a_p = ∇u_p(c) and ∇u_p = a_p + Δ_p over the ball, v of length 1,

    Σ C_pq (∇u_p·v)(∇u_q·v) = Σ C_pq (a_p·v)(a_q·v) + Σ C_pq (2 (a_p·v)(Δ_q·v) + (Δ_p·v)(Δ_q·v)),
    2 |C (a_p·v)(Δ_q·v)| <= |C| (θ τ (a_p·v)² + (Δ_q·v)²/(θ τ)),   τ = δ_q / ‖a_p‖,  θ > 0,

δ_q >= ‖Δ_q‖ or any other number > 0. |Δ_q·v| is at most D|v| for entrywise bounds D, and at most
‖Δ_q‖‖v_S‖ for S the entries that move. So Σ w (Δ_q·v)² <= |v|ᵀ Z |v| with Z >= 0, which is at most
Σ_j v_j² (Zs)_j / s_j for every s > 0.
At one x, Z_jk <= √(Z_jj Z_kk), and Z_jj <= max w T_j² where column j moves by T_j together.
D³f[v, v, v] = Σ λφ_pqr (∇u_p·v)(∇u_q·v)(∇u_r·v) + 3 Σ C_pq (∇u_p·v) D²u_q[v, v].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.midpoint_radius import Bounded, exact
from slomodel.bounds.arithmetic.rounding import (
    Array,
    Truths,
    nonnegative_sum,
    underflow,
    up_add,
    up_div,
    up_matmul,
    up_mul,
    up_sqrt,
)
from slomodel.bounds.enclosure import Ends
from slomodel.bounds.norms.element_derivatives import Weighted, one_side, total_of
from slomodel.bounds.norms.loewner import (
    Rows,
    Slots,
    by_lengths,
    quadratic_sum,
    quotient,
    upper_end,
)
from slomodel.bounds.norms.shared_weights import SharedWeights
from slomodel.bounds.norms.spectral_norm import collatz_vector

_STEPS = 4
"""Steps of the power method for an estimate; whatever it is, the bound is proved."""
_CLEARLY = 0.7
"""A bound on the length of a row replaces those of its entries where it is less by this factor."""


Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class CurvedRows:
    """∇u for the elements u of a node: rows (m, n) at the centre, and how far they move.

    Over the ball an entry moves by `moved` (m, n) at most, a whole row by `reach` (m,). ‖D²u‖ is at
    most `curvature` (m,), D²u[y, y'] at most `bend` (m,) for displacements y, y' in the region, and
    D²u is 0 outside the entries in `bent` (m, n), those that may move. All entries of a column move
    by `together` (n,) at most in the Euclidean norm; not known where that is empty.
    """

    rows: Rows
    moved: Array
    reach: Array
    curvature: Array
    bend: Array
    bent: Truths
    together: Array | None = None

    def take(self, which: Places) -> CurvedRows:
        return CurvedRows(
            self.rows.take(which),
            self.moved[which],
            self.reach[which],
            self.curvature[which],
            self.bend[which],
            self.bent[which],
            self._taken(which),
        )

    def _taken(self, which: Places) -> Array | None:
        """`together`, where some rows are taken several times."""
        if self.together is None:
            return None
        most = float(np.bincount(which).max(initial=1))
        repeats = float(up_sqrt(most))
        return np.asarray(up_mul(np.asarray(repeats), self.together))


@dataclass(frozen=True, slots=True)
class CurvedSum:
    """Σ_i Σ_pq C_pq ∇u_p ∇u_qᵀ over m elements: rows by argument, ranges (m,) of C by slots, and
    upper bounds on the third derivatives; `dominating` as in `Weighted`. `shared` has what is known
    of how far the C of some slots move together.
    """

    rows: tuple[CurvedRows, ...]
    second: Mapping[Slots, Interval]
    third: Mapping[Slots, Array]
    dominating: tuple[Interval, ...] = ()
    shared: Mapping[Slots, SharedWeights] = field(default_factory=dict)


def hessian_ends(sums: Sequence[CurvedSum], n: int) -> Ends:
    """Upper bounds on λ_max(H) and λ_max(-H), possibly negative."""
    varying = [_varying(one, n) for one in sums]
    above, below = (
        upper_end(total_of([*(_side(one, sign) for one in sums), *varying], (n, n)))
        for sign in (1.0, -1.0)
    )
    return above, below


def _side(one: CurvedSum, sign: float) -> Bounded[float]:
    rows = tuple(own.rows for own in one.rows)
    apart = quadratic_sum(rows, one_side(Weighted(rows, one.second, one.dominating), sign))
    if not one.shared:
        return apart
    near = {slots: own.near for slots, own in one.shared.items()}
    together = quadratic_sum(rows, one_side(Weighted(rows, {**one.second, **near}), sign))
    for (p, q), own in one.shared.items():
        matrix = own.matrix(rows[p], rows[q])
        together = together + (matrix if p == q else matrix.times(2.0))
    return together if _top(together.value) < _top(apart.value) else apart


def _varying(one: CurvedSum, n: int) -> Bounded[float]:
    """A matrix that dominates the terms with one row that depends on x, and those with two.

    Where columns are known to move less together than their entries apart, all rows are also taken
    to move alike: then the weights of a column's entries differ little.
    """
    result = _by_reaches(one, n, [own.reach for own in one.rows])
    if all(own.together is None for own in one.rows):
        return result
    furthest = [np.where(own.reach > 0.0, np.max(own.reach, initial=0.0), 0.0) for own in one.rows]
    alike = _by_reaches(one, n, furthest)
    return alike if _estimate(alike.value) < _estimate(result.value) else result


def _by_reaches(one: CurvedSum, n: int, reaches: Sequence[Array]) -> Bounded[float]:
    """`_varying` with δ in the ratio τ by argument; 0 for rows that do not move."""
    fixed: dict[Slots, Array] = {}
    once, twice = np.zeros((n, n)), np.zeros((n, n))
    single, double = _zeros(one), _zeros(one)
    for (p, q), size in _sizes(one).items():
        length, varying = one.rows[p].rows.length, reaches[q]
        _add(fixed, (p, p), up_mul(size, quotient(varying, length)))
        single[q] = up_add(single[q], up_mul(size, quotient(length, varying)))
        double[q] = up_add(double[q], up_mul(size, quotient(reaches[p], varying)))
    for own, first, second in zip(one.rows, single, double, strict=True):
        once = once + _spread(own, first)
        twice = twice + _spread(own, second)
    fixed_part = quadratic_sum(tuple(own.rows for own in one.rows), fixed)
    return _balanced(fixed_part, dominating_diagonal(once)) + _diagonal(dominating_diagonal(twice))


def _balanced(X: Bounded[float], y: Array) -> Bounded[float]:
    """θX + diag(y)/θ with a θ for which its norm is about the least; any θ > 0 will do."""
    largest, size = float(np.max(y, initial=0.0)), _estimate(X.value)
    theta = 1.0
    if 0.0 < largest < np.inf and 0.0 < size < np.inf:
        theta = min(max(sqrt(largest) / sqrt(size), 1e-100), 1e100)
    return X.times(theta) + _diagonal(up_div(y, np.asarray(theta)))


def _estimate(X: Array) -> float:
    """About the norm of a symmetric matrix."""
    v = np.ones(len(X)) + 0.1 * np.cos(np.arange(len(X)))
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            v = X @ v
            v /= max(float(np.linalg.norm(v)), 1e-300)
        return float(np.linalg.norm(X @ v))


def _top(X: Array) -> float:
    """About the largest eigenvalue of a symmetric matrix."""
    size = _estimate(X)
    return _estimate(X + size * np.eye(len(X))) - size


def _sizes(one: CurvedSum) -> dict[Slots, Array]:
    """|C_pq| for all p and q."""
    every = product(range(len(one.rows)), repeat=2)
    return {slots: one.second[min(slots), max(slots)].magnitude for slots in every}


def _zeros(one: CurvedSum) -> list[Array]:
    return [np.zeros(len(own.reach)) for own in one.rows]


def _add(weights: dict[Slots, Array], slots: Slots, array: Array) -> None:
    before = weights.get(slots)
    weights[slots] = array if before is None else up_add(before, array)


def _spread(own: CurvedRows, weight: Array) -> Array:
    """Z >= 0 (n, n) with Σ w (Δ·v)² <= |v|ᵀ Z |v|."""
    kept = np.flatnonzero((weight > 0.0) & (own.reach > 0.0))
    moved, reach, weight = own.moved[kept], own.reach[kept], weight[kept]
    with np.errstate(all="ignore"):
        entrywise = reach >= _CLEARLY * np.sqrt(np.sum(moved**2, axis=1))
    Z = _spread_of(moved, reach, weight, entrywise)
    if own.together is None or not len(weight):
        return Z
    by_entries = Z if entrywise.all() else _spread_of(moved, reach, weight, entrywise | True)
    largest = np.asarray(np.max(weight))
    square: Array = up_mul(up_mul(own.together, own.together), largest)
    root = up_sqrt(np.minimum(square, np.diag(by_entries)))
    by_columns = np.minimum(by_entries, up_mul(root, root[:, np.newaxis]))
    return by_columns if _estimate(by_columns) < _estimate(Z) else Z


def _spread_of(moved: Array, reach: Array, weight: Array, entrywise: Truths) -> Array:
    """`_spread` for these rows, by their entries or by their lengths."""
    n, m = moved.shape[1], len(weight)
    D, w = moved[entrywise], weight[entrywise]
    largest = max(1.0, float(np.max(weight, initial=0.0)))
    most = max(1.0, float(np.max(D, initial=0.0)))
    lost = up_mul(up_mul(underflow(4 * m + 4), largest), up_mul(most, most))
    with np.errstate(all="ignore"):
        Z = (D.T * w) @ D
        diagonal = ((moved[~entrywise] > 0.0).T * 1.0) @ (weight * reach * reach)[~entrywise]
        Z[np.arange(n), np.arange(n)] += diagonal
        Z = nonnegative_sum(Z, m + 8, lost) if m else Z
    return np.where(np.isnan(Z), np.inf, Z)


def dominating_diagonal(Z: Array) -> Array:
    """d (n,) with |v|ᵀ Z |v| <= Σ_j d_j v_j², for a symmetric Z >= 0.

    2 Z_ij |v_i v_j| <= Z_ij (v_i² s_j / s_i + v_j² s_i / s_j): so d = Zs / s for any s > 0, here
    near the eigenvector of the largest eigenvalue.
    """
    n = len(Z)
    if not Z.any():
        return np.zeros(n)
    if not np.isfinite(Z).all():
        return np.full(n, np.inf)
    Z = np.maximum(Z, Z.T)
    s = collatz_vector(lambda s: np.asarray(Z @ s), n)
    return up_div(up_matmul(Z, s), s)


def _diagonal(d: Array) -> Bounded[float]:
    if not np.isfinite(d).all():
        return Bounded(np.diag(np.where(np.isfinite(d), d, np.inf)), np.inf)
    return exact(np.diag(d))


def third_matrix(sums: Sequence[CurvedSum], n: int) -> Bounded[float]:
    """A matrix T with |D³f[v, v, v]| <= vᵀTv over the ball for v of length 1."""
    parts = []
    for one in sums:
        lengths = [up_add(own.rows.length, own.reach) for own in one.rows]
        every = product(range(len(one.rows)), repeat=3)
        sizes = {slots: one.third[_sorted(slots)] for slots in every}
        weights = by_lengths([_Length(length) for length in lengths], sizes)
        cubic = [weights[p, p] for p in range(len(one.rows))]
        linear, bent = _zeros(one), np.zeros(n)
        for (p, q), size in _sizes(one).items():
            linear[p] = up_add(linear[p], size)
            own = one.rows[q]
            bent = up_add(bent, _supported(own, up_mul(size, up_mul(own.curvature, own.curvature))))
        mixed = _balanced(_squares(one, linear, n), bent).times(1.5)
        parts += [_squares(one, cubic, n), mixed]
    return total_of(parts, (n, n))


def _sorted(slots: Slots) -> Slots:
    return tuple(sorted(slots))


@dataclass(frozen=True, slots=True)
class _Length:
    length: Array


def _squares(one: CurvedSum, weights: Sequence[Array], n: int) -> Bounded[float]:
    """A matrix that dominates Σ w_p (a_p·v + Δ_p·v)²: (x + y)² <= (1 + μ) x² + (1 + 1/μ) y²."""
    fixed: dict[Slots, Array] = {}
    varying = np.zeros((n, n))
    for p, (own, w) in enumerate(zip(one.rows, weights, strict=True)):
        length, reach = own.rows.length, own.reach
        fixed[p, p] = up_mul(w, up_add(np.ones(len(w)), quotient(reach, length)))
        varying = varying + _spread(
            own, up_mul(w, up_add(np.ones(len(w)), quotient(length, reach)))
        )
    fixed_part = quadratic_sum(tuple(own.rows for own in one.rows), fixed)
    return fixed_part + _diagonal(dominating_diagonal(varying))


def _supported(own: CurvedRows, weight: Array) -> Array:
    """d (n,) with Σ w ‖v_S‖² <= Σ_j d_j v_j², S the entries of each row that may move."""
    kept = np.flatnonzero(weight > 0.0)
    if not np.isfinite(weight).all():
        return np.full(own.moved.shape[1], np.inf)
    return up_matmul(own.bent[kept].T.astype(np.float64), weight[kept])
