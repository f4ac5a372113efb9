"""The least bound that any strategy can prove, for each of the two constants by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from slomodel.bounds.centre import centre_norms, is_third_within
from slomodel.bounds.close import close, first_by_slope, moved
from slomodel.bounds.enclosure import (
    DerivativeBounds,
    Enclosure,
    add_by_variables,
    both_ends,
    least,
    norm_of,
)
from slomodel.bounds.result import Bounds, Claim, Constant, checked_radius, shown
from slomodel.bounds.rules.entries_over_ball import entries_over_ball
from slomodel.bounds.rules.gradient_jets import gradient_jets, is_long
from slomodel.bounds.rules.interval_entries import interval_entries, is_small
from slomodel.bounds.rules.large_sums import large_sums
from slomodel.bounds.rules.layered_networks import layered_networks
from slomodel.bounds.rules.log_sum_exps import log_sum_exps
from slomodel.bounds.rules.majorant_series import majorant_series
from slomodel.bounds.rules.quadratic import linear, quadratic
from slomodel.bounds.rules.separable_sums import separable_sums
from slomodel.bounds.rules.symmetric_powers import symmetric_powers
from slomodel.bounds.setting import Candidate, Setting, once_per_setting
from slomodel.bounds.split import split
from slomodel.bounds.stopping import pause, working_on
from slomodel.bounds.structure.gram_form import as_written, in_gram_form
from slomodel.bounds.structure.negative_powers import with_negative_powers
from slomodel.bounds.units import Units, units_of_objective, units_of_variables
from slomodel.bounds.useless import useless_bound
from slomodel.calculus.degree import degree
from slomodel.errors import Diagnostic, DomainError, MissingRule
from slomodel.ir.exact import without_rounding

Strategy = Callable[[Setting, float], Candidate | None]

STRATEGIES: tuple[Strategy, ...] = (
    linear,
    quadratic,
    separable_sums,
    large_sums,
    layered_networks,
    log_sum_exps,
    interval_entries,
    gradient_jets,
    majorant_series,
    symmetric_powers,
)
"""Every way to a bound, in any order; each is sound alone, and the least answer counts."""

LONG: Mapping[Strategy, Callable[[Setting], bool]] = {gradient_jets: is_long}
"""Strategies left out where they take long and another one's answer is enough."""

OF_ELEMENTS: tuple[Strategy, ...] = (
    separable_sums,
    large_sums,
    layered_networks,
    log_sum_exps,
)
"""Those that look for sums over elements, which the Gram form hides; they take what is written."""

CLOSER: tuple[Strategy, ...] = (entries_over_ball,)
"""Rules that cost more, for where the others leave a gap to the derivatives at the centre."""

UNLIMITED: tuple[Strategy, ...] = (linear, quadratic)
"""Those that hold over the whole space too."""

QUICK: tuple[Strategy, ...] = (linear, quadratic, majorant_series)
"""Those that take milliseconds, for whoever asks about many balls."""

NO_RULE = "no rule gives a bound over this ball"
CENTRE = "‖H(c)‖ + r·L2"
PARTS = "sum of parts"


@dataclass(frozen=True, slots=True)
class Claims:
    """What the strategies say of both constants, and of ‖H(c)‖ where all of them know it."""

    L1: tuple[Claim, ...]
    L2: tuple[Claim, ...]
    centre: tuple[Claim, ...] = ()


@without_rounding()
def bounds(setting: Setting, radius: float) -> Bounds:
    """Bounds over the ball round the setting's centre; inf with a reason where there is none.

    Raises DomainError for a radius below 0 and a centre that is not finite.
    """
    radius = checked_radius(radius)
    for variable in setting.variables:
        if not np.all(np.isfinite(setting.values[variable])):
            message = f"the centre is not finite: its `{variable.name}` has NaN or inf"
            raise DomainError(Diagnostic("E606", message, help="give a finite centre"))
    asked = in_gram_form(with_negative_powers(setting))
    claims = _in_other_units(asked, radius, _claims(asked, radius))
    gradient = _constant((*claims.L1, *_from_centre(asked, radius, claims)))
    useless = useless_bound(setting, radius, gradient.best.value)
    gradient, hessian = replace(gradient, useless=useless), _constant(claims.L2)
    return Bounds(
        L1=gradient.best.value,
        L2=hessian.best.value,
        source="analytic",
        rigor="certified",
        radius=radius,
        n=setting.n,
        gradient=gradient,
        hessian=hessian,
        at_radius=partial(bounds, setting),
    )


def _in_other_units(setting: Setting, radius: float, claims: Claims) -> Claims:
    """The claims, and those of the rescaled problem where magnitudes are extreme."""
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
    )


def _claims_in(units: Units, setting: Setting, radius: float) -> Claims:
    """The finite claims of the problem in other units, converted to its own."""
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
    """A bound of L1 that takes little time; it may be inf where `bounds` has another one."""
    claims = _claims(setting, checked_radius(radius), QUICK)
    return min(claim.value for claim in claims.L1)


def _claims(setting: Setting, radius: float, asked: Sequence[Strategy] | None = None) -> Claims:
    """One claim a rule that has an answer; no rule is asked where none can have one."""
    if setting.n == 0:
        nothing = (Claim("no unknowns", 0.0),)
        return Claims(nothing, nothing)
    for node, array in setting.values.items():
        if not np.all(np.isfinite(array)):
            refused = (Claim("none", math.inf, f"data `{node.name}` has NaN or inf"),)
            return Claims(refused, refused)
    strategies: Sequence[Strategy] = UNLIMITED if radius == math.inf else asked or STRATEGIES
    return _as_claims(_answers(setting, radius, strategies), radius)


