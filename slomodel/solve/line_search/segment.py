"""Backtracking from a point of a set along a segment that ends in another one."""

from __future__ import annotations

import math

import numpy as np

from slomodel.solve.line_search.armijo import ROUNDING_TRIALS, Found
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.resolution import Resolution
from slomodel.solve.subroutine import Iterate

# A trial is shortened to the minimiser of the parabola through f, its slope and the trial, but to
# no less than this fraction.
LEAST_FRACTION = 0.1


class SegmentSearch:
    """δ = δ₀, then shorter, until f(P(x + δv)) ≤ f(x) + σδ⟨g,v⟩, with x + v in the set.

    The segment lies in a convex set; P, the projection, removes the rounding error, and leads back
    to a curved set. Trials at the resolution of f are treated as in `LineSearch`.
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
        self._spare = Iterate(np.empty_like(start.x), 0.0, np.empty_like(start.g), 0.0)

    def search(self, at: Iterate, v: Vector, slope: float, delta: float) -> Found | None:
        """Search from `at` along v (n,), slope = ⟨g,v⟩ < 0; None if no trial is accepted.

        The accepted point is stored in arrays that the second search after this one overwrites.
        """
        self.trials = 0
        new = self._spare
        within = self._evaluate.within
        assert within is not None
        noise = self._resolution.noise(at)
        band = (at.f - noise, max(min(at.f, self._resolution.lowest) + noise, at.f))
        rounding_trials = 0
        while rounding_trials < ROUNDING_TRIALS:
            np.multiply(v, delta, out=new.x)
            new.x += at.x
            within.project(new.x, new.x)
            if np.array_equal(new.x, at.x):
                break
            f = self._evaluate.value(new.x)
            self.trials += 1
            armijo = -math.inf < f <= at.f + self._sigma * delta * slope and f < at.f
            if armijo or band[0] <= f <= band[1]:
                new.f = f
                new.gnorm = self._evaluate.gradient(new.x, new.g)
                if new.gnorm < (math.inf if armijo else at.gnorm):
                    self._spare = at
                    return Found(new, delta, by_rounding=not armijo)
                rounding_trials += not armijo
            delta *= self._shorter(f - at.f, delta * slope)
        return None

    def _shorter(self, change: float, predicted: float) -> float:
        """The factor of δ after a trial that changed f by `change`, its slope by `predicted`."""
        excess = change - predicted
        if not 0.0 < excess < math.inf:
            return self._theta
        return min(max(-0.5 * predicted / excess, LEAST_FRACTION), self._theta)
