"""Certified steps, `D="auto"`: each as long as the bound over its own ball allows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.constants.proved import unproved
from slomodel.solve.methods.ball import ball_of_a_step
from slomodel.solve.methods.context import MethodContext
from slomodel.solve.methods.gradient_steps import DescentRun
from slomodel.solve.methods.tgd import truncate
from slomodel.solve.norms import norm
from slomodel.solve.objective import Evaluator
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
    L1‖y − x‖²/2. That is ‖∇f‖²/(2·L1) where δ = ‖∇f‖/L1; δ is smaller where L1 jumps.
    """

    name: str

    @property
    def parameters(self) -> dict[str, float | str]:
        return {"D": "auto"}

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        return of_certified_steps()

    def region(self, start: Iterate, constants: ConstantsOver | None) -> EpochRegion:
        assert constants is not None
        return largest_proved(start, constants)

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> DescentRun:
        return DescentRun(truncate, evaluate, start, ends_at_boundary=False)


def certified(name: str, context: MethodContext, margin_given: bool) -> Certified:
    """The certified method called `name`. Raises DomainError for estimates and for a margin d."""
    if margin_given:
        message = "d is the margin of a fixed D, and D='auto' has none"
        raise DomainError(Diagnostic("E604", message, help="leave d or D out"))
    if not context.proves:
        message = "D='auto' takes steps that are proved, and samples prove nothing"
        remedy = "give lipschitz='analytic' of a compiled model, a number or a function, or a D"
        raise DomainError(Diagnostic("E604", message, help=remedy))
    return Certified(name)


def largest_proved(start: Iterate, constants: ConstantsOver) -> EpochRegion:
    """The ball of a certified step from `start`, its radius within 10 % of the largest.

    δ·L1(δ) increases with δ, so that each trial at least halves the search interval. If a trial δ
    is too large, the same L1 still proves the step ‖g‖/L1; if it is not, no step beyond ‖g‖/L1 is
    possible. L1 = 0 would allow any δ: max(1, ‖x‖) is taken.
    Raises DomainError if no ball has a finite L1.
    """
    g, cap = start.gnorm, max(1.0, norm(start.x))
    at_point = constants(start, 0.0)
    if math.inf == at_point.L1:
        raise unproved(0.0, at_point.unproved or "L1 is infinite")
    if g == 0.0:
        return region_of(start, 0.0, at_point)
    proved, low, high = at_point, 0.0, quotient(g, at_point.L1, cap)
    trial = high
    for _ in range(TRIALS):
        found = constants(start, trial)
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
    return region_of(start, low, proved)


def quotient(g: float, L1: float, otherwise: float) -> float:
    """g/L1, or `otherwise` if L1 is 0 or inf or the quotient overflows."""
    return g / L1 if 0.0 < L1 < math.inf and g / L1 < math.inf else otherwise


def region_of(start: Iterate, radius: float, proved: Constants) -> EpochRegion:
    """The ball of one step with its constants."""
    ball = ball_of_a_step(start, radius)
    return replace(ball, L1=proved.L1, source=proved.source, estimated=proved.estimated)
