"""Armijo backtracking along a direction, down to the resolution of f."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.resolution import Resolution
from slomodel.solve.subroutine import Iterate

# Limit on the trials that change f by rounding only, each of which costs a gradient. The first may
# still overshoot; once δ is below 1/L, a shorter one gains nothing.
ROUNDING_TRIALS = 12


@dataclass(slots=True)
class AcceptedTrial:
    """An accepted point with its δ; `by_rounding`: f changed by no more than its resolution."""

    point: Iterate
    delta: float
    by_rounding: bool


def spare_like(at: Iterate) -> Iterate:
    """An Iterate with arrays of its own for the next point."""
    return Iterate(np.empty_like(at.x), 0.0, np.empty_like(at.g), 0.0)


class LineSearch:
    """Backtracking: δ = δ₀, θδ₀, θ²δ₀, … until f(x + δv) ≤ f(x) + σδ⟨g,v⟩.

    A trial that changes f by no more than its rounding error is accepted if it lowers ‖g‖. A trial
    where f or g is not finite is rejected. `trials` is the number of trials of the last search.
    Paper: alg:lsearch, eqn:lsearch-rule. The rule at the resolution of f follows the idea of Hager
    & Zhang's approximate Wolfe conditions.
    """

    def __init__(
        self,
        evaluate: Evaluator,
        resolution: Resolution,
        start: Iterate,
        theta: float,
        sigma: float,
    ) -> None:
        self.trials = 0
        self._evaluate = evaluate
        self._resolution = resolution
        self._theta = theta
        self._sigma = sigma
        self._spare: Iterate | None = None

    def search(
        self, at: Iterate, v: Vector, vnorm: float, slope: float, delta: float
    ) -> AcceptedTrial | None:
        """Search from `at` along v (n,), slope = ⟨g,v⟩/‖v‖ < 0; None if no trial is accepted.

        The accepted point is stored in arrays that the second search after this one overwrites.
        """
        self.trials = 0
        new = self._spare = self._spare or spare_like(at)
        noise = self._resolution.noise(at)
        # Nor above the lowest f so far by more than its noise, lest many small rises add up.
        band = (at.f - noise, max(min(at.f, self._resolution.lowest) + noise, at.f))
        rounding_trials = 0
        while rounding_trials < ROUNDING_TRIALS:
            np.multiply(v, delta, out=new.x)
            new.x += at.x
            f = self._evaluate.value(new.x)
            self.trials += 1
            armijo = -math.inf < f <= at.f + self._sigma * (delta * vnorm) * slope and f < at.f
            if armijo or band[0] <= f <= band[1]:
                if f == at.f and np.array_equal(new.x, at.x):
                    break
                new.f = f
                new.gnorm = self._evaluate.gradient(new.x, new.g)
                if new.gnorm < (math.inf if armijo else at.gnorm):
                    self._spare = at
                    return AcceptedTrial(new, delta, by_rounding=not armijo)
                rounding_trials += not armijo
            delta *= self._theta
        return None
