"""Classical Armijo line search from a fixed interval of step sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from slomodel.solve.line_search.armijo import LineSearch
from slomodel.solve.methods.ball import ball_of_a_step
from slomodel.solve.methods.context import MethodContext
from slomodel.solve.norms import EPS, LARGEST, norm, ratio
from slomodel.solve.objective import Evaluator
from slomodel.solve.options import number
from slomodel.solve.stagnation.stagnation import Stagnation
from slomodel.solve.subroutine import (
    AcceptedStep,
    CheckedStep,
    ConstantsOver,
    EpochRegion,
    Halt,
    Iterate,
    TheoremInequality,
)
from slomodel.solve.verify.inequalities import descends


@dataclass(frozen=True, slots=True)
class StdArmijo:
    """x − δ∇f with δ from δ̄, θδ̄, θ²δ̄, …; no rate is known, since no ball bounds a step.

    It serves as the baseline for norm-armijo.
    """

    delta_bar: float
    theta: float
    sigma: float

    name = "std-armijo"
    own_test = False
    linearises = False
    second_descent = None

    @property
    def parameters(self) -> dict[str, float | str]:
        return {"delta_bar": self.delta_bar, "theta": self.theta, "sigma": self.sigma}

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        def least(step: CheckedStep) -> float:
            return self.sigma * step.taken.length * step.old.gnorm

        return (descends("a step lowers f by sigma*|step|*|gradient|", least),)

    def region(self, start: Iterate, constants: ConstantsOver | None) -> EpochRegion:
        return ball_of_a_step(start, math.inf)

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> StdArmijoRun:
        return StdArmijoRun(self, evaluate, start)


class StdArmijoRun:
    """One run of StdArmijo. `delta`, `delta_first` and `trials` describe the last step."""

    def __init__(self, method: StdArmijo, evaluate: Evaluator, start: Iterate) -> None:
        self.delta = 0.0
        self.delta_first = method.delta_bar
        self.trials = 0
        self._evaluate = evaluate
        self._stagnation = Stagnation.of_searches(evaluate, start)
        resolution = self._stagnation.resolution
        self._search = LineSearch(evaluate, resolution, start, method.theta, method.sigma)
        self._v = np.empty_like(start.x)
        self._last = np.empty_like(start.x)

    def enter(self, region: EpochRegion) -> EpochRegion:
        return region

    def step(self, current: Iterate, region: EpochRegion) -> AcceptedStep | Halt:
        """Step to x − δ∇f with δ from the line search. Paper: eqn:lsearch-rule over [0, δ̄]."""
        v, first, gnorm = self._v, self.delta_first, current.gnorm
        stagnation = self._stagnation
        if stagnation.probe.due:
            halt = stagnation.look_far(current, np.multiply(v, self.delta, out=self._last))
            if halt:
                return halt
        np.negative(current.g, out=v)
        longest = min(first * gnorm, LARGEST)
        result = self._search.search(current, v, gnorm, -gnorm, first)
        self.trials = self._search.trials
        if result is None and stagnation.resolution.measure(self._evaluate, current, longest):
            result = self._search.search(current, v, gnorm, -gnorm, first)
            self.trials += self._search.trials
        if result is None or stagnation.after(result.point, ratio(result.delta * gnorm, longest)):
            reach = max(1.0, norm(current.x), longest)
            limit = f"delta_bar = {first:.3g}"
            return stagnation.explain(current, reach, limit)
        self.delta = result.delta
        full_length = result.delta >= first * (1.0 - 4.0 * EPS)
        # Steps δ̄∇f that shrink lead to a minimiser; f may be unbounded along others.
        stagnation.probe.count(full_length and result.point.gnorm >= gnorm)
        return AcceptedStep(result.point, result.delta * gnorm, full_length, result.by_rounding)


def std_armijo(given: Mapping[str, object], context: MethodContext) -> StdArmijo:
    """StdArmijo with its defaults."""
    return StdArmijo(
        delta_bar=number("delta_bar", given.get("delta_bar", 1.0), 0.0),
        theta=number("theta", given.get("theta", 0.5), 0.0, 1.0),
        sigma=number("sigma", given.get("sigma", 0.3), 0.0, 1.0),
    )
