"""Boxes: lower and upper bounds on the variables, either of which may be infinite."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slomodel.solve.norms import Vector, norm
from slomodel.solve.sets.convex_set import Coordinates, Mask, Polyhedron

# Distance of an interior point from the one finite bound of a variable, in units of
# max(1, |bound|).
INWARD = 1.0


@dataclass(frozen=True, slots=True)
class Box:
    """{x : low ≤ x ≤ high}, both (n,); ±inf where a variable has no bound, equal where fixed."""

    low: Vector
    high: Vector

    convex = True
    within = None
    polyhedral = True
    is_box = True

    @property
    def diameter(self) -> float:
        sides = np.subtract(self.high, self.low)
        return norm(sides) if np.isfinite(sides).all() else math.inf

    @property
    def radius(self) -> float:
        return 0.5 * self.diameter

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        if slack == 0.0:
            inside = (self.low <= x) & (x <= self.high)
            return bool(np.count_nonzero(inside) == len(x))
        nearest = np.empty_like(x)
        self.project(x, nearest)
        return norm(x - nearest) <= slack

    def in_interior(self, x: Vector) -> bool:
        return bool(((self.low < x) & (x < self.high)).all())

    def in_margin(self, x: Vector, d: float) -> bool:
        return bool(((x - self.low <= d) | (self.high - x <= d)).any())

    def shrunk(self, d: float) -> Box:
        return Box(self.low + d, self.high - d)

    def project(self, x: Vector, out: Vector) -> bool:
        # Compared by their number, which takes less time than a reduction for few variables.
        nearest = np.minimum(np.maximum(x, self.low), self.high)
        moved = bool(np.count_nonzero(nearest != x))
        np.copyto(out, nearest)
        return moved

    def project_step(self, x: Vector, g: Vector, gnorm: float, L: float, out: Vector) -> bool:
        if L > 0.0:
            # Overflow of a step gives ±inf, whose projection is a bound.
            with np.errstate(over="ignore"):
                np.divide(g, -L, out=out)
                out += x
        else:
            np.copyto(out, np.where(g > 0.0, -math.inf, np.where(g < 0.0, math.inf, x)))
        return self.project(out, out)

    def tangent(self, x: Vector, v: Vector, out: Vector) -> None:
        leaves = ((x <= self.low) & (v < 0.0)) | ((x >= self.high) & (v > 0.0))
        np.copyto(out, np.where(leaves, 0.0, v))

    def projected_gradient(self, x: Vector, g: Vector, out: Vector) -> None:
        # −g between the distances to the bounds: x − g may round to x where x is large.
        np.maximum(-g, self.low - x, out=out)
        np.minimum(out, self.high - x, out=out)

    def face(self, x: Vector, r: Vector) -> Coordinates:
        held = ((x <= self.low) & (r >= 0.0)) | ((x >= self.high) & (r <= 0.0))
        return Coordinates(~held)

    def at_bounds(self, x: Vector) -> Mask:
        return (x <= self.low) | (x >= self.high)

    def limits(self) -> tuple[Vector, Vector]:
        return self.low, self.high

    def polyhedron(self) -> Polyhedron:
        return Polyhedron(self.low, self.high, np.zeros((0, len(self.low))))

    def interior_point(self) -> Vector:
        with np.errstate(invalid="ignore"):
            middle = 0.5 * self.low + 0.5 * self.high
            # The usual case takes a fraction of the time of the others.
            if math.isfinite(float(middle.sum())):
                return middle
            low, high = np.isfinite(self.low), np.isfinite(self.high)
            above = self.low + INWARD * np.maximum(1.0, np.abs(self.low))
            below = self.high - INWARD * np.maximum(1.0, np.abs(self.high))
        one_sided = np.where(low, above, np.where(high, below, 0.0))
        return np.where(low & high, middle, one_sided)
