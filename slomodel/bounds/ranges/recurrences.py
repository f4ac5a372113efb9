"""Intervals for the states of a recurrence, step by step, over boxes of its operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, interval
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.ranges.linear_recurrences import RangesOf, add_ranges, linear_states
from slomodel.bounds.stopping import pause
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Recur
from slomodel.ir.loop import SliceAt, Source, StateAt
from slomodel.ir.walk import postorder

Sizes = Mapping[str, int]


def states_over(
    node: Recur, operands: Sequence[Interval], sizes: Sizes, batch: int, ranges_of: RangesOf
) -> list[Interval]:
    """Intervals (batch axes, length, *shape) for all states of a loop.

    Hypothesis and conclusion are those of `enclose`, for the loop written out. Loops that are
    linear in their states are solved as systems of equations.
    """
    solved = linear_states(node, operands, sizes, batch, ranges_of)
    if solved is not None:
        return solved
    run = _Run.begun(node, operands, sizes, batch)
    loop = node.loop
    steps = range(loop.length.size(sizes))
    updates = []
    for update in loop.updates:
        order = postorder(update.value)
        under = set(order)
        read = [(one, source) for one, source in loop.sources if one in under]
        start, shift = update.start.value(sizes), update.shift.value(sizes)
        updates.append((update, order, read, start, shift))
    for t in reversed(steps) if loop.backwards else steps:
        pause()
        for update, order, read, start, shift in updates:
            if t < start:
                continue
            result = {one: run.read(source, t) for one, source in read}
            add_ranges(order, result, sizes, batch, ranges_of)
            run.add(update.state, t + shift, result[update.value])
    return [interval(lo, hi) for lo, hi in run.states]


@dataclass(slots=True)
class _Run:
    """Lower and upper ends of the states so far; `is_written` marks positions other than 0."""

    states: list[tuple[Array, Array]]
    is_written: list[list[bool]]
    operands: list[Interval]
    sizes: Sizes
    batch: int

    @classmethod
    def begun(cls, node: Recur, operands: Sequence[Interval], sizes: Sizes, batch: int) -> _Run:
        """The initial values, before the first step."""
        loop = node.loop
        length = loop.length.size(sizes)
        front = np.broadcast_shapes(*(a.shape[:batch] for a in operands), (1,) * batch)
        run = cls([], [], list(operands), sizes, batch)
        for shape, first in zip(loop.shapes, loop.initial, strict=True):
            whole = (*front, length, *concrete(shape, sizes))
            lo, hi = np.zeros(whole), np.zeros(whole)
            count = 0
            if first is not None:
                own = operands[first]
                count = min(length, own.shape[batch])
                lo[run.at(slice(count))] = own.lo[run.at(slice(count))]
                hi[run.at(slice(count))] = own.hi[run.at(slice(count))]
            run.states.append((lo, hi))
            run.is_written.append([t < count for t in range(length)])
        return run

    def at(self, where: slice | int) -> tuple[slice | int, ...]:
        """The index of steps, after the batch axes."""
        return (slice(None),) * self.batch + (where,)

    def read(self, source: Source, t: int) -> Interval:
        """The range of the array or state that a placeholder stands for at step t."""
        if isinstance(source, StateAt):
            lo, hi = self.states[source.state]
            where = self.at(t + source.shift.value(self.sizes))
            return Interval(np.asarray(lo[where]), np.asarray(hi[where]))
        own = self.operands[source.operand]
        if isinstance(source, SliceAt):
            where = self.at(t + source.shift.value(self.sizes))
            return own.each(lambda array: np.asarray(array[where]))
        return own

    def add(self, state: int, position: int, value: Interval) -> None:
        """Add a value to a state at a position."""
        lo, hi = self.states[state]
        where = self.at(position)
        if self.is_written[state][position]:
            value = Interval(np.asarray(lo[where]), np.asarray(hi[where])) + value
        lo[where], hi[where] = value.lo, value.hi
        self.is_written[state][position] = True
