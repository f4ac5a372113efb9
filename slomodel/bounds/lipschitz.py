"""The pipeline of bounds: split f, apply the rules, add the parts, close, take the least."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from slomodel.bounds.centre import centre_norms, is_third_within
from slomodel.bounds.close import Closed, close, first_by_slope, moved
from slomodel.bounds.enclosure import (
    NO_BOUNDS,
    DerivativeBounds,
    Enclosure,
    add_by_variables,
    both_ends,
    least,
    norm_of,
)
from slomodel.bounds.limits import limited_radius, with_limits_at_centre
from slomodel.bounds.result import Bounds, Claim, Constant, checked_radius, shown
from slomodel.bounds.rules.gradient_jets import is_long
from slomodel.bounds.rules.interval_entries import interval_entries, is_small
from slomodel.bounds.rules.table import RULES, BoundRule
from slomodel.bounds.setting import Candidate, Setting, once_per_setting
from slomodel.bounds.spectrum import HessianOverBall
from slomodel.bounds.split import split
from slomodel.bounds.stopping import pause, working_on
from slomodel.bounds.structure.gram_form import as_written, in_gram_form
from slomodel.bounds.structure.negative_powers import with_negative_powers
from slomodel.bounds.structure.recurrences import too_long, written_out
from slomodel.bounds.units import Units, units_of_objective, units_of_variables
from slomodel.bounds.useless import useless_bound
from slomodel.calculus.degree import degree
from slomodel.errors import Diagnostic, DomainError, MissingRule
from slomodel.ir.exact import without_rounding
from slomodel.ir.walk import inputs

NO_RULE = "no rule gives a bound over this ball"
CENTRE = "‖H(c)‖ + r·L2"
LEAST = "least of all rules"
_ROUNDINGS = 1e-12
PARTS = "sum of parts"


@dataclass(frozen=True, slots=True)
class Claims:
    """All claims on both constants, and the least bound on each derivative.

    `centre` holds the claims on ‖H(c)‖, if every rule bounds it.
    """

    L1: tuple[Claim, ...]
    L2: tuple[Claim, ...]
    centre: tuple[Claim, ...] = ()
    enclosure: Enclosure = NO_BOUNDS


@without_rounding()
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
    setting = written_out(with_limits_at_centre(setting))
    given, radius = radius, limited_radius(setting, radius)
    asked = in_gram_form(with_negative_powers(setting))
    claims = _in_other_units(asked, radius, _claims(asked, radius))
    closed = _closed(asked, radius, claims)
    gradient = _constant((*claims.L1, *closed.L1))
    useless = useless_bound(setting, radius, gradient.best.value)
    gradient, hessian = replace(gradient, useless=useless), _constant((*claims.L2, *closed.L2))
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
            asked, radius, claims.enclosure, gradient.best.value, hessian.best.value
        ),
    )


def _in_other_units(setting: Setting, radius: float, claims: Claims) -> Claims:
    """The claims, together with those of the rescaled problem where magnitudes are extreme."""
    if radius == math.inf or setting.n == 0:
        return claims
    parts = [claims]
    units = units_of_variables(setting, radius)
    if units.x:
        parts.append(_claims_in(units, setting, radius))
    units = units_of_objective(units, [claim.value for claim in parts[-1].L1])
    if units.f:
        parts.append(_claims_in(units, setting, radius))
    return Claims(
        tuple(claim for one in parts for claim in one.L1),
        tuple(claim for one in parts for claim in one.L2),
        claims.centre,
        claims.enclosure,
    )


def _claims_in(units: Units, setting: Setting, radius: float) -> Claims:
    """The finite claims of the problem in other units, converted back."""
    found = _claims(_rescaled(setting, units), units.radius(radius))

    def own(claims: tuple[Claim, ...], k: int) -> tuple[Claim, ...]:
        note = f"in units of 2^{units.x} of the variables and 2^{units.f} of the objective"
        return tuple(
            Claim(one.rule, units.derivative(one.value, k), trace=(note, *one.trace))
            for one in claims
            if math.isfinite(one.value)
        )

    return Claims(own(found.L1, 2), own(found.L2, 3))


@once_per_setting
def _rescaled(setting: Setting, units: Units) -> Setting:
    return in_gram_form(units.setting(as_written(setting)))


@once_per_setting
def _claims_at_centre(setting: Setting) -> Claims:
    return _claims(setting, 0.0)


@without_rounding()
def quick_bound(setting: Setting, radius: float) -> float:
    """A cheap bound on L1; it may be inf where `bounds` returns a finite one."""
    setting = written_out(with_limits_at_centre(setting))
    radius = limited_radius(setting, checked_radius(radius))
    claims = _claims(setting, radius, [rule for rule in RULES if rule.is_quick])
    return min(claim.value for claim in claims.L1)


def _claims(setting: Setting, radius: float, rules: Sequence[BoundRule] | None = None) -> Claims:
    """The claims of all applicable rules; none is applied where data are NaN or infinite."""
    if setting.n == 0:
        nothing = (Claim("no unknowns", 0.0),)
        return Claims(nothing, nothing)
    reason = too_long(setting)
    if reason:
        refused = (Claim("none", math.inf, reason),)
        return Claims(refused, refused)
    for node in inputs(setting.objective):
        if not np.all(np.isfinite(setting.values[node])):
            refused = (Claim("none", math.inf, f"data `{node.name}` has NaN or inf"),)
            return Claims(refused, refused)
    if radius == math.inf:
        rules = [rule for rule in RULES if rule.is_unlimited]
    return _as_claims(_answers(setting, radius, rules), radius)


def _answers(
    setting: Setting, radius: float, rules: Sequence[BoundRule] | None = None
) -> list[Candidate]:
    """The candidates of the given rules; without any given, of all rules and the sum over parts."""
    every = list(RULES) if rules is None else rules
    if rules is None:
        every = [*every, BoundRule(sum_of_parts, is_long=is_long)]
    answers: list[Candidate] = []
    gap = setting.effort.gap
    for stage in range(3):
        is_enough = any(one.is_enough and _is_finite(one) for one in answers)
        for rule in (rule for rule in every if rule.stage == stage):
            if stage == 2 and not _leave_a_gap(setting, answers, gap):
                break
            found = _answer(rule, setting, radius, is_enough)
            if found is not None:
                answers.append(found)
                if stage < 2 and rule.reads_written and _is_finite(found):
                    gap = setting.effort.gap_of_sums
    return answers


def _as_claims(answers: Sequence[Candidate], radius: float) -> Claims:
    if not answers:
        reason = NO_RULE if radius < math.inf else "the ball is the whole space"
        answers = [Candidate("none", math.inf, math.inf, reason)]
    return Claims(
        tuple(Claim(one.rule, _sound(one.L1), one.reason, one.trace) for one in answers),
        tuple(
            Claim(one.rule2 or one.rule, _sound(one.L2), one.reason, one.trace2 or one.trace)
            for one in answers
        ),
        _known(answers),
        least([one.enclosed for one in answers]),
    )


def sum_of_parts(setting: Setting, radius: float) -> Candidate | None:
    """Candidate from the sum of unlike parts, each bounded by its own best rule.

    The closure is that of the sum: from the centre of f itself, with ‖D³f‖ and D⁴f added.
    """
    parts = split(as_written(setting))
    if len(parts) < 2:
        return None
    rules = _rules_of_parts(setting)
    found = [
        (_least_of_part(in_gram_form(one), radius, rules[one.n == setting.n]), one.variables)
        for one in parts
    ]
    total = add_by_variables(found, setting.variables)
    known = centre_norms(setting)
    centre = total.centre.least(DerivativeBounds(both_ends(known.hessian), known.third))
    enclosure = replace(total, centre=centre)
    closure = close(enclosure, radius)
    trace = tuple(
        f"part of {', '.join(variable.name for variable in variables)}: "
        f"‖H‖ ≤ {shown(norm_of(one.over.second))}, ‖D³f‖ ≤ {shown(one.over.third)}"
        for one, variables in found
    )
    L1, L2 = closure.first, closure.second
    return Candidate(
        f"{PARTS}: {L1.rule}",
        L1.value,
        L2.value,
        total.reason,
        trace,
        rule2=f"{PARTS}: {L2.rule}",
        hessian=norm_of(centre.second) if math.isfinite(norm_of(centre.second)) else None,
        enclosure=enclosure,
    )


def _rules_of_parts(
    setting: Setting,
) -> tuple[Sequence[BoundRule] | None, Sequence[BoundRule] | None]:
    """Rules for parts that read some of the variables, and for those that read all; None means all.

    Cells over the ball of f capture cancellation between its parts; cells of parts in equally many
    variables only repeat that work, so they are left out where those of f are tried.
    """
    if not is_small(setting):
        return None, None
    others = [rule for rule in RULES if rule.bound is not interval_entries]
    return None, [rule for rule in others if not rule.closes_gaps]


def _least_of_part(part: Setting, radius: float, rules: Sequence[BoundRule] | None) -> Enclosure:
    return _least(part, radius, _as_claims(_answers(part, radius, rules), radius))


def least_enclosure(setting: Setting, radius: float) -> Enclosure:
    """The least of each bound over all rules, including both constants over the ball."""
    return _least(setting, radius, _claims(setting, radius))


def _least(part: Setting, radius: float, claims: Claims) -> Enclosure:
    closed = _closed(part, radius, claims)
    first, second = _constant((*claims.L1, *closed.L1)), _constant((*claims.L2, *closed.L2))
    over = DerivativeBounds(both_ends(first.best.value), second.best.value)
    enclosure = claims.enclosure
    reason = first.reason or second.reason
    return replace(enclosure, over=enclosure.over.least(over), reason=reason)


def _leave_a_gap(setting: Setting, answers: Sequence[Candidate], gap: float) -> bool:
    """Whether a bound exceeds the same derivative at the centre by a factor of more than `gap`.

    As L1(r) >= ‖H(c)‖ and L2(r) >= ‖D³f(c)‖, sharper rules can gain at most the ratio to these.
    False for polynomials: their series is exact at the centre, and ranges of their nodes add
    nothing.
    """
    if math.isinf(gap) or degree(setting.objective, setting.variables) is not None:
        return False
    with np.errstate(all="ignore"):
        centre = centre_norms(setting)
    L1 = min((one.L1 for one in answers), default=math.inf)
    L2 = min((one.L2 for one in answers), default=math.inf)
    if not math.isfinite(centre.hessian):
        return False  # the entries are too expensive, or not finite at the centre itself
    third = min((centre.third, *(one.enclosed.centre.third for one in answers)))
    if math.isinf(third):  # unknown: a gap exists where a sharper rule can bound it
        return is_third_within(setting) or centre.hessian < L1 / gap
    return centre.hessian < L1 / gap or third < L2 / gap


def _is_finite(answer: Candidate) -> bool:
    return math.isfinite(answer.L1) and math.isfinite(answer.L2)


def _known(answers: Sequence[Candidate]) -> tuple[Claim, ...]:
    """The claims on ‖H(c)‖, if every candidate has one."""
    found = [Claim(one.rule, _sound(one.hessian)) for one in answers if one.hessian is not None]
    return tuple(found) if len(found) == len(answers) else ()


def _answer(rule: BoundRule, setting: Setting, radius: float, is_enough: bool) -> Candidate | None:
    """The candidate of a rule; None where the rule is skipped or does not apply.

    Where the rule raises `MissingRule`, the candidate is infinite with that reason.
    """
    pause()
    own = as_written(setting) if rule.reads_written else setting
    try:
        with np.errstate(all="ignore"):  # overflow and underflow are rounded outward
            if is_enough and rule.is_long is not None and rule.is_long(own):
                return None
            with working_on(rule.name):
                return rule.bound(own, radius)
    except MissingRule as gap:
        return Candidate(rule.name, math.inf, math.inf, str(gap))


def _sound(value: float) -> float:
    assert value >= 0.0, "a rule claims a bound that is negative or NaN"
    return float(value)


def _closed(setting: Setting, radius: float, over: Claims) -> Claims:
    """Claims by Taylor's formula from the least bound on each derivative, over all rules.

    H is Lipschitz with the least L2, and so L1 <= ‖H(c)‖ + r·L2. The centre is bounded for this
    over the ball of radius 0, unless r·L2 alone is no less than another bound, or all rules bound
    H(c).
    """
    first, second = (min(claim.value for claim in claims) for claims in (over.L1, over.L2))
    if not 0.0 < radius < math.inf:
        return Claims((), ())
    centre, added = over.enclosure.centre, float(moved(0.0, radius, second))
    own: tuple[Claim, ...] = ()
    if math.isfinite(second) and added < first:
        known = Claims(over.centre, ()) if over.centre else _claims_at_centre(setting)
        best = min(known.L1, key=lambda claim: claim.value)
        third = min((claim.value for claim in known.L2), default=math.inf)
        centre = centre.least(DerivativeBounds(both_ends(best.value), third))
        trace = (f"‖H(c)‖ ≤ {shown(best.value)} ({best.rule})", f"r·L2 ≤ {shown(added)}")
        own = (Claim(CENTRE, first_by_slope(centre.second, radius, second), trace=trace),)
    ball = over.enclosure.over.least(DerivativeBounds(both_ends(first), second))
    closure = close(replace(over.enclosure, centre=centre, over=ball), radius)
    first = min((first, *(claim.value for claim in own)))
    return Claims((*own, *_if_less(closure.first, first)), _if_less(closure.second, second))


def _if_less(found: Closed, known: float) -> tuple[Claim, ...]:
    """The claim if it is less by more than rounding errors."""
    is_less = (1.0 + _ROUNDINGS) * found.value < known
    return (Claim(f"{LEAST}: {found.rule}", found.value),) if is_less else ()


def _constant(claims: Sequence[Claim]) -> Constant:
    return Constant(tuple(sorted(claims, key=lambda claim: claim.value)))
