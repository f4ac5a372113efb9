"""The resolution of f in a run: the smallest difference of values that is not rounding."""

from __future__ import annotations

import math

import numpy as np

from slomodel.solve.compiled.loop import UNCHANGED, LoopState
from slomodel.solve.norms import EPS, Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.scaled_descent import in_magnitudes
from slomodel.solve.subroutine import Iterate

# Expected rounding error of f, in units of eps·|f|, before any has been measured.
ROUNDING = 32.0
# Points at ±1 … ±PROBES ulps of x where the noise of f is measured.
PROBES = 4
# Ratio of successive lengths until f changes at all. It is not 2, which would preserve the bits of
# x, so that rounding might cancel at every length.
STRETCH = 1.7
# The fractional parts of its multiples are spread evenly over [0, 1).
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def spread_nearby(evaluate: Evaluator, at: Iterate) -> float:
    """The largest change of f over a few ulps of x."""
    return _spread(evaluate, at, np.ones(len(at.x)))


def spread_across(evaluate: Evaluator, at: Iterate) -> float:
    """The same, beyond that by its slope, where the changes of the variables have both signs.

    What cancels in f, as log(exp(x) + exp(y)) − x, is rounded alike where all change alike.
    """
    signs = np.where(np.modf(GOLDEN * np.arange(len(at.x)))[0] < 0.5, 1.0, -1.0)
    return _spread(evaluate, at, signs, at.g)


def _spread(evaluate: Evaluator, at: Iterate, signs: Vector, slopes: Vector | None = None) -> float:
    spread = 0.0
    for k in (*range(-PROBES, 0), *range(1, PROBES + 1)):
        x = evaluate.inside(at.x * (1.0 + k * evaluate.eps * signs))
        change = evaluate.value(x) - at.f
        if slopes is not None:
            change -= float(slopes.dot(x - at.x))
        spread = max(spread, abs(change) if math.isfinite(change) else 0.0)
    return spread


class Resolution:
    """The resolution of f in one run, the lowest f so far, and the best point at the resolution.

    `best` is a copy of the point of least ‖g‖ among those whose f cannot be distinguished from that
    of the last point; None if that is the last one. `steepest` is the largest ‖g‖ so far.
    """

    def __init__(self, start: Iterate, eps: float = EPS) -> None:
        self.lowest = start.f
        self.eps = eps
        self.steepest = start.gnorm
        self.best: Iterate | None = None
        self._scale = abs(start.f)
        self._best_gnorm = start.gnorm
        self._anchor = start.f
        self._measured = 0.0

    def noise(self, at: Iterate) -> float:
        """The largest change of f near `at` that may be rounding only."""
        noise = ROUNDING * self.eps * abs(at.f)
        return noise if noise > self._measured else self._measured

    def measure(self, evaluate: Evaluator, at: Iterate, longest: float) -> bool:
        """Measure the noise of f near `at`; True if it was underestimated.

        The noise is the spread over a few ulps of x; if that is 0, as for a difference of large
        terms, it is the least change of f along −g in units of the variables' magnitudes.
        """
        before = self.noise(at)
        spread = spread_nearby(evaluate, at)
        v, t = in_magnitudes(at, longest), self.eps
        while spread == 0.0 and t < 1.0:
            change = abs(evaluate.value(evaluate.inside(at.x + t * v)) - at.f)
            spread = change if math.isfinite(change) else 0.0
            t *= STRETCH
        self._assume(at, max(spread, spread_across(evaluate, at)))
        return self._measured > before

    def measure_nearby(self, evaluate: Evaluator, at: Iterate) -> bool:
        """Measure the spread of f over a few ulps of x alone; True if it was underestimated."""
        before = self.noise(at)
        self._assume(at, spread_nearby(evaluate, at))
        return self._measured > before

    def _assume(self, at: Iterate, spread: float) -> None:
        # A change in more than half the digits of f over a few ulps of x is a jump, not rounding.
        if 2.0 * spread <= math.sqrt(self.eps) * max(abs(at.f), self._scale):
            self._measured = max(self._measured, 2.0 * spread)

    def within_noise(
        self, evaluate: Evaluator, at: Iterate, excess: float, largest_f: float, far: float
    ) -> bool:
        """Whether an inequality violated by `excess` holds within the error of f.

        The error is measured if necessary, with steps of length up to `far`; `largest_f` is the
        largest |f| so far.
        """
        if excess <= self.noise(at):
            return True
        # Up to this fraction of the largest |f| the excess may be rounding, if f is a difference of
        # large terms.
        if not excess <= math.sqrt(evaluate.eps) * largest_f:
            return False
        self.measure(evaluate, at, far)
        return excess <= self.noise(at)

    def store(self, loop: LoopState) -> None:
        """Write the state into that of a compiled loop."""
        loop.eps, loop.measured = self.eps, self._measured
        loop.lowest, loop.steepest = self.lowest, self.steepest
        loop.anchor, loop.best_gnorm = self._anchor, self._best_gnorm

    def load(self, loop: LoopState, best: Iterate | None) -> None:
        """Read the state after steps of a compiled loop; `best` is a point that they copied."""
        self.lowest, self.steepest = loop.lowest, loop.steepest
        self._anchor, self._best_gnorm = loop.anchor, loop.best_gnorm
        if loop.best_is != UNCHANGED:
            self.best = best

    def record(self, point: Iterate) -> None:
        """Update with an accepted point."""
        self.lowest = min(self.lowest, point.f)
        self.steepest = max(self.steepest, point.gnorm)
        if point.f < self._anchor - self.noise(point):
            self._anchor = point.f
            self.best = None
            self._best_gnorm = point.gnorm
        elif point.gnorm < self._best_gnorm:
            self.best = point.copy()
            self._best_gnorm = point.gnorm
