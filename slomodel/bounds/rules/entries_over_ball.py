"""Intervals for the entries of the Hessian and of the third derivative over the whole ball."""

from __future__ import annotations

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import up_add
from slomodel.bounds.centre import (
    centre_hessian,
    centre_third,
    hessian_at_centre,
    hessian_over,
    third_over,
)
from slomodel.bounds.enclosure import DerivativeBounds, Enclosure, both_ends
from slomodel.bounds.norms.cubic_norm import trilinear_norm
from slomodel.bounds.norms.spectral_norm import symmetric_norm
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.smoothness import smoothness_in
from slomodel.bounds.ranges.taylor.taylor_ranges import taylor_ranges
from slomodel.bounds.ranges.unbounded import unbounded

_FLOPS = 32.0
"""Operations per direction and element of a node that depends on it."""


def entries_over_the_ball(part: ObjectivePart, radius: float) -> Enclosure | None:
    """L1 and L2 from intervals for the entries of H and of D³f over the ball.

    Hypothesis: f is C¹ (C² for L2) and piecewise smooth on the ball, which `smoothness` proves.
    Entries lie in the intervals given by Taylor forms of the gradient's nodes. With H in M ± R
    elementwise, ‖H‖ <= ‖M‖ + ‖R‖, and likewise for D³f; and ‖H(x)‖ <= ‖H(c)‖ + r L2. Unlike bounds
    by norms, intervals preserve the signs of terms: as r tends to 0 both bounds tend to the
    derivatives at the centre, for any graph.
    """
    if part.n == 0:
        return None
    most = part.effort.count(_FLOPS)
    ranges = taylor_ranges(part, radius, most)
    smooth = smoothness_in(part, ranges)
    order = smooth.least
    if order < 1:
        return Enclosure(order=order, reason=smooth.reason)
    H = hessian_over(part, ranges, most) if radius else centre_hessian(part)
    if H is None:
        return None
    over = symmetric_norm(H.mid, H.rad)
    L2 = np.inf
    if order >= 2:
        T = third_over(part, ranges, most) if radius else centre_third(part)
        L2 = np.inf if T is None else _third_norm(T)
    centre = DerivativeBounds(both_ends(hessian_at_centre(part)))
    reason = "" if np.isfinite(over) else smooth.reason or unbounded(part, radius)
    return Enclosure(centre, DerivativeBounds(both_ends(over), L2), order, reason)


def _third_norm(T: Interval) -> float:
    middle, spread = trilinear_norm(np.stack([T.mid, T.rad]))
    return float(up_add(float(middle), float(spread)))
