"""Lanczos' method for symmetric operators: Krylov spaces, and lower estimates of eigenvalues."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from slomodel.bounds.ball import Vector, norm, unit

STEPS = 24
"""Largest dimension of the Krylov space."""
# Ritz values that agree to this relative tolerance count as converged: estimates need no more.
CLOSE = 1e-4


@dataclass(frozen=True, slots=True)
class KrylovSpace:
    """An orthonormal basis (k, n), the operator in it (k, k), and the length of what the operator
    makes of the last vector outside the space; NaN where that is not finite.
    """

    basis: Vector
    operator: Vector
    outside: float


def krylov_spaces(
    apply: Callable[[Vector], Vector], start: Vector, most: int
) -> Iterator[KrylovSpace]:
    """The spaces from a unit vector (n,), of dimensions 1 to `most`, as far as they grow.

    Full reorthogonalisation.
    """
    most = min(most, len(start))
    Q, T = np.zeros((most + 1, len(start))), np.zeros((most, most))
    Q[0] = start
    for k in range(most):
        w, own = apply(Q[k]), Q[: k + 1]
        is_finite = bool(np.isfinite(w).all())
        if is_finite:
            T[k, k] = own[k] @ w
            for _again in range(2):
                w = w - own.T @ (own @ w)
        length = norm(w) if is_finite else math.nan
        yield KrylovSpace(own, T[: k + 1, : k + 1], length)
        if not length > 0.0 or k + 1 == most:
            return
        T[k, k + 1] = T[k + 1, k] = length
        Q[k + 1] = w / length


def largest(apply: Callable[[Vector], Vector], start: Vector) -> tuple[float, Vector]:
    """The Ritz value of largest magnitude and its unit vector (n,); NaN if H is not finite.

    The Krylov space approximates both ends of the spectrum, so that eigenvalues ±λ do not mix.
    """
    first = unit(start)
    assert first is not None, "Lanczos starts from a vector that is not 0"
    value, vector = 0.0, first
    for space in krylov_spaces(apply, first, STEPS):
        if math.isnan(space.outside):
            return math.nan, first
        values, vectors = _ritz(space.operator)
        k = int(np.argmax(np.abs(values)))
        before, value = value, float(values[k])
        vector = space.basis.T @ vectors[:, k]
        residual = space.outside * abs(float(vectors[-1, k]))
        if residual <= CLOSE * abs(value) and abs(value - before) <= CLOSE * abs(value):
            break
    along = unit(vector)
    return value, first if along is None else along


def _ritz(T: Vector) -> tuple[Vector, Vector]:
    """Eigenvalues and eigenvectors of a symmetric matrix, at any scale."""
    scale = float(np.abs(T).max()) or 1.0
    values, vectors = np.linalg.eigh(T / scale)
    return values * scale, vectors
