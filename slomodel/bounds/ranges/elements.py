"""Ranges of the derivatives of scalar functions of a few arguments, over pieces of their ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from operator import itemgetter

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, whole_power
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.ranges.derivatives import derivative_ranges
from slomodel.bounds.ranges.enclose import enclose
from slomodel.bounds.ranges.smoothness import Smoothness, smoothness
from slomodel.bounds.ranges.subdivision import Pieces, Search
from slomodel.bounds.structure.separable import affine_nodes
from slomodel.calculus import jvp
from slomodel.errors import Span
from slomodel.ir.build import const
from slomodel.ir.expr import Expr, Input, Map
from slomodel.ir.function import ANALYTIC, ScalarFunction
from slomodel.ir.walk import dependents, postorder

Slots = tuple[int, ...]
_MOST_NUMBERS = 2**17
"""Elements times pieces, of blocks of elements."""
_MOST_OPERATIONS = 2**24
"""Nodes times pieces for functions of three arguments, whose derivatives are large graphs: about
a second."""
_BLOCK = 2**16
_AT_ONCE = 2**13
"""So many numbers stay in fast memory."""
_MOST_PIECES = 32
_MOST_NUMBERS_OF_ONE = 2**13
_MOST_SEARCHED = 2**13
"""Pieces of more elements are not cut again, which would take seconds for many."""
_SHORT = 0.05
"""Of one argument there are more pieces, until they are as short as this."""
_NARROW = 1e-5
"""Boxes narrower for their numbers are not divided: what intervals overestimate is of the order of
their widths.
"""


@dataclass(frozen=True, slots=True)
class ElementRanges:
    """For m elements the ranges (m,) of φ's derivatives by arguments, by sorted slots."""

    derivatives: Mapping[Slots, Interval]
    smooth: Smoothness


def derivative_graphs(value: Expr, arguments: Sequence[Input], least: int = 2) -> dict[Slots, Expr]:
    """The partial derivatives from an order to the fourth as graphs of scalars."""
    found: dict[Slots, Expr] = {(): value}
    count = len(arguments)
    for order in (1, 2, 3, 4):
        for slots in combinations_with_replacement(range(count), order):
            (found[slots],) = jvp((found[slots[:-1]],), {arguments[slots[-1]]: const(1.0)})
    return {slots: graph for slots, graph in found.items() if len(slots) >= least}


