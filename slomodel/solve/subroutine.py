"""The interface of subroutines 𝒜 to Algorithm 1: the set of an epoch, its constants, a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from slomodel.solve.compiled.loop import LoopState
from slomodel.solve.norms import EPS, Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.sets.epoch_set import EpochSet
from slomodel.solve.status import Status


@dataclass(slots=True)
class Iterate:
    """A point x (n,) with its value, gradient g (n,) and gradient norm.

    In a set the norm is that of the projected gradient (`Evaluator.gradient`).
    """

    x: Vector
    f: float
    g: Vector
    gnorm: float

    def copy(self) -> Iterate:
        return Iterate(self.x.copy(), self.f, self.g.copy(), self.gnorm)


@dataclass(frozen=True, slots=True)
class Constants:
    """L1 and L2 (None: unknown) over a ball, and their source; `estimated`: may be too small.

    If L1 is inf, `unproved` says why no proof exists for the ball.
    """

    L1: float
    L2: float | None
    source: str
    estimated: bool
    unproved: str = ""

    @property
    def second(self) -> float:
        """L2; inf if it is unknown."""
        return math.inf if self.L2 is None else self.L2


ConstantsOver = Callable[[Iterate, float], Constants]
"""(centre, radius) -> Constants."""


@dataclass(frozen=True, slots=True)
class EpochRegion:
    """The set of one epoch, which began at `centre` (n,), with its margin and constants.

    The epoch ends at the first point within the margin `d` of the boundary. L1 and L2 are None if
    the method needs none; `estimated`: they may be too small.
    """

    centre: Vector
    set: EpochSet
    d: float
    L1: float | None = None
    L2: float | None = None
    source: str = "none"
    estimated: bool = False

    @property
    def D(self) -> float:
        """The radius of the set."""
        return self.set.radius

    @property
    def ends_every_step(self) -> bool:
        """Whether the margin is the whole set, so that every epoch is one step."""
        return self.d == self.D

    @property
    def is_one_free_step(self) -> bool:
        """Whether the epoch is one step, for which no constant is needed."""
        return self.L1 is None and self.ends_every_step


_NO_FACTS: Mapping[str, float | str] = {}


@dataclass(slots=True)
class AcceptedStep:
    """A new point, its distance from the last one, and whether it was put on the boundary.

    `at_boundary` records how the point was constructed, not a comparison of computed norms.
    `by_rounding`: the required descent was missed by no more than the rounding error of f.
    `violates`: it was missed by more, so that a user-supplied constant is too small.
    `in_units`: the direction satisfies the descent condition only for rescaled variables, so that
    no theorem applies.
    `kind` names the kind of step, for directions that have several.
    `facts` holds further information of the method about the step.
    """

    point: Iterate
    length: float
    at_boundary: bool
    by_rounding: bool = False
    violates: bool = False
    in_units: bool = False
    kind: str = ""
    facts: Mapping[str, float | str] = field(default_factory=lambda: _NO_FACTS)


@dataclass(frozen=True, slots=True)
class Violation:
    """No step: the step with this L1 is rejected, and is to be repeated with L1 doubled."""


@dataclass(frozen=True, slots=True)
class Halt:
    """No step: the status with which the run ends, the observation, and a better point if any.

    `remedy` and `sentence` replace those of the status; `hessian` (n, n) is that at the point, if
    it was computed.
    """

    status: Status
    detail: str
    best: Iterate | None = None
    remedy: str = ""
    sentence: str = ""
    hessian: Vector | None = None


@dataclass(frozen=True, slots=True)
class BlockLimits:
    """What ends a block of steps: their number, and the state of the run that watches them.

    The first step belongs to epoch `epoch`; a point with ‖g‖ < `tolerance` or f < `examined` is the
    last one.
    """

    most: int
    epoch: int
    tolerance: float
    examined: float
    pole: PoleCount


class PoleCount(Protocol):
    """The watch for poles, which a compiled loop does in part."""

    def store(self, loop: LoopState) -> None: ...


@dataclass(frozen=True, slots=True)
class Block:
    """Steps taken at once: the rows (k, 5) of their record, the last point, and their kind.

    `by_rounding` counts those whose descent was missed by no more than rounding.
    """

    rows: Vector
    point: Iterate
    kind: str
    by_rounding: int = 0


Since = Literal["step", "epoch", "run"]
"""The start of the step, epoch or run at which the old value is taken."""


@dataclass(frozen=True, slots=True)
class CheckedStep:
    """A step from `old`, with all quantities to which a theorem's inequality may refer.

    `root` is √ε; `ends`: the step ended its epoch, which began at `epoch_x` (n,) with the value
    `epoch_f`; the run began at x0 (n,) with the value `start_f`. `clean`: no step of the epoch, or
    with `all_clean` of the run, was at the resolution of f. `eps` is the unit roundoff of f.
    """

    old: Iterate
    taken: AcceptedStep
    region: EpochRegion
    root: float
    ends: bool
    epoch_x: Vector
    epoch_f: float
    x0: Vector
    start_f: float
    clean: bool
    all_clean: bool
    eps: float = EPS

    @property
    def decrease(self) -> float:
        """f_{k−1} − f_k."""
        return self.old.f - self.taken.point.f

    def since(self, since: Since) -> tuple[Vector, float]:
        """The point (n,) whose value the new one is compared with, and that value."""
        if since == "run":
            return self.x0, self.start_f
        return (self.epoch_x, self.epoch_f) if since == "epoch" else (self.old.x, self.old.f)


Excess = Callable[[CheckedStep], "tuple[float, float] | None"]
"""The excess of an inequality, negative where it holds with a margin, and the error of that number
besides the evaluation error of f; None where it does not refer to the step. NaN: the step is
exempt."""

EXEMPT = (math.nan, 0.0)


@dataclass(frozen=True, slots=True)
class TheoremInequality:
    """An inequality that a theorem states about the steps of a method, by its name.

    It `applies` unless it needs constants or options that the run does not have.
    """

    name: str
    excess: Excess
    applies: bool = True
    since: Since = "step"


class Stepper(Protocol):
    """A subroutine in progress on one run: its buffers and memory."""

    def enter(self, region: EpochRegion) -> EpochRegion:
        """The region of a new epoch with the constants as this subroutine uses them."""
        ...

    def step(self, current: Iterate, region: EpochRegion) -> AcceptedStep | Halt | Violation:
        """One step from `current` inside `region`.

        The arrays of `current` are not modified before the next step begins.
        Paper: eq:truncated.
        """
        ...


@runtime_checkable
class BlockStepper(Protocol):
    """A subroutine in progress that can take several steps at once."""

    def advance(self, current: Iterate, region: EpochRegion, limits: BlockLimits) -> Block | None:
        """Steps from `current`, each of which ends its epoch; None if the first has to be `step`.

        They decrease f by more than its resolution, and none raises `BudgetSpent`.
        """
        ...


class Subroutine(Protocol):
    """A method as a value: its parameters, its theorem inequalities, and the set of an epoch."""

    @property
    def name(self) -> str: ...

    @property
    def parameters(self) -> dict[str, float | str]: ...

    @property
    def own_test(self) -> bool:
        """Whether a test of the method's own ends the run, and not the norm of the gradient."""
        ...

    @property
    def linearises(self) -> bool:
        """Whether its directions are those of linearised residuals, which give the gradient too."""
        ...

    @property
    def second_descent(self) -> Subroutine | None:
        """The method of another descent from the start of a run that creeps; None without one."""
        ...

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        """The inequalities that the theorems state about every run of the method."""
        ...

    def region(self, start: Iterate, constants: ConstantsOver | None) -> EpochRegion:
        """The set of the epoch that begins at `start`, with the constants that are needed.

        The arrays of `start` are not modified before the second step of the epoch. Raises
        DomainError if a constant that has to be proved has no proof.
        """
        ...

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> Stepper:
        """A run from `start`; DomainError if √ε, the tolerance, does not suit the ball."""
        ...
