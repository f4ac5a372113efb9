"""Directions that alternate, so that no run depends on the choice of one of them."""

from __future__ import annotations

from dataclasses import replace

from slomodel.solve.directions.direction import Direction, SecantPair
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate


class Turns:
    """The first direction for `work` evaluations, the next for twice as many, and so on.

    After the last comes the first again. Each goes on from where the other ended, and none keeps a
    run for more than the half of it. Evaluations are values, gradients and products with a Hessian,
    which cost about the same.
    """

    wants_pairs = True

    def __init__(self, evaluate: Evaluator, directions: tuple[Direction, ...], work: int) -> None:
        self._evaluate = evaluate
        self._directions = directions
        self._length = work
        self._turn = 0
        self._until = evaluate.work + work

    @property
    def _now(self) -> Direction:
        return self._directions[self._turn]

    @property
    def units(self) -> Vector | None:
        return self._now.units

    def propose(self, at: Iterate, out: Vector) -> float:
        if self._evaluate.work >= self._until:
            self._turn = (self._turn + 1) % len(self._directions)
            self._length *= 2
            self._until = self._evaluate.work + self._length
        return self._now.propose(at, out)

    def learn(self, pair: SecantPair) -> None:
        """All directions learn from every step, so that each memory of pairs is up to date."""
        others = replace(pair, own=False)
        for direction in self._directions:
            direction.learn(pair if direction is self._now else others)

    def fallback(self, at: Iterate, out: Vector) -> float:
        return self._now.fallback(at, out)
