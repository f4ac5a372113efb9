"""Alternating quadratic models, so that a run does not depend on the choice of a single one."""

from __future__ import annotations

import math

from slomodel.solve.compiled.boxes import ModelInC
from slomodel.solve.compiled.loop import LoopState
from slomodel.solve.directions.direction import SecantPair
from slomodel.solve.facts import conforms
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.quadratics.limited_memory import LimitedMemory
from slomodel.solve.quadratics.quadratic import Quadratic
from slomodel.solve.sets.convex_set import Face, Set
from slomodel.solve.subroutine import Iterate

# Number of evaluations with the first model.
FIRST_TURN = 40
# A model is retained if it lowers the projected gradient by this factor in its turn.
GAINED = 1e-3
# The turns of a model that does not pay are shortened by this factor each time.
SHORTER = 8
# Operations of an evaluation beyond those of the objective.
CALL = 5e4


class AlternatingModels:
    """The first model for FIRST_TURN evaluations, the next for twice as many, and so on cyclically.

    Each model learns from all steps. Values, gradients and Hessian products are counted as
    evaluations, and so is the linear algebra of the models, by its operations: for many unknowns
    and a cheap objective, pairs take longer than products. The turns of another model are shortened
    while they do not pay: while f falls more slowly in them, per evaluation, than with the first
    model about that time, which is the geometric mean of its rates at the end of its turn before
    and in the next one. A minimisation of a model takes about the rest of a turn at most.
    """

    wants_pairs = True
    may_form = False

    def __init__(
        self, evaluate: Evaluator, start: Iterate, first: LimitedMemory, *others: Quadratic
    ) -> None:
        self._evaluate = evaluate
        self._models: tuple[LimitedMemory, *tuple[Quadratic, ...]] = (first, *others)
        self._length = FIRST_TURN
        self._turn = 0
        # Where the operations of an evaluation are not known, linear algebra does not count.
        self._unit = CALL + evaluate.operations if evaluate.operations else math.inf
        self._until = self._work + FIRST_TURN
        self._gnorm = start.gnorm
        # Work and f at the start of the turn, and about its middle once that is over.
        self._began = (self._work, start.f)
        self._middle: tuple[float, float] | None = None
        # The falls of f per evaluation: at the end of the first model's last turn, and in those of
        # the others since.
        self._rate = 0.0
        self._rates = [0.0] * len(self._models)
        self._shortened = [1] * len(self._models)

    @property
    def _work(self) -> float:
        """Evaluations so far, with the linear algebra in units of them."""
        return self._evaluate.work + sum(model.operations for model in self._models) / self._unit

    @property
    def operations(self) -> float:
        return sum(model.operations for model in self._models)

    @property
    def accuracy(self) -> float:
        return self._models[self._turn].accuracy

    @property
    def is_exact(self) -> bool:
        return self._models[self._turn].is_exact

    @property
    def is_spent(self) -> bool:
        return self._models[self._turn].is_spent

    @property
    def is_over(self) -> bool:
        return self._models[self._turn].is_over

    @property
    def most(self) -> int:
        # A minimisation of a model that does not pay is not worth more than a step.
        return self._models[self._turn].most if self._shortened[self._turn] == 1 else 1

    def _take_turns(self, at: Iterate) -> None:
        """Note the middle of a turn, and begin the next one where it is over."""
        work = self._work
        if self._middle is None and 2 * work >= self._began[0] + self._until:
            self._middle = (work, at.f)
        if work >= self._until:
            self._next_turn(at)

    def begin(self, at: Iterate, shift: Vector | None) -> bool:
        self._take_turns(at)
        # The last step of a turn may take half as much again.
        model = self._models[self._turn]
        model.allow(max(self._until - self._work, 0.5 * (self._until - self._began[0])))
        return model.begin(at, shift)

    def allow(self, work: float) -> None:
        pass

    def _next_turn(self, at: Iterate) -> None:
        work, turns = self._work, self._shortened
        if at.gnorm > GAINED * self._gnorm:
            self._rates[self._turn] = _rate(self._began, work, at.f)
            if self._turn == 0:
                about = math.sqrt(self._rate * self._rates[0])
                for k in range(1, len(turns)):
                    turns[k] = 1 if self._rates[k] >= about else SHORTER * turns[k]
                self._rate = _rate(self._middle or self._began, work, at.f)
            self._turn = (self._turn + 1) % len(self._models)
            self._length *= 2
        self._until = work + max(1.0, self._length / turns[self._turn])
        self._gnorm = at.gnorm
        self._began, self._middle = (work, at.f), None

    def free_step(self, at: Iterate) -> Vector | None:
        return self._models[self._turn].free_step(at)

    def product(self, s: Vector) -> Vector:
        return self._models[self._turn].product(s)

    def solve(self, face: Face, r: Vector) -> tuple[Vector, Vector | None]:
        return self._models[self._turn].solve(face, r)

    def minimiser_over(self, within: Set, y: Vector, r: Vector) -> Vector | None:
        return self._models[self._turn].minimiser_over(within, y, r)

    def store(self, loop: LoopState, at: Iterate) -> bool:
        """Let a compiled loop go on with the present turn; False where it cannot."""
        self._take_turns(at)
        first, present = self._models[0], self._models[self._turn]
        if not conforms(present, ModelInC):
            return False
        ready = first.store(loop, at)
        loop.others_operations, loop.unit = self.operations - first.operations, self._unit
        loop.turn_began, loop.turn_ends = self._began[0], self._until
        loop.has_middle = self._middle is not None
        if self._middle is not None:
            loop.middle_work, loop.middle_f = self._middle
        if present is not first:
            ready = present.store(loop, at)
        loop.most_on_faces = self.most
        return ready

    def load(self, loop: LoopState) -> None:
        """Read the state after steps of a compiled loop."""
        self._models[0].load(loop)
        if loop.has_middle:
            self._middle = (loop.middle_work, loop.middle_f)

    def learn(self, pair: SecantPair) -> None:
        for model in self._models:
            model.learn(pair)


def _rate(since: tuple[float, float], work: float, f: float) -> float:
    """The fall of f per evaluation since some work and value."""
    return max(0.0, since[1] - f) / max(1.0, work - since[0])
