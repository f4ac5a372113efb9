"""Whether f still falls clearly with each variable in units of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from slomodel.solve.newton import LARGEST_DENSE, Newton
from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate

# A change of f this many times its noise is a fact.
CLEAR = 100.0
# A trial is as long as a linear f needs to fall by this many times CLEAR·noise: where f is
# quadratic along it, it shows a clear fall whenever any length does.
PREDICTED = 2.0
# A fall beyond this many times the predicted one is another valley, and not what the slope says.
FOREIGN = 2.0
# Variables tried one by one, those whose slope is steepest for their size.
MOST_ALONE = 50
# Unknowns up to which the Hessian is found by differences of gradients.
MOST_BY_DIFFERENCES = 20
# A step that falls is lengthened by this while f falls on.
LENGTHEN = 4.0


@dataclass(frozen=True, slots=True)
class WayDown:
    """A step (n,) along which f changes by `change`, below 0 by more than its rounding error."""

    step: Vector
    change: float


def rounding_of(x: Vector, slopes: Vector, eps: float) -> float:
    """How much f changes where each variable changes by its own rounding error: eps·Σ|x_i|·slope_i.

    The largest slopes (n,) near x (n,).
    """
    return eps * float((np.abs(x) * slopes).sum())


def in_magnitudes(at: Iterate, longest: float) -> Vector:
    """Minus the gradient in units of the variables' magnitudes, as a step (n,).

    Of a length at which one of them changes by its magnitude, `longest` where it is 0. Zeros where
    there is no such step.
    """
    size = np.where(at.x != 0.0, np.abs(at.x), longest)
    shares = size * at.g
    largest = float(np.abs(shares).max(initial=0.0))
    if not 0.0 < largest < math.inf:
        return np.zeros_like(at.x)
    v: Vector = size * (shares / -largest)
    return v


def spacing(x: Vector, v: Vector) -> float:
    """The least t at which t·v is as large as x in an element, where x is not 0; all (n,)."""
    moved = (v != 0.0) & (x != 0.0)
    return float(np.abs(x[moved] / v[moved]).min(initial=math.inf))


def way_down(evaluate: Evaluator, at: Iterate, noise: float, longest: float) -> WayDown | None:
    """A step of length up to `longest` along which f clearly falls; None where none was found.

    Tried are −g, the same in units of the variables' magnitudes, the variables one by one, and
    Newton's direction: all but −g are the same in any units.
    """
    for v in _directions(evaluate, at, longest):
        slope = float(at.g.dot(v))
        # The sign of a slope that small is rounding.
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
    """The step times LENGTHEN, up to `most` times, as long as f falls on."""
    best, factor = way, LENGTHEN
    while factor <= most:
        change = evaluate.value(at.x + factor * way.step) - at.f
        if not -math.inf < change < best.change:
            break
        best = WayDown(factor * way.step, change)
        factor *= LENGTHEN
    return best


def _directions(evaluate: Evaluator, at: Iterate, longest: float) -> Iterator[Vector]:
    """Vectors (n,), the longest steps to try.

    But for −g and Newton's direction no variable moves by more than its magnitude; that of a
    variable at 0 is not known.
    """
    yield at.g * (-longest / at.gnorm)
    yield in_magnitudes(at, longest)
    size = np.where(at.x != 0.0, np.abs(at.x), longest)
    shares = size * at.g
    for i in np.argsort(-np.abs(shares), kind="stable")[:MOST_ALONE]:
        alone = np.zeros_like(at.x)
        alone[i] = -math.copysign(size[i], shares[i])
        yield alone
    if len(at.x) <= (LARGEST_DENSE if evaluate.has_products else MOST_BY_DIFFERENCES):
        v = np.empty_like(at.x)
        if Newton(evaluate, at, longest).propose(at, v) < math.inf:
            yield v
