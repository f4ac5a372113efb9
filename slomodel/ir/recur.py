"""Constructors of recurrences; values that do not depend on the states are hoisted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from slomodel.errors import ShapeError
from slomodel.ir.dims import Dim, Shape, show_shape
from slomodel.ir.expr import Affine, Const, Expr, Extreme, Input, Map, Recur
from slomodel.ir.index_tables import tables_read
from slomodel.ir.linear import broadcast, gather, transpose
from slomodel.ir.loop import Loop, SliceAt, Source, StateAt, Update, Whole
from slomodel.ir.stepwise import batched, batched_node
from slomodel.ir.walk import dependents, postorder, substitute


@dataclass(frozen=True, slots=True)
class SlicesOf:
    """The slice t + shift of an array, along its first axis, at step t."""

    array: Expr
    shift: Dim


Reading = StateAt | SlicesOf | Expr
"""The array that a placeholder stands for: a state, a slice of an array, or all of an array."""


def steps_of(array: Expr, start: Dim, length: Dim) -> Expr:
    """The slices from `start` on along the first axis of an array."""
    rest = array.shape[1:]
    index = [
        Affine(start if k == 0 else Dim(), tuple(int(j == k) for j in range(array.rank)))
        for k in range(array.rank)
    ]
    return gather(array, index, (length, *rest))


def recur(
    length: Dim,
    states: Sequence[tuple[Shape, Expr | None]],
    updates: Sequence[Update],
    readings: Mapping[Expr, Reading],
    *,
    backwards: bool = False,
    segmented: bool = False,
    stores: Callable[[Expr], bool] = lambda node: False,
) -> tuple[Expr, ...]:
    """The states of a loop, each (length, *shape); see `Loop`.

    `states` holds the shape of each at one position and, if any, the array of its initial values;
    `readings` says what the placeholders in the values of the updates stand for. Values for which
    `stores` holds are computed at all steps at once if they do not depend on the states. Of a
    `segmented` loop only values that are the same at every step are, and tables.
    """
    for shape, first in states:
        if first is not None and first.shape[1:] != shape:
            result = f"{show_shape(first.shape[1:])}, not {show_shape(shape)}"
            raise ShapeError(f"the first values of a recurrence have shape {result}")
    known = dict(readings)
    values = [_hoisted(one, known, length, stores, segmented) for one in updates]
    operands = dict.fromkeys(first for _, first in states if first is not None)
    sources: dict[Source, Expr] = {}
    names: dict[Expr, Expr] = {}
    place = {operand: k for k, operand in enumerate(operands)}
    for node in postorder(*values):
        if node not in known:
            continue
        reading = known[node]
        source: Source
        if isinstance(reading, StateAt):
            source = reading
        elif isinstance(reading, SlicesOf):
            source = SliceAt(place.setdefault(reading.array, len(place)), reading.shift)
        else:
            source = Whole(place.setdefault(reading, len(place)))
        if source not in sources:
            sources[source] = Input(str(len(sources)), "step", node.shape, node.dtype)
        names[node] = sources[source]
    written = substitute(tuple(values), names)
    loop = Loop(
        length,
        backwards,
        tuple(shape for shape, _ in states),
        tuple(None if first is None else place[first] for _, first in states),
        tuple((node, source) for source, node in sources.items()),
        tuple(
            Update(update.state, update.shift, update.start, value)
            for update, value in zip(updates, written, strict=True)
        ),
        segmented,
    )
    return tuple(Recur(tuple(place), loop, k) for k in range(len(states)))


def reading_of(operands: Sequence[Expr], source: Source) -> Reading:
    """What a placeholder of a loop over some operands reads while the loop runs."""
    if isinstance(source, StateAt):
        return source
    array = operands[source.operand]
    return SlicesOf(array, source.shift) if isinstance(source, SliceAt) else array


def with_values(
    node: Recur, values: Sequence[Expr], stores: Callable[[Expr], bool]
) -> tuple[Expr, ...]:
    """The states of a loop with other values of its updates, hoisted anew as by `recur`."""
    loop = node.loop
    readings: dict[Expr, Reading] = {}
    for one, source in loop.sources:
        readings[one] = reading_of(node.operands, source)
    first = (None if one is None else node.operands[one] for one in loop.initial)
    states = list(zip(loop.shapes, first, strict=True))
    updates = [replace(one, value=v) for one, v in zip(loop.updates, values, strict=True)]
    return recur(
        *(loop.length, states, updates, readings),
        backwards=loop.backwards,
        segmented=loop.segmented,
        stores=stores,
    )


def _hoisted(
    update: Update,
    readings: dict[Expr, Reading],
    length: Dim,
    stores: Callable[[Expr], bool],
    segmented: bool,
) -> Expr:
    """The value of an update, with parts that are independent of the states read from arrays.

    Such values are computed at all steps at once. They are stored only if they have no more axes
    than the slices that they are computed from, if indices read them, if they decide which
    elements are extreme, or if `stores` holds; otherwise their operands are. New placeholders are
    added to `readings`.
    """
    value = update.value
    order = postorder(value)
    varying = dependents(order, lambda node: isinstance(readings.get(node), StateAt))
    ranks = _ranks(order, readings)
    outside = {node: reading for node, reading in readings.items() if isinstance(reading, Expr)}
    tables = {table for node in order for table in tables_read(node)}

    def stored(node: Expr) -> bool:
        return node.rank <= (ranks[node] or 0) or _is_tie(node) or stores(node)

    replaced: dict[Expr, Expr] = {}
    todo = [o for node in order if node in varying for o in node.operands if o not in varying]
    if value not in varying:
        todo = [value]
    while todo:
        node = todo.pop()
        reading = readings.get(node)
        if node in replaced or isinstance(node, Const) or isinstance(reading, SlicesOf):
            continue
        if ranks[node] is None:
            array = substitute((node,), outside)[0]
            if not isinstance(array, Const):
                replaced[node] = _placeholder(node, array, readings)
        elif node in tables or (not segmented and stored(node)):
            array = _at_all_steps(node, readings, update.start, length)
            replaced[node] = _placeholder(node, SlicesOf(array, Dim() - update.start), readings)
        else:
            todo += node.operands
    return substitute((value,), replaced)[0]


def _is_tie(node: Expr) -> bool:
    """Whether a node marks where an array equals its own extreme.

    Both sides must be computed alike: one at all steps at once and one at its own step may differ
    by rounding errors, so that no element would be the extreme one.
    """
    if not isinstance(node, Map) or node.function.name != "eq":
        return False
    return any(
        isinstance(operand, Extreme) and operand.operands[0] in node.operands
        for operand in node.operands
    )


def _ranks(order: Sequence[Expr], readings: Mapping[Expr, Reading]) -> dict[Expr, int | None]:
    """For each node, the largest rank of a slice that it depends on; None if on no slice."""
    ranks: dict[Expr, int | None] = {}
    for node in order:
        if isinstance(readings.get(node), SlicesOf):
            ranks[node] = node.rank
            continue
        result = [rank for o in node.operands if (rank := ranks[o]) is not None]
        ranks[node] = max(result) if result else None
    return ranks


def _placeholder(node: Expr, reading: Reading, readings: dict[Expr, Reading]) -> Expr:
    result = Input(f"hoisted {len(readings)}", "step", node.shape, node.dtype)
    readings[result] = reading
    return result


def _at_all_steps(node: Expr, readings: Mapping[Expr, Reading], start: Dim, length: Dim) -> Expr:
    """The values of a node that depends on no state at the steps from `start` on."""
    arrays: dict[Expr, Expr] = {}
    for one in postorder(node):
        reading = readings.get(one)
        if isinstance(reading, SlicesOf):
            arrays[one] = steps_of(reading.array, start + reading.shift, length - start)
        elif isinstance(reading, Expr):
            arrays[one] = reading
    return batched(node, arrays, length - start)


def bodies(node: Recur) -> tuple[Expr, ...]:
    """The values of the updates of a loop at all steps at once, from its states as arrays."""
    loop = node.loop
    result = []
    for update in loop.updates:
        count = loop.length - update.start
        arrays: dict[Expr, Expr] = {}
        for one, source in loop.sources:
            if isinstance(source, Whole):
                arrays[one] = node.operands[source.operand]
                continue
            if isinstance(source, StateAt):
                array: Expr = node.states[source.state]
            else:
                array = node.operands[source.operand]
            arrays[one] = steps_of(array, update.start + source.shift, count)
        result.append(batched(update.value, arrays, count))
    return tuple(result)


def all_bodies(*roots: Expr) -> list[Expr]:
    """The bodies of all loops below some nodes, at all steps, and of the loops inside those."""
    result: list[Expr] = []
    done: set[tuple[tuple[Expr, ...], Loop]] = set()
    waiting = [node for node in postorder(*roots) if isinstance(node, Recur)]
    while waiting:
        node = waiting.pop(0)
        if (node.operands, node.loop) in done:
            continue
        done.add((node.operands, node.loop))
        own = bodies(node)
        result += own
        waiting += [one for one in postorder(*own) if isinstance(one, Recur)]
    return result


@batched_node.register
def _(node: Recur, operands: tuple[Expr, ...], varying: tuple[bool, ...], length: Dim) -> Expr:
    """A loop inside a step: its states have the steps of the outer loop as their second axis."""
    loop = node.loop

    def swapped(array: Expr) -> Expr:
        return transpose(array, (1, 0, *range(2, array.rank)))

    def wide(k: int) -> Expr:
        """Operand k with the steps as its second axis."""
        if varying[k]:
            return swapped(operands[k])
        first, *rest = operands[k].shape
        return broadcast(operands[k], (0, *range(2, len(rest) + 2)), (first, length, *rest))

    readings: dict[Expr, Reading] = {}
    arrays: dict[Expr, Expr] = {}
    for k, (one, source) in enumerate(loop.sources):
        is_wide = isinstance(source, StateAt) or varying[source.operand]
        shape = (length, *one.shape) if is_wide else one.shape
        arrays[one] = Input(f"inner {k}", "step", shape, one.dtype)
        if isinstance(source, StateAt):
            readings[arrays[one]] = source
        elif isinstance(source, SliceAt):
            array = operands[source.operand]
            readings[arrays[one]] = SlicesOf(swapped(array) if is_wide else array, source.shift)
        else:
            readings[arrays[one]] = operands[source.operand]
    states = [
        ((length, *shape), None if first is None else wide(first))
        for shape, first in zip(loop.shapes, loop.initial, strict=True)
    ]
    updates = [
        replace(update, value=batched(update.value, arrays, length)) for update in loop.updates
    ]
    result = recur(
        *(loop.length, states, updates, readings),
        backwards=loop.backwards,
        segmented=loop.segmented,
    )
    return swapped(result[node.state])
