"""The objective of a model over blocks, alone and with constraints, as the solvers see it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import numpy as np

from slomodel.front.data.points import Vector
from slomodel.model.blocks.evaluate import Executor, Quantity, Result, added, bounds_of, evaluated
from slomodel.model.model import Model
from slomodel.solve import Objective, Proof
from slomodel.solve.constants.proved import PROOF_STEPS
from slomodel.solve.constrained.objective import (
    ConstrainedObjective,
    ConstraintRows,
    PenaltySubproblem,
)
from slomodel.solve.facts import Curved
from slomodel.solve.sets.convex_set import Mask

if TYPE_CHECKING:
    from slomodel.bounds import Bounds


class BlockObjective:
    """The sum of an objective over blocks, for the solvers."""

    def __init__(self, n: int, executor: Executor, rest: Model | None, eps: float) -> None:
        """`eps` is the rounding unit of the precision of values and derivatives."""
        self.n = n
        self.eps = eps
        self._executor = executor
        self._rest = rest

    def sum(self, quantity: Quantity, x: Vector, v: Vector | None = None) -> Result:
        """The quantity at x (n,): over all blocks, and of the part that is free of samples."""
        value, vector = added(self._executor.results(quantity, x, v))
        if self._rest is not None:
            other, more = evaluated(self._rest, quantity, x, v)
            value += other
            vector = vector if vector is None or more is None else vector + more
        return value, vector

    def value(self, x: Vector) -> float:
        return self.sum("value", x)[0]

    def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
        value, gradient = self.sum("value_and_gradient", x)
        assert gradient is not None
        return value, _written(gradient, out)

    def hvp(self, x: Vector, v: Vector) -> Vector:
        product = self.sum("hvp", x, v)[1]
        assert product is not None
        return product

    def bounds(self, x: Vector, radius: float, effort: str) -> Bounds:
        """Proved constants over the ball around x (n,), from those of every block."""
        from slomodel.bounds.data_blocks import bounds_of_sum

        terms = self._executor.bounds(x, radius, effort)
        if self._rest is not None:
            terms = chain(terms, [bounds_of(self._rest, x, radius, effort)])
        return bounds_of_sum(terms, radius, lambda other: self.bounds(x, other, effort))


class BlockProver:
    """Proved constants of an objective over blocks about a point (n,), for the solvers."""

    def __init__(self, objective: BlockObjective) -> None:
        self._objective = objective
        self._check: Callable[[], None] | None = None

    @property
    def errors(self) -> None:
        """There are no bounds on the errors of evaluation."""
        return None

    def stop_by(self, check: Callable[[], None]) -> None:
        self._check = check

    def __call__(self, centre: Vector, radius: float) -> Proof:
        from slomodel.bounds import stopped_by

        with stopped_by(self._check):
            bounds = self._objective.bounds(centre, radius, "default")
        return Proof(bounds.L1, bounds.L2, bounds.reason)

    def quick(self, centre: Vector, radius: float) -> Proof:
        return self(centre, radius)

    def one_of_many(self, centre: Vector, radius: float) -> Proof:
        return self(centre, radius)

    @property
    def worth(self) -> float:
        return PROOF_STEPS

    def curvature_above(self, x: Vector, v: Vector) -> float:
        return math.inf


class CurvedObjective(Objective, Curved, Protocol):
    """An objective with Hessian products."""


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """weight · f + g, for the solvers, with the rounding unit `eps`."""

    weight: float
    f: CurvedObjective
    g: CurvedObjective
    eps: float

    @property
    def n(self) -> int:
        return self.f.n

    def value(self, x: Vector) -> float:
        return self.weight * self.f.value(x) + self.g.value(x)

    def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
        value, gradient = self.f.value_and_gradient(x)
        other, more = self.g.value_and_gradient(x)
        return self.weight * value + other, _written(self.weight * gradient + more, out)

    def hvp(self, x: Vector, v: Vector) -> Vector:
        return self.weight * self.f.hvp(x, v) + self.g.hvp(x, v)


class BlockConstraints:
    """The objective over blocks, and constraints that do not depend on samples.

    The constraints are those of a model whose own objective is 0. The augmented Lagrangian of both
    is that of this model plus the objective, for which nothing is proved here.
    """

    def __init__(self, objective: BlockObjective, own: ConstrainedObjective, sign: float) -> None:
        """`sign` is -1 for a maximum."""
        self._objective = objective
        self._own = own
        self._sign = sign

    @property
    def n(self) -> int:
        return self._objective.n

    @property
    def eps(self) -> float:
        return self._objective.eps

    @property
    def is_quadratic_program(self) -> bool:
        # The matrix of a step would take n passes over the blocks.
        return False

    @property
    def rows(self) -> Sequence[ConstraintRows]:
        return self._own.rows

    @property
    def equations(self) -> Mask:
        return self._own.equations

    def evaluate(self, x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
        value, gradient = self._objective.value_and_gradient(x)
        _, slope, c = self._own.evaluate(x, y)
        return self._sign * value, self._sign * gradient + slope, c

    def product(self, x: Vector, y: Vector, v: Vector) -> tuple[Vector, Vector]:
        curved, along = self._own.product(x, y, v)
        return self._sign * self._objective.hvp(x, v) + curved, along

    def augmented(self, y: Vector, penalty: Vector, weight: float = 1.0) -> PenaltySubproblem:
        penalised = self._own.augmented(y, penalty).objective
        assert isinstance(penalised, Curved)
        total = WeightedSum(weight * self._sign, self._objective, penalised, self.eps)
        return PenaltySubproblem(total, _unproved)


def _unproved(_centre: Vector, _radius: float) -> Proof:
    return Proof(math.inf, math.inf, "the data are in blocks, and the model has constraints")


def _written(gradient: Vector, out: Vector | None) -> Vector:
    if out is None:
        return gradient
    np.copyto(out, gradient)
    return out
