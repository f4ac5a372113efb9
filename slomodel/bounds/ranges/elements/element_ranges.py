"""Ranges of the derivatives of functions of a few arguments, over subdivisions of their boxes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from types import MappingProxyType

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, meet, whole_power
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.effort import DEFAULT, INTERVAL_FLOPS, Effort
from slomodel.bounds.ranges.derivatives import derivative_ranges
from slomodel.bounds.ranges.elements.element_functions import (
    ElementDerivatives,
    Slots,
    functions_of,
)
from slomodel.bounds.ranges.elements.subdivision import (
    ANY,
    CLOSE,
    CLOSE_OF_SEVERAL,
    TIGHT,
    Pieces,
    Search,
    SearchedFunctions,
    Whole,
    cluster_ends,
    clustered,
)
from slomodel.bounds.ranges.enclose import enclose
from slomodel.bounds.ranges.smoothness import Smoothness, roughest, smoothness
from slomodel.bounds.structure.linear_predictors import affine_nodes
from slomodel.calculus import jvp
from slomodel.errors import Span
from slomodel.ir.build import const
from slomodel.ir.expr import Expr, Input, Map
from slomodel.ir.function import ANALYTIC, ScalarFunction
from slomodel.ir.walk import dependents, postorder

_MOST_NUMBERS = 2**17
"""Largest number of elements times pieces in a block of elements."""
_BLOCK = 2**16
"""Largest number of elements in a block, whatever the number of pieces."""
_AT_ONCE = 2**13
"""Numbers that fit the cache."""
_MOST_PIECES = 32
"""Pieces per argument; more only where a single argument has long boxes."""
_FEW_PIECES = 6
"""Pieces along each of several arguments, where a search subdivides them further."""
_MOST_NUMBERS_OF_ONE = 2**13
"""Elements times pieces up to which long boxes of a single argument have more."""
_ONE_BY_ONE = 2**13
_ONE_BY_ONE_OF_SEVERAL = 2**7
"""Largest numbers of elements, for one argument and for several, whose pieces are subdivided
individually: more would take seconds.
"""
_MOST_CLUSTERS = (2**9, 2**7, 2**6)
"""Largest number of clusters, for one, two and three arguments."""
_LONGER = 0.125
"""Relative excess length allowed to a cluster's box, as far as the number of clusters permits."""
_OF_DATA = 0.5
"""Data of a cluster may differ by `_LONGER` / `_OF_DATA`, relative to their mean magnitude."""
_SHORT = 0.05
"""For one argument the number of pieces is increased until they are as short as this."""
_NARROW = 1e-5
"""Boxes of smaller relative width are not subdivided: the overestimation of intervals is of the
order of their widths.
"""
_NO_RATIOS: Mapping[Slots, Array] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ElementRanges:
    """For m elements the ranges (m,) of φ's derivatives by arguments, by sorted slots.

    `dominating` holds for each argument p the hulls of φ_pp ± Σ_q δ_pq |φ_pq|, q ≠ p: where δ_pq
    δ_qp >= 1, φ's Hessian lies in the Loewner order between the diagonal matrices of their
    endpoints. Empty where no ratios δ are given.
    """

    derivatives: Mapping[Slots, Interval]
    smooth: Smoothness
    dominating: Sequence[Interval] = ()


def ranges_over_pieces(
    value: Expr,
    graphs: Mapping[Slots, Expr],
    boxes: Mapping[Input, Interval],
    data: Mapping[Input, Interval],
    ratios: Mapping[Slots, Array],
    effort: Effort = DEFAULT,
    most: int | None = None,
) -> ElementRanges:
    """`element_ranges` over at most `most` pieces of each box, without a search for more."""
    functions = functions_of(value, graphs, len(boxes), ratios)
    return _ranges(functions, boxes, {**data, **functions.ratios}, {}, 0, effort, most)


def element_ranges(
    value: Expr,
    graphs: Mapping[Slots, Expr],
    boxes: Mapping[Input, Interval],
    data: Mapping[Input, Interval],
    spans: Mapping[Expr, Span],
    effort: Effort = DEFAULT,
    ratios: Mapping[Slots, Array] = _NO_RATIOS,
) -> ElementRanges:
    """The hull over pieces that cover the boxes (m,) of all arguments, block by block of elements.

    Hypothesis: each argument lies in its box and each datum in its interval. For ratios δ_pq (m,),
    p ≠ q, the `dominating` ranges are included. Among many elements, those with nearly the same box
    are searched together: each element's ranges lie in those over the hull of a cluster's boxes.
    """
    functions = functions_of(value, graphs, len(boxes), ratios)
    data = {**data, **functions.ratios}
    most = _ONE_BY_ONE if len(boxes) == 1 else _ONE_BY_ONE_OF_SEVERAL
    count = next(iter(boxes.values())).shape[0]
    if count <= most or _of_the_table(functions, tuple(boxes)) or not _are_wide(boxes):
        return _ranges(functions, boxes, data, spans, most, effort)
    cluster, hulls = _clusters({**boxes, **data}, tuple(boxes), _MOST_CLUSTERS[len(boxes) - 1])
    own = {box: hulls[box] for box in boxes}
    others = _ranges(functions, own, {one: hulls[one] for one in data}, spans, most, effort)
    result = _ranges(functions, boxes, data, spans, 0, effort)

    def closer(a: Interval, b: Interval) -> Interval:
        return meet(a, b.each(itemgetter(cluster)))

    derivatives = {k: closer(a, others.derivatives[k]) for k, a in result.derivatives.items()}
    pairs = zip(result.dominating, others.dominating, strict=True)
    return ElementRanges(derivatives, result.smooth, [closer(a, b) for a, b in pairs])


