"""Lower bound on the largest |eigenvalue| of a symmetric operator, by Lanczos' method."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from slomodel.bounds.ball import Vector, norm, unit

STEPS = 24
"""Largest dimension of the Krylov space."""
# Ritz values that agree to this relative tolerance count as converged: estimates need no more.
CLOSE = 1e-4


def largest(apply: Callable[[Vector], Vector], start: Vector) -> tuple[float, Vector]:
    """The Ritz value of largest magnitude and its unit vector (n,); NaN if H is not finite.

    The Krylov space approximates both ends of the spectrum, so that eigenvalues ±λ do not mix. Full
    reorthogonalisation.
    """
    first = unit(start)
    assert first is not None, "Lanczos starts from a vector that is not 0"
    basis = [first]
    diagonal: list[float] = []
    beside: list[float] = []
    value = 0.0
    for _ in range(min(STEPS, len(start))):
        w = apply(basis[-1])
        if not np.all(np.isfinite(w)):
            return math.nan, first
        diagonal.append(float(basis[-1] @ w))
        values, vectors = _ritz(diagonal, beside)
        k = int(np.argmax(np.abs(values)))
        before, value = value, float(values[k])
        Q = np.array(basis)
        for _again in range(2):
            w = w - Q.T @ (Q @ w)
        length = norm(w)
        residual = length * abs(float(vectors[-1, k]))
        if residual <= CLOSE * abs(value) and abs(value - before) <= CLOSE * abs(value):
            break
        if length == 0.0 or len(basis) == len(start):
            break
        beside.append(length)
        basis.append(w / length)
    vector = unit(np.array(basis[: len(diagonal)]).T @ vectors[:, k])
    return value, first if vector is None else vector


def _ritz(diagonal: list[float], beside: list[float]) -> tuple[Vector, Vector]:
    """Eigenvalues and eigenvectors of the tridiagonal matrix, at any scale."""
    T = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    scale = float(np.abs(T).max()) or 1.0
    values, vectors = np.linalg.eigh(T / scale)
    return values * scale, vectors
