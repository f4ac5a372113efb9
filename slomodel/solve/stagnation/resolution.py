"""The floor of floating point: the resolution of f in a run, and when steps gain nothing."""

from __future__ import annotations

import math

from slomodel.solve.directions.direction import IDLE_STEPS
from slomodel.solve.norms import EPS
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.scaled_descent import in_magnitudes
from slomodel.solve.subroutine import Iterate

# Rounding error expected of f, in units of eps·|f|, before any is measured.
ROUNDING = 32.0
# Points at ±1 … ±PROBES ulps of x where the noise of f is measured.
PROBES = 4
# Ratio of the lengths tried until f changes at all; not 2, which would keep the bits of x and
# so could find the one length after another where rounding cancels.
STRETCH = 1.7
# The share of ‖g‖ whose loss is a gain.
GAIN = 0.9
# Steps below this share of the longest are hardly any: towards a kink f may be halved without end
# by ever shorter ones, along one fall by a little each, and with a wrong gradient by an ulp each.
SHORT = 1e-12
# They gain something where f falls by this share of its whole fall and of itself at the start,
# as towards a pole.
STEEP = 1e-3


class Floor:
    """The resolution of f on one run, the lowest f so far, and the best point at the floor.

    `best` is a copy of the point of least ‖g‖ among those that f cannot tell from the last one;
    None when that is the last one.
    """

    def __init__(self, start: Iterate, idle_steps: int = IDLE_STEPS, eps: float = EPS) -> None:
        self.lowest = start.f
        self.eps = eps
        self._first_f = start.f
        self._scale = abs(start.f)
        self.steepest = start.gnorm
        self.best: Iterate | None = None
        self._best_gnorm = self._mark = start.gnorm
        self._anchor = self._mark_f = start.f
        self._measured = 0.0
        self._idle = 0
        self._idle_steps = idle_steps

    def noise(self, at: Iterate) -> float:
        """A change of f near `at` that may be rounding only."""
        return max(ROUNDING * self.eps * abs(at.f), self._measured)

    def measure(self, evaluate: Evaluator, at: Iterate, longest: float) -> bool:
        """Measure the noise of f near `at`; True when it was underestimated.

        It is the spread over a few ulps of x; where that is 0, as of a difference of large terms,
        the least change of f along −g in units of the variables' magnitudes.
        """
        before = self.noise(at)
        spread = 0.0
        for k in (*range(-PROBES, 0), *range(1, PROBES + 1)):
            change = abs(evaluate.value(at.x * (1.0 + k * self.eps)) - at.f)
            spread = max(spread, change if math.isfinite(change) else 0.0)
        v, t = in_magnitudes(at, longest), self.eps
        while spread == 0.0 and t < 1.0:
            change = abs(evaluate.value(at.x + t * v) - at.f)
            spread = change if math.isfinite(change) else 0.0
            t *= STRETCH
        # More than half the digits of f in a few ulps of x is a jump of f, and no rounding.
        if 2.0 * spread <= math.sqrt(self.eps) * max(abs(at.f), self._scale):
            self._measured = max(self._measured, 2.0 * spread)
        return self._measured > before

    def note(self, point: Iterate, length: float, longest: float) -> bool:
        """Take in an accepted point; True when `idle_steps` have gained nothing.

        A gain is a lower ‖g‖, or an f lower by more than its noise after a step that is not short,
        or by a good part of its whole fall.
        """
        self.lowest = min(self.lowest, point.f)
        self.steepest = max(self.steepest, point.gnorm)
        noise = self.noise(point)
        if point.f < self._anchor - noise:
            self._anchor = point.f
            self.best = None
            self._best_gnorm = point.gnorm
        elif point.gnorm < self._best_gnorm:
            self.best = point.copy()
            self._best_gnorm = point.gnorm
        fallen = self._mark_f - point.f
        steep = STEEP * max(self._first_f - point.f, abs(self._first_f))
        short = length <= SHORT * longest and fallen <= steep
        fell = fallen > noise and not short
        if fell or point.gnorm < GAIN * self._mark:
            self._mark, self._mark_f = point.gnorm, point.f
            self._idle = 0
        else:
            self._idle += 1
        return self._idle >= self._idle_steps
