"""What a failed search means: the floor of f, a kink, a wrong gradient, or units that differ."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slomodel.solve.by_component import CLEAR, WayDown, rounding_of, spacing, way_down
from slomodel.solve.floor import PROBES, Floor
from slomodel.solve.norms import Vector, norm, ratio
from slomodel.solve.objective import Evaluator
from slomodel.solve.status import Status
from slomodel.solve.subroutine import Halt, Iterate

# Ratio of the lengths tried until f changes clearly.
LENGTHEN = 4.0
# Share of |⟨g,v⟩| by which the trapezoid rule may miss the change of f along a short step: a
# smooth f misses by O(t²), a kink or a wrong gradient by about one half or more.
TRAPEZOID_MISS = 0.2
# Shares of the rise of a slope over the halves of a step that are about even.
EVEN = 0.25
LONGER = "Give a method or options that take longer steps: method='auto' chooses their length."


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
    halt, noise = explained(evaluate, floor, at, longest)
    if halt.status is not Status.precision:
        return halt, None
    at = floor.best or at
    way = way_down(evaluate, at, noise, longest)
    return (other_units(evaluate, halt, way), way) if way else (halt, None)


def explained(evaluate: Evaluator, floor: Floor, at: Iterate, longest: float) -> tuple[Halt, float]:
    """What a step along −g shows that f resolves, of length up to `longest`; and how f resolves.

    A smooth f with this gradient changes by t·(slope there + slope here)/2 within O(t³); then
    only its resolution can have stopped the search, or units in which −g leads nowhere. The
    opposite sign shows a gradient of the wrong sign, anything else a kink or a wrong gradient.
    """
    at = floor.best or at
    floor.measure(evaluate, at, longest)
    blur = Blur.at(evaluate, floor, at)
    noise = max(floor.noise(at), blur.value)
    seen = f"Gradient norm {at.gnorm:.3g}, rounding error of the objective about {noise:.2g}"
    v = at.g / -at.gnorm
    t = shortest_clear(evaluate, at, v, noise, longest, floor.eps * longest)
    if t > longest:
        halt = too_short(evaluate, at, t, noise, longest)
        return halt or Halt(Status.precision, f"{seen}.", floor.best), noise
    look = Look.along(evaluate, at, v, t)
    # What rounding makes of the slopes, and of the change itself.
    ending = look.ending(t * blur.slope + noise)
    valley = None
    if ending is not Status.precision:
        farther = evaluate.last_nonfinite
        valley = narrow_valley(evaluate, at, v, noise, blur, t)
        # A point told apart from `at` by few digits says less of what is not finite.
        evaluate.last_nonfinite = farther
    if valley:
        ending, look = Status.precision, valley
    elif not look.finite:
        detail = f"{seen}; {t:.2g} away along minus the gradient the objective is not finite."
        return Halt(Status.line_search_stalled, detail, floor.best), noise
    detail = (
        f"{seen}; a step of {look.t:.2g} along minus the gradient changes the objective by "
        f"{evaluate.sign * look.change:.3g}, by its gradients {evaluate.sign * look.expected:.3g}."
    )
    return Halt(ending, detail, floor.best), noise


@dataclass(frozen=True, slots=True)
class Blur:
    """What the rounding of x makes of the gradient, in norm, and of f."""

    slope: float
    value: float

    @staticmethod
    def at(evaluate: Evaluator, floor: Floor, at: Iterate) -> Blur:
        """By the gradients a few ulps of x away; no blur of the slope where that is a jump."""
        g, slopes, spread = np.empty_like(at.g), np.abs(at.g), 0.0
        for k in (-PROBES, PROBES):
            evaluate.gradient(at.x * (1.0 + k * floor.eps), g)
            np.maximum(slopes, np.abs(g), out=slopes)
            spread = max(spread, norm(g - at.g))
        # More than half the digits, as of f.
        slope = spread if spread <= math.sqrt(floor.eps) * floor.steepest else 0.0
        value = rounding_of(at.x, slopes, floor.eps)
        return Blur(slope, value if math.isfinite(value) else 0.0)


def narrow_valley(
    evaluate: Evaluator, at: Iterate, v: Vector, noise: float, blur: Blur, longest: float
) -> Look | None:
    """What a step below `longest` shows in a valley so narrow; None where there is none.

    The units of a variable may be so small, or the resolution of f so coarse, that f is nearly
    quadratic only along steps that change it by less than would be clear. There the slope rises
    evenly, where at a kink it jumps.
    """
    eps = evaluate.eps
    least = eps * max(spacing(at.x, v), eps * eps * longest)
    t = shortest_clear(evaluate, at, v, noise, longest, least) if least < longest else longest
    t = min(t, longest) / LENGTHEN
    while t < longest:
        look = Look.along(evaluate, at, v, t)
        if not look.finite:
            return None
        if look.after >= 0.5 * look.before:
            half = Look.along(evaluate, at, v, 0.5 * t)
            rises = half.after - half.before, look.after - half.after
            even = min(rises) >= EVEN * max(rises) > 0.0
            smooth = look.ending(t * blur.slope + noise) is Status.precision
            return look if even and smooth else None
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
    halt, noise = explained(evaluate, floor, at, reach)
    if halt.status is not Status.precision:
        return halt
    t = CLEAR * ratio(floor.noise(at), at.gnorm)
    if 0.0 < t <= reach:
        change = evaluate.value(at.x - (t / at.gnorm) * at.g) - at.f
        if change < -noise:
            detail = (
                f"With {limit} the steps are too short to gain anything; one of {t:.2g} changes "
                f"the objective by {evaluate.sign * change:.3g}."
            )
            return Halt(Status.line_search_stalled, detail, remedy=LONGER)
    at = floor.best or at
    way = way_down(evaluate, at, noise, reach)
    return other_units(evaluate, halt, way) if way else halt
