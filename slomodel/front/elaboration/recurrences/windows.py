"""Windows and histories of a state, of which a step of a recurrence reads several elements.

Both are further states. A window, of which `e[t-1-j] for j in q` reads, is V[t, k] = e[t - 1 - k]
for k = 0 … q, and 0 before the first step; at every step it moves by one place and takes in the
latest value of e. A history, of which `e[parent[t]]` and `e[s] for s in range(t)` read, has all
values at their places: H[t, s] = e[s] for s < t, and 0 for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from slomodel.front.elaboration.recurrences.time_steps import Body
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


Rule = Callable[[Expr, Expr], Expr]
"""(latest value, the earlier values before it) -> the earlier values after it, at all steps."""


@dataclass(slots=True)
class EarlierValues:
    """Values of a state before each step, (size, …), as a further state.

    It is 0 at the first step; at each other one `rule` takes in the latest value of the source.
    """

    number: int
    source: Source
    size: Dim
    rule: Rule
    reads: dict[tuple[int, Dim], Input] = field(init=False)

    def __post_init__(self) -> None:
        steps, last = self.source.length - 1, literal(1)
        latest = Input(f"latest of {self.number}", "step", (steps, *self.source.shape))
        before = Input(f"before of {self.number}", "step", (steps, *self.shape))
        self.reads = {(self.source.number, last): latest, (self.number, last): before}

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def shape(self) -> Shape:
        return (self.size, *self.source.shape)

    @property
    def body(self) -> Body:
        """The values at every step."""
        latest, before = self.reads.values()
        reads = {array: key for key, array in self.reads.items()}
        first = build.zeros((literal(1), *self.shape))
        return Body(self.shape, literal(1), first, self.rule(latest, before), reads)


@dataclass(slots=True)
class Windows:
    """The windows and histories of a recurrence, numbered after its states."""

    start: int
    made: list[EarlierValues] = field(default_factory=list)

    def history_of(self, source: Source) -> EarlierValues:
        """All values of a state before each step."""
        return self._made(source, source.length, _placed)

    def of(self, source: Source, length: Dim) -> EarlierValues:
        """The window of a state from which `length` values are read at a time."""
        # One value more is kept, so that there is a window of no values.
        return self._made(source, length + 1, _shifted)

    def _made(self, source: Source, size: Dim, rule: Rule) -> EarlierValues:
        for one in self.made:
            if one.source is source and one.size == size and one.rule is rule:
                return one
        result = EarlierValues(self.start + len(self.made), source, size, rule)
        self.made.append(result)
        return result


def _placed(latest: Expr, before: Expr) -> Expr:
    """The history (steps, length, …) with `latest` (steps, …) at the place of its step."""
    whole = before.shape
    every = tuple(range(len(whole)))
    steps, places = build.iota(whole[0]), build.iota(whole[1])
    is_latest = build.apply_along(eq, [steps, places], [(0,), (1,)], whole[:2])
    return build.apply_along(
        where, [is_latest, latest, before], [(0, 1), (0, *every[2:]), every], whole
    )


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


def _along_second(offset: Dim, factor: int, rank: int) -> list[Affine]:
    """The index of the same axes, with `offset + factor k` along the second."""
    index = Affine.identity(rank)
    index[1] = Affine(offset, tuple(factor * int(k == 1) for k in range(rank)))
    return index


def _second_at_zero(rank: int) -> list[Affine]:
    """The index of an array without the second axis, put at 0 along it."""
    own = [Affine.along(k, rank - 1) for k in range(rank - 1)]
    return [own[0], Affine(Dim(), (0,) * (rank - 1)), *own[1:]]
