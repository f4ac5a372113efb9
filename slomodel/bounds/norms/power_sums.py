"""Upper bounds on Σ_i c_i |z_i·v|^q over unit v, q = 2, 3, 4, for many weights c >= 0 at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.midpoint_radius import (
    Bounded,
    exact_stack,
    normalised_stack,
    proved_end,
    runs_through,
)
from slomodel.bounds.arithmetic.rounding import (
    SMALLEST_NORMAL,
    Array,
    underflow,
    up,
    up_add,
    up_ldexp,
    up_matmul,
    up_mul,
    up_reduceat,
    up_sqrt,
    up_sum,
)
from slomodel.bounds.arithmetic.sums_of_products import errors_by_term
from slomodel.bounds.effort import MOST_NUMBERS
from slomodel.bounds.norms.loewner import Rows
from slomodel.bounds.norms.spectral_norm import stack_norm

Groups = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Sample indices sorted by group, and the start of each group."""
Norm = Callable[[Array], Array]
"""Upper bounds on, or estimates of, ‖S[p]‖ for symmetric matrices (p, d, d)."""
_STEPS = 8
"""Steps of the power method for lower estimates."""
_EXCESS, _MARGIN = 1e-10, 1e-13
"""Where a proof starts above an eigenvalue: relative excess, and per row of the largest element."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Rows z (N, d) and, by groups of samples, the sums that weights are multiplied by.

    Where c_g >= c_i for all i of a group g, Σ_i c_i |z_i·v|^q <= Σ_g c_g Σ_(i in g) |z_i·v|^q.
    Without groups each sample is a group. Where the groups are unions of consecutive groups of
    `finer`, the sums are computed from its sums.
    """

    rows: Rows
    groups: Groups | None = None
    finer: Moments | None = None
    kept: dict[str, Bounded[Array]] = field(default_factory=dict)

    @property
    def has_fourth(self) -> bool:
        """Whether the pairs of variables are few enough for `_fourth`."""
        m, d = self.rows.value.shape
        return int(m * (d * (d + 1) // 2) ** 2) <= MOST_NUMBERS

    def grouped(self, a: Array) -> Array:
        """The sums over groups of an array (N, ..)."""
        if self.groups is None:
            return a
        order, starts = self.groups
        return np.asarray(np.add.reduceat(a[order], starts, axis=0))

    def second(self, weight: str) -> Bounded[Array]:
        """Σ w z zᵀ per group, over pairs of variables, w = 1, l, l² or β."""
        if weight not in self.kept and self.finer is not None:
            self.kept[weight] = self._joined(self.finer.second(weight))
        if weight not in self.kept:
            rows, length = self.rows, self.rows.length
            m, d = rows.value.shape
            every = {"1": np.ones(m), "l": length, "l²": up_mul(length, length), "β": _beta(rows)}
            w = every[weight]
            i, j = np.triu_indices(d)
            outer = (rows.value[:, i] * w[:, np.newaxis]) * rows.value[:, j]
            error = errors_by_term(w, [length] * 2, [rows.error] * 2, m + 24, d * d)
            self.kept[weight] = self._by_group(outer, error)
        return self.kept[weight]

    def fourth(self) -> Bounded[Array]:
        """Σ svec(z zᵀ - β I) svec(z zᵀ - β I)ᵀ per group, with all errors that arise in `_fourth`.

        The length of svec(z zᵀ - β I) is at most 2 l², so that for the computed rows everything
        consists of at most 17 sums of products of squares of sums of d products.
        """
        if "R" not in self.kept:
            rows = self.rows
            m, d = rows.value.shape
            i, j = np.triu_indices(d)
            R = rows.value[:, i] * rows.value[:, j] * np.where(i == j, 1.0, np.sqrt(2.0))
            R -= _beta(rows)[:, np.newaxis] * (i == j)
            outer = (R[:, :, np.newaxis] * R[:, np.newaxis, :]).reshape(m, -1)
            roundings = 17 * (8 * (m + d) + 64)
            lengths, errors = [rows.length] * 4, [rows.error] * 4
            error = errors_by_term(np.ones(m), lengths, errors, roundings, R.shape[1] ** 2)
            self.kept["R"] = self._by_group(outer, error)
        return self.kept["R"]

    def middle(self) -> Array:
        """Σ β² per group."""
        beta = _beta(self.rows)
        return self.grouped(beta * beta)

    def _joined(self, finer: Bounded[Array]) -> Bounded[Array]:
        assert self.groups is not None
        assert self.finer is not None
        assert self.finer.groups is not None
        starts = np.searchsorted(self.finer.groups[1], self.groups[1])
        sums = np.add.reduceat(finer.value, starts, axis=0)
        return Bounded(sums, up_reduceat(finer.error, starts))

    def _by_group(self, outer: Array, error: Array) -> Bounded[Array]:
        if self.groups is None:
            return Bounded(outer, error)
        order, starts = self.groups
        return Bounded(self.grouped(outer), up_reduceat(error[order], starts))


def _beta(rows: Rows) -> Array:
    """Approximation of ‖z‖² / d; the bounds hold for any number."""
    return np.asarray(np.sum(rows.value * rows.value, axis=1) / rows.value.shape[1])


def largest_eigenvalues(S: Array) -> Array:
    """Upper bounds (p,) on λ_max of symmetric matrices (p, n, n) that are >= 0 up to rounding.

    By Cholesky factorisation of tI - S, as in `cholesky_norm` of `spectral`, with t just above the
    eigenvalue that LAPACK computes.
    """
    n = S.shape[1]
    finite = np.asarray(np.isfinite(S).all(axis=(1, 2)))
    own, e = normalised_stack(np.where(finite[:, None, None], S, 0.0))
    B = exact_stack(own.value).symmetric()
    try:
        t = np.maximum(np.linalg.eigvalsh(B.value)[:, -1], 0.0) * (1.0 + _EXCESS) + _MARGIN * n
    except np.linalg.LinAlgError:
        return stack_norm(S)
    if not runs_through(B.value, t):
        return stack_norm(S)
    trace = np.asarray(up_sum(np.abs(np.diagonal(B.value, axis1=1, axis2=2)), 1))
    end = up_add(proved_end(t, trace, n), up_add(B.error, own.error))
    proved = np.where(finite, up_ldexp(end, e), np.inf)
    return np.where(S.any(axis=(1, 2)), proved, 0.0)


def roughly(S: Array) -> Array:
    """Lower estimates of the norms of symmetric matrices >= 0 (p, d, d), by a power method."""
    v = S @ (1.0 + 0.3 * np.cos(1.7 * np.arange(S.shape[1])))
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            v /= np.maximum(np.linalg.norm(v, axis=1, keepdims=True), SMALLEST_NORMAL)
            v = (S @ v[:, :, np.newaxis])[:, :, 0]
        result = np.linalg.norm(v, axis=1)
    return np.where(np.isnan(result), np.inf, result)


def power_sums(moments: Moments, c: Array, q: int, norm: Norm = largest_eigenvalues) -> Array:
    """Upper bounds (p,) on max Σ_i c_i |z_i·v|^q over unit v, for each of the weights (p, K).

    By |z_i·v|^(q-2) <= l_i^(q-2) and the largest eigenvalue; for q = 4 in few variables by
    `_fourth`, and for q = 3 by the Cauchy–Schwarz inequality between the sums for 2 and 4.
    """
    result = _second(moments, c, ("1", "l", "l²")[q - 2], norm)
    if q > 2 and moments.has_fourth:
        fourth = _fourth(moments, c, norm)
        if q == 3:
            fourth = up_mul(up_sqrt(_second(moments, c, "1", norm)), up_sqrt(fourth))
        result = np.minimum(result, fourth)
    return result


def _second(moments: Moments, c: Array, weight: str, norm: Norm) -> Array:
    """Upper bounds on λ_max(Σ c w z zᵀ)."""
    sums = moments.second(weight)
    d = moments.rows.value.shape[1]
    places = np.zeros((d, d), dtype=np.intp)
    i, j = np.triu_indices(d)
    places[i, j] = places[j, i] = np.arange(len(i))
    return up_add(norm((c @ sums.value)[:, places]), _error(c, sums, d * d))


def _fourth(moments: Moments, c: Array, norm: Norm) -> Array:
    """`fourth_powers` over pairs of variables: σ + 2 (λ_max(Σ c β z zᵀ) - σ) + (1 - 1/d) ‖K‖."""
    sums = moments.fourth()
    d = moments.rows.value.shape[1]
    pairs = d * (d + 1) // 2
    K = (c @ sums.value).reshape(len(c), pairs, pairs)
    factor = np.asarray(up(1.0 - 1.0 / d))
    spread: Array = up_mul(norm(K), factor) if d > 1 else np.zeros(len(c))
    middle = c @ moments.middle()
    tilt = np.maximum(up_add(_second(moments, c, "β", norm), -middle), 0.0)
    total = up_add(up_add(middle, 2.0 * tilt), spread)
    return up_add(total, _error(c, sums, pairs * pairs))


def _error(c: Array, sums: Bounded[Array], entries: int) -> Array:
    """Errors of Σ_g c_g S_g (p,) from those of S_g and from underflow of products in the sum."""
    return up_add(up_matmul(c, sums.error), np.asarray(underflow(len(sums.error) * entries)))