def _clusters(
    known: Mapping[Input, Interval], arguments: Sequence[Input], most: int
) -> tuple[Whole, dict[Input, Interval]]:
    """The cluster (m,) of each element, and the hulls of the intervals of each cluster."""
    count = known[arguments[0]].shape[0]
    wide = {one: a.broadcast((count,)) for one, a in known.items()}
    points = []
    for one, a in wide.items():
        if one in arguments:
            unit = float(np.mean(a.rad)) * 2.0
            points += [a.lo / unit, a.hi / unit]
        elif float(np.ptp(a.mid)) > 0.0:
            points.append(_OF_DATA * a.mid / float(np.mean(a.magnitude)))
    cluster = clustered(np.nan_to_num(np.stack(points)), _LONGER, most)
    low = np.stack([a.lo for a in wide.values()])
    high = np.stack([a.hi for a in wide.values()])
    ends = cluster_ends(low, high, cluster, int(cluster.max()) + 1)
    return cluster, dict(zip(wide, map(Interval, *ends), strict=True))


def _ranges(
    functions: ElementDerivatives,
    boxes: Mapping[Input, Interval],
    data: Mapping[Input, Interval],
    spans: Mapping[Expr, Span],
    searched: int,
    effort: Effort,
    most: int | None = None,
) -> ElementRanges:
    """Ranges over pieces, at most `most` of each box where given, which are subdivided where there
    are at most `searched` elements.
    """
    count = next(iter(boxes.values())).shape[0]
    table = _of_the_table(functions, tuple(boxes))
    numbers = min(_MOST_NUMBERS, effort.count(INTERVAL_FLOPS) // len(postorder(*functions.graphs)))
    pieces = 1 if table else _count_of_pieces(boxes, min(count, _BLOCK), numbers)
    if len(boxes) > 1 and count <= searched:
        pieces = min(pieces, _FEW_PIECES)
    if most is not None:
        pieces = min(pieces, most)
    block = max(_AT_ONCE // pieces ** len(boxes), 1)
    search = None
    if pieces > 1 and table is None and count <= searched:
        orders = [*map(len, functions.derivatives), *(2 for _ in functions.sums)]
        search = Search([_factor(order, len(boxes)) for order in orders], count)
    result, smooth = [], []
    for start in range(0, max(count, 1), block):
        which = slice(start, start + block)
        own = _Block(functions, _taken(which, boxes), _taken(which, data), pieces)
        ranges = own.enclosed(table is None)
        smooth.append(smoothness(functions.value, ranges, len(boxes) + 1, spans))
        if search is not None:
            search.add(own.pieces_of(ranges, start))
        else:
            result.append(own.hulls(ranges) if table is None else own.by_turns(table))
    worst = roughest(smooth)
    if search is not None:
        slopes = functions.slopes if worst.least == ANALYTIC else {}
        hulls = search.found(SearchedFunctions(functions.graphs, boxes, data, slopes), effort)
    else:
        hulls = _joined(result)
    derivatives, dominating = functions.named(hulls)
    return ElementRanges(derivatives, worst, dominating)


def _factor(order: int, arguments: int) -> float:
    """The target tightness of the search for derivatives of an order: tightest for L1."""
    if order == 2:
        return CLOSE if arguments == 1 else CLOSE_OF_SEVERAL
    return TIGHT if arguments == 1 or order == 3 else ANY


def _are_wide(boxes: Mapping[Input, Interval]) -> bool:
    """Whether subdividing the boxes would tighten the ranges."""
    return any((box.rad > _NARROW * box.magnitude).any() for box in boxes.values())


def _count_of_pieces(boxes: Mapping[Input, Interval], count: int, most: int) -> int:
    """Number of pieces per argument of each box, for at most `most` pieces of all boxes."""
    if not _are_wide(boxes):
        return 1
    pieces = int((most / max(count, 1)) ** (1.0 / len(boxes)))
    return min(max(pieces, 1), _most_pieces(boxes, count))


def _taken(which: slice, arrays: Mapping[Input, Interval]) -> dict[Input, Interval]:
    return {one: a.each(itemgetter(which)) for one, a in arrays.items()}


@dataclass(frozen=True, slots=True)
class _Turning:
    """A table function of `inner`, which is affine in the argument with this slope."""

    function: ScalarFunction
    inner: Expr
    slope: Expr


def _of_the_table(functions: ElementDerivatives, arguments: tuple[Input, ...]) -> _Turning | None:
    """The value as a table function of an affine argument, or None if it is not one, or the graphs
    are not its derivatives.

    The critical points of such functions are known, so that no pieces are needed.
    """
    value = functions.value
    if not all(set(slots) <= {0} for slots in functions.derivatives):
        return None
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
    """Some of the elements, each box cut into `pieces` per argument."""

    functions: ElementDerivatives
    boxes: Mapping[Input, Interval]
    data: Mapping[Input, Interval]
    pieces: int

    @property
    def count(self) -> int:
        return int(next(iter(self.boxes.values())).shape[0])

    def enclosed(self, with_derivatives: bool) -> Mapping[Expr, Interval]:
        """Intervals over the pieces: an axis for the pieces of each argument, one of elements."""
        axes = len(self.boxes)
        known = {one: _alone(a, range(axes)) for one, a in self.data.items()}
        roots = (self.functions.value, *(self.functions.graphs if with_derivatives else ()))
        return enclose(roots, {**_pieces(self.boxes, self.pieces), **known}, {}, axes + 1)

    def hulls(self, ranges: Mapping[Expr, Interval]) -> list[Interval]:
        along = tuple(range(len(self.boxes)))

        def hull(a: Interval) -> Interval:
            lo, hi = np.min(a.lo, axis=along), np.max(a.hi, axis=along)
            return Interval(*(np.broadcast_to(end, (self.count,)) for end in (lo, hi)))

        return [hull(ranges[graph]) for graph in self.functions.graphs]

    def pieces_of(self, ranges: Mapping[Expr, Interval], start: int) -> Pieces:
        """The pieces as `Pieces`, with elements numbered from `start`."""
        shape = (*(self.pieces,) * len(self.boxes), self.count)

        def flat(a: Interval) -> Interval:
            return a.broadcast(shape).each(np.ravel)

        boxes = tuple(flat(box) for box in _pieces(self.boxes, self.pieces).values())
        element = np.broadcast_to(np.arange(start, start + self.count), shape).ravel()
        return Pieces(boxes, element, tuple(flat(ranges[graph]) for graph in self.functions.graphs))

    def by_turns(self, table: _Turning) -> list[Interval]:
        """Hulls by the critical points of the table: (φ(c u + d))^(k) = c^k φ^(k)(c u + d)."""
        result = enclose([table.inner, table.slope], {**self.boxes, **self.data}, {}, 1)
        wide = partial(np.broadcast_to, shape=(self.count,))
        inner, slope = (result[one].each(wide) for one in (table.inner, table.slope))
        orders = [len(slots) for slots in self.functions.derivatives]
        derivatives = derivative_ranges(table.function, orders, inner)
        pairs = zip(orders, derivatives, strict=True)
        return [whole_power(slope, order) * a for order, a in pairs]


def _joined(blocks: Sequence[Sequence[Interval]]) -> list[Interval]:
    """The ranges of all blocks, concatenated per derivative."""
    return [Interval.concatenated(own) for own in zip(*blocks, strict=True)]


def _most_pieces(boxes: Mapping[Input, Interval], count: int) -> int:
    """The number of pieces per argument: more for long boxes of a single argument."""
    if len(boxes) > 1:
        return _MOST_PIECES
    longest = max(float(np.max(box.rad, initial=0.0)) for box in boxes.values())
    wanted = min(2.0 * longest / _SHORT, _MOST_NUMBERS_OF_ONE / max(count, 1))
    return max(int(wanted), _MOST_PIECES)


def _pieces(boxes: Mapping[Input, Interval], pieces: int) -> dict[Input, Interval]:
    """Equal subintervals of each box along its own axis, of k + 1 axes, the last of elements;
    neighbours share their endpoints.
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
    """`a` with axes of size 1 at `others`; the last one is reduced if its elements agree."""
    if all((end == end[..., :1]).all() for end in (a.lo, a.hi)):
        a = a.each(itemgetter((..., slice(0, 1))))
    return a.each(partial(np.expand_dims, axis=tuple(others)))


def _ends(box: Interval, pieces: int) -> Array:
    """Increasing numbers (pieces + 1, m) from the box's lower to its upper endpoint."""
    fraction = (np.arange(pieces + 1) / pieces)[:, np.newaxis]
    with np.errstate(all="ignore"):
        inner = box.lo * (1.0 - fraction) + box.hi * fraction
    inner = np.where(np.isfinite(inner), inner, box.lo)
    ends = np.maximum.accumulate(np.clip(inner, box.lo, box.hi), axis=0)
    ends[0], ends[-1] = box.lo, box.hi
    return ends
