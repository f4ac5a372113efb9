"""The flow of the bounds: split into parts, apply the rules, add, close, take the least.

    split(f)              the parts, each an objective over the variables that it reads
    rule(part, r)         an enclosure: upper bounds on D²f, D³f and D⁴f at c and over the ball
    add(enclosures)       the enclosure of a sum
    close(enclosure, r)   both constants, by Taylor's theorem
    least(enclosures)     the smallest bound on each derivative

Every rule bounds f as a whole and each part alone; the sum of the parts is one more way to bound f.
The constants are closed from each enclosure and from the least of all. A new rule is a file of
`rules/` and its row in `RULES`; nothing here knows one rule from another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from slomodel.bounds.attained import attained, curvature
from slomodel.bounds.centre import (
    has_hessian_at_centre,
    hessian_at_centre,
    is_third_within,
    third_at_centre,
)
from slomodel.bounds.closure import OVER_FIRST, OVER_SECOND, Closed, Closure, close, moved
from slomodel.bounds.enclosure import (
    NO_BOUNDS,
    Derivation,
    DerivativeBounds,
    Enclosure,
    add_by_variables,
    both_ends,
    least,
    norm_of,
)
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.result import Claim, shown
from slomodel.bounds.rules.gradient_jets import is_long
from slomodel.bounds.rules.interval_entries import is_small
from slomodel.bounds.rules.table import RULES, BoundRule
from slomodel.bounds.split import is_sharper_by_parts, split
from slomodel.bounds.stopping import pause, working_on
from slomodel.bounds.structure.gram_form import as_written, in_gram_form
from slomodel.bounds.structure.recurrences import too_long
from slomodel.calculus.degree import degree
from slomodel.errors import MissingRule
from slomodel.ir.walk import inputs

NO_RULE = "no rule gives a bound over this ball"
WHOLE_SPACE = "the ball is the whole space"
LEAST = "least of all rules"
_REPEATED = 1.0 - 1e-12
"""A claim that is no smaller than this fraction of another differs from it by rounding only."""


_CLOSE = (1.1, 1.5)
"""Bounds on L1 and L2 within these factors of sampled values are not worth seconds of work."""
_CLOSE_OF_SERIES = (16.0, 32.0)
"""The same for polynomials. Their series is exact at the centre, and other rules improve on it only
where ranges preserve a cancellation that norms of its coefficients lose; sampled values of deep
products falls short of the truth by a factor of ten.
"""
_LEFT_TO_LAST = 1.02
"""A gap to the derivatives at the centre that rules which wait are tried for."""
_FAR = 3.0
"""A bound beyond this multiple of the curvature at the centre is worth them in many unknowns too:
closer ones are good enough for their time.
"""
_MOST_OF_FAR = 2048
"""Most unknowns, of which a matrix of all pairs takes 32 MB."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The enclosure of a part by one rule, and both constants closed from it."""

    rule: BoundRule
    enclosure: Enclosure
    closure: Closure

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.closure.first.value) and math.isfinite(self.closure.second.value)

    def claims(self) -> tuple[Claim, Claim]:
        """The claims on L1 and on L2."""
        own, (first, second) = self.enclosure, (self.closure.first, self.closure.second)
        return (
            self._claim(first, OVER_FIRST, own.second_by),
            self._claim(second, OVER_SECOND, own.third_by),
        )

    def _claim(self, closed: Closed, over: str, by: Derivation) -> Claim:
        """The claim by this inequality; `over` names the one that does not need the centre."""
        named = [(by.inequality if name == over else name, value) for name, value in closed.tried]
        inequality = by.inequality if closed.rule == over else closed.rule
        others = sorted((value, name or over) for name, value in named if name != inequality)
        lines = [f"or {name} ≤ {shown(value)}" for value, name in others if value < math.inf]
        if closed.rule != over:
            at = self.enclosure.centre
            lines = [f"‖H(c)‖ ≤ {shown(norm_of(at.second))}, ‖D³f(c)‖ ≤ {shown(at.third)}", *lines]
        name = f"{self.rule.name}: {inequality}" if inequality else self.rule.name
        return Claim(name, closed.value, self.enclosure.reason, (*by.lines, *lines))


