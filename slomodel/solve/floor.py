"""The floor of floating point: how fine f resolves, and what a failed search means."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slomodel.solve.by_component import (
    CLEAR,
    WayDown,
    in_magnitudes,
    rounding_of,
    spacing,
    way_down,
)
from slomodel.solve.norms import EPS, Vector, norm, ratio
from slomodel.solve.objective import Evaluator
from slomodel.solve.status import Status
from slomodel.solve.subroutine import Halt, Iterate

# Rounding error expected of f, in units of eps·|f|, before any is measured.
ROUNDING = 32.0
# Points at ±1 … ±PROBES ulps of x where the noise of f is measured.
PROBES = 4
# Ratio of the lengths tried until f changes at all; not 2, which would keep the bits of x and
# so could find the one length after another where rounding cancels.
STRETCH = 1.7
# Ratio of the lengths tried until f changes clearly.
LENGTHEN = 4.0
# Steps without a gain before a run is at its end, and the share of ‖g‖ that is a gain.
IDLE_STEPS = 200
GAIN = 0.9
# Steps below this share of the longest are hardly any: towards a kink f may be halved without end
# by ever shorter ones, along one fall by a little each, and with a wrong gradient by an ulp each.
SHORT = 1e-12
# They gain something where f falls by this share of its whole fall and of itself at the start,
# as towards a pole.
STEEP = 1e-3
# Share of |⟨g,v⟩| by which the trapezoid rule may miss the change of f along a short step: a
# smooth f misses by O(t²), a kink or a wrong gradient by about one half or more.
TRAPEZOID_MISS = 0.2
# Shares of the rise of a slope over the halves of a step that are about even.
EVEN = 0.25
LONGER = "Give a method or options that take longer steps: method='auto' chooses their length."


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

        It is the spread over a few ulps of x, or the least change that f can show when it is a
        difference of large terms: along −g in units of the variables' magnitudes.
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


def shortest_clear(
    evaluate: Evaluator, at: Iterate, v: Vector, noise: float, longest: float, least: float
) -> float:
    """A short step along the unit vector v (n,) that changes f by CLEAR times its noise.

    Where units differ much, the one that the slope predicts lies far outside the range in which
    f is nearly quadratic, so that shorter ones are tried from `least` on. If no step up to
    `longest` is, one that is longer.
    """
    predicted = max(CLEAR * ratio(noise, at.gnorm), evaluate.eps * longest)
    t = least
    while t < min(predicted, longest):
        if not abs(evaluate.value(at.x + t * v) - at.f) < CLEAR * noise:
            return t
        t *= LENGTHEN
    return predicted


def explain_failure(
    evaluate: Evaluator, floor: Floor, at: Iterate, longest: float
) -> tuple[Halt, WayDown | None]:
    """Why no step along −g of length up to `longest` gains anything, and a step that does.

    The point asked about is the best one at the floor, else `at`. Rounding is a reason only where
    no way down is found that does not depend on the units of the variables.
    """
    halt = explained(evaluate, floor, at, longest)
    if halt.status is not Status.precision:
        return halt, None
    at = floor.best or at
    way = way_down(evaluate, at, resolution(floor, at), longest)
    return (other_units(evaluate, halt, way), way) if way else (halt, None)


def resolution(floor: Floor, at: Iterate) -> float:
    """A change of f that may be rounding, of f or of x."""
    return max(floor.noise(at), rounding_of(at, floor.eps))


def explained(evaluate: Evaluator, floor: Floor, at: Iterate, longest: float) -> Halt:
    """What a step along −g shows that f resolves, of length up to `longest`.

    A smooth f with this gradient changes by t·(slope there + slope here)/2 within O(t³); then
    only its resolution can have stopped the search, or units in which −g leads nowhere. The
    opposite sign shows a gradient of the wrong sign, anything else a kink or a wrong gradient.
    """
    at = floor.best or at
    floor.measure(evaluate, at, longest)
    noise = resolution(floor, at)
    seen = f"Gradient norm {at.gnorm:.3g}, rounding error of the objective about {noise:.2g}"
    v = at.g / -at.gnorm
    t = shortest_clear(evaluate, at, v, noise, longest, floor.eps * longest)
    if t > longest:
        halt = too_short(evaluate, at, t, noise, longest)
        return halt or Halt(Status.precision, f"{seen}.", floor.best)
    look = Look.along(evaluate, at, v, t)
    if not look.finite:
        detail = f"{seen}; {t:.2g} away along minus the gradient the objective is not finite."
        return Halt(Status.line_search_stalled, detail, floor.best)
    # What rounding makes of the slopes, and of the change itself.
    blurred = gradient_noise(evaluate, floor, at)
    ending = look.ending(t * blurred + noise)
    valley = None
    if ending is not Status.precision:
        valley = narrow_valley(evaluate, at, v, t, floor.eps)
    if valley:
        ending, look = Status.precision, valley
    detail = (
        f"{seen}; a step of {look.t:.2g} along minus the gradient changes the objective by "
        f"{evaluate.sign * look.change:.3g}, by its gradients {evaluate.sign * look.expected:.3g}."
    )
    return Halt(ending, detail, floor.best)


def narrow_valley(
    evaluate: Evaluator, at: Iterate, v: Vector, longest: float, eps: float
) -> Look | None:
    """What a step shows that ends where f hardly falls any more; None where that is no valley.

    The units of a variable may be so small that f is nearly quadratic only along steps far below
    `longest`. There the slope rises evenly, where at a kink it jumps.
    """
    t = eps * max(spacing(at.x, v), eps * eps * longest)
    while t < longest:
        look = Look.along(evaluate, at, v, t)
        if not look.finite:
            return None
        if look.after >= 0.5 * look.before:
            half = Look.along(evaluate, at, v, 0.5 * t)
            rises = half.after - half.before, look.after - half.after
            even = min(rises) >= EVEN * max(rises) > 0.0
            return look if even and look.ending(0.0) is Status.precision else None
        t *= LENGTHEN
    return None


@dataclass(frozen=True, slots=True)
class Look:
    """The change of f over a step of length t along −g, and the slopes at its ends."""

    t: float
    change: float
    before: float
    after: float
    gnorm: float

    @staticmethod
    def along(evaluate: Evaluator, at: Iterate, v: Vector, t: float) -> Look:
        there, g = at.x + t * v, np.empty_like(at.g)
        change = evaluate.value(there) - at.f
        gnorm = evaluate.gradient(there, g)
        return Look(t, change, -at.gnorm, float(g.dot(v)), gnorm)

    @property
    def finite(self) -> bool:
        return math.isfinite(self.change) and math.isfinite(self.gnorm)

    @property
    def expected(self) -> float:
        """The change by the trapezoid rule."""
        return self.t * (self.after + self.before) / 2.0

    def ending(self, error: float) -> Status:
        """What the change shows: the limit of precision where it is the expected one."""
        allowed = TRAPEZOID_MISS * self.t * (abs(self.after) + abs(self.before)) + error
        if abs(self.change - self.expected) <= allowed:
            return Status.precision
        opposite = abs(self.change + self.expected) <= allowed
        return Status.not_descent if opposite else Status.line_search_stalled


def gradient_noise(evaluate: Evaluator, floor: Floor, at: Iterate) -> float:
    """How much the gradient changes over a few ulps of x; 0 where that is a jump, at a kink."""
    g, spread = np.empty_like(at.g), 0.0
    for k in (-PROBES, PROBES):
        evaluate.gradient(at.x * (1.0 + k * floor.eps), g)
        g -= at.g
        spread = max(spread, norm(g))
    # More than half the digits, as of f.
    return spread if spread <= math.sqrt(floor.eps) * floor.steepest else 0.0


def other_units(evaluate: Evaluator, halt: Halt, way: WayDown) -> Halt:
    """The end of a run where f clearly falls, each variable in units of its own.

    The steps that were tried are too short then, or the units of the variables differ so much that
    along −g itself f shows nothing.
    """
    detail = (
        f"{halt.detail} With each variable in units of its own, a step of {norm(way.step):.2g} "
        f"changes the objective by {evaluate.sign * way.change:.3g}."
    )
    remedy = (
        "Go on from the point found, rescale the variables, or use direction='newton' or "
        "'gauss-newton'."
    )
    return Halt(Status.line_search_stalled, detail, halt.best, remedy)


def too_short(
    evaluate: Evaluator, at: Iterate, t: float, noise: float, longest: float
) -> Halt | None:
    """The end of a run whose steps, up to `longest`, are too short where one of t is not.

    Then x is so large, or the step so short, that x hardly changes: the resolution of f is no
    reason. None where the longer step does not clearly descend either, or is past ‖x‖.
    """
    if not t <= norm(at.x):
        return None
    change = evaluate.value(at.x - (t / at.gnorm) * at.g) - at.f
    if not change < -noise:
        return None
    detail = (
        f"Steps of at most {longest:.3g} are too short to gain anything; one of {t:.2g} changes "
        f"the objective by {evaluate.sign * change:.3g}."
    )
    return Halt(Status.line_search_stalled, detail, remedy=LONGER)


def explain_limit(evaluate: Evaluator, floor: Floor, at: Iterate, reach: float, limit: str) -> Halt:
    """Why steps gained nothing from `at` that may have been too short; `limit` says what set them.

    As `explain_failure`, but the resolution of f is no reason where a step of up to `reach`
    that f resolves clearly descends.
    """
    halt = explained(evaluate, floor, at, reach)
    if halt.status is not Status.precision:
        return halt
    noise = floor.noise(at)
    t = CLEAR * ratio(noise, at.gnorm)
    if 0.0 < t <= reach:
        change = evaluate.value(at.x - (t / at.gnorm) * at.g) - at.f
        if change < -noise:
            detail = (
                f"With {limit} the steps are too short to gain anything; one of {t:.2g} changes "
                f"the objective by {evaluate.sign * change:.3g}."
            )
            return Halt(Status.line_search_stalled, detail, remedy=LONGER)
    at = floor.best or at
    way = way_down(evaluate, at, resolution(floor, at), reach)
    return other_units(evaluate, halt, way) if way else halt
