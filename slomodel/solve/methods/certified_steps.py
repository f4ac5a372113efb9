"""Certified steps, `D="auto"`: the ball of an epoch follows from what a bound over it allows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.constants.proved import unproved
from slomodel.solve.methods.ball import ball_of_a_step, part_of_ball
from slomodel.solve.methods.context import MethodContext
from slomodel.solve.methods.gradient_steps import DescentRun
from slomodel.solve.methods.tgd import TruncatedProjection, truncate
from slomodel.solve.norms import norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.sets.within_ball import WithinBall
from slomodel.solve.subroutine import (
    Constants,
    ConstantsOver,
    EpochRegion,
    Iterate,
    TheoremInequality,
)
from slomodel.solve.verify.inequalities import of_certified_steps

# Relative accuracy of the radius: most of the decrease is in the first half of the step, so that a
# radius slightly below the largest costs little. For balls of many steps, where another proof costs
# more than what it gains, it is a factor of 4.
NEAR, NEAR_OF_MANY = 0.1, 3.0
# Balls tried for one step, including one for each factor of ten until L1 is finite.
TRIALS = 60
SHRINK, GROW = 0.1, 30.0


@dataclass(frozen=True, slots=True)
class Certified:
    """Steps −∇f/L1 of an epoch in B(x₀, D), D the largest with D·L1(B(x₀, D)) ≤ m‖∇f(x₀)‖.

    With m = 1 every epoch is one step to the boundary, x − D∇f/‖∇f‖. f decreases by at least
    D‖∇f‖ − L1·D²/2 ≥ D‖∇f‖/2, since on the ball f is below its tangent plus L1‖y − x‖²/2. That is
    ‖∇f‖²/(2·L1) where D = ‖∇f‖/L1; D is smaller where L1 jumps.

    Otherwise m is the number of `steps` that take as long as a proof. To cross the ball takes about
    D·L1/‖∇f‖ steps, so that a distance of 1 costs L1/‖∇f‖ + m/D steps; where both terms are equal
    the cost is at most twice the least, and half of the time goes to steps. Steps are truncated to
    D/2, as those of tgd with that margin.

    In a convex set the gradient mapping of L1 takes the place of ∇f, and the steps are those of tgd
    in the set, which lower f by at least (L1/2)‖step‖².
    """

    name: str
    within: Set | None = None
    steps: float = 1.0

    own_test = False
    linearises = False
    second_descent = None

    @property
    def parameters(self) -> dict[str, float | str]:
        return {"D": "auto"}

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        return of_certified_steps(self.within is not None)

    def region(self, start: Iterate, constants: ConstantsOver | None) -> EpochRegion:
        assert constants is not None
        return largest_proved(start, constants, self.within, self.steps)

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> DescentRun:
        move = truncate if self.within is None else TruncatedProjection(self.within)
        return DescentRun(move, evaluate, start, ends_at_boundary=False)


def certified(name: str, context: MethodContext, margin_given: bool) -> Certified:
    """The certified method called `name`. Raises DomainError for estimates and for a margin d."""
    if margin_given:
        message = "d is the margin of a fixed D, and D='auto' has none"
        raise DomainError(Diagnostic("E604", message, help="leave d or D out"))
    if not context.proves:
        message = "D='auto' takes steps that are proved, and samples prove nothing"
        remedy = "give lipschitz='analytic' of a compiled model, a number or a function, or a D"
        raise DomainError(Diagnostic("E604", message, help=remedy))
    steps = 1.0 if context.constants is None else context.constants.worth
    return Certified(name, context.within, steps)


def largest_proved(
    start: Iterate, constants: ConstantsOver, within: Set | None = None, steps: float = 1.0
) -> EpochRegion:
    """The ball of m certified `steps` from `start`, its radius within 10 % (m = 1) of the largest.

    δ·L1(δ) increases with δ, so that each trial at least halves the search interval. If a trial δ
    is too large, the same L1 still proves the radius m‖g‖/L1; if it is not, no radius beyond
    m‖g‖/L1 is possible. L1 = 0 would allow any δ: max(1, ‖x‖) is taken. In a set ‖g‖ is the norm of
    the gradient mapping, whose quotient ‖g‖/L1 does not increase with L1 either. For m > 1 the
    trials grow from the length of one step, as bounds over balls that are far too large take long
    and say little.
    Raises DomainError if no ball has a finite L1.
    """
    near = NEAR if steps == 1.0 else NEAR_OF_MANY
    cap = max(1.0, norm(start.x))
    at_point = constants(start, 0.0)
    if math.inf == at_point.L1:
        raise unproved(0.0, at_point.unproved or "L1 is infinite")
    if start.gnorm == 0.0:
        return region_of(start, 0.0, at_point, within, steps)
    g = steps * mapping_norm(start, at_point.L1, within)
    proved, low, high = at_point, 0.0, quotient(g, at_point.L1, cap)
    trial = high / steps
    for _ in range(TRIALS):
        result = constants(start, trial)
        g = steps * mapping_norm(start, result.L1, within)
        if trial * result.L1 <= g:
            proved, low = result, trial
            high = min(high, quotient(g, result.L1, trial))
        else:
            high = trial
            if g / result.L1 > low:
                proved, low = result, g / result.L1
        if high <= (1.0 + near) * low:
            break
        trial = math.sqrt(low) * math.sqrt(high) if low > 0.0 else SHRINK * high
        if steps > 1.0 and proved is result and low * GROW < high:
            trial = GROW * low
    if low == 0.0:
        raise unproved(trial, result.unproved or "L1 is infinite")
    return region_of(start, low, proved, within, steps)


def mapping_norm(start: Iterate, L1: float, within: Set | None) -> float:
    """L1‖P(x − ∇f/L1) − x‖, P the projection on the set; without a set ‖∇f‖."""
    if within is None:
        return start.gnorm
    if not 0.0 < L1 < math.inf:
        return 0.0
    out = np.empty_like(start.x)
    WithinBall(within, start.x, math.inf).step_within(start.x, start.g, L1, out)
    out -= start.x
    return L1 * norm(out)


def quotient(g: float, L1: float, otherwise: float) -> float:
    """g/L1, or `otherwise` if L1 is 0 or inf or the quotient overflows."""
    return g / L1 if 0.0 < L1 < math.inf and g / L1 < math.inf else otherwise


def region_of(
    start: Iterate, radius: float, proved: Constants, within: Set | None, steps: float
) -> EpochRegion:
    """The ball of an epoch with its constants; one of many steps has half of it as its margin."""
    if steps == 1.0:
        ball = ball_of_a_step(start, radius, within)
        return replace(ball, L1=proved.L1, source=proved.source, estimated=proved.estimated)
    centre = start.x.copy()
    ball_of_many = part_of_ball(centre, radius, within)
    margin = 0.5 * radius
    return EpochRegion(
        centre, ball_of_many, margin, proved.L1, None, proved.source, proved.estimated
    )
