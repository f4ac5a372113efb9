"""Slices across the orbits of invariances: unknowns that are held so that each orbit is met once.

Let f(gx) = f(x) for groups whose one-parameter subgroups move x in the directions of the columns of
G(x), and hold as many unknowns h as there are columns, where the square matrix G_h(x) is regular.
If the gradient of f by all other unknowns is 0 at x, then 0 = ∇f(x)·G = ∇f_h(x)·G_h gives ∇f_h = 0:
a critical point on the slice is one of f, and nearby orbits meet the slice in one point each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from slomodel.bounds.arithmetic.interval import Interval, around
from slomodel.bounds.arithmetic.rounding import Array, Truths, up_add
from slomodel.bounds.certificates.critical_point import distance_from_identity
from slomodel.bounds.effort import MOST_NUMBERS
from slomodel.bounds.norms.spectral_norm import spectral_norm
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.structure.invariances import Invariance

_ROUNDED = 1e-14
"""Relative error of sums of a few elements of x."""
_DEPENDENT = 1e-8
"""Relative size of a diagonal element of R that counts as 0: the directions are dependent."""


@dataclass(frozen=True, slots=True, eq=False)
class OrbitSlice:
    """The unknowns `held` (n,), at which the directions `which` of all groups are independent."""

    part: ObjectivePart
    groups: tuple[Invariance, ...]
    held: Truths
    which: Array

    def is_regular(self, x: Array, error: Array) -> bool:
        """Whether G_h is proved to be regular at all points within `error` of x, elementwise."""
        if not self.held.any():
            return True
        at = _directions(self.part, self.groups, x)[self.held][:, self.which]
        parts = [group.moved(self.part, error) for group in self.groups]
        moved = _ROUNDED * np.abs(at) + np.concatenate(parts, axis=1)[self.held][:, self.which]
        moved = np.asarray(up_add(moved, _ROUNDED * moved))
        G = around(at, moved)
        middle = G.mid
        try:
            R: Array = np.asarray(np.linalg.inv(middle), dtype=np.float64)
        except np.linalg.LinAlgError:
            return False
        if not (np.isfinite(R).all() and np.isfinite(moved).all()):
            return False
        return spectral_norm(distance_from_identity(R, Interval(G.lo, G.hi))) < 1.0


def slice_at(
    part: ObjectivePart, groups: Sequence[Invariance], x: Array, free: Truths
) -> OrbitSlice | None:
    """A slice through x that holds free unknowns only; None where there are too many directions."""
    continuous = tuple(group for group in groups if group.generators(part, x).shape[1])
    G = _directions(part, continuous, x)
    if G.size > MOST_NUMBERS or not np.isfinite(G).all():
        return None
    held = np.zeros(len(x), dtype=bool)
    nothing = OrbitSlice(part, continuous, held, np.zeros(0, dtype=np.intp))
    if not G.size or not free.all():
        return nothing
    R, columns = scipy.linalg.qr(G, mode="r", pivoting=True)
    sizes = np.abs(np.diag(R[: min(R.shape)]))
    rank = int((sizes > _DEPENDENT * max(float(sizes[0]), np.finfo(float).tiny)).sum())
    which = np.sort(columns[:rank])
    _, rows = scipy.linalg.qr(G[:, which].T, mode="r", pivoting=True)
    held[rows[:rank]] = True
    return OrbitSlice(part, continuous, held, which)


def _directions(part: ObjectivePart, groups: Sequence[Invariance], x: Array) -> Array:
    parts = [group.generators(part, x) for group in groups]
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(x), 0))