def _answers(setting: Setting, radius: float, strategies: Sequence[Strategy]) -> list[Candidate]:
    """What each rule says, then the sum over parts and closer rules where these may be less."""
    written = as_written(setting)
    answers: list[Candidate] = []
    for strategy in sorted(strategies, key=lambda one: one in LONG):
        is_skipped = LONG.get(strategy) if any(map(_is_enough, answers)) else None
        own = written if strategy in OF_ELEMENTS else setting
        found = _answer(strategy, own, radius, is_skipped)
        answers += [] if found is None else [found]
    if strategies is not STRATEGIES:
        return answers
    is_enough = any(map(_is_enough, answers))
    found = _answer(sum_of_parts, setting, radius, is_long if is_enough else None)
    answers += [] if found is None else [found]
    if _leave_a_gap(setting, answers):
        closer = [_answer(strategy, setting, radius) for strategy in CLOSER]
        answers += [one for one in closer if one is not None]
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
    )


def sum_of_parts(setting: Setting, radius: float) -> Candidate | None:
    """Parts of unlike kinds, each by its own best rule, and what they add up to.

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
        enclosure=enclosure,
    )


def _rules_of_parts(setting: Setting) -> tuple[Sequence[Strategy], Sequence[Strategy]]:
    """Rules for parts that read some of the variables, and for those that read all.

    Cells over the ball of f show what its parts cancel; cells of parts in as many variables only
    repeat that work, so they are left out where those of f are tried.
    """
    if not is_small(setting):
        return STRATEGIES, STRATEGIES
    return STRATEGIES, tuple(one for one in STRATEGIES if one is not interval_entries)


def _least_of_part(part: Setting, radius: float, rules: Sequence[Strategy]) -> Enclosure:
    """The least of each bound over the rules, both constants over the ball with them."""
    answers = _answers(part, radius, rules)
    claims = _as_claims(answers, radius)
    first = min(one.value for one in (*claims.L1, *_from_centre(part, radius, claims)))
    second = min(one.value for one in claims.L2)
    enclosure = least([one.enclosed for one in answers]) if answers else Enclosure()
    over = enclosure.over.least(DerivativeBounds(both_ends(first), second))
    constant = _constant(claims.L1), _constant(claims.L2)
    return replace(enclosure, over=over, reason=constant[0].reason or constant[1].reason)


def _leave_a_gap(setting: Setting, answers: Sequence[Candidate]) -> bool:
    """Whether a bound is far above the same derivative at the centre: L1(r) >= ‖H(c)‖ and L2(r) >=
    ‖D³f(c)‖, so closer rules can win at most the ratio to these.

    Not of a polynomial: its series is exact there, and ranges of its nodes add nothing.
    """
    gap = setting.effort.gap
    if math.isinf(gap) or degree(setting.objective, setting.variables) is not None:
        return False
    with np.errstate(all="ignore"):
        centre = centre_norms(setting)
    L1 = min((one.L1 for one in answers), default=math.inf)
    L2 = min((one.L2 for one in answers), default=math.inf)
    if not math.isfinite(centre.hessian):
        return False  # the entries take too long, or are not finite at the centre itself
    if math.isinf(centre.third):  # unknown: there is a gap where a closer rule can know it
        return is_third_within(setting) or centre.hessian < L1 / gap
    return centre.hessian < L1 / gap or centre.third < L2 / gap


def _is_enough(answer: Candidate) -> bool:
    return answer.is_enough and math.isfinite(answer.L1) and math.isfinite(answer.L2)


def _known(answers: Sequence[Candidate]) -> tuple[Claim, ...]:
    """What they say of ‖H(c)‖, if all do."""
    found = [Claim(one.rule, _sound(one.hessian)) for one in answers if one.hessian is not None]
    return tuple(found) if len(found) == len(answers) else ()


def _answer(
    strategy: Strategy,
    setting: Setting,
    radius: float,
    is_skipped: Callable[[Setting], bool] | None = None,
) -> Candidate | None:
    """What a strategy claims; a rule that it lacks is no answer, with what it lacks as reason."""
    pause()
    try:
        with np.errstate(all="ignore"):  # what over- or underflows is rounded outward
            if is_skipped is not None and is_skipped(setting):
                return None
            with working_on(strategy.__name__.replace("_", " ")):
                return strategy(setting, radius)
    except MissingRule as gap:
        return Candidate(strategy.__name__.replace("_", " "), math.inf, math.inf, str(gap))


def _sound(value: float) -> float:
    assert value >= 0.0, "a strategy claims a bound that is negative or NaN"
    return float(value)


def _from_centre(setting: Setting, radius: float, over: Claims) -> tuple[Claim, ...]:
    """L1(r) ≤ ‖H(c)‖ + r·L2(r), the least L2 and the least bound over the ball of radius 0.

    Where L2 is finite, H is Lipschitz with it on the ball: ‖H(x)‖ ≤ ‖H(c)‖ + L2‖x − c‖. Nothing is
    asked of the centre where r·L2 alone is no less than another bound, or all have told already.
    """
    slope = min(claim.value for claim in over.L2)
    if not (0.0 < radius < math.inf and math.isfinite(slope)):
        return ()
    added = float(moved(0.0, radius, slope))
    if added >= min(claim.value for claim in over.L1):
        return ()
    known = over.centre or _claims_at_centre(setting).L1
    centre = min(known, key=lambda claim: claim.value)
    trace = (f"‖H(c)‖ ≤ {shown(centre.value)} ({centre.rule})", f"r·L2 ≤ {shown(added)}")
    return (Claim(CENTRE, first_by_slope(both_ends(centre.value), radius, slope), trace=trace),)


def _constant(claims: Sequence[Claim]) -> Constant:
    return Constant(tuple(sorted(claims, key=lambda claim: claim.value)))
