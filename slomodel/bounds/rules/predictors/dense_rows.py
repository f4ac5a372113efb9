"""Sums over elements whose rows are arrays: by the Loewner order, and from the centre."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from slomodel.bounds.closure import moved
from slomodel.bounds.enclosure import (
    UNKNOWN,
    Derivation,
    DerivativeBounds,
    Enclosure,
    Ends,
    norm_of,
)
from slomodel.bounds.norms.element_derivatives import (
    fourth_order_ends,
    second_order_ends,
    third_by_size,
    third_order,
)
from slomodel.bounds.norms.loewner import Rows
from slomodel.bounds.norms.quartic_norm import MOST_COLUMNS
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.elements.element_sums import (
    ElementSum,
    Over,
    parts_over_ball,
)
from slomodel.bounds.refinements import refine
from slomodel.bounds.refinements.quartic_sums import AT_BEST, quartic_forms, third_of_sum
from slomodel.bounds.refinements.ridge_majorants import ridge_majorants
from slomodel.bounds.refinements.sums import (
    BY_ENDS,
    SumAtCentre,
    SumBounds,
    SumOverBall,
    SumRefinement,
)
from slomodel.bounds.result import shown

REFINEMENTS: tuple[SumRefinement, ...] = (quartic_forms, ridge_majorants)
"""Applied in this order, each to the bounds that the ones before it leave."""


def over_ball(part: ObjectivePart, parts: tuple[ElementSum[Rows], ...], radius: float) -> Enclosure:
    """The enclosure of f = Σ_i w_i φ_i(u_i), u_pi = a_pi·x + b_pi, by the Loewner order.

    H = Σ_i w_i Σ_pq φ_i,pq a_pi a_qiᵀ. Over the ball u_pi is within r‖a_pi‖ of its value at the
    centre. Where w_i φ_i,pq lies in C_pq ± R_pq there, by |R_pq x y| <= R_pq (δ x² + y²/δ)/2 for
    every δ > 0,

        Σ_i A_i(C - E) <= H <= Σ_i A_i(C + E),  A_i(M) = Σ_pq M_pq a_pi a_qiᵀ, E diagonal,

    and ‖H‖ is at most the larger of λ_max of the right-hand side and -λ_min of the left-hand side;
    for one argument these have the weights sup and inf of w_i φ_i''. In the same way D³f = Σ_i w_i
    Σ φ_i,pqr a_pi ⊗ a_qi ⊗ a_ri is that of the midpoints of the ranges, a fixed form, plus at most
    their radii against |a·v|³. From the centre each end is bounded separately: vᵀH(c + d)v <=
    λ_max(H(c)) + r ‖D³f(c)‖ + r²/2 sup D⁴f[v, v, w, w], and likewise for -f. Hypothesis: each φ_i
    is C¹ (C² for L2), which `smoothness` proves.
    """
    over = sums_over(part, parts, radius)
    if over.order < 1:
        return Enclosure(order=over.order, reason=over.reason)
    if over.order < 2:
        ends = second_order_ends(over.parts)
        return Enclosure(over=DerivativeBounds(ends), order=over.order, reason=over.reason)
    if radius == 0.0:
        centre_only = sums_at_centre(part, parts).bounds
        return Enclosure(centre_only, centre_only, over.order, over.reason)
    ends = second_order_ends(over.parts)
    first: Mapping[str, float] = {"H elementwise": norm_of(ends)}
    effort = part.effort
    third = None
    if over.parts[0].columns <= MOST_COLUMNS:
        third = third_order(over.parts, effort=effort)
    nearby, fourth, at_centre = float(np.inf), UNKNOWN, DerivativeBounds()
    if over.order > 2:
        known = min(third) if third else third_by_size(over.parts, float(np.inf))
        centre = sums_at_centre(part, parts)
        at_centre = centre.bounds
        own = SumOverBall(part, parts, over.parts, centre, radius, ends, known)
        bounds = refine(own, _from_centre(own, first), REFINEMENTS)
        first, nearby, fourth = bounds.first, bounds.second, bounds.fourth
    by_size, by_middles = third or third_order(over.parts, nearby, effort=effort)
    second = {"sum of |φ‴| elementwise": by_size, "D³f by midpoints and radii": by_middles}
    if over.order > 2:
        second["‖D³f(c)‖ + r sup ‖D⁴f‖"] = nearby
    L1, L2 = min(first.values()), min(second.values())
    tightened = DerivativeBounds((min(ends[0], L1), min(ends[1], L1)), L2, fourth)
    lines = (
        tuple(f"{name} ≤ {shown(value)}" for name, value in one.items()) for one in (first, second)
    )
    by = (Derivation(lines=own) for own in lines)
    return Enclosure(at_centre, tightened, over.order, over.reason, *by)


def sums_over(part: ObjectivePart, parts: tuple[ElementSum[Rows], ...], radius: float) -> Over:
    """The parts over a ball; cached for the centre alone."""
    if radius > 0.0:
        return parts_over_ball(part, parts, radius)
    return _over_centre(part, parts)


@once_per_part
def _over_centre(part: ObjectivePart, parts: tuple[ElementSum[Rows], ...]) -> Over:
    return parts_over_ball(part, parts, 0.0)


@once_per_part
def sums_at_centre(part: ObjectivePart, parts: tuple[ElementSum[Rows], ...]) -> SumAtCentre:
    """The parts at the centre, where they are twice differentiable."""
    own = _over_centre(part, parts).parts
    return SumAtCentre(own, second_order_ends(own), third_of_sum(own))


def _from_centre(own: SumOverBall, first: Mapping[str, float]) -> SumBounds:
    """L1 per end and L2 by Taylor's theorem from the centre, with the bounds on D⁴f used."""
    fourth = fourth_order_ends(own.over, _useless(own))
    third = own.centre.third.norm
    nearby = float(moved(third, own.radius, max(fourth)))
    return SumBounds({**first, BY_ENDS: own.by_ends(fourth)}, nearby, fourth)


def _useless(own: SumOverBall) -> Ends:
    """Estimates of the values below which D⁴f must be at each end to improve on the others.

    They allow for the reduction that quartic forms may achieve.
    """
    third, radius = own.centre.third.norm, own.radius
    slope = (own.third - third) / radius
    upper, lower = (
        max(slope, 2.0 * ((norm_of(own.ends) - end) / radius - third) / radius) / AT_BEST
        for end in own.centre.ends
    )
    return upper, lower
