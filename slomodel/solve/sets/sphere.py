"""Spheres, one for each row of an array: the one kind of set that is not convex."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slomodel.solve.norms import EPS, Vector, norm
from slomodel.solve.sets.convex_set import Mask

# A row counts as on its sphere up to this multiple of the rounding error of its length.
ON_SPHERE = 8.0


@dataclass(frozen=True, slots=True)
class Sphere:
    """{x : every row of x − centre has the length `radius`}, x (n,) an array of rows of K."""

    K: int
    radius: float
    centre: Vector

    convex = False
    polyhedral = False
    is_box = False

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        off = np.abs(self._lengths(x) - self.radius)
        rounding = ON_SPHERE * EPS * (self.radius + norm(self.centre))
        return norm(off.ravel()) <= slack if slack > rounding else bool((off <= rounding).all())

    def project(self, x: Vector, out: Vector) -> bool:
        """Scale each row to the radius; a zero row gets the direction of the first coordinate."""
        if self.contains(x):
            np.copyto(out, x)
            return False
        rows = (x - self.centre).reshape(-1, self.K)
        largest = np.abs(rows).max(axis=1, initial=0.0)
        rows[largest == 0.0, 0] = 1.0
        rows /= np.where(largest > 0.0, largest, 1.0)[:, None]
        rows *= self.radius / np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        np.add(self.centre, rows.ravel(), out=out)
        return True

    def tangent(self, x: Vector, v: Vector, out: Vector) -> None:
        np.copyto(out, TangentPlanes(self._normals(x), np.zeros(len(x))).project(v))

    def projected_gradient(self, x: Vector, g: Vector, out: Vector) -> None:
        self.tangent(x, -g, out)

    def face(self, x: Vector, r: Vector) -> TangentPlanes:
        normals = self._normals(x)
        inward = (normals * r.reshape(-1, self.K)).sum(axis=1)
        return TangentPlanes(normals, np.repeat(-inward / self.radius, self.K))

    def at_bounds(self, x: Vector) -> Mask:
        return np.ones(len(x), dtype=bool)

    def limits(self) -> tuple[Vector, Vector]:
        reach = self.radius + ON_SPHERE * EPS * (self.radius + norm(self.centre))
        return self.centre - reach, self.centre + reach

    def polyhedron(self) -> None:
        return None

    def interior_point(self) -> Vector:
        point = self.centre.copy()
        point[:: self.K] += self.radius
        return point

    def _lengths(self, x: Vector) -> Vector:
        return lengths((x - self.centre).reshape(-1, self.K))

    def _normals(self, x: Vector) -> Vector:
        rows: Vector = (x - self.centre).reshape(-1, self.K)
        return rows / self._lengths(x)


def lengths(rows: Vector) -> Vector:
    """The Euclidean norm (m, 1) of each row of an array (m, K)."""
    result: Vector = np.linalg.norm(rows, axis=1, keepdims=True)
    return result


@dataclass(frozen=True, slots=True)
class TangentPlanes:
    """The tangent planes of spheres with unit `normals` (n/K, K) and the multipliers (n,).

    A normal 0 stands for a row that moves in all directions.
    """

    normals: Vector
    shift: Vector

    whole = False
    coordinates = None

    def project(self, v: Vector) -> Vector:
        rows = v.reshape(*v.shape[:-1], *self.normals.shape)
        outward = (rows * self.normals).sum(axis=-1, keepdims=True)
        tangential: Vector = rows - outward * self.normals
        return tangential.reshape(v.shape)
