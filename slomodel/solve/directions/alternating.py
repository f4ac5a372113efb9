"""Alternating directions, so that a run does not depend on the choice of a single one."""

from __future__ import annotations

from dataclasses import replace

from slomodel.solve.directions.direction import Direction, SecantPair
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate


class Turns:
    """The first direction for `work` evaluations, the next for twice as many, and so on cyclically.

    Each continues from the point that the last one reached, and none takes more than about half of
    the work of a run. Values, gradients and Hessian products, which cost about the same, are
    counted as evaluations.
    """

    wants_pairs = True
    predicting = None
    in_c = None

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
    def kind(self) -> str:
        return type(self._now).__name__

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
        """Pass every step to all directions, so that each memory of pairs is up to date."""
        others = replace(pair, own=False)
        for direction in self._directions:
            direction.learn(pair if direction is self._now else others)

    def fallback(self, at: Iterate, out: Vector) -> float:
        return self._now.fallback(at, out)
