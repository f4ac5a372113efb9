"""The cone of symmetric positive semidefinite matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slomodel.solve.norms import EPS, Vector, norm
from slomodel.solve.sets.convex_set import Mask, to_projection

# An eigenvalue counts as 0 up to this multiple of the rounding error of the largest.
OF_EIGENVALUES = 16.0


@dataclass(frozen=True, slots=True)
class PositiveSemidefinite:
    """{X = Xᵀ ⪰ 0} for x (n,), a matrix (k, k) in C order, n = k²."""

    k: int

    convex = True
    polyhedral = False
    is_box = False

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        if slack > 0.0:
            nearest = np.empty_like(x)
            self._project(x, nearest)
            return norm(x - nearest) <= slack
        X = x.reshape(self.k, self.k)
        return bool((X.T == X).all()) and self._least(X) >= -self._rounding(X)

    def project(self, x: Vector, out: Vector) -> bool:
        """The symmetric part, with its negative eigenvalues replaced by 0."""
        X = x.reshape(self.k, self.k)
        if np.isfinite(X).all() and (X.T == X).all():
            values, Q = np.linalg.eigh(X)
            if values.min(initial=0.0) >= -self._rounding(X):
                np.copyto(out, x)
                return False
            self._from_spectrum(X, values, Q, out)
        else:
            self._project(x, out)
        return True

    def _project(self, x: Vector, out: Vector) -> None:
        X = symmetric(x.reshape(self.k, self.k))
        self._from_spectrum(X, *np.linalg.eigh(X), out)

    def _from_spectrum(self, X: Vector, values: Vector, Q: Vector, out: Vector) -> None:
        """Write X = Xᵀ with its negative eigenvalues replaced by 0, given its spectrum."""
        nearest = X if values.min(initial=0.0) >= 0.0 else (Q * np.maximum(values, 0.0)) @ Q.T
        np.copyto(out, symmetric(nearest).ravel())

    def tangent(self, x: Vector, v: Vector, out: Vector) -> None:
        """The symmetric part of v, without its negative part on the null space of X."""
        X, V = x.reshape(self.k, self.k), symmetric(v.reshape(self.k, self.k))
        values, Q = np.linalg.eigh(symmetric(X))
        null = Q[:, values <= self._rounding(X)]
        inward, R = np.linalg.eigh(symmetric(null.T @ V @ null))
        negative = null @ R
        V = V - (negative * np.minimum(inward, 0.0)) @ negative.T
        np.copyto(out, symmetric(V).ravel())

    def projected_gradient(self, x: Vector, g: Vector, out: Vector) -> None:
        to_projection(self, x, g, out)

    def face(self, x: Vector, r: Vector) -> SymmetricMatrices:
        return SymmetricMatrices(self.k)

    def at_bounds(self, x: Vector) -> Mask:
        X = x.reshape(self.k, self.k)
        return np.full(len(x), self._least(X) <= self._rounding(X))

    def limits(self) -> tuple[Vector, Vector]:
        # Diagonal elements are at least 0, but only up to the rounding of the projection.
        n = self.k * self.k
        return np.full(n, -np.inf), np.full(n, np.inf)

    def polyhedron(self) -> None:
        return None

    def interior_point(self) -> Vector:
        return np.eye(self.k).ravel()

    def _least(self, X: Vector) -> float:
        return float(np.linalg.eigvalsh(X).min(initial=0.0)) if np.isfinite(X).all() else -np.inf

    def _rounding(self, X: Vector) -> float:
        return OF_EIGENVALUES * EPS * self.k * float(np.abs(X).max(initial=0.0))


@dataclass(frozen=True, slots=True)
class SymmetricMatrices:
    """The subspace of symmetric matrices (k, k), used as the face at every point."""

    k: int

    shift = None
    whole = False
    coordinates = None

    def project(self, v: Vector) -> Vector:
        matrices = v.reshape(*v.shape[:-1], self.k, self.k)
        return symmetric(matrices).reshape(v.shape)


def symmetric(X: Vector) -> Vector:
    """½(X + Xᵀ) of matrices (…, k, k)."""
    half: Vector = 0.5 * (X + np.swapaxes(X, -1, -2))
    return half
