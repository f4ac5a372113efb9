"""Gradient projection: gradient steps 1/L1, projected on the ball of the epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from slomodel.solve.methods.ball import margin, radius, require_epoch_descent
from slomodel.solve.methods.gradient_steps import DescentRun
from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.options import MethodContext
from slomodel.solve.subroutine import Ball, EpochRegion, Iterate, Needs
from slomodel.solve.verify.certificate import Promise
from slomodel.solve.verify.inequalities import of_gradient_steps


@dataclass(frozen=True, slots=True)
class PGD:
    """x − ∇f/L1 projected on B(x₀, D), L1 over that ball. Paper: eq:A:GP, eqn:meta-GP."""

    D: float
    d: float

    name = "pgd"
    needs = Needs.L1

    @property
    def ball(self) -> Ball:
        return Ball(self.D, self.d)

    @property
    def parameters(self) -> dict[str, float | str]:
        return {"D": self.D, "d": self.d}

    @property
    def promises(self) -> tuple[Promise, ...]:
        return of_gradient_steps(self.d > 0.0)

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> DescentRun:
        require_epoch_descent(self.D, self.d, tolerance)
        return DescentRun(project, evaluate, start, ends_at_boundary=True)


def project(current: Iterate, region: EpochRegion, out: Vector) -> bool:
    """Write the gradient step into `out` (n,), projected where it leaves the ball; True then.

    Paper: eq:A:GP. L1 = 0 asks for an infinite step, whose projection exists.
    """
    D, centre, L1 = region.ball.D, region.centre, region.L1
    assert L1 is not None
    # From inside the ball a step longer than its diameter ends outside.
    if current.gnorm <= 2.0 * D * L1:
        np.divide(current.g, -L1, out=out)
        out += current.x
        from_centre = np.subtract(out, centre)
        distance = norm(from_centre)
        if distance <= D:
            return False
    else:
        from_centre = (current.x - centre) * (L1 / current.gnorm) - current.g / current.gnorm
        distance = norm(from_centre)
    np.multiply(from_centre, D / distance, out=out)
    out += centre
    return True


def pgd(given: Mapping[str, object], context: MethodContext) -> PGD:
    """PGD with its defaults: d = 0."""
    d = margin(given.get("d", 0.0), closed=True)
    return PGD(radius(given, context, d), d)
