"""Alternating quadratic models, so that a run does not depend on the choice of a single one."""

from __future__ import annotations

from slomodel.solve.directions.direction import SecantPair
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.quadratics.quadratic import Quadratic
from slomodel.solve.sets.convex_set import Face, Set
from slomodel.solve.subroutine import Iterate

# Evaluations with the first model.
FIRST_TURN = 40
# A model is retained if it lowers the projected gradient by this factor in its turn.
GAINED = 1e-3


class AlternatingModels:
    """The first model for FIRST_TURN evaluations, the next for twice as many, and so on cyclically.

    Each model learns from all steps. Values, gradients and Hessian products are counted as
    evaluations.
    """

    wants_pairs = True

    def __init__(self, evaluate: Evaluator, start: Iterate, models: tuple[Quadratic, ...]) -> None:
        self._evaluate = evaluate
        self._models = models
        self._length = FIRST_TURN
        self._turn = 0
        self._until = evaluate.work + FIRST_TURN
        self._gnorm = start.gnorm

    @property
    def _now(self) -> Quadratic:
        return self._models[self._turn]

    @property
    def accuracy(self) -> float:
        return self._now.accuracy

    @property
    def is_exact(self) -> bool:
        return self._now.is_exact

    @property
    def is_spent(self) -> bool:
        return self._now.is_spent

    @property
    def most(self) -> int:
        return self._now.most

    def begin(self, at: Iterate, shift: Vector | None) -> bool:
        if self._evaluate.work >= self._until:
            if at.gnorm > GAINED * self._gnorm:
                self._turn = (self._turn + 1) % len(self._models)
                self._length *= 2
            self._until = self._evaluate.work + self._length
            self._gnorm = at.gnorm
        return self._now.begin(at, shift)

    def free_step(self, at: Iterate) -> Vector | None:
        return self._now.free_step(at)

    def product(self, s: Vector) -> Vector:
        return self._now.product(s)

    def solve(self, face: Face, r: Vector) -> tuple[Vector, Vector | None]:
        return self._now.solve(face, r)

    def minimiser_over(self, within: Set, y: Vector, r: Vector) -> Vector | None:
        return self._now.minimiser_over(within, y, r)

    def learn(self, pair: SecantPair) -> None:
        for model in self._models:
            model.learn(pair)
