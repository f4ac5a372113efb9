"""Quadratic majorants over the ball of derivatives of ridge functions Σ w_i φ_i(a_i·x + b_i)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, interval
from slomodel.bounds.arithmetic.rounding import Array, down_mul, up, up_add, up_mul
from slomodel.bounds.norms.fourth_powers import attained, fourth_powers
from slomodel.bounds.norms.loewner import Rows, quadratic_sum, upper_end
from slomodel.bounds.norms.quartic_norm import MOST_COLUMNS, largest_quartic, sum_of_fourth_powers
from slomodel.bounds.ranges.elements.element_functions import Slots
from slomodel.bounds.ranges.elements.element_ranges import element_ranges
from slomodel.bounds.ranges.elements.element_sums import ElementSum
from slomodel.bounds.refinements.sums import WORTH, SumBounds, SumOverBall
from slomodel.ir.expr import Expr

FRACTIONS = (0.0, 0.5, 1.0)
"""Fractions of the slope of φ'' at the centre that β takes; each proves a bound."""
_FEW_STEPS = 0.25
"""Part of the usual work on a quartic form, as there is one for every majorant."""
_OFFSETS = 65
"""Offsets at which φ'' is enclosed; its second derivative bounds it in between."""
_ALONG = "H by majorants along the ball"


def ridge_majorants(own: SumOverBall, known: SumBounds) -> SumBounds | None:
    """L1 by majorants along the ball, per end; None for other sums than of one ridge function."""
    least, result = min(known.first.values()), max(own.centre.ends)
    is_ridge = len(own.parts) == 1 and len(own.parts[0].rows) == 1
    if not is_ridge or not result < WORTH * least < np.inf:
        return None
    slopes = own.centre.parts[0].ranges[0, 0, 0].mid
    ridge = ridge_of(own.parts[0], slopes, own.over[0].ranges[0, 0, 0, 0], own.radius)
    for end, sign in zip(own.ends, (1.0, -1.0), strict=True):
        if end > result:
            along = end_along(ridge, own.centre.third.norm, own.radius, sign, least)
            result = max(result, min(end, along))
    return replace(known, first={**known.first, _ALONG: result})


@dataclass(frozen=True, slots=True)
class Ridge:
    """Values for m elements of w φ'', w φ''' and w φ''''.

    Those of w φ'' are at the centre and at offsets to both sides (2, K, m), 0 = s_0 < .. < s_(K-1)
    >= r‖a‖; those of w φ''' are the midpoints (m,) at the centre, those of w φ'''' the range (m,)
    over the ball.
    """

    rows: Rows
    offsets: Array
    values: Interval
    slopes: Array
    fourth: Interval


def ridge_of(part: ElementSum[Rows], slopes: Array, fourth: Interval, radius: float) -> Ridge:
    """The second derivatives at offsets to both sides of the centre."""
    (one,), (centre,), (rows,) = part.own.arguments, part.centre, part.rows
    reach = up_mul(np.asarray(radius), rows.length)
    s = np.linspace(0.0, 1.0, _OFFSETS)[:, np.newaxis] * reach
    s[-1] = reach
    both = np.stack([s, -s])

    def flat(a: Interval) -> Interval:
        return a.broadcast(both.shape).each(np.ravel)

    moved = interval(-up_add(-centre.lo, -both), up_add(centre.hi, both))
    graphs: dict[Slots, Expr] = {(0, 0): part.graphs[0, 0]}
    data = {k: flat(a) for k, a in part.data.items()}
    result = element_ranges(part.own.value, graphs, {one: flat(moved)}, data, {})
    values = result.derivatives[0, 0].each(lambda array: array.reshape(both.shape))
    return Ridge(rows, s, part.weight * values, slopes, fourth)


def end_along(
    ridge: Ridge, third: float, radius: float, sign: float, useless: float = float(np.inf)
) -> float:
    """Upper bound on λ_max(± H(c + d)), ‖d‖ <= r, where `third` bounds ‖Σ slopes a⊗a⊗a‖.

    inf where it is estimated to be at least `useless`. Where ± w φ''(u + s) <= α + β s + γ s² for
    |s| <= r‖a‖, γ >= 0, the form vᵀ(± H)v is at most

        Σ α (a·v)² + Σ β (a·d) (a·v)² + Σ γ (a·d)² (a·v)²,

    so λ_max(Σ α a aᵀ) + r ‖Σ β a⊗a⊗a‖ + r² max Σ γ (a·v)⁴ bounds it, by Cauchy–Schwarz. β is a
    fraction of the slope at the centre, and γ the slope of the chord of the remainder as a function
    of s², if positive.
    """
    tried = [_majorant(ridge, third, sign, fraction) for fraction in FRACTIONS]
    least = [_total(one, radius, attained(ridge.rows, one[2], 4)) for one in tried]
    best = int(np.argmin(least))
    if least[best] >= useless:
        return float(np.inf)
    gamma = tried[best][2]
    fourth = fourth_powers(ridge.rows, gamma)
    if ridge.rows.value.shape[1] <= MOST_COLUMNS and np.isfinite(gamma).all():
        closely = largest_quartic(sum_of_fourth_powers(ridge.rows, gamma), _FEW_STEPS)
        fourth = min(fourth, closely)
    return _total(tried[best], radius, fourth)


Majorant = tuple[float, float, Array]
"""λ_max(Σ α a aᵀ), ‖Σ β a⊗a⊗a‖ and γ."""


def _total(one: Majorant, radius: float, fourth: float) -> float:
    return float(up_add(one[0], up_mul(radius, up_add(one[1], up_mul(radius, fourth)))))


def _majorant(ridge: Ridge, third: float, sign: float, fraction: float) -> Majorant:
    beta: Array = sign * fraction * ridge.slopes
    s = ridge.offsets
    ends = ridge.values.hi if sign > 0.0 else -ridge.values.lo
    left: Array = np.maximum(
        up_add(ends[0], up_mul(-beta, s)),
        up_add(ends[1], up_mul(beta, s)),
    )
    squares = down_mul(s, s)
    with np.errstate(all="ignore"):
        gamma = (left[-1] - left[0]) / squares[-1]
    gamma = np.where(np.isfinite(gamma), np.maximum(gamma, 0.0), 0.0)
    alpha: Array = np.max(up_add(left, up_mul(-gamma, squares)), axis=0)
    alpha = up_add(alpha, _between(ridge, gamma, sign))
    if not np.isfinite(alpha).all():
        return np.inf, np.inf, gamma
    first = upper_end(quadratic_sum([ridge.rows], {(0, 0): alpha}))
    return first, float(up_mul(fraction, third)), gamma


def _between(ridge: Ridge, gamma: Array, sign: float) -> Array:
    """Upper bound on the excess over the chord between two offsets: δ²/8 sup (-g'')."""
    gap = np.max(up_add(ridge.offsets[1:], -ridge.offsets[:-1]), axis=0)
    falling = np.maximum(-ridge.fourth.lo if sign > 0.0 else ridge.fourth.hi, 0.0)
    return up_mul(up(0.125 * up_mul(gap, gap)), up_add(2.0 * gamma, falling))
