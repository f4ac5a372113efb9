"""Armijo search by interpolation, with longer steps while the slope stays steep."""

from __future__ import annotations

import math

import numpy as np

from slomodel.solve.compiled.loop import LoopState
from slomodel.solve.line_search.armijo import ROUNDING_TRIALS, AcceptedTrial, spare_like
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.resolution import Resolution
from slomodel.solve.subroutine import Iterate

# A rejected step is shortened to the minimiser of the interpolating polynomial, within these
# factors; where f is not finite, by the least.
SHORTEN = (0.1, 0.5)
# A step whose slope is still beyond STEEP times the first one is lengthened by secant steps on the
# slope, within these factors, up to EXTENSIONS times: the weak Wolfe condition.
STEEP = 0.9
LENGTHEN = (1.5, 10.0)
EXTENSIONS = 10
# Limit on the trials of one search.
MOST_TRIALS = 60
# A trial whose predicted change is below this fraction of the noise of f shows nothing.
INVISIBLE = 1e-3


class InterpolatingSearch:
    """A step δ with f(x + δv) ≤ f(x) + σδ⟨g,v⟩, and a slope that is not much steeper than needed.

    Rejected steps are shortened by quadratic or cubic interpolation. A trial that changes f by no
    more than its rounding error is accepted if it lowers ‖g‖, as are those that satisfy the
    approximate Wolfe conditions. `trials` is the number of values of the last search.
    Hager & Zhang, A new conjugate gradient method with guaranteed descent and an efficient line
    search (2005); Nocedal & Wright, Numerical Optimization (2006), Section 3.5.
    """

    def __init__(
        self, evaluate: Evaluator, resolution: Resolution, start: Iterate, sigma: float
    ) -> None:
        self.trials = 0
        # Whether the last search accepted its first trial: the gradient at the next first trial is
        # then computed with its value.
        self._accepts_first = False
        self._evaluate = evaluate
        self._resolution = resolution
        self._sigma = sigma
        self._spare = Iterate(np.empty_like(start.x), 0.0, np.empty_like(start.g), 0.0)
        self._second: Iterate | None = None

    def search(
        self,
        at: Iterate,
        v: Vector,
        vnorm: float,
        slope: float,
        delta: float,
        longest: float,
        *,
        once: bool = False,
    ) -> AcceptedTrial | None:
        """Search from `at` along v (n,), slope = ⟨g,v⟩/‖v‖ < 0; None if no trial is accepted.

        The first trial is `delta`, the longest δ `longest`; with `once` it is the only one. The
        accepted point is stored in arrays
        that the second search after this one overwrites.
        """
        self.trials = 0
        new = self._spare
        noise = self._resolution.noise(at)
        first = slope * vnorm
        band = max(min(at.f, self._resolution.lowest) + noise, at.f)
        computes_both = self._accepts_first and self._evaluate.computes_both
        rounding_trials = 0
        before: tuple[float, float] | None = None
        while rounding_trials < ROUNDING_TRIALS and self.trials < MOST_TRIALS:
            both = computes_both and not self.trials
            f = self._value(at, v, delta, new, both=both)
            armijo = -math.inf < f <= at.f + self._sigma * delta * first and f < at.f
            if armijo or at.f - noise <= f <= band:
                if f == at.f and np.array_equal(new.x, at.x):
                    break
                if not both:
                    new.gnorm = self._evaluate.gradient(new.x, new.g)
                self._accepts_first = self.trials == 1
                if armijo and new.gnorm < math.inf:
                    if delta >= longest or not float(new.g.dot(v)) < STEEP * first:
                        return self._found(new, at, delta, by_rounding=False)
                    return self._extended(at, v, first, delta, longest)
                if not armijo and new.gnorm < at.gnorm:
                    return self._found(new, at, delta, by_rounding=True)
                rounding_trials += not armijo
            self._accepts_first = False
            if once:
                break
            if not armijo and -delta * first < INVISIBLE * noise:
                break
            shorter = _shortened(at.f, first, delta, f, before)
            before = (delta, f)
            delta = shorter
        return None

    def store(self, loop: LoopState) -> None:
        """Write the state into that of a compiled loop."""
        loop.sigma, loop.accepts_first = self._sigma, self._accepts_first

    def load(self, loop: LoopState) -> None:
        """Read the state after steps of a compiled loop."""
        self._accepts_first = bool(loop.accepts_first)

    def _value(
        self, at: Iterate, v: Vector, delta: float, new: Iterate, *, both: bool = False
    ) -> float:
        """f at the end of a step δv, which becomes the point `new`; `both`: and its gradient."""
        np.multiply(v, delta, out=new.x)
        new.x += at.x
        self.trials += 1
        if both:
            new.f, new.gnorm = self._evaluate.value_and_gradient(new.x, new.g)
        else:
            new.f = self._evaluate.value(new.x)
        return new.f

    def _found(
        self, new: Iterate, at: Iterate, delta: float, *, by_rounding: bool
    ) -> AcceptedTrial:
        """The result, with the arrays of `at` for the next search."""
        if new is self._spare:
            self._spare = at
        else:
            self._second = at
        return AcceptedTrial(new, delta, by_rounding)

    def _extended(
        self, at: Iterate, v: Vector, first: float, delta: float, longest: float
    ) -> AcceptedTrial:
        """The step δ that was accepted, or a longer one if its slope is still steep."""
        best, other = self._spare, self._second
        best_delta, before = delta, first
        last_delta = 0.0
        for _ in range(EXTENSIONS):
            slope = float(best.g.dot(v))
            if not slope < STEEP * first or best_delta >= longest:
                break
            if other is None:
                other = self._second = spare_like(at)
            rise = slope - before
            factor = LENGTHEN[1]
            if rise > 0.0:
                factor = 1.0 - slope * (1.0 - last_delta / best_delta) / rise
            factor = min(max(factor, LENGTHEN[0]), LENGTHEN[1])
            trial = min(best_delta * factor, longest)
            f = self._value(at, v, trial, other)
            if not (-math.inf < f <= at.f + self._sigma * trial * first and f < best.f):
                break
            other.gnorm = self._evaluate.gradient(other.x, other.g)
            if not math.isfinite(other.gnorm):
                break
            last_delta, before = best_delta, slope
            best, other, best_delta = other, best, trial
        return self._found(best, at, best_delta, by_rounding=False)


