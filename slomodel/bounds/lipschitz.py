"""The two constants of an objective over a ball, from the claims of `pipeline`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from slomodel.bounds.centre import entry_at_centre
from slomodel.bounds.limits import limited_radius, with_limits_at_centre
from slomodel.bounds.pipeline import Claims, claims, with_closed
from slomodel.bounds.ranges.range_cache import caching_ranges
from slomodel.bounds.result import Bounds, Claim, Constant, checked_radius
from slomodel.bounds.rules.table import RULES
from slomodel.bounds.scaling import Units, units_of_objective, units_of_variables
from slomodel.bounds.setting import Setting, once_per_setting
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
def bounds(setting: Setting, radius: float) -> Bounds:
    """Bounds over the ball around the setting's centre; inf with a reason where there is none.

    Where variables have limits that hold at the centre, over the part of the ball within them.

    Raises DomainError for a radius below 0 and a centre that is not finite.
    """
    radius = checked_radius(radius)
    for variable in setting.variables:
        if not np.all(np.isfinite(setting.values[variable])):
            message = f"the centre is not finite: its `{variable.name}` has NaN or inf"
            raise DomainError(Diagnostic("E606", message, help="give a finite centre"))
    other = setting.with_choices
    setting = written_out(with_limits_at_centre(setting))
    given, radius = radius, limited_radius(setting, radius)
    rewritten = in_gram_form(with_negative_powers(with_joined_exponentials(setting)))
    result = _closed_claims(rewritten, radius)
    if other is not None and not result.is_finite:
        form = written_out(with_limits_at_centre(other))
        form = in_gram_form(with_negative_powers(with_joined_exponentials(form)))
        result = result.joined(_closed_claims(form, radius))
    gradient, hessian = _constant(result.L1), _constant(result.L2)
    seen = entry_at_centre(rewritten)
    useless = useless_bound(setting, radius, gradient.best.value, seen)
    gradient = replace(gradient, useless=useless)
    return Bounds(
        L1=gradient.best.value,
        L2=hessian.best.value,
        source="analytic",
        rigor="certified",
        radius=given,
        n=setting.n,
        gradient=gradient,
        hessian=hessian,
        at_radius=partial(bounds, setting),
        curvature=HessianOverBall(
            rewritten, radius, result.enclosure, gradient.best.value, hessian.best.value
        ),
    )


def _closed_claims(setting: Setting, radius: float) -> Claims:
    return with_closed(setting, radius, _in_other_units(setting, radius, claims(setting, radius)))


def _in_other_units(setting: Setting, radius: float, known: Claims) -> Claims:
    """The claims, together with those of the rescaled problem where magnitudes are extreme."""
    if radius == math.inf or setting.n == 0:
        return known
    parts = [known]
    units = units_of_variables(setting, radius)
    if units.x:
        parts.append(_claims_in(units, setting, radius))
    units = units_of_objective(units, [claim.value for claim in parts[-1].L1])
    if units.f:
        parts.append(_claims_in(units, setting, radius))
    for part in parts[1:]:
        known = known.joined(part)
    return known


def _claims_in(units: Units, setting: Setting, radius: float) -> Claims:
    """The finite claims of the problem in other units, converted back."""
    result = claims(_rescaled(setting, units), units.radius(radius))

    def own(every: tuple[Claim, ...], k: int) -> tuple[Claim, ...]:
        note = f"in units of 2^{units.x} of the variables and 2^{units.f} of the objective"
        return tuple(
            Claim(one.rule, units.derivative(one.value, k), trace=(note, *one.trace))
            for one in every
            if math.isfinite(one.value)
        )

    return Claims(own(result.L1, 2), own(result.L2, 3))


@once_per_setting
def _rescaled(setting: Setting, units: Units) -> Setting:
    return in_gram_form(units.setting(as_written(setting)))


@without_rounding()
def quick_bound(setting: Setting, radius: float) -> float:
    """A cheap bound on L1; it may be inf where `bounds` returns a finite one."""
    setting = written_out(with_limits_at_centre(setting))
    radius = limited_radius(setting, checked_radius(radius))
    result = claims(setting, radius, [rule for rule in RULES if rule.is_quick])
    return min(claim.value for claim in result.L1)


def _constant(claims: Sequence[Claim]) -> Constant:
    return Constant(tuple(sorted(claims, key=lambda claim: claim.value)))
