"""Diagnosis of a failed search: the precision of f, a kink, a wrong gradient, or poor scaling."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slomodel.solve.norms import Vector, norm, ratio
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.resolution import PROBES, Resolution
from slomodel.solve.stagnation.scaled_descent import CLEAR, WayDown, rounding_of, spacing, way_down
from slomodel.solve.status import Status
from slomodel.solve.subroutine import Halt, Iterate

# Ratio of the lengths tried until f changes significantly.
LENGTHEN = 4.0
# Tolerance on the relative error of the trapezoid rule for the change of f along a short step: it
# is O(t²) for a smooth f, and about one half or more at a kink or with a wrong gradient.
TRAPEZOID_MISS = 0.2
# The slope is said to rise evenly if the smaller of its increases over the halves of a step is at
# least this fraction of the larger; at a kink one of them is about 0.
EVEN = 0.25
AT_EDGE = (
    "Keep the variables where the objective and its gradient are finite: by sets, as in "
    "`var s > 0`, or by a formula that does not overflow."
)
LONGER = "Give a method or options that take longer steps: method='auto' chooses their length."


def shortest_clear(
    evaluate: Evaluator, at: Iterate, v: Vector, noise: float, longest: float, least: float
) -> float:
    """The length of a short step along the unit vector v (n,) that changes f by CLEAR·noise.

    If the units of the variables differ much, f is far from quadratic at the length that the slope
    predicts; therefore shorter lengths are tried first, from `least` on. If no length up to
    `longest` is suitable, the predicted one is returned.
    """
    predicted = max(CLEAR * ratio(noise, at.gnorm), evaluate.eps * longest)
    t = least
    while t < min(predicted, longest):
        if not abs(evaluate.value(at.x + t * v) - at.f) < CLEAR * noise:
            return t
        t *= LENGTHEN
    return predicted


def explain_failure(
    evaluate: Evaluator, resolution: Resolution, at: Iterate, longest: float
) -> tuple[Halt, WayDown | None]:
    """Why no step along −g of length up to `longest` gains anything, and a step that does, if any.

    The point examined is the best one at the resolution of f, or else `at`. Rounding is given as
    the reason only if f does not decrease along any other direction of `way_down` either.
    """
    halt, noise = explained(evaluate, resolution, at, longest)
    if halt.status is not Status.precision:
        return halt, None
    at = resolution.best or at
    way = way_down(evaluate, at, noise, longest)
    return (other_units(evaluate, halt, way), way) if way else (halt, None)


def explained(
    evaluate: Evaluator, resolution: Resolution, at: Iterate, longest: float
) -> tuple[Halt, float]:
    """The diagnosis by a step along −g, of length up to `longest`, and the noise of f there.

    The step is long enough for f to change significantly. A smooth f with this gradient changes by
    t·(slope at the start + slope at the end)/2 within O(t³); then only the resolution of f or poor
    scaling can have stopped the search. The opposite change shows a gradient of the wrong sign, any
    other a kink or a wrong gradient.
    """
    at = resolution.best or at
    resolution.measure(evaluate, at, longest)
    blur = Blur.at(evaluate, resolution, at)
    noise = max(resolution.noise(at), blur.value)
    seen = f"Gradient norm {at.gnorm:.3g}, rounding error of the objective about {noise:.2g}"
    v = at.g / -at.gnorm
    t = shortest_clear(evaluate, at, v, noise, longest, resolution.eps * longest)
    if t > longest:
        halt = too_short(evaluate, at, t, noise, longest)
        return halt or Halt(Status.precision, f"{seen}.", resolution.best), noise
    trial = Trial.along(evaluate, at, v, t)
    # Error of the expected change from that of the slopes, and error of the change itself.
    error = t * blur.slope + noise
    ending = trial.confirmed(trial.ending(error), evaluate, at, v, error)
    valley = None
    if ending is not Status.precision:
        farther = evaluate.last_nonfinite
        valley = narrow_valley(evaluate, at, v, noise, blur, t)
        # The message names a nonfinite point; one that is close to `at` is less informative.
        evaluate.last_nonfinite = farther
    if valley:
        ending, trial = Status.precision, valley
    elif not trial.finite:
        detail = f"{seen}; {t:.2g} away along minus the gradient the objective is not finite."
        return Halt(Status.line_search_stalled, detail, resolution.best, AT_EDGE), noise
    detail = (
        f"{seen}; a step of {trial.t:.2g} along minus the gradient changes the objective by "
        f"{evaluate.sign * trial.change:.3g}, by its gradients "
        f"{evaluate.sign * trial.expected:.3g}."
    )
    return Halt(ending, detail, resolution.best), noise


@dataclass(frozen=True, slots=True)
class Blur:
    """Changes of the slope along a unit vector, and of f, that the rounding of x may cause."""

    slope: float
    value: float

    @staticmethod
    def at(evaluate: Evaluator, resolution: Resolution, at: Iterate) -> Blur:
        """The blur measured by gradients a few ulps from x; 0 if the slope jumps there."""
        g, slopes, spread = np.empty_like(at.g), np.abs(at.g), 0.0
        for k in (-PROBES, PROBES):
            evaluate.gradient(at.x * (1.0 + k * resolution.eps), g)
            np.maximum(slopes, np.abs(g), out=slopes)
            spread = max(spread, norm(g - at.g))
        # A change in more than half the digits is a jump, not rounding: see `Resolution.measure`.
        slope = spread if spread <= math.sqrt(resolution.eps) * resolution.steepest else 0.0
        value = rounding_of(at.x, slopes, resolution.eps)
        return Blur(slope, value if math.isfinite(value) else 0.0)


def narrow_valley(
    evaluate: Evaluator, at: Iterate, v: Vector, noise: float, blur: Blur, longest: float
) -> Trial | None:
    """A trial shorter than `longest` that shows a narrow smooth valley; None if there is none.

    If the unit of a variable is very small, or the resolution of f coarse, f may be nearly
    quadratic only along steps that change it insignificantly. There the slope rises evenly, whereas
    it jumps at a kink.
    """
    eps = evaluate.eps
    least = eps * max(spacing(at.x, v), eps * eps * longest)
    t = shortest_clear(evaluate, at, v, noise, longest, least) if least < longest else longest
    t = min(t, longest) / LENGTHEN
    while t < longest:
        trial = Trial.along(evaluate, at, v, t)
        if not trial.finite:
            return None
        if trial.after >= 0.5 * trial.before:
            half = Trial.along(evaluate, at, v, 0.5 * t)
            rises = half.after - half.before, trial.after - half.after
            even = min(rises) >= EVEN * max(rises) > 0.0
            smooth = trial.ending(t * blur.slope + noise) is Status.precision
            return trial if even and smooth else None
        t *= LENGTHEN
    return None


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial step of length t along −g: the change of f and the slopes at both ends."""

    t: float
    change: float
    before: float
    after: float
    gnorm: float

    @staticmethod
    def along(evaluate: Evaluator, at: Iterate, v: Vector, t: float) -> Trial:
        there, g = at.x + t * v, np.empty_like(at.g)
        change = evaluate.value(there) - at.f
        gnorm = evaluate.gradient(there, g)
        return Trial(t, change, -at.gnorm, float(g.dot(v)), gnorm)

    @property
    def finite(self) -> bool:
        return math.isfinite(self.change) and math.isfinite(self.gnorm)

    @property
    def expected(self) -> float:
        """The change of f by the trapezoid rule."""
        return self.t * (self.after + self.before) / 2.0

    def still_falls(self, noise: float) -> bool:
        """Whether f has fallen beyond its noise, and nearly as steeply at the end as at first."""
        return self.change < -noise and self.after < 0.5 * self.before

    def ending(self, error: float) -> Status:
        """The status that the change implies: the limit of precision if it is as expected."""
        allowed = TRAPEZOID_MISS * self.t * (abs(self.after) + abs(self.before)) + error
        if abs(self.change - self.expected) <= allowed:
            return Status.precision
        opposite = abs(self.change + self.expected) <= allowed
        return Status.not_descent if opposite else Status.line_search_stalled

    def confirmed(
        self, ending: Status, evaluate: Evaluator, at: Iterate, v: Vector, error: float
    ) -> Status:
        """`ending`, of this trial along v (n,), with a wrong sign only if both halves show it.

        A kink is in one of them; along the other f changes as its gradients imply.
        """
        if ending is not Status.not_descent:
            return ending
        half, g = 0.5 * self.t, np.empty_like(at.g)
        there = evaluate.inside(at.x + half * v)
        change = evaluate.value(there) - at.f
        gnorm = evaluate.gradient(there, g)
        slope = float(g.dot(v))
        first = Trial(half, change, self.before, slope, gnorm)
        second = Trial(half, self.change - change, slope, self.after, self.gnorm)
        opposite = all(one.ending(error) is Status.not_descent for one in (first, second))
        return Status.not_descent if opposite else Status.line_search_stalled