def _shortened(
    f0: float, slope: float, delta: float, f: float, before: tuple[float, float] | None
) -> float:
    """The next trial after δ with value f, by interpolation of f0, the slope at 0 and the values.

    `before` is the trial before, with its value, if any.
    """
    low, high = SHORTEN[0] * delta, SHORTEN[1] * delta
    excess = f - f0 - slope * delta
    if not math.isfinite(excess):
        return low
    minimiser = -slope * delta * delta / (2.0 * excess) if excess > 0.0 else high
    if before is not None and math.isfinite(before[1]):
        minimiser = _cubic(slope, (delta, excess), (before[0], before[1] - f0 - slope * before[0]))
    return min(max(minimiser, low), high) if math.isfinite(minimiser) else high


def _cubic(slope: float, one: tuple[float, float], other: tuple[float, float]) -> float:
    """The minimiser of slope·t + b t² + a t³ with the excesses over slope·t at two points.

    It is NaN if there is none, or if the square of a point is too small for a number.
    """
    (t, p), (u, q) = one, other
    if t * t == 0.0 or u * u == 0.0:
        return math.nan
    p, q = p / (t * t), q / (u * u)
    a = (p - q) / (t - u)
    b = p - a * t
    if a == 0.0:
        return -slope / (2.0 * b) if b != 0.0 else math.nan
    square = b * b - 3.0 * a * slope
    return (-b + math.sqrt(square)) / (3.0 * a) if square >= 0.0 else math.nan
