"""Tensors that are sums of powers of known vectors, so that the least value is 0."""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def orthogonal(rng: np.random.Generator, d: int, m: int) -> Array:
    """m orthonormal rows (m, d)."""
    return np.linalg.qr(rng.standard_normal((d, m)))[0].T


def sum_of_powers(X: Array, order: int, weights: Array | None = None) -> Array:
    """Σ w_i x_i ⊗ … ⊗ x_i with `order` factors, symmetric to the last bit; X (m, d)."""
    w = np.ones(len(X)) if weights is None else weights
    powers = (reduce(np.multiply.outer, [row] * order) for row in X)
    T = sum(wi * power for wi, power in zip(w, powers, strict=True))
    return np.asarray(T)[tuple(np.sort(np.indices(T.shape), axis=0))]