def element_ranges(
    value: Expr,
    graphs: Mapping[Slots, Expr],
    boxes: Mapping[Input, Interval],
    data: Mapping[Input, Interval],
    spans: Mapping[Expr, Span],
) -> ElementRanges:
    """The hull over pieces that cover the boxes (m,) of all arguments, by blocks of elements.

    Hypothesis: each argument lies in its box and each datum in its interval.
    """
    count = next(iter(boxes.values())).shape[0]
    table = _of_the_table(value, tuple(boxes))
    work = len(postorder(*graphs.values()))
    pieces = 1 if table else _count_of_pieces(boxes, min(count, _BLOCK), work)
    search = None
    if len(boxes) == 1 and pieces > 1 and table is None and count <= _MOST_SEARCHED:
        search = Search(tuple(graphs.values()), next(iter(boxes)), data, count)
    block = max(_AT_ONCE // pieces ** len(boxes), 1)
    found, smooth = [], []
    for start in range(0, max(count, 1), block):
        which = slice(start, start + block)
        own = _Block(value, graphs, _taken(which, boxes), _taken(which, data), pieces)
        ranges = own.enclosed(table is None)
        smooth.append(smoothness(value, ranges, len(boxes) + 1, spans))
        if search is not None:
            search.add(own.pieces_of(ranges, start))
        else:
            found.append(own.hulls(ranges) if table is None else own.by_turns(table))
    hulls = search.found() if search is not None else _joined(found)
    worst = min(smooth, key=lambda one: int(np.min(one.order, initial=ANALYTIC)))
    return ElementRanges(dict(zip(graphs, hulls, strict=True)), worst)


def _count_of_pieces(boxes: Mapping[Input, Interval], count: int, work: int) -> int:
    """The number of pieces that each box is cut into; `work`: the nodes to enclose over each."""
    if not any((box.rad > _NARROW * box.magnitude).any() for box in boxes.values()):
        return 1
    most = _MOST_NUMBERS if len(boxes) < 3 else min(_MOST_NUMBERS, _MOST_OPERATIONS // work)
    pieces = int((most / max(count, 1)) ** (1.0 / len(boxes)))
    return min(max(pieces, 1), _most_pieces(boxes, count))


def _taken(which: slice, arrays: Mapping[Input, Interval]) -> dict[Input, Interval]:
    return {one: a.each(itemgetter(which)) for one, a in arrays.items()}


@dataclass(frozen=True, slots=True)
class _Turning:
    """A function of the table of `inner`, which is affine in the argument with this slope."""

    function: ScalarFunction
    inner: Expr
    slope: Expr


def _of_the_table(value: Expr, arguments: tuple[Input, ...]) -> _Turning | None:
    """The value as such a function: it is known to turn where it does, so that no pieces are
    needed. None where it is none.
    """
    if not isinstance(value, Map) or len(value.operands) != 1 or len(arguments) != 1:
        return None
    (inner,), (one,) = value.operands, arguments
    order = postorder(inner)
    if inner not in affine_nodes(order, dependents(order, {one}.__contains__)):
        return None
    (slope,) = jvp((inner,), {one: const(1.0)})
    return _Turning(value.function, inner, slope)


@dataclass(frozen=True, slots=True)
class _Block:
    """Some of the elements, their boxes cut into `pieces` each."""

    value: Expr
    graphs: Mapping[Slots, Expr]
    boxes: Mapping[Input, Interval]
    data: Mapping[Input, Interval]
    pieces: int

    @property
    def count(self) -> int:
        return int(next(iter(self.boxes.values())).shape[0])

    def enclosed(self, with_derivatives: bool) -> Mapping[Expr, Interval]:
        """Over the pieces, an axis for those of each argument and one of elements."""
        axes = len(self.boxes)
        known = {one: _alone(a, range(axes)) for one, a in self.data.items()}
        roots = [self.value, *self.graphs.values()] if with_derivatives else [self.value]
        return enclose(roots, {**_pieces(self.boxes, self.pieces), **known}, {}, axes + 1)

    def hulls(self, found: Mapping[Expr, Interval]) -> list[Interval]:
        along = tuple(range(len(self.boxes)))

        def hull(a: Interval) -> Interval:
            lo, hi = np.min(a.lo, axis=along), np.max(a.hi, axis=along)
            return Interval(*(np.broadcast_to(end, (self.count,)) for end in (lo, hi)))

        return [hull(found[graph]) for graph in self.graphs.values()]

    def pieces_of(self, found: Mapping[Expr, Interval], start: int) -> Pieces:
        """The pieces of one argument, of elements from number `start` on."""
        shape = (self.pieces, self.count)

        def flat(a: Interval) -> Interval:
            return a.each(lambda array: np.broadcast_to(array, shape).ravel())

        (box,) = _pieces(self.boxes, self.pieces).values()
        element = np.broadcast_to(np.arange(start, start + self.count), shape).ravel()
        return Pieces(flat(box), element, tuple(flat(found[one]) for one in self.graphs.values()))

    def by_turns(self, table: _Turning) -> list[Interval]:
        """(φ(c u + d))^(k) = c^k φ^(k)(c u + d)."""
        found = enclose([table.inner, table.slope], {**self.boxes, **self.data}, {}, 1)
        wide = partial(np.broadcast_to, shape=(self.count,))
        inner, slope = (found[one].each(wide) for one in (table.inner, table.slope))
        orders = [len(slots) for slots in self.graphs]
        derivatives = derivative_ranges(table.function, orders, inner)
        pairs = zip(orders, derivatives, strict=True)
        return [whole_power(slope, order) * a for order, a in pairs]


def _joined(blocks: Sequence[Sequence[Interval]]) -> list[Interval]:
    """The ranges of all blocks by derivative."""
    if len(blocks) == 1:
        return list(blocks[0])
    return [
        Interval(np.concatenate([a.lo for a in own]), np.concatenate([a.hi for a in own]))
        for own in zip(*blocks, strict=True)
    ]


def _most_pieces(boxes: Mapping[Input, Interval], count: int) -> int:
    """The number of pieces per argument: more for long boxes of one argument."""
    if len(boxes) > 1:
        return _MOST_PIECES
    longest = max(float(np.max(box.rad, initial=0.0)) for box in boxes.values())
    wanted = min(2.0 * longest / _SHORT, _MOST_NUMBERS_OF_ONE / max(count, 1))
    return max(int(wanted), _MOST_PIECES)


def _pieces(boxes: Mapping[Input, Interval], pieces: int) -> dict[Input, Interval]:
    """Equal parts of each box along an axis of its own, of k + 1 axes the last of elements;
    neighbours share their ends.
    """
    result = {}
    for k, (one, box) in enumerate(boxes.items()):
        if pieces > 1:
            ends = _ends(box, pieces)
            parts = Interval(ends[:-1], ends[1:])
        else:
            parts = box.each(itemgetter(np.newaxis))
        result[one] = _alone(parts, [other for other in range(len(boxes)) if other != k])
    return result


def _alone(a: Interval, others: Iterable[int]) -> Interval:
    """With axes of one element at others; so the last, where all its elements are the same."""
    if all((end == end[..., :1]).all() for end in (a.lo, a.hi)):
        a = a.each(itemgetter((..., slice(0, 1))))
    return a.each(partial(np.expand_dims, axis=tuple(others)))


def _ends(box: Interval, pieces: int) -> Array:
    """Increasing numbers (pieces + 1, m) from the box's lower to its upper end."""
    share = (np.arange(pieces + 1) / pieces)[:, np.newaxis]
    with np.errstate(all="ignore"):
        inner = box.lo * (1.0 - share) + box.hi * share
    inner = np.where(np.isfinite(inner), inner, box.lo)
    ends = np.maximum.accumulate(np.clip(inner, box.lo, box.hi), axis=0)
    ends[0], ends[-1] = box.lo, box.hi
    return ends