@dataclass(frozen=True, slots=True)
class Claims:
    """All claims on both constants, and the least bound on each derivative.

    `has_centre`: every rule bounds H(c), so that the ball of radius 0 gives no better bound on it.
    """

    L1: tuple[Claim, ...]
    L2: tuple[Claim, ...]
    enclosure: Enclosure = NO_BOUNDS
    has_centre: bool = False

    @property
    def constants(self) -> DerivativeBounds:
        """The least claims, as bounds on H and D³f over the ball."""
        L1, L2 = (min(one.value for one in own) for own in (self.L1, self.L2))
        return DerivativeBounds(both_ends(L1), L2)

    @property
    def is_finite(self) -> bool:
        """Whether both constants have a finite claim."""
        return all(any(math.isfinite(one.value) for one in own) for own in (self.L1, self.L2))

    def joined(self, other: Claims) -> Claims:
        """These claims with those of another form of the objective."""
        return replace(self, L1=self.L1 + other.L1, L2=self.L2 + other.L2)


def claims(part: ObjectivePart, radius: float, rules: Sequence[BoundRule] | None = None) -> Claims:
    """The claims of the given rules, or of all rules and of the sum over parts; with a reason
    instead where there is no bound at all.
    """
    if part.n == 0:
        nothing = (Claim("no unknowns", 0.0),)
        return Claims(nothing, nothing)
    reason = _refusal(part)
    if radius == math.inf:
        rules = [rule for rule in RULES if rule.is_unlimited]
    result = [] if reason else _answers(part, radius, rules)
    if not result:
        reason = reason or (NO_RULE if radius < math.inf else WHOLE_SPACE)
        refused = (Claim("none", math.inf, reason),)
        return Claims(refused, refused)
    L1, L2 = zip(*(one.claims() for one in result), strict=True)
    if radius == math.inf:
        L1, L2 = (tuple(map(_over_the_whole_space, own)) for own in (L1, L2))
    enclosures = [one.enclosure for one in result]
    has_centre = all(math.isfinite(norm_of(enclosure.centre.second)) for enclosure in enclosures)
    joined = least(enclosures)
    if not has_hessian_at_centre(part):
        joined = replace(joined, centre=DerivativeBounds())
    return Claims(L1, L2, joined, has_centre)


def _over_the_whole_space(claim: Claim) -> Claim:
    """The claim, with the reason where it is inf and no rule gave one."""
    without_reason = claim.value == math.inf and not claim.reason
    return replace(claim, reason=WHOLE_SPACE) if without_reason else claim


def _refusal(part: ObjectivePart) -> str:
    """Why no rule can be applied; empty otherwise."""
    for node in inputs(part.objective):
        if not np.all(np.isfinite(part.values[node])):
            return f"data `{node.name}` has NaN or inf"
    return too_long(part)


def _answers(part: ObjectivePart, radius: float, rules: Sequence[BoundRule] | None) -> list[Answer]:
    adds_up = rules is None and is_sharper_by_parts(as_written(part))
    every = (*RULES, SUM_OF_PARTS) if adds_up else rules or RULES
    answers: list[Answer] = []
    gap, is_closed = part.effort.gap, False
    for stage in range(4):
        is_enough = any(one.is_finite and one.rule.suffices(one.rule.read(part)) for one in answers)
        left = gap if stage < 3 else min(gap, _LEFT_TO_LAST)
        for rule in (rule for rule in every if _stage(rule, part, rules) == stage):
            with_third = rule.bounds_third(part)
            if stage >= 2 and not _leave_a_gap(part, radius, answers, left, with_third):
                continue
            result = answer(rule, part, radius, is_enough)
            if result is not None:
                answers.append(result)
                is_closed |= stage == 2 and result.is_finite
                if stage < 2 and rule.reads_written and result.is_finite:
                    gap = part.effort.gap_of_sums
    is_left = adds_up and not is_closed and _leave_a_gap(part, radius, answers, gap, True)
    if is_left or (rules is None and not adds_up and not _is_bounded(part, answers)):
        result = answer(CLOSER_SUM_OF_PARTS, part, radius)
        answers += [result] if result is not None else []
    return answers


