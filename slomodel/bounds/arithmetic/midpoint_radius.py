"""Arrays computed in doubles with proved bounds on their errors: midpoint–radius arithmetic.

Every rule follows from the standard model of doubles rounded to nearest (Higham, Accuracy and
Stability of Numerical Algorithms, 2nd edition, sections 2.2, 2.8, 3.1 and 3.5), in which u = 2^-53
is the unit roundoff and η = 2^-1074 the least positive double:

    (1)  fl(a ± b) = (a ± b)/(1 + d),  |d| <= u, also near underflow;
    (2)  fl(a b) = (a b + e)/(1 + d),  |d| <= u, |e| <= η;
    (3)  a product of k factors (1 + d_j)^±1, |d_j| <= u, is 1 + t with |t| <= γ_k, γ_k = k u/(1 -
         k u)  (Lemma 3.1);
    (4)  a sum of k products in any order has an error of at most γ_k Σ|a_j||b_j| + k η: by (3) a
         product passes through at most k roundings, its own and those of k - 1 sums, and its loss
         to underflow, η/2, grows by a factor of at most 1 + γ_k <= 2.

The errors themselves are computed with directed rounding. An overflow leaves a value that is not
finite, with an arbitrary error: its norm must be stated as +inf.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, isnan, isqrt, prod
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import (
    SMALLEST,
    UNIT,
    Array,
    Real,
    gamma,
    up_add,
    up_mul,
    up_norm,
)


@dataclass(frozen=True)
class Bounded(Generic[Real]):
    """The set of arrays X with ‖X_i - value_i‖ <= error_i for all indices i of the leading axes.

    `error` has those axes: it is one number for the whole array, one for each row (or matrix of a
    stack), or one for each element. ‖·‖ is the operator norm over the remaining axes: the absolute
    value of a number, the length of a vector, the spectral norm of a matrix, the largest |T[u, v,
    w]| at unit vectors. It is at most the Frobenius norm ‖·‖_F, in which rounding errors are
    bounded: elementwise errors of at most e_jk give an error of at most ‖e‖_F. All rules except
    that for a shift hold for ‖·‖_F in place of ‖·‖, so arrays with such errors may be reshaped.
    """

    value: Array
    error: Real

    @cached_property
    def magnitude(self) -> Real:
        """Upper bounds on ‖value_i‖_F."""
        leading = np.ndim(self.error)
        if leading == 0:
            magnitude: Real = _real(float(up_norm(self.value)))
        elif leading == self.value.ndim:
            magnitude = _real(np.abs(self.value))
        else:
            magnitude = _real(up_norm(self.value, tuple(range(leading, self.value.ndim))))
        return magnitude

    @property
    def norm(self) -> Real:
        """Upper bounds on ‖X_i‖."""
        return up_add(self.magnitude, self.error)

    @property
    def transposed(self) -> Bounded[Real]:
        """The matrices transposed."""
        return _of_magnitude(np.swapaxes(self.value, -1, -2), self.error, self.magnitude)

    def __add__(self, other: Bounded[Real]) -> Bounded[Real]:
        """‖X + Y - fl(A + B)‖ <= e_A + e_B + u ‖fl(A + B)‖_F, by (1)."""
        with np.errstate(all="ignore"):
            return _rounded(self.value + other.value, self.error + other.error)

    def __sub__(self, other: Bounded[Real]) -> Bounded[Real]:
        """‖X - Y - fl(A - B)‖ <= e_A + e_B + u ‖fl(A - B)‖_F, by (1)."""
        with np.errstate(all="ignore"):
            return _rounded(self.value - other.value, self.error + other.error)

    def times(self, factor: float) -> Bounded[Real]:
        """‖c X - fl(c A)‖ <= |c| e_A + u ‖fl(c A)‖_F + η N^½, N elements per norm, by (2)."""
        with np.errstate(all="ignore"):
            product = factor * self.value
            return _rounded(product, abs(factor) * self.error + self._underflow(product, 1))

    def columns_times(self, factors: Array) -> Bounded[Real]:
        """‖X diag(c) - fl(A diag(c))‖ <= max|c| e_A + u ‖fl(A diag(c))‖_F + η N^½, by (2)."""
        with np.errstate(all="ignore"):
            product = self.value * factors[..., np.newaxis, :]
            moved = np.max(np.abs(factors), axis=-1) * self.error
            return _rounded(product, moved + self._underflow(product, 1))

    def __matmul__(self, other: Bounded[Real]) -> Bounded[Real]:
        """Products of matrices (.., m, k) and (.., k, n): with Y within e_B of B,

            ‖X Y - fl(A B)‖ <= e_A ‖B‖ + (‖A‖ + e_A) e_B + γ_k ‖A‖_F ‖B‖_F + k η (m n)^½,

        since X Y - A B = (X - A) B + X (Y - B) and ‖X‖ <= ‖A‖ + e_A; by (4) the elements of fl(A B)
        have errors of at most γ_k (|A||B|)_ij + k η, and ‖|A||B|‖_F <= ‖A‖_F ‖B‖_F.
        """
        k = self.value.shape[-1]
        with np.errstate(all="ignore"):
            product = self.value @ other.value
            own = gamma(k) * (self.magnitude * other.magnitude) + self._underflow(product, k)
            moved = self.error * other.magnitude + (self.magnitude + self.error) * other.error
            return Bounded(product, _outward(own + moved))

    def __mul__(self, other: Bounded[Real]) -> Bounded[Real]:
        """Elementwise product with elementwise errors.

        |x y - fl(a b)| <= |a| e_b + (|b| + e_b) e_a + u |fl(a b)| + η, by (2).
        """
        with np.errstate(all="ignore"):
            product = self.value * other.value
            moved = self.magnitude * other.error + (other.magnitude + other.error) * self.error
            return _rounded(product, moved + SMALLEST)

    def symmetric(self) -> Bounded[Real]:
        """(A + Aᵀ)/2 for matrices whose exact values are symmetric; Aᵀ has the same ‖·‖ as A.

        Halving is exact except for an underflow of η in each element; the sum is rounded by (1).
        """
        with np.errstate(all="ignore"):
            mean = 0.5 * self.value + 0.5 * np.swapaxes(self.value, -1, -2)
            return _rounded(mean, self.error + self._underflow(mean, 2))

    def plus_identity(self, s: Real) -> Bounded[Real]:
        """X + s I.

        By (1) the rounding errors form a diagonal matrix of norm at most u max|fl(A + sI)| over the
        diagonal.
        """
        total = self.value + np.multiply.outer(s, np.eye(self.value.shape[-1]))
        diagonal = np.abs(np.diagonal(total, axis1=-2, axis2=-1))
        own: Real = _real(gamma(1) * np.max(diagonal, axis=-1, initial=0.0))
        return Bounded(total, _outward(self.error + own))

    def _underflow(self, result: Array, products: int) -> float:
        """η N^½ for each of `products` products in every element, N^½ rounded up to an integer."""
        entries = prod(result.shape[np.ndim(self.error) :])
        return float(products * (isqrt(entries) + 1)) * SMALLEST


def _outward(error: Real) -> Real:
    """Upper bounds on error expressions computed with at most 16 roundings, rounded up.

    The expressions are sums of at most 8 products of two or, in the last step, three numbers >= 0
    of which the last is at most 1; NaN gives +inf. By (3) and (4), and as 1 / (1 - γ_16) <= 1 +
    γ_32, the exact sum is at most the computed one times that, plus 8 η; the last product and sum
    here add two roundings.
    """
    outward: Real = error * (1.0 + gamma(40)) + 16.0 * SMALLEST
    if isinstance(outward, float):
        return _real(inf) if isnan(outward) else outward
    outward[np.isnan(outward)] = np.inf
    return outward


def _of_magnitude(value: Array, error: Real, magnitude: Real) -> Bounded[Real]:
    """A `Bounded` whose magnitude is known and cached in place of the property's value."""
    result = Bounded(value, error)
    vars(result)["magnitude"] = magnitude
    return result


