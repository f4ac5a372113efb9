"""Descent independent of the units of the variables, for when −g gains nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from slomodel.solve.directions.newton import LARGEST_DENSE, Newton
from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate

# A change of f by this many times its noise is significant.
CLEAR = 100.0
# Factor on CLEAR·noise for the decrease that the slope predicts over a trial step. With 2, a
# quadratic f decreases by CLEAR·noise there if it does so at any length.
PREDICTED = 2.0
# A decrease of more than this many times the predicted one is not explained by the slope: the trial
# is in another valley.
FOREIGN = 2.0
# Limit on the coordinate directions tried; those with the largest |x_i·g_i| come first.
MOST_ALONE = 50
# Largest n for which the Hessian is computed by differences of gradients.
MOST_BY_DIFFERENCES = 20
# Factor by which a descending step is lengthened while f decreases.
LENGTHEN = 4.0


@dataclass(frozen=True, slots=True)
class WayDown:
    """A step (n,) that changes f by `change` < 0, significantly more than its rounding error."""

    step: Vector
    change: float


def rounding_of(x: Vector, slopes: Vector, eps: float) -> float:
    """The change of f by the rounding errors of x (n,): eps·Σ|x_i|·slope_i.

    `slopes` (n,) are the largest |∂f/∂x_i| near x.
    """
    return eps * float((np.abs(x) * slopes).sum())


def in_magnitudes(at: Iterate, longest: float) -> Vector:
    """The steepest descent step (n,) in units of the variables' magnitudes.

    It changes one variable by its magnitude and none by more; 0 where the gradient in these units
    is 0 or not finite.
    """
    size = _magnitudes(at, longest)
    scaled = size * at.g
    largest = float(np.abs(scaled).max(initial=0.0))
    if not 0.0 < largest < math.inf:
        return np.zeros_like(at.x)
    v: Vector = size * (scaled / -largest)
    return v


def _magnitudes(at: Iterate, longest: float) -> Vector:
    """|x| (n,), with `longest` for elements that are 0, whose magnitude is unknown."""
    return np.where(at.x != 0.0, np.abs(at.x), longest)


def spacing(x: Vector, v: Vector) -> float:
    """The least |x_i/v_i| over elements of x and v (n,) where both are nonzero; inf if none."""
    moved = (v != 0.0) & (x != 0.0)
    return float(np.abs(x[moved] / v[moved]).min(initial=math.inf))


def way_down(evaluate: Evaluator, at: Iterate, noise: float, longest: float) -> WayDown | None:
    """A step of length up to `longest` along which f decreases significantly; None if not found.

    The directions tried are −g, −g in units of the variables' magnitudes, the coordinate directions
    one by one, and Newton's direction; all but −g are independent of the units of the variables.
    """
    for v in _directions(evaluate, at, longest):
        slope = float(at.g.dot(v))
        # The sign of a smaller slope may be due to rounding.
        if not slope < -evaluate.eps * float(np.abs(at.g).dot(np.abs(v))):
            continue
        most = min(1.0, longest / norm(v))
        t = PREDICTED * CLEAR * noise / -slope
        if not 0.0 < t <= most:
            continue
        change = evaluate.value(at.x + t * v) - at.f
        if FOREIGN * t * slope <= change < -CLEAR * noise:
            return _lengthened(evaluate, at, WayDown(t * v, change), most / t)
    return None


def _lengthened(evaluate: Evaluator, at: Iterate, way: WayDown, most: float) -> WayDown:
    """The step lengthened by powers of LENGTHEN, up to the factor `most`, while f decreases."""
    best, factor = way, LENGTHEN
    while factor <= most:
        change = evaluate.value(at.x + factor * way.step) - at.f
        if not -math.inf < change < best.change:
            break
        best = WayDown(factor * way.step, change)
        factor *= LENGTHEN
    return best


def _directions(evaluate: Evaluator, at: Iterate, longest: float) -> Iterator[Vector]:
    """The directions (n,) of `way_down`, each as the longest step to try.

    Along those other than −g and Newton's, no variable changes by more than its magnitude.
    """
    yield at.g * (-longest / at.gnorm)
    yield in_magnitudes(at, longest)
    size = _magnitudes(at, longest)
    scaled = size * at.g
    for i in np.argsort(-np.abs(scaled), kind="stable")[:MOST_ALONE]:
        alone = np.zeros_like(at.x)
        alone[i] = -math.copysign(size[i], scaled[i])
        yield alone
    if len(at.x) <= (LARGEST_DENSE if evaluate.has_products else MOST_BY_DIFFERENCES):
        v = np.empty_like(at.x)
        if Newton(evaluate, at, longest).propose(at, v) < math.inf:
            yield v
