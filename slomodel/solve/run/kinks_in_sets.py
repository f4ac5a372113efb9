"""Descent of objectives with kinks in polyhedra, by BFGS for a function on the whole space."""

from __future__ import annotations

import math

import numpy as np

from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.run.kinks import AT_KINK, MOST_UNKNOWNS, NEARER, learn, weak_wolfe
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.stagnation.resolution import ROUNDING
from slomodel.solve.stagnation.scaled_descent import CLEAR
from slomodel.solve.subroutine import Iterate

# Steps of a descent, a constant and a number for each unknown, of which IDLE in a row may lower the
# function by no more than rounding errors; most descents, from points ever nearer to the last end.
STEPS, STEPS_PER_UNKNOWN, IDLE, ROUNDS = 100, 20, 10, 3


class Extended:
    """f(P(z)) + ρ‖z − P(z)‖ of z (n,), P the projection on a polyhedron.

    It is nowhere less than at P(z), so that its local minima are those of f over the polyhedron,
    whatever ρ > 0 is. BFGS minimises functions with kinks, and bounds are kinks of this one.
    """

    def __init__(self, evaluate: Evaluator, within: Set, slope: float) -> None:
        self._evaluate = evaluate
        self._within = within
        self._slope = slope

    def value(self, z: Vector) -> float:
        y = self._evaluate.inside(z)
        return self._evaluate.value(y) + self._slope * norm(z - y)

    def gradient(self, z: Vector, out: Vector) -> float:
        """Write the gradient at z into `out`, both (n,), and return its norm."""
        y = self._evaluate.inside(z)
        self._evaluate.gradient(y, out)
        away = z - y
        distance = norm(away)
        if distance > 0.0:
            out[:] = self._within.face(y, -away).project(out) + (self._slope / distance) * away
        return norm(out)


def descent_in_a_polyhedron(evaluate: Evaluator, at: Iterate) -> Iterate | None:
    """A point of the polyhedron that is lower than a point with kinks; None if none is found."""
    within, n = evaluate.within, len(at.x)
    if within is None or not within.polyhedral or not 0 < n <= MOST_UNKNOWNS:
        return None
    if not 0.0 < norm(at.g) < math.inf:
        return None
    extended = Extended(evaluate, within, norm(at.g))
    noise = CLEAR * ROUNDING * evaluate.eps * abs(at.f)
    rng, distance = np.random.default_rng(0), AT_KINK * max(1.0, norm(at.x))
    x, f = at.x, at.f
    for _ in range(ROUNDS):
        side = rng.standard_normal(n)
        y = evaluate.inside(_lowest(extended, x + (distance / norm(side)) * side, distance, noise))
        value = evaluate.value(y)
        if not value < f - noise:
            break
        x, f, distance = y, value, NEARER * distance
    if x is at.x:
        return None
    g = np.empty_like(x)
    return Iterate(x, f, g, evaluate.gradient(x, g))


def _lowest(extended: Extended, x: Vector, distance: float, noise: float) -> Vector:
    """The lowest point (n,) of a descent from x (n,), with a first step of the given length.

    Lewis & Overton, Nonsmooth optimization via quasi-Newton methods (2013).
    """
    n, idle = len(x), 0
    f, g = extended.value(x), np.empty_like(x)
    gnorm = extended.gradient(x, g)
    H = np.eye(n) * (distance / (gnorm or 1.0))
    for _ in range(STEPS + STEPS_PER_UNKNOWN * n):
        v = -H.dot(g)
        slope = float(g.dot(v))
        if not -math.inf < slope < 0.0:
            break
        found = weak_wolfe(extended, x, f, v, slope)
        if found is None:
            break
        new, value, after = found
        idle = idle + 1 if f - value <= noise else 0
        s, y = new - x, after - g
        x, f, g = new, value, after
        if idle == IDLE:
            break
        learn(H, s, y)
    return x
