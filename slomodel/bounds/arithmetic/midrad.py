"""Matrices known up to an error in the Frobenius norm: midpoint and radius."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Array, up_norm

_TINY = 1e-290
_GROWTH = 1.0 + 1e-14


@dataclass(frozen=True)
class Near:
    """Every matrix A with ‖A - mid‖_F <= error."""

    mid: Array
    error: float = 0.0

    @classmethod
    def of(cls, a: Interval) -> Near:
        return cls(np.asarray(a.mid), float(up_norm(a.rad)))

    @cached_property
    def size(self) -> float:
        """At least ‖mid‖_F: entries of the largest size."""
        largest = float(np.max(np.abs(self.mid), initial=0.0))
        return largest * sqrt(self.mid.size) * _GROWTH

    def turned(self) -> Near:
        """Transposed."""
        return Near(self.mid.T, self.error)

    def __matmul__(self, other: Near) -> Near:
        """‖AB - fl(A'B')‖ <= e_A ‖B'‖ + (‖A'‖ + e_A) e_B + γ_k ‖A'‖ ‖B'‖, k terms a sum."""
        with np.errstate(all="ignore"):
            product = self.mid @ other.mid
        share = 1e-15 * (self.mid.shape[1] + 2)
        own = (share * self.size + self.error) * other.size
        return Near(product, _enlarged(own + (self.size + self.error) * other.error))

    def __sub__(self, other: Near) -> Near:
        with np.errstate(all="ignore"):
            difference = self.mid - other.mid
        own = 1e-15 * (self.size + other.size)
        return Near(difference, _enlarged(own + self.error + other.error))


def _enlarged(error: float) -> float:
    """By the few roundings of its sum, and by products that underflow."""
    return error * _GROWTH + _TINY


def beside(a: Near, p: float, b: Near, q: float) -> Near:
    """[p A, q B]: ‖[p A, q B]‖² is the norm of p² A Aᵀ + q² B Bᵀ."""
    with np.errstate(all="ignore"):
        both = np.concatenate([p * a.mid, q * b.mid], axis=1)
    errors = p * (a.error + 1e-15 * a.size) + q * (b.error + 1e-15 * b.size)
    return Near(both, _enlarged(errors))
