"""Radius D and margin d of the epochs' balls: defaults, and the conditions of the theorems."""

from __future__ import annotations

import math
from collections.abc import Mapping

from slomodel.solve.constants.proved import unproved
from slomodel.solve.methods.context import MethodContext
from slomodel.solve.norms import LARGEST, Vector, norm
from slomodel.solve.options import bad_value, number
from slomodel.solve.sets.ball import EuclideanBall
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.sets.epoch_set import EpochSet
from slomodel.solve.sets.within_ball import WithinBall
from slomodel.solve.subroutine import ConstantsOver, EpochRegion, Iterate

# Factor by which δ̄ grows after a step of full length, if it may grow.
GROWTH = 4.0

# A D that equals its least value up to rounding is accepted.
SLACK = 1e-12


def is_auto(given: Mapping[str, object]) -> bool:
    """Whether D='auto' is requested, where the bound over a ball determines its radius."""
    return isinstance(given.get("D"), str) and given["D"] == "auto"


def margin(value: object, *, closed: bool) -> float:
    """The margin d; 0 is allowed if `closed`."""
    return number("d", value, 0.0, closed=closed)


def radius(given: Mapping[str, object], context: MethodContext, d: float) -> float:
    """The radius D; by default max(1, ‖x0‖), or 1 if the constants are estimated.

    Samples are less informative the larger the ball is. The default is large enough for d and for
    any √ε ≤ gtol.
    """
    value = given.get("D")
    if value is not None:
        return fixed_radius(value)
    by_start = 1.0 if context.estimated else norm(context.x0)
    return max(1.0, by_start, 4.0 * context.gtol, 4.0 * d)


def fixed_radius(value: object) -> float:
    """A radius supplied by the user as a number."""
    if isinstance(value, str):
        remedy = (
            "give a number, or leave D out; D='auto' is for pgd and tgd alone, whose proved "
            "descent limits the ball (agp descends in any, and chooses one by L2)"
        )
        raise bad_value("D", "a finite number > 0", value, remedy)
    return number("D", value, 0.0)


def require_epoch_descent(D: float, d: float, tolerance: float) -> None:
    """Require D ≥ √ε/2 + 2d, so that an epoch descends by √ε·D/4 (lemma:meta-epoch).

    `tolerance` is √ε.
    """
    least = tolerance / 2.0 + 2.0 * d
    if least > D * (1.0 + SLACK):
        terms = f"√ε/2 + 2d = {least:g}" if d > 0.0 else f"√ε/2 = {least:g}"
        raise bad_value("D", f"a number ≥ {terms}", D)


def ball_with_constant(
    start: Iterate,
    D: float,
    d: float,
    constants: ConstantsOver | None,
    within: Set | None = None,
) -> EpochRegion:
    """The ball B(start, D), or its part in a set, with margin d and L1 over the ball.

    Raises DomainError if L1 has no bound.
    """
    assert constants is not None
    centre = start.x if d == D else start.x.copy()
    result = constants(start, D)
    if result.unproved:
        raise unproved(D, result.unproved)
    ball = part_of_ball(centre, D, within)
    return EpochRegion(centre, ball, d, result.L1, None, result.source, result.estimated)


def part_of_ball(centre: Vector, D: float, within: Set | None) -> EpochSet:
    """B(centre, D), or its part in the set `within`."""
    ball = EuclideanBall(centre, D)
    return ball if within is None else WithinBall(within, centre, D)


def whole_space(start: Iterate, within: Set | None = None) -> EpochRegion:
    """All of ℝⁿ, or of the set `within`, so that the run is a single epoch."""
    centre = start.x.copy()
    return EpochRegion(centre, part_of_ball(centre, math.inf, within), 0.0)


def ball_of_a_step(start: Iterate, D: float, within: Set | None = None) -> EpochRegion:
    """The ball B(start, D) of a single step, or its part in a set; its centre is not copied."""
    return EpochRegion(start.x, part_of_ball(start.x, D, within), D)


def widened(region: EpochRegion, reach: float, within: Set | None = None) -> EpochRegion:
    """The region of a step of length at most `reach` from the same centre, if that is longer."""
    if reach <= region.D:
        return region
    return EpochRegion(region.centre, part_of_ball(region.centre, reach, within), reach)


def grown(reach: float, step: float) -> float:
    """The longest step after one of full length, which shows that the solution is far."""
    return min(max(reach, step) * GROWTH, LARGEST)
