"""Windows and histories of a state, of which a step of a recurrence reads several elements.

Both are further states. A window, of which `e[t-1-j] for j in q` reads, is V[t, k] = e[t - 1 - k]
for k = 0 … q, and 0 before the first step; at every step it moves by one place and takes in the
latest value of e. A history, of which `e[parent[t]]` and `e[s] for s in range(t)` read, has all
values at their places: H[t, s] = e[s] for s < t, and 0 for the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from slomodel.front.elaboration.time_steps import Body
from slomodel.front.elaboration.values import Label
from slomodel.functions import add, eq, where
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, literal
from slomodel.ir.expr import Affine, Expr, Input


class Source(Protocol):
    """A state of which there is a window."""

    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> Shape: ...
    @property
    def length(self) -> Dim: ...


@dataclass(frozen=True, slots=True)
class InnerIndex:
    """How an inner index runs through a window: towards later steps, or away from them."""

    label: Label
    is_later: bool

    @property
    def span(self) -> Dim:
        """The difference between the largest and the least lag."""
        return self.label.dim - 1

    def part(self, window: Expr, current: Expr | None) -> Expr:
        """The values (steps, q, …) that the index reads, from a window (steps, q + 1, …).

        `current` (steps, …), if given, precede the window.
        """
        if current is not None:
            window = _shifted(current, window)
        shape = (window.shape[0], self.label.dim, *window.shape[2:])
        offset, factor = (self.span, -1) if self.is_later else (Dim(), 1)
        return build.gather(window, _along_second(offset, factor, len(shape)), shape)


def _latest_reads(number: int, source: Source, shape: Shape) -> dict[tuple[int, Dim], Input]:
    """The reads of a further state: the latest value of the source, and its own value before."""
    steps, last = source.length - 1, literal(1)
    latest = Input(f"latest of {number}", "step", (steps, *source.shape))
    before = Input(f"before of {number}", "step", (steps, *shape))
    return {(source.number, last): latest, (number, last): before}


@dataclass(slots=True)
class Window:
    """The last `size` values of a state before each step, the latest first, as a further state."""

    number: int
    source: Source
    size: Dim
    reads: dict[tuple[int, Dim], Input] = field(init=False)

    def __post_init__(self) -> None:
        self.reads = _latest_reads(self.number, self.source, self.shape)

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def shape(self) -> Shape:
        return (self.size, *self.source.shape)

    @property
    def body(self) -> Body:
        """The window at every step: the latest value, and the others moved by one place."""
        latest, before = self.reads.values()
        reads = {array: key for key, array in self.reads.items()}
        first = build.zeros((literal(1), *self.shape))
        return Body(self.shape, literal(1), first, _shifted(latest, before), reads)


@dataclass(slots=True)
class StateHistory:
    """All values of a state before each step, and 0 at the others, as a further state."""

    number: int
    source: Source
    reads: dict[tuple[int, Dim], Input] = field(init=False)

    def __post_init__(self) -> None:
        self.reads = _latest_reads(self.number, self.source, self.shape)

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def shape(self) -> Shape:
        return (self.source.length, *self.source.shape)

    @property
    def body(self) -> Body:
        """The history at every step: that of before, with the latest value at its place."""
        latest, before = self.reads.values()
        whole = before.shape
        every = tuple(range(len(whole)))
        steps, places = build.iota(whole[0]), build.iota(whole[1])
        is_latest = build.apply_along(eq, [steps, places], [(0,), (1,)], whole[:2])
        value = build.apply_along(
            where, [is_latest, latest, before], [(0, 1), (0, *every[2:]), every], whole
        )
        reads = {array: key for key, array in self.reads.items()}
        return Body(self.shape, literal(1), build.zeros((literal(1), *self.shape)), value, reads)


@dataclass(slots=True)
class Windows:
    """The windows and histories of a recurrence, numbered after its states."""

    start: int
    made: list[Window | StateHistory] = field(default_factory=list)

    def history_of(self, source: Source) -> StateHistory:
        for one in self.made:
            if isinstance(one, StateHistory) and one.source is source:
                return one
        made = StateHistory(self.start + len(self.made), source)
        self.made.append(made)
        return made

    def of(self, source: Source, length: Dim) -> Window:
        """The window of a state from which `length` values are read at a time."""
        # One value more is kept, so that there is a window of no values.
        for one in self.made:
            if isinstance(one, Window) and one.source is source and one.size == length + 1:
                return one
        made = Window(self.start + len(self.made), source, length + 1)
        self.made.append(made)
        return made


def _shifted(latest: Expr, before: Expr) -> Expr:
    """The window (steps, q, …) with `latest` (steps, …) before the others, without its last."""
    whole = before.shape
    rank = len(whole)
    kept = (whole[0], whole[1] - 1, *whole[2:])
    moved = build.gather(before, _along_second(Dim(), 1, rank), kept)
    return build.apply(
        add,
        build.scatter(latest, _second_at_zero(rank), whole),
        build.scatter(moved, _along_second(literal(1), 1, rank), whole),
    )


def slice_at(array: Expr, axis: int, position: Dim) -> Expr:
    """The slice of an array at a position along an axis."""
    rest = [dim for k, dim in enumerate(array.shape) if k != axis]
    index = [_unit(k, len(rest)) for k in range(len(rest))]
    index.insert(axis, Affine(position, (0,) * len(rest)))
    return build.gather(array, index, tuple(rest))


def _unit(k: int, rank: int) -> Affine:
    return Affine(Dim(), tuple(int(j == k) for j in range(rank)))


def _along_second(offset: Dim, factor: int, rank: int) -> list[Affine]:
    """The index of the same axes, with `offset + factor k` along the second."""
    index = [_unit(k, rank) for k in range(rank)]
    index[1] = Affine(offset, tuple(factor * int(k == 1) for k in range(rank)))
    return index


def _second_at_zero(rank: int) -> list[Affine]:
    """The index of an array without the second axis, put at 0 along it."""
    own = [_unit(k, rank - 1) for k in range(rank - 1)]
    return [own[0], Affine(Dim(), (0,) * (rank - 1)), *own[1:]]
