"""The interface of a set to the methods whose iterates stay in it."""

from __future__ import annotations

from typing import Protocol

from slomodel.solve.norms import Vector


class Set(Protocol):
    """A closed convex set in ℝⁿ with interior points.

    `radius` is that of the smallest ball that contains the set, and `diameter` the largest
    distance between two of its points; inf for an unbounded set.
    """

    @property
    def radius(self) -> float: ...

    @property
    def diameter(self) -> float: ...

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        """Whether x (n,) is in the set, or at a distance of at most `slack` from it."""
        ...

    def in_interior(self, x: Vector) -> bool:
        """Whether x (n,) is an interior point."""
        ...

    def in_margin(self, x: Vector, d: float) -> bool:
        """Whether x (n,) is within d of the boundary, or outside."""
        ...

    def shrunk(self, d: float) -> Set:
        """The points of the set whose distance from the boundary is at least d."""
        ...

    def project(self, x: Vector, out: Vector) -> bool:
        """Write the point of the set nearest to x into `out`, both (n,); True if it is not x.

        `out` may be x.
        """
        ...

    def project_step(self, x: Vector, g: Vector, gnorm: float, L: float, out: Vector) -> bool:
        """Write the projection of x − g/L into `out`, all (n,); True if the projection moved it.

        x is in the set, and L = 0 stands for the limit L → 0. The projection is computed even if
        g/L would overflow.
        """
        ...

    def tangent(self, x: Vector, v: Vector, out: Vector) -> None:
        """Write the projection of v onto the tangent cone at x, a point of the set, into `out`.

        For v = −∇f(x) it is 0 exactly at the stationary points of f over the set.
        """
        ...

    def interior_point(self) -> Vector:
        """A point (n,) far from the boundary: the centre of a ball or a bounded box."""
        ...