def _real(x: Any) -> Any:
    """A number or an array of errors, typed as either."""
    return x


def _rounded(value: Array, error: Real) -> Bounded[Real]:
    """The value with the error of rounding its elements, by (1) or (2), added to its error."""
    magnitude = Bounded(value, error).magnitude
    return _of_magnitude(value, _outward(error + gamma(1) * magnitude), magnitude)


def exact(value: Array) -> Bounded[float]:
    """The array itself as exact, with one error for the whole array."""
    return Bounded(value, 0.0)


def computed(value: Array, ulps: int) -> Bounded[Array]:
    """Values of a function with an error of at most `ulps` steps, with elementwise errors.

    A step at y is at most 2 u |y|, or η; the exact value may have the next larger exponent.
    """
    return Bounded(value, _outward(2.0 * UNIT * (ulps + 1) * np.abs(value) + SMALLEST * (ulps + 1)))


def exact_stack(value: Array) -> Bounded[Array]:
    """The array itself as exact, with one error for each entry of its first axis."""
    return Bounded(value, np.zeros(len(value)))


def normalised(A: Array) -> tuple[Bounded[float], int]:
    """A finite A as 2^e B with |b_ij| <= 1, each exact up to an underflow of η."""
    e = int(np.frexp(np.max(np.abs(A), initial=0.0))[1])
    B = exact(np.ldexp(A, -e))
    return (B if e <= 0 else Bounded(B.value, B._underflow(A, 1))), e


