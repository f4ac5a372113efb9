"""Matrices known to an error in the Frobenius norm, and upper bounds of norms of many of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from slomodel.bounds.interval import Interval
from slomodel.bounds.rounding import Array, gamma, up_add, up_mul, up_norm
from slomodel.bounds.spectral import DENSE_EIGEN, spectral_norm, stack_norm

_TINY = 1e-290
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
        """At least ‖mid‖_F."""
        return float(up_norm(self.mid))

    def turned(self) -> Near:
        """Transposed."""
        return Near(self.mid.T, self.error)

    def __matmul__(self, other: Near) -> Near:
        """‖AB - fl(A'B')‖ <= e_A ‖B'‖ + (‖A'‖ + e_A) e_B + γ_k ‖A'‖ ‖B'‖, k terms a sum."""
        with np.errstate(all="ignore"):
            product = self.mid @ other.mid
        rounding = up_add(up_mul(gamma(self.mid.shape[1] + 2), self.size), self.error)
        error = up_mul(up_add(self.size, self.error), other.error)
        return Near(product, float(up_add(up_add(up_mul(rounding, other.size), error), _TINY)))

    def __sub__(self, other: Near) -> Near:
        with np.errstate(all="ignore"):
            difference = self.mid - other.mid
        own = up_mul(2.0**-52, up_add(self.size, other.size))
        return Near(difference, float(up_add(own, up_add(self.error, other.error))))


def beside(a: Near, p: float, b: Near, q: float) -> Near:
    """[p A, q B]: ‖[p A, q B]‖² is the norm of p² A Aᵀ + q² B Bᵀ."""
    with np.errstate(all="ignore"):
        both = np.concatenate([p * a.mid, q * b.mid], axis=1)
    errors = up_add(up_mul(p, a.error), up_mul(q, b.error))
    rounding = up_mul(2.0**-52, up_add(up_mul(p, a.size), up_mul(q, b.size)))
    return Near(both, float(up_add(up_add(errors, rounding), _TINY)))


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
