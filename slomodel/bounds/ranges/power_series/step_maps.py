"""The map from the states that a loop carries to those after one more step, with its derivatives.

States that are functions of others at the same step, such as gains, are not carried: they are
written out wherever they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from slomodel.calculus.jvp import jvp
from slomodel.ir import build
from slomodel.ir.dims import Shape, literal
from slomodel.ir.exact import without_rounding
from slomodel.ir.expr import Expr, Input
from slomodel.ir.loop import Loop, SliceAt, Source, StateAt, Update
from slomodel.ir.walk import postorder, substitute

Carried = tuple[int, int]
"""A state and how many steps ago."""


@dataclass(frozen=True)
class StepMap:
    """`updates` are the new states by number, graphs over placeholders for what they read.

    `carried` are the placeholders of states at earlier steps, of all lags up to the longest of each
    state; `sources` what the others stand for. It holds from step `first` on.
    """

    loop: Loop
    updates: Mapping[int, Expr]
    carried: Mapping[Carried, Input]
    sources: Mapping[Expr, Source]
    first: int

    @cached_property
    def roots(self) -> tuple[Expr, ...]:
        return tuple(self.updates.values())

    @cached_property
    def tangents(self) -> Mapping[Carried, tuple[Input, tuple[Expr, ...]]]:
        """For each placeholder a direction and the derivatives of the roots along it."""
        result = {}
        with without_rounding():
            for key, one in self.carried.items():
                along = build.direction(f"direction of {one.name}", one.shape)
                result[key] = along, jvp(self.roots, {one: along})
        return result


def step_map(loop: Loop, sizes: Mapping[str, int]) -> StepMap | None:
    """The map of a loop that writes each state once a step; None for others."""
    if loop.backwards or loop.segmented:
        return None
    own = {update.state: update for update in loop.updates}
    if len(own) < len(loop.updates) or any(one.shift.value(sizes) for one in loop.updates):
        return None
    result = _WritingOut(loop, sizes, own)
    wanted = result.read_later()
    if wanted is None:
        return None
    with without_rounding():
        updates = {state: result.expanded(own[state], 0) for state in wanted}
    lags = dict.fromkeys(wanted, 1)
    for state, lag in result.carried:
        lags[state] = max(lags.get(state, 1), lag)
    if set(lags) > set(wanted):
        return None
    carried = {
        (state, lag): result.state_before(state, lag)
        for state in wanted
        for lag in range(1, lags[state] + 1)
    }
    starts = [one.start.value(sizes) for one in loop.updates]
    first = max(*starts, result.longest, *lags.values())
    return StepMap(loop, updates, carried, result.sources, first)


class _WritingOut:
    """Writes updates in terms of carried states."""

    def __init__(self, loop: Loop, sizes: Mapping[str, int], own: Mapping[int, Update]) -> None:
        self.loop, self.sizes, self.own = loop, sizes, own
        self.place = {update.state: k for k, update in enumerate(loop.updates)}
        self.reads = {
            state: [(one, s) for one, s in loop.sources if one in set(postorder(update.value))]
            for state, update in own.items()
        }
        self.carried: dict[Carried, Input] = {}
        self.sources: dict[Expr, Source] = {}
        self.longest = 0

    def lag(self, source: StateAt) -> int:
        return -source.shift.value(self.sizes)

    def read_later(self) -> list[int] | None:
        """The states that later steps read and that are not functions of others at their step.

        None where a read is of another kind.
        """
        result: dict[int, None] = {}
        written: list[int] = []
        for state, reads in self.reads.items():
            for _, source in reads:
                if not isinstance(source, StateAt):
                    continue
                other, lag = source.state, self.lag(source)
                if other not in self.own or lag < 0:
                    return None
                if lag == 0 and self.place[other] >= self.place[state]:
                    return None
                if lag > 0 and self.is_function(other):
                    written.append(other)
                elif lag > 0:
                    result[other] = None
        while written:  # What these are written out as is read later too.
            for _, source in self.reads[written.pop()]:
                if isinstance(source, StateAt) and self.is_function(source.state):
                    written.append(source.state)
                elif isinstance(source, StateAt):
                    result[source.state] = None
        return list(result)

    def is_function(self, state: int) -> bool:
        """Whether a state is a function of others at the same step, at every step."""
        starts = self.own[state].start.value(self.sizes)
        reads = [source for _, source in self.reads[state] if isinstance(source, StateAt)]
        return (
            self.loop.initial[state] is None
            and starts == 0
            and bool(reads)
            and all(self.lag(source) == 0 for source in reads)
        )

    def state_before(self, state: int, lag: int) -> Input:
        if (state, lag) not in self.carried:
            shape: Shape = self.loop.shapes[state]
            self.carried[state, lag] = build.variable(f"state {state} before {lag}", shape)
        return self.carried[state, lag]

    def expanded(self, update: Update, lag: int) -> Expr:
        """The value of an update, `lag` steps ago."""
        self.longest = max(self.longest, lag)
        values: dict[Expr, Expr] = {}
        for one, source in self.reads[update.state]:
            if isinstance(source, StateAt):
                values[one] = self.state_at(source.state, lag + self.lag(source))
            elif isinstance(source, SliceAt) and lag:
                assert isinstance(one, Input)
                shift = source.shift.value(self.sizes) - lag
                values[one] = Input(f"{one.name} before {lag}", one.role, one.shape, one.dtype)
                self.sources[values[one]] = SliceAt(source.operand, literal(shift))
            else:
                self.sources[one] = source
        return substitute((update.value,), values)[0]

    def state_at(self, state: int, lag: int) -> Expr:
        if lag == 0 or self.is_function(state):
            return self.expanded(self.own[state], lag)
        return self.state_before(state, lag)
