"""Intervals for recurrences that are linear in their states, as triangular systems of equations.

With all states of all steps in one vector, y = Ly + b, where L is strictly triangular in the order
of execution. Unlike intervals step by step, the solution of the system keeps the cancellation among
the states: radii grow like those of the recurrence, not like those of its absolute values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from operator import itemgetter
from weakref import WeakKeyDictionary

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.rounding import Array, down_add, up_add
from slomodel.bounds.arithmetic.triangular import Places, SparseIntervals, solved
from slomodel.calculus.jvp import jvp
from slomodel.ir import build
from slomodel.ir.dims import concrete, number_of_elements
from slomodel.ir.expr import Expr, Input, Recur
from slomodel.ir.loop import SliceAt, StateAt
from slomodel.ir.stepwise import batched
from slomodel.ir.walk import inputs, postorder, substitute

Sizes = Mapping[str, int]
RangesOf = Callable[[Expr, list[Interval], Sizes, int], Sequence[Interval]]
"""The interval of one node from those of its operands, with a number of batch axes; for a loop
those of all its states.
"""
_MOST_UNKNOWNS = 50_000
"""Largest number of values over all steps, of a sparse triangular system: about a second."""


@dataclass(frozen=True, slots=True)
class LinearBody:
    """The updates of a loop at all steps at once, as graphs over stand-ins for its operands.

    Update k adds `constants[k]` + Σ `slopes[k]`, which are linear in one unit for each placeholder
    of a state.
    """

    operands: tuple[Input, ...]
    units: tuple[Input, ...]
    read: tuple[StateAt, ...]
    constants: tuple[Expr, ...]
    slopes: tuple[Expr, ...]


_known: WeakKeyDictionary[Recur, LinearBody | None] = WeakKeyDictionary()


def linear_body(node: Recur) -> LinearBody | None:
    """The body of a loop that is linear in its states; None for others."""
    if node not in _known:
        _known[node] = _linear_body(node)
    return _known[node]


def _linear_body(node: Recur) -> LinearBody | None:
    loop = node.loop
    read = [(one, s) for one, s in loop.sources if isinstance(s, StateAt)]
    units = {one: Input(f"unit {k}", "step", one.shape) for k, (one, _) in enumerate(read)}
    values = tuple(update.value for update in loop.updates)
    slopes = jvp(values, dict(units))
    if not set(units).isdisjoint(inputs(*slopes)):
        return None
    constants = substitute(values, {unit: build.zeros(unit.shape) for unit in units})
    stand_ins = tuple(
        Input(f"operand {k}", "step", one.shape, one.dtype) for k, one in enumerate(node.operands)
    )
    rows: tuple[list[Expr], list[Expr]] = ([], [])
    for k, update in enumerate(loop.updates):
        count = loop.length - update.start
        arrays: dict[Expr, Expr] = {}
        for one, source in loop.sources:
            if isinstance(source, SliceAt):
                own = stand_ins[source.operand]
                arrays[one] = build.steps_of(own, update.start + source.shift, count)
            elif not isinstance(source, StateAt):
                arrays[one] = stand_ins[source.operand]
        for row, value in zip(rows, (constants[k], slopes[k]), strict=True):
            row.append(batched(value, arrays, count))
    return LinearBody(
        stand_ins,
        tuple(units.values()),
        tuple(source for _, source in read),
        tuple(rows[0]),
        tuple(rows[1]),
    )


@dataclass(frozen=True, slots=True)
class Unknowns:
    """The places (length, elements) of all states in one vector, and their order of execution."""

    places: tuple[Places, ...]
    order: Places

    @classmethod
    def of(cls, node: Recur, sizes: Sizes) -> Unknowns:
        """The unknowns of the equations of a loop."""
        loop, start = node.loop, 0
        length = loop.length.size(sizes)
        places, turns = [], []
        for shape in loop.shapes:
            elements = number_of_elements(shape, sizes)
            stop = start + length * elements
            places.append(np.arange(start, stop).reshape((length, elements)))
            turns.append(np.full((length, elements), -1))
            start = stop
        count = len(loop.updates)
        for k, update in enumerate(loop.updates):
            begin, shift = update.start.value(sizes), update.shift.value(sizes)
            t = np.arange(begin, length)
            turn = (length - 1 - t if loop.backwards else t) * count + k
            own = turns[update.state]
            own[t + shift] = np.maximum(own[t + shift], turn[:, np.newaxis])
        flat = np.concatenate([np.ravel(one) for one in turns]) if turns else np.zeros(0)
        return cls(tuple(places), np.argsort(flat, kind="stable"))

    @property
    def count(self) -> int:
        """The number of unknowns."""
        return len(self.order)


def unknowns_of(node: Recur, sizes: Sizes) -> int:
    """The number of states of all steps."""
    return sum(number_of_elements(state.shape, sizes) for state in node.states)


def linear_states(
    node: Recur, operands: Sequence[Interval], sizes: Sizes, batch: int, ranges_of: RangesOf
) -> list[Interval] | None:
    """Intervals for all states of a loop; None where it is not linear, too long, or unbounded.

    None, too, for several cells of a subdivision, over which steps one by one are cheaper.
    """
    count = unknowns_of(node, sizes)
    if not 0 < count <= _MOST_UNKNOWNS:
        return None
    body = linear_body(node)
    if body is None or _has_several_cells(body, operands, batch):
        return None
    L = _coefficients(node, body, operands, sizes, batch, ranges_of)
    if L is None:
        return None
    b = _constants(node, body, operands, sizes, batch, ranges_of)
    result = _solved(L, b, Unknowns.of(node, sizes).order, batch)
    if result is None:
        return None
    unknowns, front = Unknowns.of(node, sizes), result.shape[:batch]

    def laid(ends: Array, places: Places, state: Recur) -> Array:
        return np.asarray(ends[..., places].reshape((*front, *concrete(state.shape, sizes))))

    return [
        result.each(partial(laid, places=places, state=state))
        for places, state in zip(unknowns.places, node.states, strict=True)
    ]


def _has_several_cells(body: LinearBody, operands: Sequence[Interval], batch: int) -> bool:
    """Whether the slopes differ among the cells of a batch."""
    read = set(inputs(*body.slopes))
    fronts = [
        own.shape[:batch] for one, own in zip(body.operands, operands, strict=True) if one in read
    ]
    return prod(np.broadcast_shapes(*fronts)) > 1


def add_ranges(
    order: Sequence[Expr],
    ranges: dict[Expr, Interval],
    sizes: Sizes,
    batch: int,
    ranges_of: RangesOf,
) -> None:
    """Add the intervals of nodes in `order`, each after its operands; loops for all states."""
    for one in order:
        if one not in ranges:
            own = ranges_of(one, [ranges[o] for o in one.operands], sizes, batch)
            ranges |= zip(one.states if isinstance(one, Recur) else (one,), own, strict=True)


def _evaluated(
    graphs: Sequence[Expr],
    known: Mapping[Expr, Interval],
    sizes: Sizes,
    batch: int,
    ranges_of: RangesOf,
) -> list[Interval]:
    result = dict(known)
    add_ranges(postorder(*graphs), result, sizes, batch, ranges_of)
    return [result[graph] for graph in graphs]


def _coefficients(
    node: Recur,
    body: LinearBody,
    operands: Sequence[Interval],
    sizes: Sizes,
    batch: int,
    ranges_of: RangesOf,
) -> SparseIntervals | None:
    """L (unknowns, unknowns) from the slopes along all units; None for several cells of a batch."""
    shapes = [concrete(unit.shape, sizes) for unit in body.units]
    ends = [0, *np.cumsum([prod(shape) for shape in shapes], dtype=int).tolist()]
    known: dict[Expr, Interval] = {
        one: own.each(lambda array: np.expand_dims(array, batch))
        for one, own in zip(body.operands, operands, strict=True)
    }
    for unit, shape, start in zip(body.units, shapes, ends, strict=False):
        own_rows = np.zeros((ends[-1], prod(shape)))
        own_rows[start : start + prod(shape)] = np.eye(prod(shape))
        known[unit] = point(own_rows.reshape((1,) * batch + (ends[-1], *shape)))
    with np.errstate(all="ignore"):
        result = _evaluated(body.slopes, known, sizes, batch + 1, ranges_of)
    front = np.broadcast_shapes(*(one.shape[:batch] for one in result))
    unknowns = Unknowns.of(node, sizes)
    if prod(front) > 1:
        return None
    rows: list[Places] = []
    columns: list[Places] = []
    entries: list[Interval] = []
    for update, own in zip(node.loop.updates, result, strict=True):
        begin, shift = update.start.value(sizes), update.shift.value(sizes)
        steps = np.arange(begin, begin + own.shape[batch + 1])
        written = unknowns.places[update.state][steps + shift]
        flat = own.each(lambda array: array.reshape((*array.shape[: batch + 2], -1)))
        for source, start, stop in zip(body.read, ends, ends[1:], strict=False):
            # Without a slope along any unit there is one number for all.
            own_units = slice(start, stop) if flat.shape[batch] > 1 else slice(None)
            part = flat.each(partial(_units_last, at=(0,) * batch + (own_units,)))
            if not part.hi.any() and not part.lo.any():
                continue
            read = unknowns.places[source.state][steps + source.shift.value(sizes)]
            wide = np.broadcast_shapes((*written.shape, 1), part.shape, read[:, np.newaxis].shape)
            rows.append(np.broadcast_to(written[:, :, np.newaxis], wide).ravel())
            columns.append(np.broadcast_to(read[:, np.newaxis, :], wide).ravel())
            entries.append(part.each(partial(_flat, shape=wide)))
    return SparseIntervals(
        (unknowns.count, unknowns.count),
        np.concatenate([np.zeros(0, dtype=np.intp), *rows]),
        np.concatenate([np.zeros(0, dtype=np.intp), *columns]),
        Interval.concatenated([point(np.zeros(0)), *entries]),
    )


def _flat(array: Array, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(array, shape).ravel()


def _units_last(array: Array, at: tuple[int | slice, ...]) -> Array:
    return np.moveaxis(array[at], 0, -1)


def _constants(
    node: Recur,
    body: LinearBody,
    operands: Sequence[Interval],
    sizes: Sizes,
    batch: int,
    ranges_of: RangesOf,
) -> Interval:
    """b (batch axes, unknowns): initial values and the updates without states."""
    known: dict[Expr, Interval] = dict(zip(body.operands, operands, strict=True))
    with np.errstate(all="ignore"):
        result = _evaluated(body.constants, known, sizes, batch, ranges_of)
    loop, unknowns = node.loop, Unknowns.of(node, sizes)
    firsts = [operands[k] for k in loop.initial if k is not None]
    front = np.broadcast_shapes(*(one.shape[:batch] for one in (*result, *firsts)), (1,) * batch)
    lo, hi = np.zeros((*front, unknowns.count)), np.zeros((*front, unknowns.count))

    def add(places: Places, own: Interval) -> None:
        at = (..., np.ravel(places))
        flat = own.each(lambda array: array.reshape((*array.shape[:batch], -1)))
        lo[at], hi[at] = down_add(lo[at], flat.lo), up_add(hi[at], flat.hi)

    length = loop.length.size(sizes)
    for places, first in zip(unknowns.places, loop.initial, strict=True):
        if first is not None:
            own = operands[first]
            count = min(length, own.shape[batch])
            begin = (slice(None),) * batch + (slice(count),)
            add(places[:count], own.each(itemgetter(begin)))
    for update, own in zip(loop.updates, result, strict=True):
        begin_at = update.start.value(sizes) + update.shift.value(sizes)
        add(unknowns.places[update.state][begin_at : begin_at + own.shape[batch]], own)
    return Interval(lo, hi)


def _solved(L: SparseIntervals, b: Interval, order: Places, batch: int) -> Interval | None:
    """y (batch axes, unknowns) with y = Ly + b."""
    if not (np.isfinite(L.entries.magnitude).all() and np.isfinite(b.magnitude).all()):
        return None
    columns = b.each(lambda array: array.reshape((-1, len(order))).T)
    result = solved(L, columns, order)
    return None if result is None else result.each(lambda array: array.T.reshape(b.shape))
