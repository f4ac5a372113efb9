"""Constraints in units of their own size, so that one penalty suits them all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slomodel.solve.constrained.objective import (
    ConstrainedObjective,
    ConstraintRows,
    PenaltySubproblem,
)
from slomodel.solve.norms import Vector
from slomodel.solve.sets.convex_set import Mask

# Sizes between 1/ORDINARY and ORDINARY count as 1.
ORDINARY = 100.0
# Number of random changes of x that estimate the sizes, and of changes of random signs that
# estimate how sensitive constraints are.
SAMPLES, SIGNS = 4, 4


@dataclass(frozen=True, slots=True)
class ScaledConstraints:
    """An objective whose constraints are c/u in place of c, with multipliers u·y in place of y.

    The units u (m,) are powers of two, one for each constraint as written, so that its rows remain
    comparable. Values, gradients and Hessian products are those of the objective given; `unit` is
    the size of its changes, and of the multipliers.
    """

    own: ConstrainedObjective
    units: Vector
    unit: float

    @staticmethod
    def at(own: ConstrainedObjective, x: Vector) -> ScaledConstraints:
        """The units at a point x (n,): how much f and c change when x does, relatively.

        The size of c_i is the root mean square of its changes when every x_j changes by about 1, or
        by |x_j| if that is more: an estimate of ‖∇c_i ∘ max(1, |x|)‖.
        """
        rng, zero = np.random.default_rng(0), np.zeros(len(own.equations))
        far, squares = np.maximum(1.0, np.abs(x)), np.zeros_like(zero)
        for _ in range(SAMPLES):
            squares += own.product(x, zero, far * rng.standard_normal(own.n))[1] ** 2
        units = np.ones_like(zero)
        for row in own.rows:
            largest = float(np.max(squares[row.start : row.stop], initial=0.0))
            units[row.start : row.stop] = power_of_two(np.sqrt(largest / SAMPLES))
        slope = own.evaluate(x, zero)[1]
        unit = power_of_two(float(np.linalg.norm(slope * far)))
        return ScaledConstraints(own, units, unit)

    @property
    def n(self) -> int:
        return self.own.n

    @property
    def eps(self) -> float:
        return self.own.eps

    @property
    def is_quadratic_program(self) -> bool:
        return self.own.is_quadratic_program

    @property
    def rows(self) -> Sequence[ConstraintRows]:
        return self.own.rows

    @property
    def equations(self) -> Mask:
        return self.own.equations

    def evaluate(self, x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        f, g, c = self.own.evaluate(x, y / self.units)
        return f, g, c / self.units

    def product(self, x: Vector, y: Vector, v: Vector) -> tuple[Vector, Vector]:
        curved, along = self.own.product(x, y / self.units, v)
        return curved, along / self.units

    def sensitivity(self, x: Vector) -> float:
        """The largest change of a constraint over that of x (n,), both relative, as written."""
        rng, largest, zero = np.random.default_rng(0), 0.0, np.zeros(len(self.units))
        for _ in range(SIGNS):
            _, change = self.own.product(x, zero, x * rng.choice([-1.0, 1.0], self.n))
            largest = max(largest, float(np.abs(change).max(initial=0.0)))
        return largest

    def augmented(self, y: Vector, penalty: Vector, weight: float = 1.0) -> PenaltySubproblem:
        return self.own.augmented(y / self.units, penalty / self.units**2, weight)


def power_of_two(size: float) -> float:
    """The power of two nearest to a size; 1 if that is 0, not finite, or ordinary."""
    if not 0.0 < size < math.inf or 1.0 / ORDINARY <= size <= ORDINARY:
        return 1.0
    return float(2.0 ** np.round(np.log2(size)))
