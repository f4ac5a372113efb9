"""Sets of arrays whose elements are read in another order, as along another axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slomodel.solve.norms import Vector
from slomodel.solve.sets.convex_set import Face, Mask, Polyhedron, Set


@dataclass(frozen=True, slots=True)
class ReorderedSet:
    """{x : x[order] is in the set `of`}, `order` (n,) a permutation of the positions of x."""

    of: Set
    order: NDArray[np.intp]

    @staticmethod
    def along(axis: int, shape: tuple[int, ...], of: Set) -> Set:
        """A set of rows, for the lines along an axis of an array of `shape` in C order."""
        if axis == len(shape) - 1:
            return of
        positions = np.arange(int(np.prod(shape)), dtype=np.intp).reshape(shape)
        return ReorderedSet(of, np.moveaxis(positions, axis, -1).ravel())

    @property
    def convex(self) -> bool:
        return self.of.convex

    @property
    def polyhedral(self) -> bool:
        return self.of.polyhedral

    @property
    def is_box(self) -> bool:
        return self.of.is_box

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        return self.of.contains(x[self.order], slack)

    def project(self, x: Vector, out: Vector) -> bool:
        lines = x[self.order]
        moved = self.of.project(lines, lines)
        out[self.order] = lines
        return moved

    def tangent(self, x: Vector, v: Vector, out: Vector) -> None:
        lines = v[self.order]
        self.of.tangent(x[self.order], lines.copy(), lines)
        out[self.order] = lines

    def projected_gradient(self, x: Vector, g: Vector, out: Vector) -> None:
        lines = g[self.order]
        self.of.projected_gradient(x[self.order], lines.copy(), lines)
        out[self.order] = lines

    def face(self, x: Vector, r: Vector) -> ReorderedFace:
        return ReorderedFace(self.of.face(x[self.order], r[self.order]), self.order)

    def at_bounds(self, x: Vector) -> Mask:
        mask = np.empty(len(x), dtype=bool)
        mask[self.order] = self.of.at_bounds(x[self.order])
        return mask

    def limits(self) -> tuple[Vector, Vector]:
        low, high = self.of.limits()
        return self.back(low), self.back(high)

    def polyhedron(self) -> Polyhedron | None:
        lines = self.of.polyhedron()
        if lines is None:
            return None
        E = np.empty_like(lines.E)
        E[:, self.order] = lines.E
        return Polyhedron(self.back(lines.low), self.back(lines.high), E)

    def interior_point(self) -> Vector:
        return self.back(self.of.interior_point())

    def back(self, lines: Vector) -> Vector:
        """The array x (n,) with x[order] = lines."""
        x = np.empty_like(lines)
        x[self.order] = lines
        return x


@dataclass(frozen=True, slots=True)
class ReorderedFace:
    """A face of a ReorderedSet: {d : d[order] is in the face `of`}."""

    of: Face
    order: NDArray[np.intp]

    @property
    def whole(self) -> bool:
        return self.of.whole

    @property
    def coordinates(self) -> Mask | None:
        lines = self.of.coordinates
        if lines is None:
            return None
        free = np.empty_like(lines)
        free[self.order] = lines
        return free

    @property
    def shift(self) -> Vector | None:
        lines = self.of.shift
        if lines is None:
            return None
        shift = np.empty_like(lines)
        shift[self.order] = lines
        return shift

    def project(self, v: Vector) -> Vector:
        out = np.empty_like(v)
        out[..., self.order] = self.of.project(v[..., self.order])
        return out