def _stage(rule: BoundRule, part: ObjectivePart, rules: Sequence[BoundRule] | None) -> int:
    """That of the rule, or 3 where it waits for those that close gaps, if they are tried."""
    are_tried = rules is None and math.isfinite(part.effort.gap)
    return 3 if are_tried and rule.waits(part) else rule.stage


def _is_bounded(part: ObjectivePart, answers: Sequence[Answer]) -> bool:
    """Whether there are bounds, and the derivatives at the centre to compare them with."""
    with np.errstate(all="ignore"):
        is_known = math.isfinite(hessian_at_centre(part))
    return is_known and any(one.is_finite for one in answers)


def answer(
    rule: BoundRule, part: ObjectivePart, radius: float, is_enough: bool = False
) -> Answer | None:
    """The answer of one rule; inf with the reason where a node has no rule.

    None where it does not apply, or is long and other answers are enough.
    """
    pause()
    own = rule.read(part)
    try:
        with np.errstate(all="ignore"), working_on(rule.name):  # overflow is rounded outward
            if is_enough and rule.is_long(own):
                return None
            result = rule.bound(own, radius)
    except MissingRule as gap:
        result = Enclosure(reason=str(gap))
    if result is None:
        return None
    assert result.over.third >= 0.0, "a bound is negative or NaN"
    assert norm_of(result.over.second) >= 0.0, "a bound is NaN"
    return Answer(rule, result, close(result, radius))


def sum_of_parts(part: ObjectivePart, radius: float) -> Enclosure | None:
    """The sum of unlike parts, each bounded by its own best rules but for those that close gaps;
    None for a single part.

    Those that close gaps are tried for f as a whole: only where that fails are they tried for its
    parts.
    """
    return _sum(part, radius, [rule for rule in RULES if not rule.closes_gaps])


def closer_sum_of_parts(part: ObjectivePart, radius: float) -> Enclosure | None:
    """`sum_of_parts` by all rules."""
    return _sum(part, radius)


def _sum(
    part: ObjectivePart, radius: float, rules: Sequence[BoundRule] | None = None
) -> Enclosure | None:
    """The sum of the parts, by these rules or by all; norms at the centre are those of f itself."""
    parts = split(as_written(part))
    if len(parts) < 2:
        return None
    by_size = _rules_of_parts(part, rules)
    result = [
        (least_enclosure(in_gram_form(one), radius, by_size[one.n == part.n]), one.variables)
        for one in parts
    ]
    total = add_by_variables(result, part.variables)
    known = DerivativeBounds()
    if has_hessian_at_centre(part):
        known = DerivativeBounds(both_ends(hessian_at_centre(part)), third_at_centre(part))
    lines = tuple(
        f"part of {', '.join(variable.name for variable in variables)}: "
        f"‖H‖ ≤ {shown(norm_of(one.over.second))}, ‖D³f‖ ≤ {shown(one.over.third)}"
        for one, variables in result
    )
    by = Derivation(lines=lines)
    return replace(total, centre=total.centre.least(known), second_by=by, third_by=by)


SUM_OF_PARTS = BoundRule(sum_of_parts, is_long=is_long)
CLOSER_SUM_OF_PARTS = BoundRule(closer_sum_of_parts, is_long=is_long)


def _rules_of_parts(
    part: ObjectivePart, rules: Sequence[BoundRule] | None
) -> tuple[Sequence[BoundRule] | None, Sequence[BoundRule] | None]:
    """The rules for parts that read some of the variables, and for parts that read all of them.

    None means all rules.

    Cells over the ball of f capture cancellation between its parts; cells of parts in as many
    variables only repeat that work, so they are left out where those of f are tried.
    """
    if not is_small(part):
        return rules, rules
    return rules, [rule for rule in rules or RULES if not (rule.by_cells or rule.closes_gaps)]


