"""The Euclidean ball, the set of Algorithm 1's epochs, and of variables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slomodel.solve.norms import EPS, Vector, norm
from slomodel.solve.sets.convex_set import Face, Mask, WholeFace, to_projection

# A point counts as on the boundary up to this multiple of the rounding error of its distance.
ON_BOUNDARY = 8.0


@dataclass(frozen=True, slots=True)
class EuclideanBall:
    """{x : ‖x − centre‖ ≤ radius}, centre (n,); the whole space if the radius is inf."""

    centre: Vector
    radius: float

    convex = True
    within = None
    polyhedral = False
    is_box = False

    @property
    def diameter(self) -> float:
        return 2.0 * self.radius

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        return norm(np.subtract(x, self.centre)) <= self.radius + slack

    def in_interior(self, x: Vector) -> bool:
        return norm(x - self.centre) < self.radius

    def in_margin(self, x: Vector, d: float) -> bool:
        return norm(np.subtract(x, self.centre)) >= self.radius - d

    def shrunk(self, d: float) -> EuclideanBall:
        return EuclideanBall(self.centre, self.radius - d)

    def project(self, x: Vector, out: Vector) -> bool:
        from_centre = np.subtract(x, self.centre)
        distance = norm(from_centre)
        if distance <= self.radius:
            np.copyto(out, x)
            return False
        np.multiply(from_centre, self.radius / distance, out=out)
        out += self.centre
        return True

    def project_step(self, x: Vector, g: Vector, gnorm: float, L: float, out: Vector) -> bool:
        # A step longer than the diameter ends outside the ball, so that only its direction matters.
        if gnorm <= self.diameter * L:
            np.divide(g, -L, out=out)
            out += x
            return self.project(out, out)
        from_centre = (x - self.centre) * (L / gnorm) - g / gnorm
        np.multiply(from_centre, self.radius / norm(from_centre), out=out)
        out += self.centre
        return True

    def _outward(self, x: Vector) -> Vector | None:
        """The outer unit normal (n,) at x; None if x is not on the boundary up to rounding."""
        from_centre = np.subtract(x, self.centre)
        distance = norm(from_centre)
        rounding = ON_BOUNDARY * EPS * (self.radius + norm(x))
        if distance == 0.0 or distance < self.radius - rounding:
            return None
        return from_centre / distance

    def tangent(self, x: Vector, v: Vector, out: Vector) -> None:
        np.copyto(out, v)
        normal = self._outward(x)
        outward = 0.0 if normal is None else float(normal.dot(v))
        if normal is not None and outward > 0.0:
            out -= outward * normal

    def projected_gradient(self, x: Vector, g: Vector, out: Vector) -> None:
        to_projection(self, x, g, out)

    def face(self, x: Vector, r: Vector) -> Face:
        normal = self._outward(x)
        inward = 0.0 if normal is None else float(normal.dot(r))
        if normal is None or inward > 0.0:
            return WholeFace()
        return TangentPlane(normal, -inward / self.radius)

    def at_bounds(self, x: Vector) -> Mask:
        return np.full(len(x), self._outward(x) is not None)

    def limits(self) -> tuple[Vector, Vector]:
        return cube(self.centre, self.radius)

    def polyhedron(self) -> None:
        return None

    def interior_point(self) -> Vector:
        return self.centre.copy()


def cube(centre: Vector, radius: float) -> tuple[Vector, Vector]:
    """The ends (n,) of a cube that contains the ball, and all that counts as its boundary."""
    reach = radius + ON_BOUNDARY * EPS * (radius + norm(centre))
    return centre - reach, centre + reach


@dataclass(frozen=True, slots=True)
class TangentPlane:
    """The tangent plane of a sphere with the unit `normal` (n,), and its Lagrange multiplier."""

    normal: Vector
    multiplier: float

    whole = False
    coordinates = None

    @property
    def shift(self) -> Vector:
        return np.full(len(self.normal), self.multiplier)

    def project(self, v: Vector) -> Vector:
        return v - np.multiply.outer(v @ self.normal, self.normal)
