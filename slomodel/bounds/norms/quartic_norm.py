"""Upper bounds on quartic forms on the sphere, by Gram matrices on symmetric matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.midpoint_radius import Bounded
from slomodel.bounds.arithmetic.rounding import Array, gamma, up_add, up_mul, up_norm
from slomodel.bounds.arithmetic.sums_of_products import error_of_gram, error_of_sum
from slomodel.bounds.norms.loewner import Rows, upper_end
from slomodel.bounds.norms.spectral_norm import DENSE_EIGEN, upper_eigenvalue

MOST_COLUMNS = 40
"""Variables up to which quartic forms are stored: n⁴/4 numbers, 5 MB."""
_VECTORS = 6
"""Least number of extreme eigenvectors that a step of the descent follows."""
_WORK = 4e6
"""Elements of the form times steps of one descent."""
_MOST_STEPS = 40
"""Most steps of a descent, also for small forms."""
_FRACTION = 1e-3
"""A bound within this relative tolerance of an attained value is not refined."""
_SPREAD = 1e-2
"""Eigenvalues within a few of these relative distances of the largest are lowered together."""


@dataclass(frozen=True, slots=True)
class Quartic:
    """A form q(v) = sᵀ G s, s = svec(v vᵀ) (N,), for unit v, up to the error of G; N = n(n+1)/2.

    svec(S) has the entries S_ii and √2 S_ij, i < j, so that its length is ‖S‖_F.
    """

    near: Bounded[float]
    n: int

    @property
    def value(self) -> Array:
        return self.near.value

    def plus(self, other: Quartic) -> Quartic:
        """The sum."""
        return Quartic(self.near + other.near, self.n)

    def times(self, factor: float) -> Quartic:
        """The form times a factor >= 0."""
        return Quartic(self.near.times(factor), self.n)


@dataclass(frozen=True, slots=True)
class Places:
    """Pairs i <= j of indices below n, and the weights 1 and √2 of their entries."""

    n: int
    i: NDArray[np.intp]
    j: NDArray[np.intp]
    weight: Array

    @classmethod
    def of(cls, n: int) -> Places:
        i, j = np.triu_indices(n)
        return cls(n, i, j, np.where(i == j, 1.0, np.sqrt(2.0)))

    def take(self, which: NDArray[np.intp]) -> Places:
        return Places(self.n, self.i[which], self.j[which], self.weight[which])

    def matrix(self, w: Array) -> Array:
        """The matrix W (n, n) with svec(W) = w."""
        W = np.zeros((self.n, self.n))
        W[self.i, self.j] = W[self.j, self.i] = w / self.weight
        return W

    def vector(self, W: Array) -> Array:
        """svec(W) of a symmetric W (n, n)."""
        return np.asarray(self.weight * W[self.i, self.j])

    def square(self, v: Array) -> Array:
        """svec(v vᵀ)."""
        return np.asarray(self.weight * v[self.i] * v[self.j])

    def monomials(self) -> NDArray[np.intp]:
        """Numbers from 0 on of the products of variables to which the entries of G belong."""
        first, last = np.minimum.outer(self.i, self.i), np.maximum.outer(self.j, self.j)
        one, other = np.maximum.outer(self.i, self.i), np.minimum.outer(self.j, self.j)
        small, large = np.minimum(one, other), np.maximum(one, other)
        codes = (((first * self.n + small) * self.n + large) * self.n + last).ravel()
        used = np.zeros(self.n**4, dtype=np.intp)
        used[codes] = 1
        return np.asarray(np.cumsum(used)[codes] - 1)

    def evenly(self, G: Array) -> Array:
        """The matrix of the same form with equal weights on equal products of variables."""
        weights = np.multiply.outer(self.weight, self.weight).ravel()
        own = self.monomials()
        share = np.bincount(own, weights * G.ravel()) / np.bincount(own, weights * weights)
        return np.asarray((weights * share[own]).reshape(G.shape))


@lru_cache(maxsize=2)
def _all_monomials(n: int) -> NDArray[np.intp]:
    return Places.of(n).monomials()


def square_of_cubic(T: Array, factor: float = 1.0) -> Quartic:
    """factor · ‖T[v, v]‖² of a form (n, n, m), symmetric in the first two, entries at most about 1.

    Its Gram matrix is the mean (A + 2 B)/3, symmetric in all indices, of A_ijkl = Σ_m T_ijm T_klm
    and B_ijkl = ½ Σ_m (T_ikm T_jlm + T_ilm T_jkm).
    """
    n = len(T)
    places = Places.of(n)
    M = T.reshape(n * n, -1)
    A = (M @ M.T).reshape(n, n, n, n)
    i, j = places.i, places.j
    rows, columns = i[:, np.newaxis], j[:, np.newaxis]
    three = A[rows, columns, i, j] + A[rows, i, columns, j] + A[rows, j, columns, i]
    G = three * np.multiply.outer(places.weight, places.weight) * (factor / 3.0)
    return Quartic(Bounded(G, error_of_gram(M, factor)), n)


def sum_of_fourth_powers(rows: Rows, d: Array) -> Quartic:
    """Σ d_i (a_i·v)⁴ for d >= 0: svec(v vᵀ)ᵀ Bᵀ B svec(v vᵀ), b_i = √d_i svec(a_i a_iᵀ)."""
    m, n = rows.value.shape
    places = Places.of(n)
    B = rows.value[:, places.i] * rows.value[:, places.j] * places.weight
    B *= np.sqrt(d)[:, np.newaxis]
    error = error_of_sum(d, [rows.length] * 4, [rows.error] * 4, m + 16, len(B.T) ** 2)
    return Quartic(Bounded(B.T @ B, error), n)


def largest_quartic(q: Quartic, effort: float = 1.0) -> float:
    """Upper bound on max q(v) over unit v.

    q(v) <= λ_max(G - M) for every M with svec(v vᵀ)ᵀ M svec(v vᵀ) = 0 for all v, which holds when
    the weighted entries of M that belong to the same product of variables add up to 0. Steps
    against the eigenvectors of the largest eigenvalues, projected onto such M, reduce λ_max: this
    is the first semidefinite relaxation of max q. The rounding error of each step is at most γ
    times the magnitudes of the step and of G. Pairs of variables for which G is 0 are left out.
    """
    if not np.isfinite(q.value).all() or not np.isfinite(q.near.error):
        return float(np.inf)
    own = np.flatnonzero(q.value.any(axis=0))
    if not len(own):
        return q.near.error
    best, moved, steps = _lowered(q.value[np.ix_(own, own)], Places.of(q.n).take(own), effort)
    size = up_mul(float(len(best) + 16 * steps), up_add(float(up_norm(q.value)), moved))
    slack = up_add(q.near.error, up_mul(gamma(64), size))
    if len(best) > DENSE_EIGEN:
        return float(up_add(upper_eigenvalue(0.5 * (best + best.T), _FRACTION), slack))
    return max(upper_end(Bounded(best, float(slack))), 0.0)


def _lowered(G: Array, places: Places, effort: float) -> tuple[Array, float, int]:
    """G - M with about the least λ_max encountered, the total magnitude and number of steps."""
    count = min(max(_VECTORS, places.n // 2 if len(G) <= DENSE_EIGEN else 0), len(G))
    X = np.random.default_rng(0).standard_normal((len(G), count))
    start, moved, low = G, 0.0, 0.0
    least, best = np.inf, G
    every = len(G) == places.n * (places.n + 1) // 2
    monomials = _all_monomials(places.n) if every else places.monomials()
    weights = np.multiply.outer(places.weight, places.weight).ravel()
    spare = weights * weights
    squares = np.bincount(monomials, spare)
    steps = int(min(effort * _WORK / G.size, _MOST_STEPS)) + 4
    for step in range(steps):
        values, X = _ritz(G, X, 3 if step == 0 else 1)
        top = float(values[-1])
        if top < least:
            least, best = top, G
        low = max(low, _attained(start, X[:, -1], places))
        if not low * (1.0 + _FRACTION) < top:
            break
        share = np.exp((values - top) / (_SPREAD * top))
        P = ((X * (share / share.sum())) @ X.T).ravel()
        np.multiply(weights, P, out=spare)
        np.take(np.bincount(monomials, spare) / squares, monomials, out=spare)
        spare *= weights
        P -= spare
        square = float(P @ P)
        if not square > 0.0:
            break
        length = 0.5 * (top - low) / square
        P *= length
        G = G - P.reshape(G.shape)
        moved += 4.0 * length
    return best, moved, steps


def _ritz(G: Array, X: Array, rounds: int) -> tuple[Array, Array]:
    """Ritz approximations of the largest eigenvalues, increasing, and their vectors."""
    for _ in range(rounds):
        once = G @ X
        Q = np.linalg.qr(np.concatenate([X, once, G @ once], axis=1))[0]
        values, vectors = np.linalg.eigh(Q.T @ (G @ Q))
        X = Q @ vectors[:, -X.shape[1] :]
    return values[-X.shape[1] :], X


def _attained(G: Array, w: Array, places: Places) -> float:
    """Approximation of the largest q(v) in ascents from the first eigenvector of W."""
    values, vectors = np.linalg.eigh(places.matrix(w))
    v = vectors[:, int(np.argmax(np.abs(values)))]
    best = 0.0
    for _ in range(4):
        s = places.square(v)
        image = G @ s
        best = max(best, float(s @ image))
        slope = places.matrix(image) @ v
        length = float(np.linalg.norm(slope))
        if not length > 0.0:
            break
        v = slope / length
    return best
