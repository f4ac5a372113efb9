"""The two constants of an objective over a ball, from the claims of `pipeline`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from slomodel.bounds.centre import entry_at_centre
from slomodel.bounds.limits import limited_radius, with_limits_at_centre
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.pipeline import Claims, claims, with_closed
from slomodel.bounds.ranges.range_cache import caching_ranges
from slomodel.bounds.result import Bounds, Claim, Constant, checked_radius
from slomodel.bounds.rules.table import RULES
from slomodel.bounds.scaling import Units, units_of_objective, units_of_variables
from slomodel.bounds.spectrum import HessianOverBall
from slomodel.bounds.structure.exponentials import with_joined_exponentials
from slomodel.bounds.structure.gram_form import as_written, in_gram_form
from slomodel.bounds.structure.negative_powers import with_negative_powers
from slomodel.bounds.structure.recurrences import written_out
from slomodel.bounds.useless import useless_bound
from slomodel.errors import Diagnostic, DomainError
from slomodel.ir.exact import without_rounding


@without_rounding()
@caching_ranges()
def bounds(part: ObjectivePart, radius: float) -> Bounds:
    """Bounds over the ball around the part's centre; inf with a reason where there is none.

    Where variables have limits that hold at the centre, over the part of the ball within them.

    Raises DomainError for a radius below 0 and a centre that is not finite.
    """
    radius = checked_radius(radius)
    for variable in part.variables:
        if not np.all(np.isfinite(part.values[variable])):
            message = f"the centre is not finite: its `{variable.name}` has NaN or inf"
            raise DomainError(Diagnostic("E606", message, help="give a finite centre"))
    other = part.with_choices
    part = written_out(with_limits_at_centre(part))
    given, radius = radius, limited_radius(part, radius)
    rewritten = in_gram_form(with_negative_powers(with_joined_exponentials(part)))
    result = _closed_claims(rewritten, radius)
    if other is not None and not result.is_finite:
        form = written_out(with_limits_at_centre(other))
        form = in_gram_form(with_negative_powers(with_joined_exponentials(form)))
        result = result.joined(_closed_claims(form, radius))
    gradient, hessian = _constant(result.L1), _constant(result.L2)
    seen = entry_at_centre(rewritten)
    useless = useless_bound(part, radius, gradient.best.value, seen)
    gradient = replace(gradient, useless=useless)
    return Bounds(
        L1=gradient.best.value,
        L2=hessian.best.value,
        source="analytic",
        rigor="certified",
        radius=given,
        n=part.n,
        gradient=gradient,
        hessian=hessian,
        at_radius=partial(bounds, part),
        curvature=HessianOverBall(
            rewritten, radius, result.enclosure, gradient.best.value, hessian.best.value
        ),
    )


def _closed_claims(part: ObjectivePart, radius: float) -> Claims:
    return with_closed(part, radius, _in_other_units(part, radius, claims(part, radius)))


def _in_other_units(part: ObjectivePart, radius: float, known: Claims) -> Claims:
    """The claims, together with those of the rescaled problem where magnitudes are extreme."""
    if radius == math.inf or part.n == 0:
        return known
    parts = [known]
    units = units_of_variables(part, radius)
    if units.x:
        parts.append(_claims_in(units, part, radius))
    units = units_of_objective(units, [claim.value for claim in parts[-1].L1])
    if units.f:
        parts.append(_claims_in(units, part, radius))
    for one in parts[1:]:
        known = known.joined(one)
    return known


def _claims_in(units: Units, part: ObjectivePart, radius: float) -> Claims:
    """The finite claims of the problem in other units, converted back."""
    result = claims(_rescaled(part, units), units.radius(radius))

    def own(every: tuple[Claim, ...], k: int) -> tuple[Claim, ...]:
        note = f"in units of 2^{units.x} of the variables and 2^{units.f} of the objective"
        return tuple(
            Claim(one.rule, units.derivative(one.value, k), trace=(note, *one.trace))
            for one in every
            if math.isfinite(one.value)
        )

    return Claims(own(result.L1, 2), own(result.L2, 3))


@once_per_part
def _rescaled(part: ObjectivePart, units: Units) -> ObjectivePart:
    return in_gram_form(units.part(as_written(part)))


@without_rounding()
def quick_bound(part: ObjectivePart, radius: float) -> float:
    """A cheap bound on L1; it may be inf where `bounds` returns a finite one."""
    part = written_out(with_limits_at_centre(part))
    radius = limited_radius(part, checked_radius(radius))
    result = claims(part, radius, [rule for rule in RULES if rule.is_quick])
    return min(claim.value for claim in result.L1)


def _constant(claims: Sequence[Claim]) -> Constant:
    return Constant(tuple(sorted(claims, key=lambda claim: claim.value)))
