"""Products of equal balls, one for each row of an array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slomodel.solve.norms import EPS, Vector, norm
from slomodel.solve.sets.ball import ON_BOUNDARY, cube
from slomodel.solve.sets.convex_set import Face, Mask, WholeFace, to_projection
from slomodel.solve.sets.sphere import TangentPlanes, lengths


@dataclass(frozen=True, slots=True)
class RowBalls:
    """{x : every row of x − centre has at most the length `radius`}, x (n,) an array of rows of K.

    The faces at a point are products of the tangent planes of its rows on the boundary and of the
    whole spaces of the others.
    """

    K: int
    radius: float
    centre: Vector

    convex = True
    polyhedral = False
    is_box = False

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        beyond = np.maximum(self._lengths(x) - self.radius, 0.0)
        return norm(beyond.ravel()) <= slack

    def project(self, x: Vector, out: Vector) -> bool:
        rows = self._rows(x)
        of_rows = lengths(rows)
        outside = of_rows > self.radius
        np.copyto(out, x)
        if not outside.any():
            return False
        scaled = rows * (self.radius / np.where(outside, of_rows, self.radius))
        # Rounding of the sum may leave the ball by units in the last place of the centre.
        moved = np.where(outside, self.centre.reshape(rows.shape) + scaled, x.reshape(rows.shape))
        np.copyto(out, moved.ravel())
        return True

    def _rows(self, x: Vector) -> Vector:
        """The rows of x − centre (n/K, K)."""
        rows: Vector = np.subtract(x, self.centre).reshape(-1, self.K)
        return rows

    def _lengths(self, x: Vector) -> Vector:
        return lengths(self._rows(x))

    def _normals(self, x: Vector) -> Vector:
        """The outer unit normals (n/K, K) at x; 0 for rows that are not on the boundary."""
        rows = self._rows(x)
        of_rows = lengths(rows)
        rounding = ON_BOUNDARY * EPS * (self.radius + lengths(x.reshape(-1, self.K)))
        outer = (of_rows > 0.0) & (of_rows >= self.radius - rounding)
        normals: Vector = np.where(outer, rows / np.where(outer, of_rows, 1.0), 0.0)
        return normals

    def tangent(self, x: Vector, v: Vector, out: Vector) -> None:
        normals, rows = self._normals(x), v.reshape(-1, self.K)
        outward = np.maximum((normals * rows).sum(axis=1, keepdims=True), 0.0)
        np.copyto(out, (rows - outward * normals).ravel())

    def projected_gradient(self, x: Vector, g: Vector, out: Vector) -> None:
        to_projection(self, x, g, out)

    def face(self, x: Vector, r: Vector) -> Face:
        normals = self._normals(x)
        inward = (normals * r.reshape(-1, self.K)).sum(axis=1, keepdims=True)
        normals = np.where(inward > 0.0, 0.0, normals)
        if not normals.any():
            return WholeFace()
        multipliers = np.maximum(-inward.ravel(), 0.0) / self.radius
        return TangentPlanes(normals, np.repeat(multipliers, self.K))

    def at_bounds(self, x: Vector) -> Mask:
        return np.repeat(self._normals(x).any(axis=1), self.K)

    def limits(self) -> tuple[Vector, Vector]:
        return cube(self.centre, self.radius)

    def polyhedron(self) -> None:
        return None

    def interior_point(self) -> Vector:
        return self.centre.copy()
