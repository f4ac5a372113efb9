"""A graph over the steps of an axis, computed one segment of steps after another.

The segments are the steps of a `segmented` loop. A step of it computes the states of a segment, if
there is a recurrence, and adds up or stores what is wanted of the segment; nothing else that it
computes is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from slomodel.functions import add
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal
from slomodel.ir.expr import Affine, Expr, Input, Recur
from slomodel.ir.loop import SliceAt, Source, StateAt, Update
from slomodel.ir.recur import Reading, SlicesOf
from slomodel.ir.stepwise import batched
from slomodel.ir.walk import postorder, substitute
from slomodel.rewrite.memory.state_readers import (
    ArrayOfSteps,
    AtStep,
    Leaf,
    Reader,
    Sizes,
    SliceRow,
    StateRow,
    StepSum,
    WholeArray,
)

Read = Callable[[Leaf, int, int], Expr]
"""(leaf, first step, number of steps) -> its slices at these steps, or the whole array."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some of the steps: the states from step `base` on, and the other arrays that they read."""

    base: int
    states: Sequence[Expr]
    read: Read

    def leaf(self, leaf: Leaf, begin: int, count: int) -> Expr:
        if isinstance(leaf, StateRow):
            place = literal(begin + leaf.shift - self.base)
            return build.steps_of(self.states[leaf.state], place, literal(count))
        return self.read(leaf, begin, count)


@dataclass(slots=True)
class Segments:
    """`count` segments of `length` steps each, from step `start` on, among `steps`.

    A segment begins with the states of the recurrence `node`, if there is one, at `lag` steps
    before it. `slices` are the graphs of one step of the slices that its loop reads.
    """

    node: Recur | None
    leaves: Mapping[Expr, Leaf]
    readers: Sequence[Reader]
    slices: Mapping[Expr, Expr]
    sizes: Sizes
    lag: int
    start: int
    length: int
    count: int
    steps: int

    def objective(self, objective: Expr) -> Expr:
        """The objective over the recurrence of segments."""
        end = self.start + self.count * self.length
        before = _Part(0, self._before(), _read)
        sums = [one for one in self.readers if not isinstance(one, AtStep)]
        first = [_steps(state, self.start - self.lag, self.lag) for state in before.states]
        last, results = self._run(first, sums)
        states = self._after(last, end, self.steps - end, _read) if end < self.steps else last
        after = _Part(end - self.lag, states, _read)
        values: dict[Expr, Expr] = {}
        for one in self.readers:
            if isinstance(one, AtStep):
                part = before if one.row.start < self.start else after
                array = build.slice_at(
                    self._values(one.row.graph, part, one.row.start, 1), 0, Dim()
                )
                values[one.node] = build.gather(array, one.index, one.node.shape)
        for reader, middle in zip(sums, results, strict=True):
            parts = [(self.start, middle)]
            for part, low, high in ((before, 0, self.start), (after, end, self.steps)):
                low, high = max(low, reader.row.start), min(high, reader.row.end)
                if low < high:
                    parts.append((low, self._result(reader, part, low, high - low)))
            values[reader.node] = _joined(reader, parts)
        return substitute((objective,), values)[0]

    def _values(self, row: Expr, part: _Part, begin: int, count: int) -> Expr:
        """The values (count, …) of a row at the steps from `begin` on."""
        used = {one: self.leaves[one] for one in postorder(row) if one in self.leaves}
        arrays = {one: part.leaf(leaf, begin, count) for one, leaf in used.items()}
        return batched(row, arrays, literal(count))

    def _result(self, reader: Reader, part: _Part, begin: int, count: int) -> Expr:
        """A sum over some steps, or the array of its values there."""
        values = self._values(reader.row.graph, part, begin, count)
        return build.sum_over(values, (0,)) if isinstance(reader, StepSum) else values

    def _before(self) -> tuple[Expr, ...]:
        """The states of the steps before the segments."""
        if self.node is None:
            return ()
        node, loop = self.node, self.node.loop
        readings: dict[Expr, Reading] = {}
        for one, source in loop.sources:
            begin = min(u.start.size(self.sizes) for u in loop.updates if _reads(u, one))
            part = _Part(0, (), _read)
            readings[one] = self._reading(one, source, part, begin, self.start - begin, -begin)
        first = [None if k is None else node.operands[k] for k in loop.initial]
        states = list(zip(loop.shapes, first, strict=True))
        return build.recur(literal(self.start), states, loop.updates, readings)

    def _after(self, first: Sequence[Expr], begin: int, count: int, read: Read) -> tuple[Expr, ...]:
        """The states of `count` steps from `begin` on, after those of `first`, the steps before."""
        if self.node is None:
            return ()
        loop, lag = self.node.loop, self.lag
        part = _Part(0, (), read)
        readings = {
            one: self._reading(one, source, part, begin, count, -lag)
            for one, source in loop.sources
        }
        updates = [replace(update, start=literal(lag)) for update in loop.updates]
        states = list(zip(loop.shapes, first, strict=True))
        return build.recur(literal(lag + count), states, updates, readings)

    def _reading(
        self, one: Expr, source: Source, part: _Part, begin: int, count: int, shift: int
    ) -> Reading:
        """The meaning of a placeholder of the loop in a loop whose step t is t + begin + shift."""
        if isinstance(source, StateAt):
            return source
        if isinstance(source, SliceAt):
            return SlicesOf(self._values(self.slices[one], part, begin, count), literal(shift))
        assert self.node is not None
        operand = self.node.operands[source.operand]
        return part.leaf(WholeArray(operand), begin, count)

    def _run(
        self, first: Sequence[Expr], sums: Sequence[StepSum | ArrayOfSteps]
    ) -> tuple[list[Expr], list[Expr]]:
        """The states after all segments, and the results of the readers over them."""
        readings: dict[Expr, Reading] = {}
        made: dict[Leaf, Expr] = {}

        def read(leaf: Leaf, begin: int, count: int) -> Expr:
            """A placeholder for the slices of a segment, or for a whole array."""
            if leaf not in made:
                array = self._blocks(leaf) if isinstance(leaf, SliceRow) else _read(leaf, 0, 0)
                shape = array.shape[1:] if isinstance(leaf, SliceRow) else array.shape
                made[leaf] = Input(f"block {len(made)}", "step", shape, array.dtype)
                is_slice = isinstance(leaf, SliceRow)
                readings[made[leaf]] = SlicesOf(array, literal(-1)) if is_slice else array
            return made[leaf]

        before: list[Expr] = []
        for k, one in enumerate(first):
            before.append(Input(f"before {k}", "step", one.shape))
            readings[before[k]] = StateAt(k, literal(-1))
        inside = _Part(-self.lag, self._after(before, 0, self.length, read), read)
        values = [_steps(one, self.length, self.lag) for one in inside.states]
        values += [self._result(one, inside, 0, self.length) for one in sums]
        begin = [build.broadcast(one, _behind(one.rank), (literal(1), *one.shape)) for one in first]
        begin += [build.zeros((literal(1), *one.shape)) for one in values[len(first) :]]
        states = [(value.shape, one) for value, one in zip(values, begin, strict=True)]
        updates = [Update(k, Dim(), literal(1), value) for k, value in enumerate(values)]
        length = literal(self.count + 1)
        result = build.recur(length, states, updates, readings, segmented=True)
        last = [build.slice_at(one, 0, literal(self.count)) for one in result[: len(first)]]
        results: list[Expr] = []
        for reader, state in zip(sums, result[len(first) :], strict=True):
            if isinstance(reader, StepSum):
                results.append(build.sum_over(state, (0,)))
            else:
                rows, rest = _steps(state, 1, self.count), state.shape[2:]
                results.append(build.reshape(rows, (literal(self.count * self.length), *rest)))
        return last, results

    def _blocks(self, leaf: SliceRow) -> Expr:
        """The slices of all segments, (count, length, …)."""
        array = first_axis(leaf.array, leaf.axis)
        rank = array.rank + 1
        sign, offset = leaf.sign, literal(leaf.sign * self.start + leaf.shift)
        place = Affine(offset, (sign * self.length, sign, *[0] * (rank - 2)))
        rest = [Affine.along(k, rank) for k in range(2, rank)]
        shape = (literal(self.count), literal(self.length), *array.shape[1:])
        return build.gather(array, (place, *rest), shape)


