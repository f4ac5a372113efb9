"""Truncated gradient descent: steps −∇f/L1, truncated to length d."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from slomodel.solve.methods.ball import (
    ball_with_constant,
    margin,
    radius,
    require_epoch_descent,
)
from slomodel.solve.methods.context import MethodContext
from slomodel.solve.methods.gradient_steps import DescentRun
from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.options import bad_value
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.sets.within_ball import WithinBall
from slomodel.solve.subroutine import ConstantsOver, EpochRegion, Iterate, TheoremInequality
from slomodel.solve.verify.inequalities import of_gradient_steps


@dataclass(frozen=True, slots=True)
class TGD:
    """x − ∇f·min(1/L1, d/‖∇f‖), L1 over B(x₀, D). Paper: eqn:meta-TG.

    L1 is raised to at least √ε/d, so that a step of length d descends by ε/(2·L1) too; the paper
    obtains this from L1 ≥ 1. In a convex set the step is P(x − ∇f/L1) − x, with P the projection on
    the set, truncated to length d.
    """

    D: float
    d: float
    within: Set | None = None

    name = "tgd"
    own_test = False
    linearises = False
    second_descent = None

    @property
    def parameters(self) -> dict[str, float | str]:
        return {"D": self.D, "d": self.d}

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        return of_gradient_steps(True)

    def region(self, start: Iterate, constants: ConstantsOver | None) -> EpochRegion:
        return ball_with_constant(start, self.D, self.d, constants, self.within)

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> DescentRun:
        if self.d < tolerance:
            raise bad_value("d", f"a number ≥ √ε = {tolerance:g}", self.d)
        require_epoch_descent(self.D, self.d, tolerance)
        least = tolerance / self.d
        move = truncate if self.within is None else TruncatedProjection(self.within)
        return DescentRun(move, evaluate, start, ends_at_boundary=False, least_L1=least)


def truncate(current: Iterate, region: EpochRegion, out: Vector) -> bool:
    """Write the gradient step into `out` (n,), truncated to length d if longer; True in that case.

    Paper: eqn:meta-TG.
    """
    d, L1 = region.d, region.L1
    assert L1 is not None
    cut = current.gnorm > L1 * d
    if cut:
        np.divide(current.g, -current.gnorm, out=out)
        out *= d
    else:
        np.divide(current.g, -L1, out=out)
    out += current.x
    return cut


@dataclass(frozen=True, slots=True)
class TruncatedProjection:
    """The projected gradient step in the set of the variables, truncated to length d if longer."""

    within: Set

    def __call__(self, current: Iterate, region: EpochRegion, out: Vector) -> bool:
        """Write x + s(P(x − ∇f/L1) − x) with s = min(1, d/‖·‖) into `out` (n,); True if s < 1.

        P is the projection on the set, which contains the whole segment.
        """
        d, L1 = region.d, region.L1
        assert L1 is not None
        ball = WithinBall(self.within, region.centre, region.D)
        ball.step_within(current.x, current.g, L1, out)
        out -= current.x
        length = norm(out)
        cut = length > d
        if cut:
            out *= d / length
        out += current.x
        # x + s(P(x − ∇f/L1) − x) is in the set up to rounding.
        self.within.project(out, out)
        return cut


def tgd(given: Mapping[str, object], context: MethodContext) -> TGD:
    """TGD with its defaults: d = D/4."""
    if "d" in given:
        d = margin(given["d"], closed=False)
        return TGD(radius(given, context, d), d, context.within)
    D = radius(given, context, 0.0)
    return TGD(D, D / 4.0, context.within)
