"""The interface of an objective with constraints to the solver, and the residuals of a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from slomodel.solve.constants.proved import Prove
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Objective, projected_norm
from slomodel.solve.sets.convex_set import Mask, Set


@dataclass(frozen=True, slots=True)
class PenaltySubproblem:
    """The augmented Lagrangian for given multipliers and penalty, with proofs of its constants."""

    objective: Objective
    prove: Prove


@dataclass(frozen=True, slots=True)
class ConstraintRows:
    """One constraint of the given shape: rows start, …, stop - 1 of the vector of all, in C order.

    They are `orientation` times the difference of the sides as written: 1 for `g <= h` and
    equations, −1 for `g >= h`. Constraints with two ends have rows of the same name.
    """

    name: str
    orientation: int
    is_equation: bool
    start: int
    stop: int
    shape: tuple[int, ...]


class ConstrainedObjective(Protocol):
    """f of x (n,), to be minimised, with constraints c (m,): c = 0 for equations, else c ≤ 0.

    The augmented Lagrangian with multipliers y, penalty ρ and weight w is w·f + Σ (y c + ρc²/2)
    over equations + Σ (max(0, y + ρc)² − y²)/2ρ over inequalities.
    """

    @property
    def n(self) -> int: ...

    @property
    def eps(self) -> float:
        """The rounding unit of the precision of values and derivatives."""
        ...

    @property
    def rows(self) -> Sequence[ConstraintRows]: ...

    @property
    def equations(self) -> Mask:
        """Which of the constraints (m,) are equations."""
        ...

    def evaluate(self, x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        """f, the gradient (n,) of the Lagrangian f + ⟨y, c⟩, and c (m,)."""
        ...

    def product(self, x: Vector, y: Vector, v: Vector) -> tuple[Vector, Vector]:
        """The Hessian of the Lagrangian times v, (n,), and the Jacobian of c times v, (m,)."""
        ...

    def augmented(self, y: Vector, penalty: float, weight: float = 1.0) -> PenaltySubproblem: ...


@dataclass(frozen=True, slots=True)
class PrimalDual:
    """A point x (n,) with multipliers y (m,), and how far it is from the KKT conditions.

    `g` is the gradient of the Lagrangian. `stationarity` is the norm of its projection on the set,
    `violation` the largest |c| of an equation or max(0, c), `complementarity` the largest
    |min(−c, y)| of an inequality that holds.
    """

    x: Vector
    y: Vector
    f: float
    g: Vector
    c: Vector
    stationarity: float
    violation: float
    complementarity: float

    @staticmethod
    def of(
        x: Vector,
        y: Vector,
        values: tuple[float, Vector, Vector],
        equations: Mask,
        within: Set | None,
    ) -> PrimalDual:
        f, g, c = values
        stationarity = float(np.linalg.norm(g))
        if within is not None and np.isfinite(stationarity):
            stationarity = projected_norm(within, x, g)
        excess = np.where(equations, np.abs(c), np.maximum(c, 0.0))
        slackness = np.where(equations, 0.0, np.abs(np.minimum(np.maximum(-c, 0.0), y)))
        worst = (float(np.max(one, initial=0.0)) for one in (excess, slackness))
        return PrimalDual(x, y, f, g, c, stationarity, *worst)

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.f) and np.isfinite(self.g).all() and np.isfinite(self.c).all())

    @property
    def error(self) -> float:
        """The Euclidean norm of the three residuals."""
        return float(np.hypot(np.hypot(self.stationarity, self.violation), self.complementarity))

    def is_solution(self, tolerance: float, feasibility: float) -> bool:
        """Whether the KKT conditions hold up to the tolerances."""
        balanced = self.complementarity <= max(feasibility, tolerance)
        return self.stationarity < tolerance and self.violation <= feasibility and balanced
