"""Two directions by turns, so that a run needs no good guess of which one suits it."""

from __future__ import annotations

from slomodel.solve.direction import Direction, Pair
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate


class Turns:
    """The first direction for `work` evaluations, the second for as many, and so on.

    Every round is twice as long as the one before, so that a run costs at most about twice what
    the better direction alone would: both go on from where the other ended. Without `again` the
    second one keeps its turn. Evaluations are values, gradients and products with a Hessian,
    which cost about the same.
    """

    wants_pairs = True

    def __init__(
        self, evaluate: Evaluator, pair: tuple[Direction, Direction], work: int, again: bool
    ) -> None:
        self._evaluate = evaluate
        self._pair = pair
        self._again = again
        self._length = work
        self._turn = 0
        self._until = evaluate.work + work

    def propose(self, at: Iterate, out: Vector) -> float:
        if self._evaluate.work >= self._until and (self._again or self._turn == 0):
            self._turn = 1 - self._turn
            self._length *= 2 if self._turn == 0 else 1
            self._until = self._evaluate.work + self._length
        return self._pair[self._turn].propose(at, out)

    def learn(self, pair: Pair) -> None:
        """Both learn, whoever made the step: a memory of pairs stays up to date."""
        for direction in self._pair:
            direction.learn(pair)

    def fallback(self, at: Iterate, out: Vector) -> float:
        return self._pair[self._turn].fallback(at, out)
