"""Evidence of a pole: a point towards which f decreases without end, as log(s) does at s = 0."""

from __future__ import annotations

import math

import numpy as np

from slomodel.solve.compiled.loop import LoopState
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.scaled_descent import rounding_of
from slomodel.solve.status import Status
from slomodel.solve.subroutine import Halt, Iterate

# If f is bounded below, its decreases while the gradient norm doubles are summable, and so shrink.
# Towards a logarithmic pole they are constant. f counts as unbounded if the total of the last
# quarter of the doublings is within these factors of that of the second. Growing ones are those of
# a plateau, which a run leaves along ever steeper slopes.
STEADY = (0.6, 2.0)
# Doublings without which there is no evidence where a run has stalled, and those that end a run.
# The ramp of log(x² + 1e-16) has 27 of them: a regularised logarithm is bounded below.
LEAST_DOUBLINGS = 20
ENOUGH_DOUBLINGS = 100
# Steps that doubled the norm, below which there is no evidence: one step may leave a plateau.
LEAST_STEPS = 8
# Where a run stalls at a pole, rounding x changes f by this fraction of a decrease per doubling or
# more; at a kink, which may end such a ramp as well, by far less.
BLURRED = 1e-3
# The value at the end exceeds what the ramp implies by this many decreases at most: at a minimum
# beyond its end, f is lower, and its gradient small.
BELOW_RAMP = 8.0
# Changes of f by rounding below this are resolved, whatever its units: a sum of squares may be 0.
ABSOLUTE = 1e-18

REMEDY = (
    "Look for a variance or a distance that vanishes, such as s in log(s), and keep it from 0 by a "
    "set of its variable or by a prior."
)
UNRESOLVED = (
    "The objective cannot be lowered further within its rounding error, which is too large here to "
    "tell whether a solution is near."
)


def blur(evaluate: Evaluator, at: Iterate) -> float:
    """The change of f that the rounding of x may cause at a point; in a set, of its free part."""
    g = at.g
    if evaluate.within is not None:
        g = np.empty_like(at.g)
        evaluate.within.tangent(at.x, -at.g, g)
    return rounding_of(at.x, np.abs(g), evaluate.eps)


def unresolved(evaluate: Evaluator, at: Iterate, size: float) -> Halt | None:
    """A Halt if rounding x changes f by more than half the digits of `size`, as at a pole.

    At a minimum it does not, whatever the units of the variables: f is flat there, and half the
    digits are lost only if its curvature, relative to f and x, exceeds eps⁻².
    """
    change = blur(evaluate, at)
    if not max(math.sqrt(evaluate.eps) * size, ABSOLUTE) < change < math.inf:
        return None
    detail = (
        f"Gradient norm {at.gnorm:.3g}; rounding the variables changes the objective by "
        f"{change:.2g}."
    )
    return Halt(Status.line_search_stalled, detail, remedy=REMEDY, sentence=UNRESOLVED)


class PoleWatch:
    """The values of f at which the gradient norm doubled, on the way to the present point.

    `_values[j]` is f where the norm last rose past 2^(`_base` + j); it is interpolated unless
    `_reached[j]`, if a step doubled the norm several times.
    """

    def __init__(self, evaluate: Evaluator) -> None:
        self._evaluate = evaluate
        self._base = 0
        self._values: list[float] = []
        self._reached: list[bool] = []

    def store(self, loop: LoopState) -> None:
        """Write into the state of a compiled loop how often the norm has doubled."""
        loop.watches_pole = not self._evaluate.is_bounded_below
        loop.pole_base, loop.pole_levels = self._base, len(self._values)

    def record_all(self, rows: Vector) -> None:
        """Record the points of rows (k, 5) of a history, none of which gives evidence."""
        sign = self._evaluate.sign
        if not self._evaluate.is_bounded_below:
            for _, f, gnorm, _, _ in rows.tolist():
                self._doubles(sign * f, gnorm)

    def record(self, at: Iterate) -> Halt | None:
        """Record an accepted point; a Halt after ENOUGH_DOUBLINGS of evidence."""
        if self._evaluate.is_bounded_below or not self._doubles(at.f, at.gnorm):
            return None
        return self._evidence(at) if len(self._values) > ENOUGH_DOUBLINGS else None

    def _doubles(self, f: float, gnorm: float) -> bool:
        """Record a value and gradient norm; True if the norm has doubled."""
        if not 0.0 < gnorm < math.inf:
            return False
        level = math.frexp(gnorm)[1]
        values = self._values
        if not values or level <= self._base:
            self._base, self._values, self._reached = level, [f], [True]
            return False
        top = self._base + len(values) - 1
        if level <= top:
            del values[level - self._base + 1 :], self._reached[level - self._base + 1 :]
            return False
        last, more = values[-1], level - top
        values.extend(last + (f - last) * (k / more) for k in range(1, more + 1))
        self._reached.extend(k == more for k in range(1, more + 1))
        return True

    def at_end(self, at: Iterate) -> Halt | None:
        """The Halt, if any, at a point where a run has stalled."""
        doublings = len(self._values) - 1
        if doublings < LEAST_DOUBLINGS:
            return None
        fall = (self._values[0] - self._values[-1]) / doublings
        blurred = blur(self._evaluate, at) >= BLURRED * fall
        return self._evidence(at) if blurred or doublings >= ENOUGH_DOUBLINGS else None

    def _evidence(self, at: Iterate) -> Halt | None:
        if sum(self._reached) < LEAST_STEPS:
            return None
        falls = -np.diff(self._values)
        quarter = len(falls) // 4
        before, after = falls[quarter : 2 * quarter].sum(), falls[-quarter:].sum()
        if not STEADY[0] * before <= after <= STEADY[1] * before or not before > 0.0:
            return None
        fall = float(after) / quarter
        if not at.f >= self._values[-1] - BELOW_RAMP * fall:
            return None
        way = "rose" if self._evaluate.sign < 0.0 else "fell"
        detail = (
            f"It {way} by about {fall:.3g} each time the gradient norm doubled, {len(falls)} "
            f"times, up to {at.gnorm:.3g}."
        )
        return Halt(Status.unbounded, detail, remedy=REMEDY)
