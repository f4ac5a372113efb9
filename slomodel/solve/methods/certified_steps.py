"""Certified steps, `D="auto"`: each as long as the bound over its own ball allows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.constants.proved import unproved
from slomodel.solve.methods.ball import ball_of_a_step
from slomodel.solve.methods.context import MethodContext
from slomodel.solve.methods.gradient_steps import DescentRun
from slomodel.solve.methods.tgd import truncate, truncate_projected
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
# radius slightly below the largest costs little.
NEAR = 0.1
# Balls tried for one step, including one for each factor of ten until L1 is finite.
TRIALS = 60
SHRINK = 0.1


@dataclass(frozen=True, slots=True)
class Certified:
    """x − δ∇f/‖∇f‖ with the largest δ for which δ·L1(B(x, δ)) ≤ ‖∇f‖; every step is an epoch.

    f decreases by at least δ‖∇f‖ − L1·δ²/2 ≥ δ‖∇f‖/2, since on the ball f is below its tangent plus
    L1‖y − x‖²/2. That is ‖∇f‖²/(2·L1) where δ = ‖∇f‖/L1; δ is smaller where L1 jumps. In a convex
    set the gradient mapping of L1 takes the place of ∇f, and the step is that of tgd with d = δ,
    which lowers f by at least (L1/2)‖step‖².
    """

    name: str
    within: Set | None = None

    @property
    def parameters(self) -> dict[str, float | str]:
        return {"D": "auto"}

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        return of_certified_steps(self.within is not None)

    def region(self, start: Iterate, constants: ConstantsOver | None) -> EpochRegion:
        assert constants is not None
        return largest_proved(start, constants, self.within)

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> DescentRun:
        move = truncate if self.within is None else truncate_projected
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
    return Certified(name, context.within)


def largest_proved(
    start: Iterate, constants: ConstantsOver, within: Set | None = None
) -> EpochRegion:
    """The ball of a certified step from `start`, its radius within 10 % of the largest.

    δ·L1(δ) increases with δ, so that each trial at least halves the search interval. If a trial δ
    is too large, the same L1 still proves the step ‖g‖/L1; if it is not, no step beyond ‖g‖/L1 is
    possible. L1 = 0 would allow any δ: max(1, ‖x‖) is taken. In a set ‖g‖ is the norm of the
    gradient mapping, whose quotient ‖g‖/L1 does not increase with L1 either.
    Raises DomainError if no ball has a finite L1.
    """
    cap = max(1.0, norm(start.x))
    at_point = constants(start, 0.0)
    if math.inf == at_point.L1:
        raise unproved(0.0, at_point.unproved or "L1 is infinite")
    if start.gnorm == 0.0:
        return region_of(start, 0.0, at_point, within)
    g = mapping_norm(start, at_point.L1, within)
    proved, low, high = at_point, 0.0, quotient(g, at_point.L1, cap)
    trial = high
    for _ in range(TRIALS):
        found = constants(start, trial)
        g = mapping_norm(start, found.L1, within)
        if trial * found.L1 <= g:
            proved, low = found, trial
            high = min(high, quotient(g, found.L1, trial))
        else:
            high = trial
            if g / found.L1 > low:
                proved, low = found, g / found.L1
        if high <= (1.0 + NEAR) * low:
            break
        trial = math.sqrt(low) * math.sqrt(high) if low > 0.0 else SHRINK * high
    if low == 0.0:
        raise unproved(trial, found.unproved or "L1 is infinite")
    return region_of(start, low, proved, within)


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


def region_of(start: Iterate, radius: float, proved: Constants, within: Set | None) -> EpochRegion:
    """The ball of one step with its constants."""
    ball = ball_of_a_step(start, radius, within)
    return replace(ball, L1=proved.L1, source=proved.source, estimated=proved.estimated)
