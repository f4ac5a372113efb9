"""Largest values of Σ_i c_i |z_i·v|^q over unit v, q = 2, 3, 4, for many weights c >= 0 at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.rounding import (
    SMALLEST,
    Array,
    gamma,
    up,
    up_add,
    up_mul,
    up_sqrt,
)
from slomodel.bounds.norms.loewner import Rows
from slomodel.bounds.norms.spectral import stack_norm

Groups = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Samples in the order of their groups, and where each group starts."""
Norm = Callable[[Array], Array]
"""At least, or about, ‖S[p]‖ of symmetric matrices (p, d, d)."""
_TINY = 1e-250
_MOST_NUMBERS = 4_000_000
_STEPS = 8
_EXCESS = 1e-10


@dataclass(frozen=True, slots=True)
class Moments:
    """Rows z (N, d), and by groups of samples the sums of what weights are multiplied by.

    Where c_g >= c_i for all i of a group g, Σ_i c_i |z_i·v|^q <= Σ_g c_g Σ_(i in g) |z_i·v|^q.
    Without groups each sample is one; of groups that join those of `finer`, next to each other,
    sums are sums of its.
    """

    rows: Rows
    groups: Groups | None = None
    finer: Moments | None = None
    kept: dict[str, tuple[Array, Array]] = field(default_factory=dict)

    @property
    def has_fourth(self) -> bool:
        """Whether there are few enough pairs of variables for `_fourth`."""
        m, d = self.rows.A.shape
        return int(m * (d * (d + 1) // 2) ** 2) <= _MOST_NUMBERS

    def grouped(self, a: Array) -> Array:
        """The sums over groups of an array (N, ..)."""
        if self.groups is None:
            return a
        order, starts = self.groups
        return np.asarray(np.add.reduceat(a[order], starts, axis=0))

    def second(self, weight: str) -> tuple[Array, Array]:
        """Σ w z zᵀ by group and pairs of variables, w = 1, l, l² or β, and how far off it is."""
        if weight not in self.kept and self.finer is not None:
            self.kept[weight] = self._joined(*self.finer.second(weight))
        if weight not in self.kept:
            rows, length = self.rows, self.rows.length
            m, d = rows.A.shape
            squared: Array = up_mul(length, length)
            every = {"1": np.ones(m), "l": length, "l²": squared, "β": _beta(rows)}
            w = every[weight]
            i, j = np.triu_indices(d)
            outer = (rows.A[:, i] * w[:, np.newaxis]) * rows.A[:, j]
            own: Array = up_add(
                up_mul(np.asarray(gamma(m + 24)), squared), up_mul(3.0 * length, rows.error)
            )
            lost = _underflowed(d * d, length)
            self.kept[weight] = self.grouped(outer), self._slack(up_add(up_mul(own, w), lost))
        return self.kept[weight]

    def fourth(self) -> tuple[Array, Array]:
        """Σ svec(z zᵀ - β I) svec(z zᵀ - β I)ᵀ by group, and the slack of all in `_fourth`."""
        if "R" not in self.kept:
            rows, length = self.rows, self.rows.length
            m, d = rows.A.shape
            i, j = np.triu_indices(d)
            R = rows.A[:, i] * rows.A[:, j] * np.where(i == j, 1.0, np.sqrt(2.0))
            R -= _beta(rows)[:, np.newaxis] * (i == j)
            outer = (R[:, :, np.newaxis] * R[:, np.newaxis, :]).reshape(m, -1)
            squared: Array = up_mul(length, length)
            fourth = up_mul(squared, squared)
            moved = up_mul(up_mul(squared, length), rows.error)
            own: Array = up_add(
                up_mul(np.asarray(17.0 * gamma(8 * (m + d) + 64)), fourth), 65.0 * moved
            )
            lost = _underflowed(R.shape[1] ** 2, squared)
            self.kept["R"] = self.grouped(outer), self._slack(up_add(own, lost))
        return self.kept["R"]

    def middle(self) -> Array:
        """Σ β² by group."""
        beta = _beta(self.rows)
        return self.grouped(beta * beta)

    def _joined(self, outer: Array, own: Array) -> tuple[Array, Array]:
        assert self.groups is not None
        assert self.finer is not None
        assert self.finer.groups is not None
        starts = np.searchsorted(self.finer.groups[1], self.groups[1])
        growth = up(1.0 + gamma(len(own) + 4))
        return np.add.reduceat(outer, starts, axis=0), np.add.reduceat(own, starts) * growth

    def _slack(self, own: Array) -> Array:
        return up_mul(self.grouped(own), np.asarray(up(1.0 + gamma(len(own) + 4))))


def _underflowed(entries: int, later: Array) -> Array:
    """Upper bound (m,) on the underflow errors of a sum of `entries` products.

    An intermediate product that underflows may be multiplied by `later` (m,), as by a weight of
    1e300.
    """
    larger: Array = up_add(later, np.asarray(1.0))
    return up_mul(np.asarray(8.0 * entries * SMALLEST), larger)


def _beta(rows: Rows) -> Array:
    """‖z‖² / d, about: any number serves."""
    return np.asarray(np.sum(rows.A * rows.A, axis=1) / rows.A.shape[1])


def largest_eigenvalues(S: Array) -> Array:
    """At least λ_max of symmetric matrices (p, n, n) >= 0 but for roundings, (p,).

    If Cholesky's method runs through on tI - S, λ_max(S) <= t + γ/(1-γ) tr(tI - S) (as in
    `cholesky_norm` of `spectral`), t just above what LAPACK finds.
    """
    n = S.shape[1]
    largest = np.max(np.abs(S), axis=(1, 2), initial=0.0)
    finite = np.isfinite(largest)
    e = np.frexp(np.where(finite, largest, 0.0))[1]
    B = np.ldexp(np.where(finite[:, None, None], S, 0.0), -e[:, None, None])
    B = 0.5 * (B + B.transpose(0, 2, 1))
    try:
        t = np.maximum(np.linalg.eigvalsh(B)[:, -1], 0.0) * (1.0 + _EXCESS) + 1e-13 * n
        np.linalg.cholesky(t[:, None, None] * np.eye(n) - B)
    except np.linalg.LinAlgError:
        return stack_norm(S)
    trace = up_mul(np.asarray(float(n)), up_add(t, np.asarray(1.0)))
    slack = up_add(up_mul(np.asarray(gamma(4 * n + 16)), trace), np.asarray(_TINY))
    # Of the means with transposes: a unit of entries of at most 1.
    proved = up_add(t, up_add(slack, np.asarray(4e-16 * n)))
    with np.errstate(over="ignore"):
        found = np.where(finite, up(np.ldexp(proved, e)), np.inf)
    return np.where(largest == 0.0, 0.0, found)


def roughly(S: Array) -> Array:
    """About the norms of symmetric matrices >= 0 (p, d, d), from below, by a power method."""
    v = S @ (1.0 + 0.3 * np.cos(1.7 * np.arange(S.shape[1])))
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            v /= np.maximum(np.linalg.norm(v, axis=1, keepdims=True), _TINY)
            v = (S @ v[:, :, np.newaxis])[:, :, 0]
        found = np.linalg.norm(v, axis=1)
    return np.where(np.isnan(found), np.inf, found)


def power_sums(moments: Moments, c: Array, q: int, norm: Norm = largest_eigenvalues) -> Array:
    """For each of the weights (p, K) at least max Σ_i c_i |z_i·v|^q over unit v, (p,).

    By |z_i·v|^(q-2) <= l_i^(q-2) and the largest eigenvalue; for q = 4, in few variables, by
    `_fourth`, and for q = 3 by Cauchy between the sums for 2 and 4.
    """
    result = _second(moments, c, ("1", "l", "l²")[q - 2], norm)
    if q > 2 and moments.has_fourth:
        fourth = _fourth(moments, c, norm)
        if q == 3:
            fourth = up_mul(up_sqrt(_second(moments, c, "1", norm)), up_sqrt(fourth))
        result = np.minimum(result, fourth)
    return result


def _second(moments: Moments, c: Array, weight: str, norm: Norm) -> Array:
    """At least λ_max(Σ c w z zᵀ); roundings and errors of rows add at most Σ c w (γ l² + 3 l e)."""
    outer, own = moments.second(weight)
    d = moments.rows.A.shape[1]
    places = np.zeros((d, d), dtype=np.intp)
    i, j = np.triu_indices(d)
    places[i, j] = places[j, i] = np.arange(len(i))
    return up_add(norm((c @ outer)[:, places]), _slack(c, own))


def _fourth(moments: Moments, c: Array, norm: Norm) -> Array:
    """As `fourth_powers`, by pairs of variables: σ + 2 (λ_max(Σ c β z zᵀ) - σ) + (1 - 1/d) ‖K‖."""
    outer, own = moments.fourth()
    d = moments.rows.A.shape[1]
    pairs = d * (d + 1) // 2
    K = (c @ outer).reshape(len(c), pairs, pairs)
    share = np.asarray(up(1.0 - 1.0 / d))
    spread: Array = up_mul(norm(K), share) if d > 1 else np.zeros(len(c))
    middle = c @ moments.middle()
    tilt = np.maximum(up_add(_second(moments, c, "β", norm), -middle), 0.0)
    total = up_add(up_add(middle, 2.0 * tilt), spread)
    return up_add(total, _slack(c, own))


def _slack(c: Array, own: Array) -> Array:
    growth = np.asarray(up(1.0 + gamma(2 * len(own) + 8)))
    return up_add(up_mul(c @ own, growth), np.asarray(_TINY))
