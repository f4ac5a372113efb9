"""The interface of the sets in which variables must stay, and of their faces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slomodel.solve.norms import Vector

Mask = NDArray[np.bool_]


class Face(Protocol):
    """The directions in which a point moves within a face of a set, a linear subspace of ℝⁿ.

    A flat face of a polyhedron contains x + td for every such d and small t. Along a curved one
    the Lagrangian of a quadratic with gradient r has the curvature of the quadratic plus `shift`.
    """

    @property
    def shift(self) -> Vector | None:
        """The nonnegative curvature (n,) that the boundary adds; None for a flat face."""
        ...

    @property
    def coordinates(self) -> Mask | None:
        """The mask (n,) of the elements that move, on a face of a box; None on others."""
        ...

    @property
    def whole(self) -> bool:
        """Whether no bound is active, so that the subspace is ℝⁿ."""
        ...

    def project(self, v: Vector) -> Vector:
        """The orthogonal projection of v (n,), or of each row of v (k, n), on the subspace."""
        ...


@dataclass(frozen=True, slots=True)
class Polyhedron:
    """{x : low ≤ x ≤ high, E x constant} for x, low and high (n,), and E (k, n)."""

    low: Vector
    high: Vector
    E: Vector


class Set(Protocol):
    """A closed set in ℝⁿ with a nearest point to every point."""

    @property
    def convex(self) -> bool: ...

    @property
    def polyhedral(self) -> bool:
        """Whether its boundary is flat: finitely many linear inequalities and equations."""
        ...

    @property
    def is_box(self) -> bool:
        """Whether it is the box of its limits."""
        ...

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        """Whether x (n,) is in the set, or at a distance of at most `slack` from it.

        Sets whose equations can hold only up to rounding allow for that rounding.
        """
        ...

    def project(self, x: Vector, out: Vector) -> bool:
        """Write the point of the set nearest to x into `out`, both (n,); True if it is not x.

        `out` may be x.
        """
        ...

    def tangent(self, x: Vector, v: Vector, out: Vector) -> None:
        """Write the projection of v onto the tangent cone at x, a point of the set, into `out`.

        For v = −∇f(x) it is 0 exactly at the stationary points of f over the set.
        """
        ...

    def projected_gradient(self, x: Vector, g: Vector, out: Vector) -> None:
        """Write P(x − g) − x into `out`, all (n,), P the projection and x a point of the set.

        On a sphere it is the projection of −g on the tangent space.
        """
        ...

    def face(self, x: Vector, r: Vector) -> Face:
        """The face in which −r (n,) leaves x (n,): the bounds that −r presses against stay active.

        Bounds that −r moves away from are dropped, all at once.
        """
        ...

    def at_bounds(self, x: Vector) -> Mask:
        """The elements of x (n,) that are held by an active bound, as a mask (n,)."""
        ...

    def limits(self) -> tuple[Vector, Vector]:
        """Lower and upper ends (n,) of a box that contains the set; ±inf where there is none."""
        ...

    def polyhedron(self) -> Polyhedron | None:
        """The set as bounds and equations; None if its boundary is curved."""
        ...

    def interior_point(self) -> Vector:
        """A point (n,) far from the boundary: the centre of a ball or a bounded box."""
        ...


def to_projection(where: Set, x: Vector, g: Vector, out: Vector) -> None:
    """Write P(x − g) − x into `out`, all (n,), P the projection on the set."""
    np.subtract(x, g, out=out)
    where.project(out, out)
    out -= x


@dataclass(frozen=True, slots=True)
class WholeFace:
    """All of ℝⁿ, in the interior of a set."""

    shift = None
    coordinates = None
    whole = True

    def project(self, v: Vector) -> Vector:
        return v


@dataclass(frozen=True, slots=True)
class Coordinates:
    """The face of a box in which the elements in the mask `free` (n,) move."""

    free: Mask

    shift = None

    @property
    def coordinates(self) -> Mask:
        return self.free

    @property
    def whole(self) -> bool:
        return bool(np.count_nonzero(self.free) == len(self.free))

    def project(self, v: Vector) -> Vector:
        return np.where(self.free, v, 0.0)