def _read(leaf: Leaf, begin: int, count: int) -> Expr:
    """The slices at some steps, or the whole array, of a leaf that is not a state."""
    if isinstance(leaf, SliceRow):
        last = begin + count - 1
        first = leaf.sign * (begin if leaf.sign > 0 else last) + leaf.shift
        steps = _steps(first_axis(leaf.array, leaf.axis), first, count)
        return steps if leaf.sign > 0 else build.flipped(steps, 0)
    assert isinstance(leaf, WholeArray)
    return leaf.array


def first_axis(array: Expr, axis: int) -> Expr:
    """The array with this axis first."""
    return build.transpose(array, (axis, *(k for k in range(array.rank) if k != axis)))


def _steps(array: Expr, begin: int, count: int) -> Expr:
    return build.steps_of(array, literal(begin), literal(count))


def _behind(rank: int) -> tuple[int, ...]:
    return tuple(range(1, rank + 1))


def _reads(update: Update, one: Expr) -> bool:
    return one in postorder(update.value)


def _joined(reader: StepSum | ArrayOfSteps, parts: Sequence[tuple[int, Expr]]) -> Expr:
    """A sum from its parts, or an array from those that begin at these steps."""
    total: Expr | None = None
    for begin, part in parts:
        if isinstance(reader, ArrayOfSteps):
            rank = part.rank
            index = Affine.identity(rank)
            index[0] = replace(index[0], offset=literal(begin - reader.row.start))
            shape = first_axis(reader.node, reader.axis).shape
            part = build.scatter(part, index, shape)
        total = part if total is None else build.apply(add, total, part)
    assert total is not None
    if isinstance(reader, ArrayOfSteps):
        total = build.flipped(total, 0) if reader.reversed else total
        order = (*range(1, reader.axis + 1), 0, *range(reader.axis + 1, total.rank))
        return build.transpose(total, order)
    return total
