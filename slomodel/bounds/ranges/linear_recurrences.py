"""Intervals for recurrences that are linear in their states, as triangular systems of equations.

With all states of all steps in one vector, y = Ly + b, where L is strictly triangular in the order
of execution. For the midpoint M of L, R near (I - M)⁻¹ and any z, y - z = G(y - z) + R(b - z + Lz)
with G = I - R(I - L), which is strictly triangular too, so that |y - z| <= e for every e >= 0 with
|G|e + |R(b - z + Lz)| <= e. Unlike intervals step by step, this keeps the cancellation among
the states: radii grow like those of the recurrence, not like those of its absolute values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from math import prod
from operator import itemgetter
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from slomodel.bounds.arithmetic.contraction import contract
from slomodel.bounds.arithmetic.interval import Interval, around, point
from slomodel.bounds.arithmetic.rounding import Array, down_add, up_add
from slomodel.calculus.jvp import jvp
from slomodel.ir import build
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr, Input, Recur
from slomodel.ir.loop import SliceAt, StateAt
from slomodel.ir.stepwise import batched
from slomodel.ir.walk import inputs, postorder, substitute
from slomodel.reference.recurrence import place

Sizes = Mapping[str, int]
Places = NDArray[np.intp]
RangeOf = Callable[[Expr, list[Interval], Sizes, int], Interval]
MOST_UNKNOWNS = 1_600
"""The largest number of states of all steps: matrices of 20 MB, products of seconds."""
_INFLATIONS = 6
_MOST_SYSTEMS = 4


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
    first = node.states[0]
    if first not in _known:
        _known[first] = _linear_body(first)
    return _known[first]


def _linear_body(node: Recur) -> LinearBody | None:
    loop = node.loop
    read = [(one, s) for one, s in loop.sources if isinstance(s, StateAt)]
    units = {one: Input(f"unit {k}", "step", one.shape) for k, (one, _) in enumerate(read)}
    values = tuple(update.value for update in loop.updates)
    slopes = jvp(values, dict(units))
    if not set(units).isdisjoint(inputs(*slopes)):
        return None
    constants = substitute(values, {one: build.zeros(one.shape) for one in units})
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
        """Those of a loop."""
        loop, start = node.loop, 0
        length = loop.length.size(sizes)
        places, turns = [], []
        for shape in loop.shapes:
            elements = prod(concrete(shape, sizes))
            stop = start + length * elements
            places.append(np.arange(start, stop).reshape((length, elements)))
            turns.append(np.full((length, elements), -1))
            start = stop
        count = len(loop.updates)
        for k, update in enumerate(loop.updates):
            begin, shift = place(update.start, sizes), place(update.shift, sizes)
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
    return sum(prod(concrete(one.shape, sizes)) for one in node.states)


def linear_states(
    node: Recur, operands: Sequence[Interval], sizes: Sizes, batch: int, range_of: RangeOf
) -> list[Interval] | None:
    """Intervals for all states of a loop; None where it is not linear, too long, or unbounded.

    None, too, for several cells of a subdivision, over which steps one by one are cheaper.
    """
    count = unknowns_of(node, sizes)
    if not 0 < count <= MOST_UNKNOWNS:
        return None
    body = linear_body(node)
    if body is None:
        return None
    L = _coefficients(node, body, operands, sizes, batch, range_of)
    if L is None:
        return None
    b = _constants(node, body, operands, sizes, batch, range_of)
    found = _solved(L, b, Unknowns.of(node, sizes).order, batch)
    if found is None:
        return None
    unknowns, front = Unknowns.of(node, sizes), found.shape[:batch]

    def laid(ends: Array, places: Places, state: Recur) -> Array:
        return np.asarray(ends[..., places].reshape((*front, *concrete(state.shape, sizes))))

    return [
        found.each(partial(laid, places=places, state=state))
        for places, state in zip(unknowns.places, node.states, strict=True)
    ]


def _evaluated(
    graphs: Sequence[Expr],
    known: Mapping[Expr, Interval],
    sizes: Sizes,
    batch: int,
    range_of: RangeOf,
) -> list[Interval]:
    found = dict(known)
    for one in postorder(*graphs):
        if one not in found:
            found[one] = range_of(one, [found[o] for o in one.operands], sizes, batch)
    return [found[graph] for graph in graphs]


def _coefficients(
    node: Recur,
    body: LinearBody,
    operands: Sequence[Interval],
    sizes: Sizes,
    batch: int,
    range_of: RangeOf,
) -> Interval | None:
    """L (batch axes, unknowns, unknowns) from the slopes along all units, one more batch axis."""
    shapes = [concrete(unit.shape, sizes) for unit in body.units]
    ends = [0, *np.cumsum([prod(shape) for shape in shapes], dtype=int).tolist()]
    known: dict[Expr, Interval] = {
        one: own.each(lambda array: np.expand_dims(array, batch))
        for one, own in zip(body.operands, operands, strict=True)
    }
    for unit, shape, start in zip(body.units, shapes, ends, strict=False):
        rows = np.zeros((ends[-1], prod(shape)))
        rows[start : start + prod(shape)] = np.eye(prod(shape))
        known[unit] = point(rows.reshape((1,) * batch + (ends[-1], *shape)))
    with np.errstate(all="ignore"):
        found = _evaluated(body.slopes, known, sizes, batch + 1, range_of)
    front = np.broadcast_shapes(*(one.shape[:batch] for one in found))
    unknowns = Unknowns.of(node, sizes)
    if prod(front) > 1:
        return None
    lo = np.zeros((*front, unknowns.count, unknowns.count))
    hi = np.zeros_like(lo)
    for update, own in zip(node.loop.updates, found, strict=True):
        begin, shift = place(update.start, sizes), place(update.shift, sizes)
        steps = np.arange(begin, begin + own.shape[batch + 1])
        rows = unknowns.places[update.state][steps + shift]
        flat = own.each(lambda array: array.reshape((*array.shape[: batch + 2], -1)))
        for source, start, stop in zip(body.read, ends, ends[1:], strict=False):
            # Without a slope along any unit there is one number for all.
            own_units = slice(start, stop) if flat.shape[batch] > 1 else slice(None)
            at = (slice(None),) * batch + (own_units,)
            part = flat.each(partial(_units_last, at=at, batch=batch))
            if not part.hi.any() and not part.lo.any():
                continue
            columns = unknowns.places[source.state][steps + place(source.shift, sizes)]
            where = (..., rows[:, :, np.newaxis], columns[:, np.newaxis, :])
            lo[where], hi[where] = down_add(lo[where], part.lo), up_add(hi[where], part.hi)
    return Interval(lo, hi)


def _units_last(array: Array, at: tuple[slice, ...], batch: int) -> Array:
    return np.moveaxis(array[at], batch, -1)


def _constants(
    node: Recur,
    body: LinearBody,
    operands: Sequence[Interval],
    sizes: Sizes,
    batch: int,
    range_of: RangeOf,
) -> Interval:
    """b (batch axes, unknowns): initial values and the updates without states."""
    known: dict[Expr, Interval] = dict(zip(body.operands, operands, strict=True))
    with np.errstate(all="ignore"):
        found = _evaluated(body.constants, known, sizes, batch, range_of)
    loop, unknowns = node.loop, Unknowns.of(node, sizes)
    firsts = [operands[k] for k in loop.initial if k is not None]
    front = np.broadcast_shapes(*(one.shape[:batch] for one in (*found, *firsts)), (1,) * batch)
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
    for update, own in zip(loop.updates, found, strict=True):
        begin_at = place(update.start, sizes) + place(update.shift, sizes)
        add(unknowns.places[update.state][begin_at : begin_at + own.shape[batch]], own)
    return Interval(lo, hi)


def _solved(L: Interval, b: Interval, order: Places, batch: int) -> Interval | None:
    """y (batch axes, unknowns) with y = Ly + b for one L, which has batch axes of size 1."""
    if not (np.isfinite(L.magnitude).all() and np.isfinite(b.magnitude).all()):
        return None
    one = L.each(lambda array: array.reshape(array.shape[batch:]))
    columns = b.each(lambda array: array.reshape((-1, len(order))).T)
    found = solved_triangular(one, columns, order)
    return None if found is None else found.each(lambda array: array.T.reshape(b.shape))


def solved_triangular(L: Interval, b: Interval, order: Places) -> Interval | None:
    """y (n, columns) with y = Ly + b; L (n, n) is strictly lower triangular in the given order.

    None where rounding or overflow leaves no bound.
    """
    n = len(order)
    with np.errstate(all="ignore"):
        L = L.each(lambda array: array[np.ix_(order, order)])
        system = _systems.of(L)
        if system is None:
            return None
        b = b.each(lambda array: array[order])
        z = system.R @ b.mid
        if not np.isfinite(z).all():
            return None
        dims = (n, n, b.shape[1])
        beyond = b - point(z) + contract([(L, (0, 1)), (point(z), (1, 2))], (0, 2), dims)
        rest = contract([(point(system.R), (0, 1)), (beyond, (1, 2))], (0, 2), dims).magnitude
        radius = _majorant(system.G, rest)
    if radius is None:
        return None
    found = around(z, radius)
    back = np.argsort(order)
    return found.each(lambda array: array[back])


@dataclass(frozen=True, slots=True)
class _System:
    """R near (I - M)⁻¹ for the midpoint M of L, and G >= |I - R(I - L)|."""

    R: Array
    G: Array

    @classmethod
    def of(cls, L: Interval) -> _System | None:
        """None where L is not strictly lower triangular, or the inverse overflows."""
        n = len(L.lo)
        if np.triu(L.magnitude).any():
            return None
        A = np.eye(n) - L.mid
        R = solve_triangular(A, np.eye(n), lower=True, unit_diagonal=True, check_finite=False)
        if not np.isfinite(R).all():
            return None
        product = contract([(point(R), (0, 1)), (L, (1, 2))], (0, 2), (n, n, n))
        return cls(R, np.tril((point(np.eye(n)) - point(R) + product).magnitude, -1))


class _Systems:
    """The last few systems, since one L serves derivatives of several orders."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, _System | None] = {}

    def of(self, L: Interval) -> _System | None:
        """The system of L, known or new."""
        key = b"".join(blake2b(end.tobytes()).digest() for end in (L.lo, L.hi))
        if key not in self._known:
            while len(self._known) >= _MOST_SYSTEMS:
                self._known.pop(next(iter(self._known)))
            self._known[key] = _System.of(L)
        return self._known[key]


_systems = _Systems()


def _majorant(G: Array, rest: Array) -> Array | None:
    """Some e with Ge + rest <= e, for a strictly lower triangular G >= 0; None if none is found."""
    n, columns = rest.shape
    e = solve_triangular(np.eye(n) - G, rest, lower=True, unit_diagonal=True, check_finite=False)
    factor = 1.0 + 1e-9
    for _ in range(_INFLATIONS):
        e = np.abs(e) * factor + 1e-300
        if not np.isfinite(e).all():
            return None
        again = up_add(
            contract([(point(G), (0, 1)), (point(e), (1, 2))], (0, 2), (n, n, columns)).hi, rest
        )
        if (again <= e).all():
            return np.asarray(again)
        e, factor = np.maximum(e, again), factor + 1e-3
    return None
