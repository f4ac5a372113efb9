"""The interface of the sets of Algorithm 1's epochs."""

from __future__ import annotations

from typing import Protocol

from slomodel.solve.norms import Vector
from slomodel.solve.sets.convex_set import Set


class EpochSet(Protocol):
    """A closed convex set with a boundary that ends the epoch.

    It is a ball, or the part of one in the set of the variables; then interior and boundary are
    those of the ball. `radius` is that of the smallest ball that contains the set, and inf for an
    unbounded set.
    """

    @property
    def radius(self) -> float: ...

    @property
    def within(self) -> Set | None:
        """The set of the variables of which this is a part; None for the whole space."""
        ...

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        """Whether x (n,) is in the set, or at a distance of at most `slack` from it."""
        ...

    def in_interior(self, x: Vector) -> bool:
        """Whether x (n,) is an interior point."""
        ...

    def in_margin(self, x: Vector, d: float) -> bool:
        """Whether x (n,) is within d of the boundary, or outside."""
        ...

    def shrunk(self, d: float) -> EpochSet:
        """The points of the set whose distance from the boundary is at least d."""
        ...

    def project(self, x: Vector, out: Vector) -> bool:
        """Write the point of the set nearest to x into `out`, both (n,); True if it is not x.

        `out` may be x.
        """
        ...

    def project_step(self, x: Vector, g: Vector, gnorm: float, L: float, out: Vector) -> bool:
        """Write the projection of x − g/L into `out`, all (n,); True if the boundary moved it.

        x is in the set, and L = 0 stands for the limit L → 0. The projection is computed even if
        g/L would overflow.
        """
        ...
