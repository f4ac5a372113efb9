"""Gradient descent with a fixed step 1/L."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.constants.choice import lipschitz_source
from slomodel.solve.constants.proved import ProofSource, unproved
from slomodel.solve.constants.source import GivenNumber, LipschitzSource
from slomodel.solve.methods.ball import radius, whole_space
from slomodel.solve.methods.context import MethodContext
from slomodel.solve.methods.gradient_steps import DescentRun
from slomodel.solve.methods.pgd import project
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.options import number
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.subroutine import ConstantsOver, EpochRegion, Iterate, TheoremInequality
from slomodel.solve.verify.inequalities import of_a_fixed_step


@dataclass(frozen=True, slots=True)
class GD:
    """x − ∇f/L for a user-supplied L, or for L1 over B(x0, D), computed once. Paper: eqn:GD-bound.

    Outside that ball nothing is proved: L is doubled wherever f decreases by less than the descent
    condition requires. A user-supplied L is never changed. In a convex set the steps are projected.
    """

    D: float | None
    within: Set | None = None

    name = "gd"
    own_test = False
    linearises = False
    second_descent = None

    @property
    def parameters(self) -> dict[str, float | str]:
        return {} if self.D is None else {"D": self.D}

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        return of_a_fixed_step()

    def region(self, start: Iterate, constants: ConstantsOver | None) -> EpochRegion:
        """The single region of the run. For L1 = 0 the first step ends on the ball's boundary."""
        assert constants is not None
        D = 0.0 if self.D is None else self.D
        result = constants(start, D)
        if result.unproved:
            raise unproved(D, result.unproved)
        L1 = result.L1 if result.L1 > 0.0 else start.gnorm / D
        estimated = self.D is not None
        return replace(
            whole_space(start, self.within), L1=L1, source=result.source, estimated=estimated
        )

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> DescentRun:
        move = descend if self.within is None else project
        return DescentRun(move, evaluate, start, ends_at_boundary=False)


def descend(current: Iterate, region: EpochRegion, out: Vector) -> bool:
    """Write x − ∇f/L1 into `out` (n,); the length of the step has no other limit."""
    assert region.L1 is not None
    np.divide(current.g, -region.L1, out=out)
    out += current.x
    return False


def given_constant(given: Mapping[str, object]) -> GivenNumber | None:
    """The option L as a source, or None; DomainError together with other options for constants."""
    if "L" not in given:
        return None
    for name in ("D", "lipschitz", "samples", "safety"):
        if name in given:
            message = f"{name} is for the constant of a ball, and L gives one"
            raise DomainError(Diagnostic("E604", message, help=f"leave {name} or L out"))
    return GivenNumber(number("L", given["L"], 0.0), option="L")


def gd_source(given: Mapping[str, object], prove: ProofSource | None) -> LipschitzSource:
    """A user-supplied L, or else the constants that pgd uses."""
    return given_constant(given) or lipschitz_source(given, prove)


def gd(given: Mapping[str, object], context: MethodContext) -> GD:
    """GD with its defaults, and the same ball as pgd."""
    return GD(None if "L" in given else radius(given, context, 0.0), context.within)
