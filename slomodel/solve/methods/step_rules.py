"""Steps along −∇f whose length follows a rule, without a guarantee of descent."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from slomodel.solve.methods.ball import whole_space
from slomodel.solve.norms import LARGEST, Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.stagnation import Stagnation
from slomodel.solve.status import Status
from slomodel.solve.subroutine import (
    AcceptedStep,
    ConstantsOver,
    EpochRegion,
    Halt,
    Iterate,
    TheoremInequality,
)
from slomodel.solve.verify.inequalities import NOTHING

# Factor by which a trial is shortened where f or g is not finite, and how often: 1e308 becomes 0.
SHRINK = 0.1
SHRINKINGS = 640


class Length(Protocol):
    """A rule for ‖x_{k+1} − x_k‖, with its memory."""

    @property
    def limit(self) -> str:
        """The name of the parameter that sets the length, for messages."""
        ...

    def propose(self, current: Iterate) -> float:
        """The length of the step from `current`."""
        ...

    def took(self, old: Iterate, new: Iterate, length: float) -> None:
        """Update the rule after the step that was taken."""
        ...

    def full(self, old: Iterate, new: Iterate) -> bool:
        """Whether the step is of full length, as in a sequence without a limit point."""
        ...


class FreeMethod(ABC):
    """A method with such steps, without Lipschitz constants and theorem inequalities."""

    __slots__ = ()

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        return (NOTHING,)

    def region(self, start: Iterate, constants: ConstantsOver | None) -> EpochRegion:
        return whole_space(start)

    @abstractmethod
    def rule(self) -> Length:
        """The rule for the step lengths of one run, with its own memory."""

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> FreeRun:
        return FreeRun(self.rule(), evaluate, start)


class FreeRun:
    """One run with a rule for the step length; it returns its lowest point."""

    def __init__(self, rule: Length, evaluate: Evaluator, start: Iterate) -> None:
        self._rule = rule
        self._evaluate = evaluate
        self._stagnation = Stagnation.of_free_steps(evaluate, start)
        self._spare = Iterate(np.empty_like(start.x), 0.0, np.empty_like(start.g), 0.0)
        self._s: Vector = np.empty_like(start.x)

    def enter(self, region: EpochRegion) -> EpochRegion:
        return region

    def step(self, current: Iterate, region: EpochRegion) -> AcceptedStep | Halt:
        """Step to x − t∇f/‖∇f‖ with t from the rule, shortened while f or g is not finite."""
        halt = self._stagnation.look_far(current, self._s)
        if halt:
            return halt
        new, length = self._spare, min(self._rule.propose(current), LARGEST)
        for _ in range(SHRINKINGS):
            np.divide(current.g, -current.gnorm, out=self._s)
            self._s *= length
            np.add(current.x, self._s, out=new.x)
            if not np.subtract(new.x, current.x, out=self._s).any():
                return self._why_no_gain(current)
            new.f = self._evaluate.value(new.x)
            if math.isfinite(new.f):
                new.gnorm = self._evaluate.gradient(new.x, new.g)
                if math.isfinite(new.gnorm):
                    return self._take(current, new, norm(self._s))
            length *= SHRINK
        detail = "The objective is not finite a small step away along minus the gradient."
        return Halt(Status.line_search_stalled, detail)

    def _take(self, old: Iterate, new: Iterate, length: float) -> AcceptedStep | Halt:
        if self._stagnation.after(new):
            return self._why_no_gain(old)
        self._rule.took(old, new, length)
        self._stagnation.probe.count(self._rule.full(old, new))
        self._spare = old
        return AcceptedStep(new, length, at_boundary=False)

    def _why_no_gain(self, at: Iterate) -> Halt:
        reach = max(1.0, norm(at.x))
        return self._stagnation.explain(at, reach, self._rule.limit)
