"""Arrays computed in doubles, each with a proved bound on its error: midpoint and radius.

Every rule follows from the standard model of doubles rounded to nearest (Higham, Accuracy and
Stability of Numerical Algorithms, 2nd edition, sections 2.2, 2.8, 3.1 and 3.5), in which u = 2^-53
is the unit roundoff and η = 2^-1074 the least positive double:

    (1)  fl(a ± b) = (a ± b)/(1 + d),  |d| <= u, also near underflow;
    (2)  fl(a b) = (a b + e)/(1 + d),  |d| <= u, |e| <= η;
    (3)  a product of k factors (1 + d_j)^±1, |d_j| <= u, is 1 + t with |t| <= γ_k, γ_k = k u/(1 -
         k u)  (Lemma 3.1);
    (4)  a sum of k products in any order is off by γ_k Σ|a_j||b_j| + k η at most: by (3) a product
         goes through at most k roundings, its own and those of k - 1 sums, and what it loses to
         underflow, η/2, grows by a factor of at most 1 + γ_k <= 2.

The errors themselves are computed with directed rounding. An overflow leaves a value that is not
finite, with any error: a norm of it is to be stated as +inf.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isqrt, prod
from typing import Any, Generic

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import (
    SMALLEST,
    Array,
    Real,
    gamma,
    up_add,
    up_mul,
    up_norm,
)


@dataclass(frozen=True)
class Bounded(Generic[Real]):
    """Every array X with ‖X_i - value_i‖ <= error_i for all indices i of the leading axes.

    `error` has those axes: it is one number for the whole array, one for each row (or matrix of a
    stack), or one for each element. ‖·‖ is the operator norm of what is left: the absolute value
    of a number, the length of a vector, the spectral norm of a matrix, the largest |T[u, v, w]| at
    unit vectors. It is at most the root of the sum of squares, ‖·‖_F, by which rounding errors are
    bounded: those of elements at most by e_jk make one of at most ‖e‖_F.
    """

    value: Array
    error: Real

    @cached_property
    def size(self) -> Real:
        """Upper bounds on ‖value_i‖_F."""
        leading = np.ndim(self.error)
        if leading == 0:
            size: Real = _real(float(up_norm(self.value)))
        elif leading == self.value.ndim:
            size = _real(np.abs(self.value))
        else:
            size = _real(up_norm(self.value, tuple(range(leading, self.value.ndim))))
        return size

    @property
    def norm(self) -> Real:
        """Upper bounds on ‖X_i‖."""
        return up_add(self.size, self.error)

    @property
    def transposed(self) -> Bounded[Real]:
        """Matrices transposed."""
        return Bounded(np.swapaxes(self.value, -1, -2), self.error)

    def __add__(self, other: Bounded[Real]) -> Bounded[Real]:
        """‖X + Y - fl(A + B)‖ <= e_A + e_B + u ‖fl(A + B)‖_F, by (1)."""
        with np.errstate(all="ignore"):
            total = self.value + other.value
        return _rounded(total, up_add(self.error, other.error), 1)

    def __sub__(self, other: Bounded[Real]) -> Bounded[Real]:
        """As a sum."""
        with np.errstate(all="ignore"):
            difference = self.value - other.value
        return _rounded(difference, up_add(self.error, other.error), 1)

    def times(self, factor: float) -> Bounded[Real]:
        """‖c X - fl(c A)‖ <= |c| e_A + u ‖fl(c A)‖_F + η N^½, N elements a norm, by (2)."""
        with np.errstate(all="ignore"):
            product = factor * self.value
        moved = up_mul(_real(abs(factor)), self.error)
        return _rounded(product, up_add(moved, self._underflow(product, 1)), 1)

    def columns_times(self, factors: Array) -> Bounded[Real]:
        """‖X diag(c) - fl(A diag(c))‖ <= max|c| e_A + u ‖fl(A diag(c))‖_F + η N^½, by (2)."""
        with np.errstate(all="ignore"):
            product = self.value * factors[..., np.newaxis, :]
        moved = up_mul(_real(np.max(np.abs(factors), axis=-1)), self.error)
        return _rounded(product, up_add(moved, self._underflow(product, 1)), 1)

    def __matmul__(self, other: Bounded[Real]) -> Bounded[Real]:
        """Matrices (.., m, k) and (.., k, n): with Y within e_B of B,

            ‖X Y - fl(A B)‖ <= e_A ‖B‖ + (‖A‖ + e_A) e_B + γ_k ‖A‖_F ‖B‖_F + k η (m n)^½,

        as X Y - A B = (X - A) B + X (Y - B), ‖X‖ <= ‖A‖ + e_A, and the elements of fl(A B) are off
        by γ_k (|A||B|)_ij + k η at most, by (4), of which |A||B| has a norm ‖·‖_F of at most ‖A‖_F
        ‖B‖_F.
        """
        with np.errstate(all="ignore"):
            product = self.value @ other.value
        k = self.value.shape[-1]
        own = up_add(up_mul(_real(gamma(k)), self.size), self.error)
        moved = up_mul(up_add(self.size, self.error), other.error)
        error = up_add(up_mul(own, other.size), moved)
        return Bounded(product, up_add(error, self._underflow(product, k)))

    def _underflow(self, result: Array, products: int) -> Real:
        """η N^½ for each of so many products in every element; N^½ taken to an integer above."""
        entries = prod(result.shape[np.ndim(self.error) :])
        underflow: Real = _real(float(products * (isqrt(entries) + 1)) * SMALLEST)
        return underflow


def _real(x: Any) -> Any:
    """A number, or an array of errors, in the place of either."""
    return x


def _rounded(value: Array, error: Real, roundings: int) -> Bounded[Real]:
    """The value, its error increased by `roundings` rounding errors per element by (1) to (3)."""
    result = Bounded(value, error)
    own = up_mul(_real(gamma(roundings)), result.size)
    return Bounded(value, up_add(error, own))


def exact(value: Array) -> Bounded[float]:
    """The array itself, with one error for all."""
    return Bounded(value, 0.0)


def exact_stack(value: Array) -> Bounded[Array]:
    """The array itself, with one error for each entry of its first axis."""
    return Bounded(value, np.zeros(len(value)))


def midpoint(a: Interval) -> Bounded[float]:
    """Every array of an interval, with one error for all: ‖X - mid‖ <= ‖rad‖_F."""
    return Bounded(np.asarray(a.mid), float(up_norm(a.rad)))


def midpoints(a: Interval) -> Bounded[Array]:
    """Every array of an interval, with one error for each entry of its first axis."""
    return Bounded(np.asarray(a.mid), np.asarray(up_norm(a.rad, tuple(range(1, len(a.shape))))))


def beside(a: Bounded[float], p: float, b: Bounded[float], q: float) -> Bounded[float]:
    """[p A, q B]: ‖[p A, q B]‖² is the norm of p² A Aᵀ + q² B Bᵀ.

    ‖[E, F]‖ <= ‖E‖ + ‖F‖ for the errors E of p A and F of q B.
    """
    left, right = a.times(p), b.times(q)
    both = np.concatenate([left.value, right.value], axis=1)
    return Bounded(both, up_add(left.error, right.error))
