"""Evidence that an objective has no minimum where its constraints hold, also along curves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slomodel.solve.constrained.primal_dual import PrimalDual
from slomodel.solve.constrained.scaled import ScaledConstraints
from slomodel.solve.norms import EPS, Vector
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.stagnation.unbounded import FAR_OUT, STEADY

# Each level is below the last one by twice as much as that was below the one before.
LEVELS = 120
# Number of nearer levels tried after one that was not reached, and the factor between them.
RETRIES, SHORTER = 3, 4.0
# Most Gauss–Newton steps for a level, and most equations and violated inequalities.
STEPS, ROWS = 25, 100
# A constraint holds up to this fraction of Σ|∂c/∂x_j·x_j|.
RELATIVE = 1e-12
# Inequalities and the level are aimed at with this excess, so that they hold after finitely many
# steps.
BEYOND = 0.1
Spend = Callable[[int], bool]
"""Called with the number of points evaluated; whether to go on."""


@dataclass(frozen=True, slots=True)
class Descent:
    """The last point of a descent at which the constraints hold, and whether it has no end."""

    at: PrimalDual
    endless: bool


def by_levels(
    objective: ScaledConstraints, within: Set | None, at: PrimalDual, step: Vector, spend: Spend
) -> Descent | None:
    """Points at which the constraints hold and f is below levels that fall ever faster.

    They begin near x = `at.x`, at which `step` (n,) arrived. Each is a solution of f = level, the
    equations and the inequalities that were violated on the way there, by Gauss–Newton steps in
    units of the variables' magnitudes, which bend around constraints that no straight line
    satisfies: y = (1 − x)³, say. The descent has no end if f falls below −max(1, |f(x)|)/eps, or if
    it falls, until x overflows, by no less with every doubling of x. None if no point is found
    below f(x).
    """
    nothing = np.zeros_like(at.y)
    f, g, _ = objective.evaluate(at.x, nothing)
    fall = abs(float(g @ step))
    lowest = -max(1.0, abs(f)) / EPS
    start = _below(objective, within, f, at.x.copy(), np.abs(at.x) + np.abs(step), spend)
    if start is None:
        return None
    x, failed = start[1], 0
    path = [(_magnitude(x), f)]
    for _ in range(LEVELS):
        if f < lowest or failed > RETRIES or not 0.0 < fall < np.inf:
            break
        units = np.abs(x) + np.abs(step)
        ahead = x + 2.0 * step if failed == 0 else x + step / SHORTER**failed
        new = _below(objective, within, f - fall, ahead, units, spend)
        if new is None:
            failed, fall = failed + 1, fall / SHORTER
            continue
        failed, fall = 0, 2.0 * fall
        f, x, step = new[0], new[1], new[1] - x
        path.append((_magnitude(x), f))
    if len(path) == 1:
        return None
    return Descent(PrimalDual.of(objective, x, nothing, within), f < lowest or _is_steady(path))


def _magnitude(x: Vector) -> float:
    """The logarithm of the largest element of x (n,)."""
    return float(np.log(np.abs(x).max(initial=EPS)))


def _is_steady(path: list[tuple[float, float]]) -> bool:
    """Whether f, by the logarithm of x, falls at no smaller rates out to FAR_OUT than before."""
    size, f = np.array(path).T
    if size[-1] < math.log(FAR_OUT) or size[0] > 0.5 * size[-1] or (np.diff(size) <= 0.0).any():
        return False
    rates = np.diff(f) / np.diff(size)
    half = len(rates) // 2
    return half > 0 and bool(rates[half:].max() <= STEADY * float(np.median(rates[:half])) < 0.0)


def _below(
    objective: ScaledConstraints,
    within: Set | None,
    level: float,
    x: Vector,
    units: Vector,
    spend: Spend,
) -> tuple[float, Vector] | None:
    """(f, x) with f ≤ level where the constraints hold, from a point near x (n,)."""
    units = np.where(units > 0.0, units, units.max(initial=0.0))
    zero, held = np.zeros(len(objective.equations)), objective.equations.copy()
    for _ in range(STEPS):
        if within is not None:
            within.project(x, x)
        f, g, c = objective.evaluate(x, zero)
        if not (np.isfinite(f) and np.isfinite(g).all() and np.isfinite(c).all()):
            return None
        excess = np.where(objective.equations, c, np.maximum(c, 0.0))
        held |= excess > 0.0
        rows = np.flatnonzero(held)
        if len(rows) > ROWS or not spend(1 + len(rows)):
            return None
        J = np.array([objective.evaluate(x, _unit(zero, int(i)))[1] - g for i in rows])
        J = J.reshape(len(rows), len(x))
        holds = np.abs(excess[rows]) <= RELATIVE * (np.abs(J) @ np.abs(x))
        if f <= level and holds.all():
            return f, x
        aim = np.where(objective.equations[rows], 1.0, 1.0 + BEYOND) * excess[rows]
        J = np.concatenate([J, g[None]]) * units
        right = np.append(aim, (1.0 + BEYOND) * max(0.0, f - level))
        size = np.linalg.norm(J, axis=1)
        size[size == 0.0] = 1.0
        try:
            d = np.linalg.lstsq(J / size[:, None], -right / size, rcond=None)[0]
        except np.linalg.LinAlgError:
            return None
        x = x + units * d
    return None


def _unit(zero: Vector, i: int) -> Vector:
    unit = zero.copy()
    unit[i] = 1.0
    return unit
