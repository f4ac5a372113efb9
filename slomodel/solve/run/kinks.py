"""Descent from kinks: points where the computed gradient is 0 or small, next to a jump of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Protocol

import numpy as np

from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.run.stationary_point import (
    FEW,
    NULL,
    REACHES,
    SHORTER,
    Beyond,
    SoFar,
    lower_at,
)
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.stagnation.resolution import ROUNDING
from slomodel.solve.stagnation.scaled_descent import CLEAR
from slomodel.solve.subroutine import Iterate

# A kink is looked for at this distance, along this number of random directions: at a stationary
# point without one, the change of f is of the order of the squared distance.
AT_KINK = 16.0**-4
SIDES = 4
# A jump of the gradient does not shrink with the distance, as a change by curvature does.
NEARER, JUMPS = 1.0 / 16.0, 0.5
# Largest n for which descents beside a kink have a matrix, their steps, n more, and the distances,
# in units of AT_KINK, at which they are back or away.
MOST_UNKNOWNS, STEPS, NEAREST, FARTHEST = 200, 30, 0.3, 16.0
# Weak Wolfe conditions: fractions of the slope, and the most trials of a step.
DESCENT, FLATTER, TRIALS = 1e-4, 0.5, 30
# Distances, in units of max(1, ‖x‖), within which gradients are combined, for at most MOST_SAMPLED
# unknowns: SAMPLES and two for each. A combination below SMALL times the gradient is about 0.
# WEIGHT is that of the condition on the sum of the weights.
DISTANCES, MOST_SAMPLED, SAMPLES, SMALL, WEIGHT = (1e-9, 1e-7, 1e-5), 60, 20, 1e-3, 10.0


class KinkedFunction(Protocol):
    """A function of x (n,) to be minimised."""

    def value(self, x: Vector) -> float: ...

    def gradient(self, x: Vector, out: Vector) -> float:
        """Write the gradient at x into `out`, both (n,)."""
        ...


@dataclass(frozen=True, slots=True)
class Examined:
    """A lower point beside a kink, if one was found, and else a sentence on what was tried."""

    lower: Beyond | None
    tried: str = ""


def falls_at_a_kink(evaluate: Evaluator, at: Iterate, so_far: SoFar) -> Examined:
    """A lower point beside a kink whose gradient is computed as 0, as that of −|x| at 0.

    The directions tried are those of the variables for n ≤ FEW, random ones, the gradients there,
    and their differences, which are normal to the kink if there is one between two points. If f
    rises along all of them it may fall along the kink, as 10|x − 3y| − |x + y| does: descents from
    points beside it end there.
    """
    scale = max(1.0, so_far.size, norm(at.x))
    distance = AT_KINK * scale
    noise = CLEAR * ROUNDING * evaluate.eps * abs(at.f)
    sides = np.random.default_rng(0).standard_normal((SIDES, len(at.x)))
    around = [(distance / norm(v)) * v for v in (*sides, *-sides) if norm(v) > 0.0]
    gradients = [_gradient(evaluate, at, step) for step in around]
    for v in _beside_kinks(sides, gradients):
        for way in (distance, -distance):
            if not evaluate.value(evaluate.inside(at.x + way * v)) < at.f - noise:
                continue
            seen = _farther(evaluate, at, way * v, scale)
            if seen is not None:
                return Examined(seen)
    if evaluate.within is not None or not _jumps(evaluate, at, around, gradients):
        return Examined(None)
    if len(at.x) > MOST_UNKNOWNS:
        tried = f"the objective does not fall along {SIDES} random directions"
        return Examined(None, f"There is a kink at the point, from which {tried}.")
    for step in around[:SIDES]:
        lower = _descent(evaluate, at, step, noise)
        if lower is not None:
            seen = _farther(evaluate, at, lower, scale)
            return Examined(seen or lower_at(evaluate, at, lower, -math.inf))
    tried = f"descents from {SIDES} points at a distance of {distance:.2g} end no lower"
    return Examined(None, f"There is a kink at the point; {tried}.")


def stationary_within(evaluate: Evaluator, at: Iterate) -> str:
    """A sentence if gradients close to a point have a convex combination that is about 0, or "".

    For those at points within a distance this is a necessary condition of a minimum with kinks; in
    a polyhedron, if outward normals of the bounds at the point, times numbers ≥ 0, are added. The
    next gradient is one along minus the shortest combination so far, which is where a convex f has
    the one that shortens it most. Wolfe, A method of conjugate subgradients for minimizing
    nondifferentiable functions (1975).
    """
    n = len(at.x)
    normals = outward_normals(evaluate.within, at.x)
    steep = norm(at.g)
    if normals is None or not 0 < n <= MOST_SAMPLED or not 0.0 < steep < math.inf:
        return ""
    for distance in DISTANCES:
        length = distance * max(1.0, norm(at.x))
        gradients = [at.g]
        for _ in range(SAMPLES + 2 * n):
            rows = np.array(gradients) / steep
            if not np.isfinite(rows).all():
                return ""
            shortest = combination(rows, normals)
            least = norm(shortest)
            if least <= SMALL:
                with_bounds = " with normals of its bounds" if len(normals) else ""
                return (
                    f"Gradients within {length:.1g} of the point have a convex combination"
                    f"{with_bounds} of norm {steep * least:.1g}: with its kinks it is stationary "
                    "to that accuracy."
                )
            gradients.append(_gradient(evaluate, at, (-length / least) * shortest))
    return ""


def outward_normals(within: Set | None, x: Vector) -> Vector | None:
    """The normals (k, n) of the bounds of a polyhedron that are active at x (n,).

    None for a set whose boundary is curved. Normals of equations are included with both signs.
    """
    if within is None:
        return np.zeros((0, len(x)))
    polyhedron, unit = within.polyhedron(), np.eye(len(x))
    if polyhedron is None:
        return None
    low, high = x <= polyhedron.low, x >= polyhedron.high
    return np.concatenate([-unit[low], unit[high], polyhedron.E, -polyhedron.E])


def combination(gradients: Vector, normals: Vector | None = None) -> Vector:
    """The shortest sum (n,) of a convex combination of rows (k, n), of about the length 1, and of
    `normals` (j, n) times numbers ≥ 0.
    """
    from scipy.optimize import nnls

    k, n = gradients.shape
    rows = gradients if normals is None else np.vstack([gradients, normals])
    # The weights add up to 1 up to 1/WEIGHT, and are divided by their sum.
    system = np.vstack([rows.T, WEIGHT * (np.arange(len(rows)) < k)])
    try:
        weights, _ = nnls(system, np.append(np.zeros(n), WEIGHT))
    except RuntimeError:  # it limits its iterations
        weights = (np.arange(len(rows)) < k).astype(float)
    return np.asarray(weights @ rows / weights[:k].sum())


def _gradient(evaluate: Evaluator, at: Iterate, step: Vector) -> Vector:
    g = np.empty_like(at.g)
    evaluate.gradient(evaluate.inside(at.x + step), g)
    return g


def _farther(evaluate: Evaluator, at: Iterate, step: Vector, scale: float) -> Beyond | None:
    """The farthest lower point along a short step (n,) along which f falls."""
    length = norm(step)
    for reach in (*REACHES, *SHORTER[:2]):
        longer = evaluate.inside(at.x + (reach * scale / length) * step) - at.x
        result = lower_at(evaluate, at, longer, -math.inf) if longer.any() else None
        if result is not None:
            return result
    return None


def _beside_kinks(sides: Vector, gradients: Sequence[Vector]) -> Iterator[Vector]:
    """Different unit vectors (n,) along which f may fall from a kink, up to their signs."""
    n = sides.shape[1]
    seen: list[Vector] = []
    pairs = (
        combinations(gradients, 2)
        if n <= FEW
        else zip(gradients[:SIDES], gradients[SIDES:], strict=True)
    )
    across = (one - two for one, two in pairs)
    for v in chain(np.eye(n) if n <= FEW else (), sides, gradients, across):
        length = norm(v)
        if 0.0 < length < math.inf and all(abs(v.dot(one)) < (1.0 - NULL) * length for one in seen):
            seen.append(v / length)
            yield seen[-1]


def _jumps(
    evaluate: Evaluator, at: Iterate, around: Sequence[Vector], gradients: Sequence[Vector]
) -> bool:
    """Whether the gradient jumps between two opposite steps (n,), however short they are."""
    half = len(around) // 2
    changes = [norm(one - two) for one, two in zip(gradients, gradients[half:], strict=False)]
    if not changes or not max(changes) > 0.0:
        return False
    widest = int(np.argmax(changes))
    near = (NEARER * around[widest], NEARER * around[half + widest])
    one, two = (_gradient(evaluate, at, step) for step in near)
    return norm(one - two) > JUMPS * changes[widest]


def _descent(evaluate: Evaluator, at: Iterate, step: Vector, noise: float) -> Vector | None:
    """A step (n,) to a point lower than a kink, by BFGS from `step` (n,) beside it; None if none.

    Lewis & Overton, Nonsmooth optimization via quasi-Newton methods (2013).
    """
    n, x = len(step), at.x + step
    f, g = evaluate.value(x), np.empty_like(step)
    gnorm = evaluate.gradient(x, g)
    nearest, farthest = NEAREST * norm(step), FARTHEST * norm(step)
    H = np.eye(n) * (norm(step) / (gnorm or 1.0))
    for _ in range(STEPS + n):
        v = -H.dot(g)
        slope = float(g.dot(v))
        if not -math.inf < slope < 0.0:
            return None
        found = weak_wolfe(evaluate, x, f, v, slope)
        if found is None:
            return None
        new, f, after = found
        if f < at.f - noise:
            return new - at.x
        # Back at the kink, or on the way to another point.
        if not nearest < norm(new - at.x) < farthest:
            return None
        s, y = new - x, after - g
        learn(H, s, y)
        x, g = new, after
    return None


def learn(H: Vector, s: Vector, y: Vector) -> None:
    """Change H (n, n), an inverse Hessian, by the secant pair of a step s and y (n,): BFGS."""
    sy = float(s.dot(y))
    if sy > 0.0:
        u, w = s / sy, H.dot(y)
        w -= (0.5 * (sy + float(y.dot(w)))) * u
        change = np.multiply.outer(u, w)
        H -= change + change.T


def weak_wolfe(
    evaluate: KinkedFunction, x: Vector, f: float, v: Vector, slope: float
) -> tuple[Vector, float, Vector] | None:
    """A point along v (n,) that is lower and less steep, with its value and gradient, by halving.

    None if there is none in TRIALS trials.
    """
    low, high, t = 0.0, math.inf, 1.0
    g = np.empty_like(v)
    for _ in range(TRIALS):
        new = x + t * v
        value = evaluate.value(new)
        if not value < f + DESCENT * t * slope:
            high = t
        else:
            evaluate.gradient(new, g)
            if not float(g.dot(v)) < FLATTER * slope:
                return new, value, g
            low = t
        t = 2.0 * low if high == math.inf else 0.5 * (low + high)
    return None
