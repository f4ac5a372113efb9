"""Tangent spaces of sets with the curvature of their boundaries, for Newton steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slomodel.solve.norms import Vector
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.sets.positive_semidefinite import PositiveSemidefinite
from slomodel.solve.sets.product import ProductSet, SetPart


@dataclass(frozen=True, slots=True)
class Tangents:
    """An orthonormal `basis` (n, k) of the tangent space at `x` (n,), and the curvature (n, n).

    x is a point of the face on which steps are taken, near the given one.
    """

    x: Vector
    basis: Vector
    curvature: Vector


def tangents(within: Set, x: Vector, g: Vector) -> Tangents:
    """Those of the face at x (n,) that the gradient g (n,) of the Lagrangian presses against."""
    n = len(x)
    parts = within.parts if isinstance(within, ProductSet) else (SetPart(0, n, within),)
    found = [_of_part(part.set, x[part.of], g[part.of]) for part in parts]
    basis, curvature = np.zeros((n, sum(one.basis.shape[1] for one in found))), np.zeros((n, n))
    first = 0
    for part, one in zip(parts, found, strict=True):
        stop = first + one.basis.shape[1]
        basis[part.of, first:stop], curvature[part.of, part.of] = one.basis, one.curvature
        first = stop
    return Tangents(np.concatenate([one.x for one in found]), basis, curvature)


def _of_part(within: Set, x: Vector, g: Vector) -> Tangents:
    if isinstance(within, PositiveSemidefinite):
        return _of_rank(within.k, x, g)
    face, n = within.face(x, g), len(x)
    basis = np.eye(n) if face.whole else range_of(face.project, n)
    return Tangents(x, basis, np.diag(np.zeros(n) if face.shift is None else face.shift))


def _of_rank(k: int, x: Vector, g: Vector) -> Tangents:
    """The manifold of the matrices (k, k) of one rank, that of the positive part of X − τG.

    With X = UΛUᵀ and the multiplier NZNᵀ of the null space, a step UAUᵀ + UBNᵀ + NBᵀUᵀ leaves the
    tangent space by NBᵀΛ⁻¹BNᵀ, along which f changes by ⟨Z, BᵀΛ⁻¹B⟩: the curvature is z_j/λ_i for
    each of the elements ij and ji. Shapiro, *First and second order analysis of nonlinear
    semidefinite programs*, Math. Programming 77 (1997).
    """
    X, G = x.reshape(k, k), g.reshape(k, k)
    G = 0.5 * (G + G.T)
    steep = float(np.abs(G).max(initial=0.0))
    t = float(np.abs(X).max(initial=0.0)) / steep if steep > 0.0 else 0.0
    values, Q = np.linalg.eigh(X - t * G)
    positive = values > 0.0
    U = Q[:, positive]
    size, null = values[positive], -values[~positive] / (t or 1.0)
    both = np.zeros((k, k))
    both[np.ix_(positive, ~positive)] = null / size[:, None]
    both += both.T
    turned = np.einsum("ai,bj->abij", Q, Q).reshape(k * k, k * k)
    curvature: Vector = (turned * both.ravel()) @ turned.T
    first, second = np.nonzero(np.triu(positive[:, None] | positive))
    basis = turned[:, first * k + second] + turned[:, second * k + first]
    basis /= np.where(first == second, 2.0, np.sqrt(2.0))
    nearest = U @ (U.T @ X @ U) @ U.T
    x = (0.5 * (nearest + nearest.T)).ravel()
    return Tangents(x, basis, curvature)


def range_of(project: Callable[[Vector], Vector], n: int) -> Vector:
    """An orthonormal basis (n, k) of the range of an orthogonal projector."""
    projector = project(np.eye(n))
    values, vectors = np.linalg.eigh(0.5 * (projector + projector.T))
    basis: Vector = vectors[:, values > 0.5]
    return basis
