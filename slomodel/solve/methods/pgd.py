"""Gradient projection: steps −∇f/L1, projected onto the ball of the epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slomodel.solve.methods.ball import (
    ball_with_constant,
    margin,
    radius,
    require_epoch_descent,
)
from slomodel.solve.methods.context import MethodContext
from slomodel.solve.methods.gradient_steps import DescentRun
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.subroutine import ConstantsOver, EpochRegion, Iterate, TheoremInequality
from slomodel.solve.verify.inequalities import of_gradient_steps


@dataclass(frozen=True, slots=True)
class PGD:
    """x − ∇f/L1 projected onto B(x₀, D), with L1 over that ball. Paper: eq:A:GP, eqn:meta-GP.

    In a convex set X it is projected onto X ∩ B(x₀, D).
    """

    D: float
    d: float
    within: Set | None = None

    name = "pgd"
    own_test = False
    linearises = False
    second_descent = None

    @property
    def parameters(self) -> dict[str, float | str]:
        return {"D": self.D, "d": self.d}

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        return of_gradient_steps(self.d > 0.0)

    def region(self, start: Iterate, constants: ConstantsOver | None) -> EpochRegion:
        return ball_with_constant(start, self.D, self.d, constants, self.within)

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> DescentRun:
        require_epoch_descent(self.D, self.d, tolerance)
        return DescentRun(project, evaluate, start, ends_at_boundary=True)


def project(current: Iterate, region: EpochRegion, out: Vector) -> bool:
    """Write the gradient step into `out` (n,), projected if it leaves the set; True in that case.

    Paper: eq:A:GP.
    """
    assert region.L1 is not None
    return region.set.project_step(current.x, current.g, current.gnorm, region.L1, out)


def pgd(given: Mapping[str, object], context: MethodContext) -> PGD:
    """PGD with its defaults: d = 0."""
    d = margin(given.get("d", 0.0), closed=True)
    return PGD(radius(given, context, d), d, context.within)
