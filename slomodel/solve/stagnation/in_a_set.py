"""Diagnosis of a failed search in a set, along the projection of the steepest descent step."""

from __future__ import annotations

import numpy as np

from slomodel.solve.norms import Vector, norm, slope_along
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.diagnosis import AT_EDGE, Trial
from slomodel.solve.stagnation.resolution import Resolution
from slomodel.solve.stagnation.scaled_descent import CLEAR
from slomodel.solve.status import Status
from slomodel.solve.subroutine import Halt, Iterate

ELSEWHERE = "Start from another point, or rescale the variables."


def explain_in_set(
    evaluate: Evaluator, resolution: Resolution, at: Iterate, longest: float
) -> Halt:
    """Why no step from `at` decreases f, by one along d = P(x − s∇f) − x, P the projection.

    The factor s makes s‖∇f‖ equal to `longest`. As in `explained`, the step is long enough for f to
    change significantly, and a smooth f with this gradient changes as its slopes at both ends
    imply. If no step up to d is that long, only the resolution of f can have stopped the search; if
    f still falls steeply at its end, that has not.
    """
    at = resolution.best or at
    resolution.measure(evaluate, at, longest)
    noise = resolution.noise(at)
    seen = (
        f"Norm of the projected gradient {at.gnorm:.3g}, rounding error of the objective about "
        f"{noise:.2g}"
    )
    precision = Halt(Status.precision, f"{seen}.", resolution.best)
    steepest = norm(at.g)
    d = evaluate.inside(at.x - at.g * (longest / steepest)) - at.x if steepest > 0.0 else at.g
    length = norm(d)
    if length == 0.0:
        return precision
    slope = slope_along(at.g, steepest, d, length)
    least = evaluate.eps * longest
    t = max(CLEAR * noise / -slope, least) if slope < 0.0 else length
    if t > length:
        return precision
    trial = slopes_at_ends(evaluate, at, d / length, t, slope)
    if not trial.finite:
        detail = f"{seen}; {t:.2g} away along the projected gradient the objective is not finite."
        return Halt(Status.line_search_stalled, detail, resolution.best, AT_EDGE)
    change, expected = evaluate.sign * trial.change, evaluate.sign * trial.expected
    detail = (
        f"{seen}; a step of {t:.2g} along the projected gradient changes the objective by "
        f"{change:.3g}, by its gradients {expected:.3g}."
    )
    ending = trial.confirmed(trial.ending(noise), evaluate, at, d / length, noise)
    if ending is Status.precision and trial.still_falls(noise):
        return Halt(Status.line_search_stalled, detail, resolution.best, ELSEWHERE)
    return Halt(ending, detail, resolution.best)


def slopes_at_ends(evaluate: Evaluator, at: Iterate, v: Vector, t: float, slope: float) -> Trial:
    """The trial of length t along the unit vector v (n,), along which f has the slope `slope`."""
    there, g = evaluate.inside(at.x + t * v), np.empty_like(at.g)
    change = evaluate.value(there) - at.f
    size = evaluate.gradient(there, g)
    return Trial(t, change, slope, float(g.dot(v)), size)
