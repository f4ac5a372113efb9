"""Steps whose descent is proved by values of f with bounds on their rounding errors."""

from __future__ import annotations

import math

import numpy as np

from slomodel.solve.line_search.armijo import AcceptedTrial, spare_like
from slomodel.solve.norms import EPS, Vector, slope_along
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate

# Errors of values may be this part of the descent that a trial has to show: with more, a trial that
# is long enough may be rejected for them, and bounds along the ray prove longer steps.
UNSURE = 0.1
# Largest number of trials in one search.
TRIALS = 60


class ProvedValues:
    """Backtracking, δ = δ₀, θδ₀, …, until f(x + δv) ≤ f(x) + σδ⟨g,v⟩ is proved, g as computed.

    With values f̂ and bounds e on their errors: where f̂ + e at x + δv is at most f̂ − e + σδ⟨g,v⟩
    at x; both points are those of the iterates in doubles. There is no step where the errors could
    hide it: a trial rejected for its enclosed value has no descent of (1 + 4 UNSURE)σδ|⟨g,v⟩|.
    Paper: alg:lsearch, eqn:lsearch-rule.
    """

    def __init__(self, evaluate: Evaluator, start: Iterate, theta: float, sigma: float) -> None:
        self.trials = 0
        self._evaluate = evaluate
        self._theta = theta
        self._sigma = sigma
        self._spare = spare_like(start)
        # The last point with an enclosed value, that value and its error; the iterate of the last
        # search, whose arrays other searches overwrite later, if that accepted one.
        self._x = np.full_like(start.x, math.nan)
        self._f, self._error = math.nan, 0.0
        self._accepted: Iterate | None = None
        # Whether the first trial was accepted, so that the next one probably is.
        self._at_once = True

    def search(self, at: Iterate, v: Vector, vnorm: float, delta: float) -> AcceptedTrial | None:
        """Search from `at` along v (n,) from δ₀ = `delta`; None where values prove no step.

        The accepted point is stored in arrays that the second search after this one overwrites.
        """
        self.trials = 0
        is_known, self._accepted = at is self._accepted, None
        new, evaluate = self._spare, self._evaluate
        wanted = -self._sigma * vnorm * slope_along(at.g, at.gnorm, v, vnorm)
        if not self._error <= UNSURE * delta * wanted:
            return None
        if not (is_known or np.array_equal(self._x, at.x)):
            self._enclose(at.x, new.g)
        before, error = self._f, self._error
        while self.trials < TRIALS and error <= UNSURE * delta * wanted:
            self.trials += 1
            np.multiply(v, delta, out=new.x)
            new.x += at.x
            descent = delta * wanted
            lower = self._at_once or evaluate.value(new.x) <= at.f - descent
            if lower:
                gnorm = self._enclose(new.x, new.g, again=not self._at_once)
                if math.isfinite(gnorm) and _is_proved(
                    before, self._f, descent, error, self._error
                ):
                    self._at_once = self.trials == 1
                    new.f, new.gnorm = self._f, gnorm
                    self._spare, self._accepted = at, new
                    return AcceptedTrial(new, delta, by_rounding=False)
                error = max(error, self._error) if math.isfinite(self._f) else error
            self._at_once = False
            delta *= self._theta
        return None

    def _enclose(self, x: Vector, out: Vector, again: bool = False) -> float:
        """Store the enclosed value at x; ∇f is written into `out`, both (n,), and its norm given.

        `again`: a value at x has been counted.
        """
        np.copyto(self._x, x)
        self._f, self._error, gnorm = self._evaluate.value_with_error(x, out, again)
        return gnorm


def _is_proved(before: float, after: float, descent: float, *errors: float) -> bool:
    """Whether exact values, within `errors` of these two, differ by `descent`, after rounding.

    A difference has one rounding, the sum of three numbers >= 0 at most two.
    """
    return (before - after) * (1.0 - EPS) >= (descent + sum(errors)) * (1.0 + 4.0 * EPS)
