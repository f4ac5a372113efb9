"""Points with multipliers, and how far they are from the KKT conditions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slomodel.solve.constrained.scaled import ScaledConstraints
from slomodel.solve.norms import Vector
from slomodel.solve.objective import projected_norm
from slomodel.solve.sets.convex_set import Set


@dataclass(frozen=True, slots=True)
class PrimalDual:
    """A point x (n,) with multipliers y (m,), and how far it is from the KKT conditions.

    y and c are those of constraints in their units. `g` is the gradient of the Lagrangian,
    `stationarity` the norm of its projection on the set, `excess` the largest |c| of an equation or
    max(0, c), `violation` the same as the model states the constraints, and `complementarity` the
    largest |min(−c, y)| of an inequality that holds, y in units of f; `steepness` is the
    stationarity in those units.
    """

    x: Vector
    y: Vector
    f: float
    g: Vector
    c: Vector
    stationarity: float
    excess: float
    violation: float
    complementarity: float
    steepness: float

    @staticmethod
    def of(objective: ScaledConstraints, x: Vector, y: Vector, within: Set | None) -> PrimalDual:
        """The objective and its constraints evaluated at x (n,), with multipliers y (m,)."""
        f, g, c = objective.evaluate(x, y)
        stationarity = float(np.linalg.norm(g))
        if within is not None and np.isfinite(stationarity):
            stationarity = projected_norm(within, x, g)
        equations = objective.equations
        excess = np.where(equations, np.abs(c), np.maximum(c, 0.0))
        multipliers = y / objective.unit
        slackness = np.where(equations, 0.0, np.abs(np.minimum(np.maximum(-c, 0.0), multipliers)))
        return PrimalDual(
            *(x, y, f, g, c, stationarity),
            excess=float(np.max(excess, initial=0.0)),
            violation=float(np.max(excess * objective.units, initial=0.0)),
            complementarity=float(np.max(slackness, initial=0.0)),
            steepness=stationarity / objective.unit,
        )

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.f) and np.isfinite(self.g).all() and np.isfinite(self.c).all())

    @property
    def error(self) -> float:
        """The Euclidean norm of the three residuals."""
        return float(np.hypot(np.hypot(self.steepness, self.excess), self.complementarity))

    def is_solution(self, tolerance: float, feasibility: float) -> bool:
        """Whether the KKT conditions hold up to the tolerances."""
        balanced = self.complementarity <= max(feasibility, tolerance)
        return self.stationarity < tolerance and self.violation <= feasibility and balanced