def other_units(evaluate: Evaluator, halt: Halt, way: WayDown) -> Halt:
    """The end of a run when f decreases significantly along another direction of `way_down`.

    Then the steps tried are too short, or the units of the variables differ so much that f does not
    change significantly along −g.
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
    """The end of a run whose steps, up to `longest`, are too short, though one of length t is not.

    Then x is so large, or the step so short, that x hardly changes: the resolution of f is not the
    reason. None if the longer step does not descend either, or is longer than ‖x‖.
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


def explain_limit(
    evaluate: Evaluator, resolution: Resolution, at: Iterate, reach: float, limit: str
) -> Halt:
    """Why steps from `at` gained nothing, possibly too short; `limit` names their limit.

    As in `explain_failure`, but the resolution of f is not the reason if some step of length up to
    `reach` has a resolved descent.
    """
    halt, noise = explained(evaluate, resolution, at, reach)
    if halt.status is not Status.precision:
        return halt
    t = CLEAR * ratio(resolution.noise(at), at.gnorm)
    if 0.0 < t <= reach:
        change = evaluate.value(at.x - (t / at.gnorm) * at.g) - at.f
        if change < -noise:
            detail = (
                f"With {limit} the steps are too short to gain anything; one of {t:.2g} changes "
                f"the objective by {evaluate.sign * change:.3g}."
            )
            return Halt(Status.line_search_stalled, detail, remedy=LONGER)
    at = resolution.best or at
    way = way_down(evaluate, at, noise, reach)
    return other_units(evaluate, halt, way) if way else halt
