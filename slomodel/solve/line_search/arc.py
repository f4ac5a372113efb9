"""Line search from a point of a set along the projection of a ray."""

from __future__ import annotations

import math

import numpy as np

from slomodel.solve.compiled.loop import LoopState
from slomodel.solve.line_search.armijo import ROUNDING_TRIALS, AcceptedTrial
from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.resolution import Resolution
from slomodel.solve.subroutine import Iterate

# A trial is shortened to the minimiser of the parabola through f, its slope and the trial, but to
# no less than this fraction.
LEAST_FRACTION = 0.1
# The most times that a step is lengthened, and the factor while none is known to be too long.
LENGTHENINGS, LENGTHEN = 3, 4.0


class ArcSearch:
    """δ with f(P(x + δv)) ≤ f(x) + σδ⟨g,v⟩, P the projection on a set, v in its tangent cone at x.

    Where x + v is in a convex set, the arc is a segment for δ ≤ 1, and P removes only rounding. δ
    is shortened until the inequality holds; then, if f falls even more steeply at the end of the
    arc, it is lengthened, since that shows no positive curvature. Trials at the resolution of f are
    treated as in `LineSearch`.
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
        # Whether the last search accepted its first trial: the gradient at the next first trial is
        # then computed with its value.
        self._accepts_first = False
        self._evaluate = evaluate
        self._resolution = resolution
        self._theta = theta
        self._sigma = sigma
        self._spare = Iterate(np.empty_like(start.x), 0.0, np.empty_like(start.g), 0.0)
        self._along = np.empty_like(start.x)
        self._longer = Iterate(np.empty_like(start.x), 0.0, np.empty_like(start.g), 0.0)

    def store(self, loop: LoopState) -> None:
        """Write the state into that of a compiled loop."""
        loop.sigma, loop.theta, loop.accepts_first = self._sigma, self._theta, self._accepts_first

    def load(self, loop: LoopState) -> None:
        """Read the state after steps of a compiled loop."""
        self._accepts_first = bool(loop.accepts_first)

    def search(
        self,
        at: Iterate,
        v: Vector,
        slope: float,
        delta: float,
        longest: float,
        end: Vector | None = None,
    ) -> AcceptedTrial | None:
        """Search from `at` along v (n,), slope = ⟨g,v⟩ < 0; None if no trial is accepted.

        The first trial is `delta`, and none is beyond `longest`. `end` (n,) is x + v without its
        rounding, which may leave a bound that is active there. The accepted point is stored in
        arrays that the second search after this one overwrites.
        """
        self.trials = 0
        new, failed = self._spare, math.inf
        noise = self._resolution.noise(at)
        band = (at.f - noise, max(min(at.f, self._resolution.lowest) + noise, at.f))
        rounding_trials = 0
        both = self._accepts_first and self._evaluate.computes_both
        while rounding_trials < ROUNDING_TRIALS:
            f = self._try(at, v, delta, new, end, both=both)
            if f == at.f and np.array_equal(new.x, at.x):
                break
            armijo = self._descends(at, f, delta * slope)
            if armijo or band[0] <= f <= band[1]:
                if not both:
                    new.gnorm = self._evaluate.gradient(new.x, new.g)
                if new.gnorm < (math.inf if armijo else at.gnorm):
                    self._accepts_first = self.trials == 1
                    accepted = AcceptedTrial(new, delta, by_rounding=not armijo)
                    if armijo:
                        accepted = self._lengthened(at, v, slope, accepted, min(failed, longest))
                    self._spare = at
                    return accepted
                rounding_trials += not armijo
            both, failed = False, delta
            delta *= self._shorter(f - at.f, delta * slope)
        return None

    def _try(
        self,
        at: Iterate,
        v: Vector,
        delta: float,
        new: Iterate,
        end: Vector | None = None,
        *,
        both: bool = False,
    ) -> float:
        """f at the end of a step δ of the arc, which becomes the point `new`.

        With `both` its gradient is computed too.
        """
        within = self._evaluate.within
        assert within is not None
        if delta == 1.0 and end is not None:
            np.copyto(new.x, end)
        else:
            np.multiply(v, delta, out=new.x)
            new.x += at.x
            within.project(new.x, new.x)
        self.trials += 1
        if both:
            new.f, new.gnorm = self._evaluate.value_and_gradient(new.x, new.g)
        else:
            new.f = self._evaluate.value(new.x)
        return new.f

    def _descends(self, at: Iterate, f: float, predicted: float) -> bool:
        return -math.inf < f <= at.f + self._sigma * predicted and f < at.f

    def _shorter(self, change: float, predicted: float) -> float:
        """The factor of δ after a trial that changed f by `change`, its slope by `predicted`."""
        excess = change - predicted
        if not 0.0 < excess < math.inf:
            return self._theta
        return min(max(-0.5 * predicted / excess, LEAST_FRACTION), self._theta)

    def _slope_at(self, point: Iterate, v: Vector) -> float:
        """The slope of f along the arc of v (n,) at a point of it."""
        within = self._evaluate.within
        assert within is not None
        within.tangent(point.x, v, self._along)
        return float(point.g.dot(self._along))

    def _lengthened(
        self, at: Iterate, v: Vector, slope: float, accepted: AcceptedTrial, too_long: float
    ) -> AcceptedTrial:
        """A longer step with a lower f, if f falls as steeply at the step's end as at its start."""
        for _ in range(LENGTHENINGS):
            point, delta = accepted.point, accepted.delta
            # The slope along the arc is no less than that along v.
            if float(point.g.dot(v)) >= slope or self._slope_at(point, v) >= slope:
                break
            trial = min(LENGTHEN * delta, 0.5 * (delta + too_long))
            if trial <= delta * (1.0 + LEAST_FRACTION):
                break
            new = self._longer
            f = self._try(at, v, trial, new)
            step = new.x - at.x
            predicted = min(float(at.g.dot(step)), slope * norm(step) / norm(v))
            if f < point.f and self._descends(at, f, predicted):
                new.gnorm = self._evaluate.gradient(new.x, new.g)
                if new.gnorm < math.inf:
                    self._longer = point
                    accepted = AcceptedTrial(new, trial, by_rounding=False)
                    continue
            too_long = trial
        return accepted
