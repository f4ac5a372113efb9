"""Sums over elements whose rows are arrays: by the Loewner order, and from the centre."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slomodel.bounds.arithmetic.rounding import up_add
from slomodel.bounds.close import ends_by_fourth, moved
from slomodel.bounds.enclosure import (
    UNKNOWN,
    Derivation,
    DerivativeBounds,
    Enclosure,
    Ends,
    norm_of,
)
from slomodel.bounds.norms.element_derivatives import (
    Weighted,
    fourth_order_ends,
    second_order_ends,
    third_by_size,
    third_order,
)
from slomodel.bounds.norms.loewner import Rows
from slomodel.bounds.norms.quartic import MOST_COLUMNS, Quartic, largest_quartic
from slomodel.bounds.ranges.element_sums import (
    ElementSum,
    Over,
    parts_over_ball,
)
from slomodel.bounds.refinements.quartic_sums import (
    Third,
    fourth_forms,
    third_at_centre,
    third_nearby,
)
from slomodel.bounds.refinements.ridge_majorants import end_along, ridge_of
from slomodel.bounds.result import shown
from slomodel.bounds.setting import Setting, once_per_setting

_AT_BEST = 0.7
"""Quartic forms hardly reduce bounds on D⁴f below this fraction."""
_WORTH = 0.98
"""Factor by which a bound must improve for the work to pay."""


def over_ball(setting: Setting, parts: tuple[ElementSum[Rows], ...], radius: float) -> Enclosure:
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
    over = sums_over(setting, parts, radius)
    if over.order < 1:
        return Enclosure(order=over.order, reason=over.reason)
    if over.order < 2:
        ends = second_order_ends(over.parts)
        return Enclosure(over=DerivativeBounds(ends), order=over.order, reason=over.reason)
    if radius == 0.0:
        centre_only = sums_at_centre(setting, parts).bounds
        return Enclosure(centre_only, centre_only, over.order, over.reason)
    ends = second_order_ends(over.parts)
    first = {"H elementwise": norm_of(ends)}
    third = third_order(over.parts) if over.parts[0].columns <= MOST_COLUMNS else None
    nearby, fourth, at_centre = float(np.inf), UNKNOWN, DerivativeBounds()
    if over.order > 2:
        known = min(third) if third else third_by_size(over.parts, float(np.inf))
        centre = sums_at_centre(setting, parts)
        at_centre = centre.bounds
        by_ends, nearby, fourth = _from_centre(
            setting, over, centre, radius, (norm_of(ends), known)
        )
        first["H(c) + r D³f(c) + r²/2 D⁴f by ends"] = by_ends
        if len(parts) == 1 and len(parts[0].rows) == 1:
            least = min(first.values())
            along = _along_ball(parts[0], over.parts[0], centre, ends, radius, least)
            first["H by majorants along the ball"] = along
    by_size, by_middles = third or third_order(over.parts, nearby)
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


@dataclass(frozen=True, slots=True)
class SumAtCentre:
    """The parts at the centre, upper bounds on λ_max(± H(c)), and D³f(c)."""

    parts: Sequence[Weighted]
    ends: Ends
    third: Third

    @property
    def bounds(self) -> DerivativeBounds:
        return DerivativeBounds(self.ends, self.third.norm)


def sums_over(setting: Setting, parts: tuple[ElementSum[Rows], ...], radius: float) -> Over:
    """The parts over a ball; cached for the centre alone."""
    if radius > 0.0:
        return parts_over_ball(setting, parts, radius)
    return _over_centre(setting, parts)


@once_per_setting
def _over_centre(setting: Setting, parts: tuple[ElementSum[Rows], ...]) -> Over:
    return parts_over_ball(setting, parts, 0.0)


@once_per_setting
def sums_at_centre(setting: Setting, parts: tuple[ElementSum[Rows], ...]) -> SumAtCentre:
    """The parts at the centre, where they are twice differentiable."""
    own = _over_centre(setting, parts).parts
    return SumAtCentre(own, second_order_ends(own), third_at_centre(own))


def _by_ends(centre: SumAtCentre, fourth: Ends, radius: float) -> float:
    return norm_of(ends_by_fourth(centre.ends, radius, centre.third.norm, fourth))


def _from_centre(
    setting: Setting, over: Over, centre: SumAtCentre, radius: float, others: Ends
) -> tuple[float, float, Ends]:
    """L1 by ends and L2, both from the centre, and bounds on D⁴f.

    The latter use quartic forms where these exist and may improve on the others.
    """
    fourth = fourth_order_ends(over.parts, _useless(centre, radius, others))
    L1 = _by_ends(centre, fourth, radius)
    L2 = float(moved(centre.third.norm, radius, max(fourth)))
    at_best = (_AT_BEST * fourth[0], _AT_BEST * fourth[1])
    first = _by_ends(centre, at_best, radius) < min(others[0], _WORTH * L1)
    second = centre.third.norm + radius * max(at_best) < min(others[1], _WORTH * L2)
    forms = fourth_forms(over.parts) if first or second else None
    if forms is None:
        return L1, L2, fourth
    if first:
        upper, lower = (_largest(setting, form) for form in forms[:2])
        fourth = min(fourth[0], upper), min(fourth[1], lower)
        L1 = _by_ends(centre, fourth, radius)
    if second:
        largest = min(_largest(setting, forms[2]), float(up_add(*fourth)))
        L2 = min(L2, third_nearby(centre.third, forms[2], largest, radius))
    return L1, L2, fourth


def _useless(centre: SumAtCentre, radius: float, others: Ends) -> Ends:
    """Estimates of the values below which D⁴f must be at each end to improve on the others.

    They allow for the reduction that quartic forms may achieve.
    """
    slope = (others[1] - centre.third.norm) / radius
    upper, lower = (
        max(slope, 2.0 * ((others[0] - end) / radius - centre.third.norm) / radius) / _AT_BEST
        for end in centre.ends
    )
    return upper, lower


def _along_ball(
    part: ElementSum[Rows],
    over: Weighted,
    centre: SumAtCentre,
    ends: Ends,
    radius: float,
    least: float,
) -> float:
    """L1 by majorants along the ball of one ridge function, per end; inf without improvement."""
    result = max(centre.ends)
    if not result < _WORTH * least < np.inf:
        return float(np.inf)
    slopes = centre.parts[0].ranges[0, 0, 0].mid
    ridge = ridge_of(part, slopes, over.ranges[0, 0, 0, 0], radius)
    for end, sign in zip(ends, (1.0, -1.0), strict=True):
        if end > result:
            along = end_along(ridge, centre.third.norm, radius, sign, least)
            result = max(result, min(end, along))
    return result


def _largest(setting: Setting, form: Quartic) -> float:
    """Upper bound on the form's largest value; cached for balls over which D⁴f is the same."""
    known = _largest_values(setting)
    key = (form.value.tobytes(), form.near.error)
    if key not in known:
        known[key] = largest_quartic(form)
    return known[key]


@once_per_setting
def _largest_values(setting: Setting) -> dict[tuple[bytes, float], float]:
    """A cache of bounds on quartic forms, keyed by their Gram matrices and errors."""
    return {}
