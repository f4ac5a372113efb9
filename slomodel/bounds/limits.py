"""Bounds over the part of a ball in which variables stay within their limits.

The limits are intervals I = Π I_i that contain the set X of the variables, so that bounds over
B ∩ I hold over B ∩ X. B ∩ I is convex and contains the centre, and thereby every segment from the
centre to one of its points: Taylor's theorem applies as on the whole ball, and ranges of nodes may
be those over B ∩ I. A bound over the whole ball remains one. Where I is bounded, a ball around the
centre holds it, and no larger radius is needed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Array, up_add, up_norm
from slomodel.bounds.part import ObjectivePart

UNLIMITED = Interval(np.asarray(-np.inf), np.asarray(np.inf))


def with_limits_at_centre(part: ObjectivePart) -> ObjectivePart:
    """The part, without limits unless the centre lies in all of them."""
    for variable, limits in part.limits.items():
        at = part.values.get(variable)
        if at is not None and not ((limits.lo <= at) & (at <= limits.hi)).all():
            return replace(part, limits={})
    return part


def box_of_limits(part: ObjectivePart) -> tuple[Array, Array] | None:
    """The lower and the upper ends (n,) of all limits, infinite where a variable has none.

    None where no variable has limits.
    """
    if not part.limits:
        return None
    low, high = [], []
    for variable in part.variables:
        limits, shape = part.limits.get(variable, UNLIMITED), np.shape(part.values[variable])
        low.append(np.broadcast_to(limits.lo, shape).ravel())
        high.append(np.broadcast_to(limits.hi, shape).ravel())
    return np.concatenate(low), np.concatenate(high)


def limited_radius(part: ObjectivePart, radius: float) -> float:
    """A radius, at most the given one, of a ball that holds all of its points within the limits."""
    box = box_of_limits(part)
    if box is None:
        return radius
    reach = np.maximum(up_add(box[1], -part.x), up_add(part.x, -box[0]))
    return min(radius, float(up_norm(reach)))
