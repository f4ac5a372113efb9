"""The state of a run: its point, its epoch, its record, and how it ended."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from slomodel.solve.constants.proved import Clocked
from slomodel.solve.facts import NO_FACTS, ObjectiveFacts
from slomodel.solve.norms import Vector
from slomodel.solve.run.history import EpochLog
from slomodel.solve.run.stationary_point import SoFar
from slomodel.solve.run_options import RunOptions
from slomodel.solve.status import Status
from slomodel.solve.subroutine import AcceptedStep, Block, EpochRegion, Halt, Iterate
from slomodel.solve.verify.certificate import Certifier


@dataclass(slots=True)
class RunState:
    """The state of a run and how it ended; `tolerance` is √ε, set from f and g at the start.

    `best` is the lowest point from which a step rose by more than rounding. `region` is that of the
    current epoch, if any, which began after step `first` with `violations_before` violations in
    total. `proofs` is the source of proved constants, if any. The run began with the value
    `first_f`, the gradient norm `first_gnorm` and ‖x‖ = `first_size`. `sentence` replaces that of
    the status; with `own_test` the method tests its points itself, and the tolerance is 0. With
    `leaves_saddles` the run goes on from stationary points beyond which f is lower; where it
    `is_slow`, a second descent is made, once (second_descent.py), and steps along a curved valley
    (valleys.py), which were `in_vain` so often in a row; where it `lingers`, a saddle is left after
    a stop (saddle_escape.py). `kinds` has the number of steps of each kind and their decrease of f.
    `hessian` (n, n) is that at the end, if it was computed; `tried` says what was tried at a kink
    there. f may be unbounded below `depth`, which is examined when it is below `examined` first.
    """

    current: Iterate
    options: RunOptions
    tolerance: float = 0.0
    status: Status | None = None
    detail: str = ""
    remedy: str = ""
    sentence: str = ""
    epoch: int = 1
    step: float = 0.0
    rounding_steps: int = 0
    violations: int = 0
    best: Iterate | None = None
    facts: ObjectiveFacts = NO_FACTS
    first_f: float = math.nan
    first_gnorm: float = math.nan
    first_size: float = 0.0
    stop_asked: bool = False
    own_test: bool = False
    leaves_saddles: bool = False
    is_slow: bool = False
    in_vain: int = 0
    lingers: bool = False
    has_descended_again: bool = False
    depth: float = -math.inf
    examined: float = -math.inf
    region: EpochRegion | None = None
    first: int = 0
    violations_before: int = 0
    epochs: EpochLog = field(default_factory=EpochLog)
    calls: list[dict[str, float | str]] = field(default_factory=list)
    certifier: Certifier | None = None
    proofs: Clocked | None = None
    kinds: dict[str, list[float]] = field(default_factory=dict)
    hessian: Vector | None = None
    tried: str = ""

    @property
    def so_far(self) -> SoFar:
        return SoFar(max(self.first_f - self.current.f, 0.0), self.first_size)

    def end(self, status: Status, detail: str = "", remedy: str = "", sentence: str = "") -> None:
        self.status, self.detail, self.remedy, self.sentence = status, detail, remedy, sentence

    def halt(self, seen: Halt | None) -> None:
        """End the run as `seen` states; None leaves it running."""
        if seen is not None:
            self.current = seen.best or self.current
            self.end(seen.status, seen.detail, seen.remedy, seen.sentence)
            self.hessian = seen.hessian

    def accept(self, taken: AcceptedStep) -> None:
        old, new = self.current, taken.point
        rises = new.f > old.f and not taken.by_rounding
        if rises and (self.best is None or old.f < self.best.f):
            self.best = old.copy()
        self.current, self.step = new, taken.length
        self.rounding_steps += taken.by_rounding
        self.violations += taken.violates
        if taken.kind:
            totals = self.kinds.setdefault(taken.kind, [0, 0.0])
            totals[0] += 1
            totals[1] += old.f - new.f
        if taken.facts:
            self.calls.append(dict(taken.facts))

    def accept_block(self, block: Block) -> AcceptedStep:
        """Record all steps of a block but the last, which is returned."""
        more = len(block.rows) - 1
        if block.kind and more:
            self.kinds.setdefault(block.kind, [0, 0.0])[0] += more
        self.epoch += more
        self.epochs.add_single(more)
        by_rounding = block.by_rounding > 0
        self.rounding_steps += block.by_rounding - by_rounding
        length = float(block.rows[-1, 3])
        return AcceptedStep(block.point, length, False, by_rounding, kind=block.kind)

    def return_to_best(self) -> None:
        """Return to a lower point, unless the run ended at a stationary one."""
        assert self.status is not None
        if self.best and self.best.f < self.current.f and not self.status.success:
            self.current = self.best