def _leave_a_gap(
    part: ObjectivePart,
    radius: float,
    answers: Sequence[Answer],
    gap: float,
    including_third: bool,
) -> bool:
    """Whether the bound on L1, or that on L2 if it is included, exceeds the same derivative at the
    centre by a factor of more than `gap`, and sampled values by more than `_CLOSE`,
    `_CLOSE_OF_SERIES`, or the factors of a rule that has bounds.

    As L1(r) >= ‖H(c)‖ and L2(r) >= ‖D³f(c)‖, sharper rules can gain at most the ratio to these.
    """
    if math.isinf(gap):
        return False
    L1 = min((one.closure.first.value for one in answers), default=math.inf)
    L2 = min((one.closure.second.value for one in answers), default=math.inf)
    with np.errstate(all="ignore"):
        hessian = hessian_at_centre(part)
        if not math.isfinite(hessian):
            return _is_far(part, radius, L1)
        is_open = hessian < L1 / gap
        if not is_open and including_third:
            third = min((third_at_centre(part), *(one.enclosure.centre.third for one in answers)))
            # Unknown: a gap exists where a sharper rule can bound it.
            is_open = is_third_within(part) if math.isinf(third) else third < L2 / gap
    if not is_open or math.isinf(L1) or math.isinf(L2) or not 0.0 < radius < math.inf:
        return is_open
    seen, turning = attained(part, radius)
    is_polynomial = degree(part.objective, part.variables) is not None
    known = [one.rule.close for one in answers if one.is_finite]
    close = _CLOSE_OF_SERIES if is_polynomial else tuple(map(max, zip(_CLOSE, *known, strict=True)))
    return seen * close[0] < L1 or (including_third and turning * close[1] < L2)


def _is_far(part: ObjectivePart, radius: float, L1: float) -> bool:
    """Whether L1 is far beyond the curvature at the centre, of which all entries are too expensive.

    False where that is not finite.
    """
    if part.n > _MOST_OF_FAR or not 0.0 < radius < math.inf:
        return False
    return 0.0 < curvature(part, part.x, L1 / _FAR) < L1 / _FAR


def least_enclosure(
    part: ObjectivePart, radius: float, rules: Sequence[BoundRule] | None = None
) -> Enclosure:
    """The least of each bound over all rules, including both constants over the ball."""
    result = with_closed(part, radius, claims(part, radius, rules))
    over = result.enclosure.over.least(result.constants)
    is_finite = math.isfinite(over.third) and math.isfinite(norm_of(over.second))
    reasons = (one.reason for one in (*result.L1, *result.L2) if one.reason)
    return replace(result.enclosure, over=over, reason="" if is_finite else next(reasons, ""))


def with_closed(part: ObjectivePart, radius: float, claims: Claims) -> Claims:
    """The claims, with those closed from the least bound on each derivative over all rules.

    H(c) is bounded for this over the ball of radius 0, unless r·L2 alone is no less than another
    bound, or every rule bounds it.
    """
    if not 0.0 < radius < math.inf:
        return claims
    own, known = claims.enclosure, claims.constants
    centre, rise = own.centre, float(moved(0.0, radius, known.third))
    is_closer = not claims.has_centre and rise < norm_of(known.second)
    if is_closer and has_hessian_at_centre(part):
        centre = centre.least(_claims_at_centre(part).constants)
    closure = close(replace(own, centre=centre, over=own.over.least(known)), radius)
    L1, L2 = closure.first, closure.second
    lines = (f"‖H(c)‖ ≤ {shown(norm_of(centre.second))}", f"r·L2 ≤ {shown(rise)}")
    return replace(
        claims,
        L1=(*claims.L1, *_if_less(L1, norm_of(known.second), lines)),
        L2=(*claims.L2, *_if_less(L2, known.third)),
    )


@once_per_part
def _claims_at_centre(part: ObjectivePart) -> Claims:
    return claims(part, 0.0)


def _if_less(closed: Closed, known: float, lines: tuple[str, ...] = ()) -> tuple[Claim, ...]:
    if not closed.value < _REPEATED * known:
        return ()
    return (Claim(f"{LEAST}: {closed.rule}", closed.value, trace=lines),)