def normalised_stack(A: Array) -> tuple[Bounded[Array], NDArray[np.intp]]:
    """Each entry of a finite stack (p, ..) as 2^e B; see `normalised`."""
    others = tuple(range(1, A.ndim))
    e = np.frexp(np.max(np.abs(A), axis=others, initial=0.0))[1]
    B = exact_stack(np.ldexp(A, -np.expand_dims(e, others)))
    return Bounded(B.value, np.where(e <= 0, 0.0, B._underflow(A, 1))), e


def midpoint(a: Interval) -> Bounded[float]:
    """An interval array as midpoint and one error for the whole array: ‖X - mid‖ <= ‖rad‖_F."""
    return Bounded(np.asarray(a.mid), float(up_norm(a.rad)))


def midpoints(a: Interval) -> Bounded[Array]:
    """An interval array as midpoint and one error for each entry of its first axis."""
    return Bounded(np.asarray(a.mid), np.asarray(up_norm(a.rad, tuple(range(1, len(a.shape))))))


def mean_of_orders(one: Bounded[float]) -> Bounded[float]:
    """The mean over all permutations of the axes of T (n, n, n), close to a symmetric form.

    An element is the sum of six divided by 6, each through at most 4 roundings: by (2) to (4) its
    error is at most γ_4 times the mean of their magnitudes, whose ‖·‖_F is at most ‖T‖_F, plus η.
    """
    T = one.value
    mean = (T + T.transpose(0, 2, 1) + T.transpose(1, 0, 2)) / 6.0
    own = gamma(4) * one.magnitude + one._underflow(T, 2)
    return Bounded(mean + mean.transpose(2, 1, 0), _outward(one.error + own))


def symmetrised(one: Bounded[float]) -> Bounded[float]:
    """`mean_of_orders` made exactly symmetric by copying the elements of sorted indices.

    The exact mean is symmetric, so the bound on the error holds at the other positions too.
    """
    mean = mean_of_orders(one)
    i = np.sort(np.indices(mean.value.shape).reshape(3, -1), axis=0)
    equal = np.asarray(mean.value[i[0], i[1], i[2]].reshape(mean.value.shape))
    return Bounded(equal, mean.error)


def beside(a: Bounded[float], p: float, b: Bounded[float], q: float) -> Bounded[float]:
    """The matrix [p A, q B]: ‖[p A, q B]‖² is the norm of p² A Aᵀ + q² B Bᵀ.

    ‖[E, F]‖ <= ‖E‖ + ‖F‖ for the errors E of p A and F of q B.
    """
    left, right = a.times(p), b.times(q)
    both = np.concatenate([left.value, right.value], axis=1)
    return Bounded(both, up_add(left.error, right.error))


def shifted(B: Array, t: Array) -> Array:
    """t I - B for matrices (.., n, n) and numbers t (..)."""
    result = -B
    diagonal = np.arange(B.shape[-1])
    result[..., diagonal, diagonal] += t[..., np.newaxis]
    return result


def runs_through(B: Array, t: Array) -> bool:
    """Whether Cholesky factorisation succeeds for every t I - B, with finite factors."""
    try:
        return bool(np.isfinite(np.linalg.cholesky(shifted(B, t))).all())
    except np.linalg.LinAlgError:
        return False


def proved_end(t: Real, trace: Real, n: int) -> Real:
    """Upper bounds on λ_max(B) of B (n, n) from a successful Cholesky factorisation of t I - B.

    `trace` is an upper bound on Σ|b_ii|, and the largest |b_ij| is between 1/2 and 1. With A the
    computed t I - B, A + Δ = RᵀR >= 0 for the computed R, |Δ| <= γ_(n+1) |Rᵀ||R| (Higham, theorem
    10.3) and ‖|Rᵀ||R|‖ <= ‖R‖_F² = tr(A + Δ) <= tr A / (1 - γ_(n+1)), so that λ_min(A) >= -γ_(2n+2)
    tr A (Rump 2006). The error of the diagonal of A is at most u (t + |b_ii|). As b_ij² is at most
    about (t - b_ii)(t - b_jj), n t + Σ|b_ii| is at least 1/4, and u times it exceeds all losses to
    underflow. The total is less than γ_(4n+16) (n t + Σ|b_ii|).
    """
    order: Real = _real(float(n))
    rate: Real = _real(gamma(4 * n + 16))
    return up_add(t, up_mul(rate, up_add(up_mul(order, t), trace)))
