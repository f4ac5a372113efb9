"""The moves of pgd, tgd and gd for variables in a convex set."""

from __future__ import annotations

from slomodel.solve.norms import Vector, norm
from slomodel.solve.sets.within_ball import WithinBall
from slomodel.solve.subroutine import EpochRegion, Iterate


def truncate_projected(current: Iterate, region: EpochRegion, out: Vector) -> bool:
    """Write x + s(P(x − ∇f/L1) − x) with s = min(1, d/‖·‖) into `out` (n,); True if s < 1.

    P is the projection on the set of the variables, which holds the whole segment.
    """
    d, L1, where = region.d, region.L1, region.set
    assert L1 is not None
    assert isinstance(where, WithinBall)
    where.step_within(current.x, current.g, L1, out)
    out -= current.x
    length = norm(out)
    cut = length > d
    if cut:
        out *= d / length
    out += current.x
    # Rounding alone may have left the set.
    where.within.project(out, out)
    return cut
