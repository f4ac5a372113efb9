"""Steps whose length a Lipschitz constant determines, with a check of their descent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from slomodel.solve.directions.direction import IDLE_STEPS
from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.stagnation import Stagnation
from slomodel.solve.status import Status
from slomodel.solve.subroutine import AcceptedStep, EpochRegion, Halt, Iterate, Violation

# (from, region, out (n,)): writes the new point; True if the ball or the margin, and not L1,
# determined the length of the step.
Move = Callable[[Iterate, EpochRegion, Vector], bool]


class DescentRun:
    """One run of a `move`, with a check of f_k − f_{k−1} ≤ −(L1/2)‖x_k − x_{k−1}‖² at every step.

    `ends_at_boundary`: a move that the ball cut short ends on its boundary.
    Paper: cond-1 with C1 = L1/2 (lemma:condition-GP, lemma:condition-TG).
    """

    def __init__(
        self,
        move: Move,
        evaluate: Evaluator,
        start: Iterate,
        *,
        ends_at_boundary: bool,
        least_L1: float = 0.0,
    ) -> None:
        self._move = move
        self._evaluate = evaluate
        self._ends_at_boundary = ends_at_boundary
        self._least_L1 = least_L1
        self._stagnation = Stagnation.of_fixed_steps(evaluate, start)
        self._largest_f = abs(start.f)
        self._spare = Iterate(np.empty_like(start.x), 0.0, np.empty_like(start.g), 0.0)
        self._s = np.empty_like(start.x)

    def enter(self, region: EpochRegion) -> EpochRegion:
        """The region with L1 raised to the least value that the method's proof allows."""
        assert region.L1 is not None
        return replace(region, L1=max(region.L1, self._least_L1))

    def step(self, current: Iterate, region: EpochRegion) -> AcceptedStep | Halt | Violation:
        """One move; a Violation if an estimated L1 proves too small or a value is not finite."""
        assert region.L1 is not None
        halt = self._stagnation.look_far(current, self._s)
        if halt:
            return halt
        resolution = self._stagnation.resolution
        new = self._spare
        cut_short = self._move(current, region, new.x)
        length = norm(np.subtract(new.x, current.x, out=self._s))
        if length == 0.0 or math.inf == region.L1:
            return self._why_no_gain(current, region)
        new.f = self._evaluate.value(new.x)
        wanted = 0.5 * (region.L1 * length) * length
        # Compared with the lowest f too, lest many rises within the noise add up.
        excess = max(new.f - current.f + wanted, new.f - resolution.lowest)
        holds = self._within_noise(current, excess, region)
        if not math.isfinite(new.f) or (region.estimated and not holds):
            return Violation()
        new.gnorm = self._evaluate.gradient(new.x, new.g)
        if not math.isfinite(new.gnorm):
            return Violation()
        if self._stagnation.after(new, length / reach(region, current)):
            return self._why_no_gain(current, region, violates=not holds)
        self._spare = current
        # After a rise that a user-supplied L1 caused, later steps are compared with the higher
        # value.
        resolution.lowest = min(resolution.lowest, new.f) if holds else new.f
        self._largest_f = max(self._largest_f, abs(new.f))
        # Without a ball, shrinking steps lead to a minimiser; f may be unbounded along others.
        free = math.inf == region.D
        self._stagnation.probe.count(cut_short or (free and new.gnorm >= current.gnorm))
        at_boundary = cut_short and self._ends_at_boundary
        return AcceptedStep(new, length, at_boundary, holds and excess > 0.0, violates=not holds)

    def _within_noise(self, current: Iterate, excess: float, region: EpochRegion) -> bool:
        """Whether the descent condition, violated by `excess`, holds within the error of f."""
        far = reach(region, current)
        resolution = self._stagnation.resolution
        return resolution.within_noise(self._evaluate, current, excess, self._largest_f, far)

    def _why_no_gain(self, at: Iterate, region: EpochRegion, violates: bool = False) -> Halt:
        """The halt for a step below the spacing of numbers, or after many steps without a gain."""
        if violates:
            detail = (
                f"With L1 = {region.L1:.3g} the steps are too long: the objective has not fallen "
                f"in {IDLE_STEPS} of them."
            )
            return Halt(Status.line_search_stalled, detail)
        limit = f"L1 = {region.L1:.3g}"
        return self._stagnation.explain(at, reach(region, at), limit)


def reach(region: EpochRegion, at: Iterate) -> float:
    """The longest step from `at`: D, or max(1, ‖x‖) where no ball bounds it."""
    D = region.D
    return D if math.inf > D else max(1.0, norm(at.x))
