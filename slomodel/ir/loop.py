"""The loop of a recurrence: a small graph that is evaluated at one step after another.

At step t it reads states and slices of arrays at positions t + shift, and adds to states. Both
kinds of derivatives of such a loop are loops of this kind: the tangents run in the same direction,
the adjoints in the opposite one.
"""

from __future__ import annotations

from dataclasses import dataclass

from slomodel.ir.dims import Dim, Shape
from slomodel.ir.node import Expr


@dataclass(frozen=True, slots=True)
class StateAt:
    """State number `state` at position t + shift, at step t."""

    state: int
    shift: Dim


@dataclass(frozen=True, slots=True)
class SliceAt:
    """The slice t + shift, along its first axis, of operand number `operand`, at step t."""

    operand: int
    shift: Dim


@dataclass(frozen=True, slots=True)
class Whole:
    """Operand number `operand`, the same at every step."""

    operand: int


Source = StateAt | SliceAt | Whole


@dataclass(frozen=True, slots=True)
class Update:
    """`state[t + shift] += value` at each step t, start <= t < length."""

    state: int
    shift: Dim
    start: Dim
    value: Expr


@dataclass(frozen=True, slots=True)
class Loop:
    """States of shapes `shapes` at each of `length` positions, computed step by step.

    State k begins as operand `initial[k]`, an array over the first positions, and as 0 at the
    others. Then, for t = 0, 1, …, length - 1 or backwards, the updates are executed in turn. The
    value of each is a graph over `sources`, placeholders for what is read. A position of a state is
    read only after its last update.

    The steps of a `segmented` loop are segments of another one, which a step runs through by a loop
    inside it. Nothing of what a segment computes is stored for all segments at once: it is computed
    again where derivatives need it.
    """

    length: Dim
    backwards: bool
    shapes: tuple[Shape, ...]
    initial: tuple[int | None, ...]
    sources: tuple[tuple[Expr, Source], ...]
    updates: tuple[Update, ...]
    segmented: bool = False

    def is_assigned(self, state: int, covered: Dim) -> bool:
        """Whether each position of a state past the first `covered` ones is written once.

        That holds if a single update writes the state, each position at its own step.
        """
        own = [update for update in self.updates if update.state == state]
        return len(own) == 1 and own[0].shift == Dim() and own[0].start == covered
