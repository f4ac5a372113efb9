"""Matrices known to an error in the Frobenius norm, and upper bounds of norms of many of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import TypeVar

import numpy as np

from slomodel.bounds.forms.spectral import DENSE_EIGEN, spectral_norm, stack_norm
from slomodel.bounds.intervals.interval import Interval
from slomodel.bounds.intervals.rounding import Array, up_add, up_norm

_TINY = 1e-290
_GROWTH = 1.0 + 1e-14
_STEP = 8
Key = TypeVar("Key", bound=Hashable)


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


def near_norms(matrices: Mapping[Key, Near]) -> dict[Key, float]:
    """At least ‖A‖₂ of each; small ones of about a shape at once, filled up with zeros."""
    groups: dict[tuple[int, int], list[Key]] = {}
    result: dict[Key, float] = {}
    for key, one in matrices.items():
        m, n = sorted(one.mid.shape)
        if m > DENSE_EIGEN:
            result[key] = float(up_add(spectral_norm(one.mid), one.error))
        else:
            groups.setdefault((-(-m // _STEP) * _STEP, -(-n // _STEP) * _STEP), []).append(key)
    for shape, keys in groups.items():
        stack = np.zeros((len(keys), *shape))
        for row, key in zip(stack, keys, strict=True):
            mid = matrices[key].mid
            flat = mid if mid.shape[0] <= mid.shape[1] else mid.T
            row[: flat.shape[0], : flat.shape[1]] = flat
        errors = np.array([matrices[key].error for key in keys])
        result.update(zip(keys, map(float, up_add(stack_norm(stack), errors)), strict=True))
    return result
