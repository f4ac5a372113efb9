"""Ranges of functions of a few arguments over pieces, subdivided where the ranges are loose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.interval import Interval, meet, point
from slomodel.bounds.arithmetic.rounding import Array, Truths
from slomodel.bounds.effort import INTERVAL_FLOPS, Effort
from slomodel.bounds.ranges.enclose import enclose
from slomodel.bounds.stopping import pause
from slomodel.ir.expr import Expr, Input
from slomodel.ir.walk import postorder

Whole = NDArray[np.intp]
TIGHT, CLOSE, CLOSE_OF_SEVERAL, ANY = 1.05, 1.002, 1.01, float("inf")
"""A piece is subdivided where a magnitude exceeds a certainly attained one by this factor; pieces
of several arguments are many, and are better spent on the loosest elements.
"""
_PARTS = 4
"""Parts into which a round cuts a piece."""
_ROUNDS = (10, 20, 8)
"""Rounds, by the number of arguments; a round subdivides pieces along one of them."""
_LARGEST = (3, 8, 8)
"""Pieces of an element that a round subdivides: those of the largest magnitudes."""
_AT_LEAST = 256
"""Pieces of all elements together below which a round subdivides more of each: enclosing a node
costs as much for one piece as for about this many.
"""
TINY = float(np.finfo(np.float64).tiny)
_VERY_LOOSE = 2.0
"""Pieces that are loose by this factor come first, with a work limit larger by the same factor."""
_FRACTION_OF_EFFORT = (1.0, 0.375, 0.125)
"""By the number of arguments, the part of the effort that a search may take; the round that exceeds
it is the last. Objectives with elements of several arguments tend to have many kinds of them.
"""
_LITTLE = 0.005
"""A search ends after a round that reduces the sum of magnitudes of each graph by less than this:
later rounds hardly ever reduce it by more.
"""


@dataclass(frozen=True, slots=True)
class SearchedFunctions:
    """Functions of arguments in boxes (m,) and of data; `slopes` are derivatives by each argument.

    A function without an entry in `slopes` is enclosed by intervals alone, others by the mean value
    theorem as well: the hypothesis is that these are continuously differentiable on the boxes.
    """

    graphs: tuple[Expr, ...]
    boxes: Mapping[Input, Interval]
    data: Mapping[Input, Interval]
    slopes: Mapping[Expr, tuple[Expr, ...]] = field(default_factory=dict)

    def ranges(self, boxes: Sequence[Interval], element: Whole) -> tuple[Interval, ...]:
        """Ranges (q,) of each graph over boxes (q,) of each argument, for these elements (q,)."""
        flat = {one: a.each(np.ravel) for one, a in self.data.items()}
        own = {
            one: a if a.shape == (1,) else a.each(itemgetter(element)) for one, a in flat.items()
        }
        wide = [g for graph in self.graphs for g in (graph, *self.slopes.get(graph, ()))]
        enclosed = enclose(wide, {**dict(zip(self.boxes, boxes, strict=True)), **own}, {}, 1)
        result = {graph: enclosed[graph] for graph in self.graphs}
        if self.slopes:
            centres = [point(box.mid) for box in boxes]
            at = dict(zip(self.boxes, centres, strict=True))
            values = enclose(list(self.slopes), {**at, **own}, {}, 1)
            for graph, slopes in self.slopes.items():
                moved = values[graph]
                for box, centre, slope in zip(boxes, centres, slopes, strict=True):
                    moved = moved + enclosed[slope] * (box - centre)
                result[graph] = meet(result[graph], moved)
        shape = element.shape
        return tuple(result[g].broadcast(shape) for g in self.graphs)


@dataclass(frozen=True, slots=True)
class Pieces:
    """Intervals (q,) of each argument, the element that each box belongs to, and the ranges of each
    graph on it.
    """

    boxes: tuple[Interval, ...]
    element: Whole
    ranges: tuple[Interval, ...]

    def take(self, which: Truths) -> Pieces:
        part = itemgetter(which)
        boxes, ranges = (tuple(a.each(part) for a in own) for own in (self.boxes, self.ranges))
        return Pieces(boxes, self.element[which], ranges)


@dataclass(slots=True)
class Search:
    """Hulls of the ranges of some graphs for m elements, from pieces of their boxes.

    An interval that contains a value of the function implies a lower bound on its magnitude; pieces
    are subdivided until no magnitude exceeds the largest of these by the graph's factor.
    """

    factors: Sequence[float]
    count: int
    hulls: list[Interval] = field(init=False)
    least: Array = field(init=False)
    left: list[Pieces] = field(default_factory=list)

    def __post_init__(self) -> None:
        shape = (len(self.factors), self.count)
        self.least = np.zeros(shape)
        nothing = np.full(shape, np.inf)
        self.hulls = [Interval(a, -a) for a in nothing]

    def add(self, pieces: Pieces) -> None:
        """Add pieces that cover their elements."""
        for own, a in zip(self.least, pieces.ranges, strict=True):
            np.maximum.at(own, pieces.element, a.mignitude)
        self.left.append(self._without_tight(pieces))

    def found(self, family: SearchedFunctions, effort: Effort) -> list[Interval]:
        """The hulls, after subdivision of the pieces within the effort.

        For several arguments very loose pieces are subdivided first: there little work gains much.
        """
        k = len(family.boxes) - 1
        most = _FRACTION_OF_EFFORT[k] * effort.count(INTERVAL_FLOPS)
        for least in (_VERY_LOOSE, 1.0) if k else (1.0,):
            self._subdivide(family, least, _ROUNDS[k], most * least)
        self._enlarge(_joined(self.left))
        return self.hulls

    def _subdivide(self, family: SearchedFunctions, least: float, rounds: int, most: float) -> None:
        """Subdivide pieces that are loose by a factor of `least`, up to `most` operations."""
        operations, nodes = 0, len(postorder(*family.graphs))
        before = np.full(len(self.factors), np.inf)
        for _ in range(rounds):
            pieces = self._without_tight(_joined(self.left))
            self.left = [pieces]
            now = self._magnitudes(pieces)
            if (now >= (1.0 - _LITTLE) * before).all():
                break
            before = now
            each = max(_LARGEST[len(family.boxes) - 1], _AT_LEAST // self.count)
            cut = _largest(pieces, self._loose(pieces, least), each)
            if not cut.any() or operations > most:
                break
            self.left = [pieces.take(~cut)]
            new = _subdivided(family, pieces.take(cut))
            operations += max(len(new.element), _PARTS * _AT_LEAST) * nodes
            self.add(new)

    def _magnitudes(self, pieces: Pieces) -> Array:
        """The sum over all elements of the largest magnitude, for each graph; inf where infinite.

        Graphs whose pieces may be as loose as they are count as 0.
        """
        sums = []
        for hull, a, factor in zip(self.hulls, pieces.ranges, self.factors, strict=True):
            largest = np.maximum(np.maximum(hull.hi, -hull.lo), 0.0)
            np.maximum.at(largest, pieces.element, a.magnitude)
            sums.append(float(np.sum(largest)) if factor < ANY else 0.0)
        return np.array(sums)

    def _without_tight(self, pieces: Pieces) -> Pieces:
        """The loose pieces; the others are merged into the hulls."""
        loose = np.logical_or.reduce(self._loose(pieces))
        if loose.all():
            return pieces
        self._enlarge(pieces.take(~loose))
        return pieces.take(loose)

    def _enlarge(self, pieces: Pieces) -> None:
        for own, a in zip(self.hulls, pieces.ranges, strict=True):
            np.minimum.at(own.lo, pieces.element, a.lo)
            np.maximum.at(own.hi, pieces.element, a.hi)

    def _loose(self, pieces: Pieces, least: float = 1.0) -> list[Truths]:
        known = zip(pieces.ranges, self.least, self.factors, strict=True)
        with np.errstate(all="ignore"):  # inf · 0 is NaN, which nothing exceeds
            return [
                a.magnitude > max(factor, least) * own[pieces.element] for a, own, factor in known
            ]


def _largest(pieces: Pieces, loose: Sequence[Truths], count: int) -> Truths:
    """Which pieces are among the `count` largest loose ones of their element, for any graph."""
    chosen = np.zeros(len(pieces.element), dtype=bool)
    for a, own in zip(pieces.ranges, loose, strict=True):
        (places,) = np.nonzero(own)
        order = places[np.lexsort((-a.magnitude[places], pieces.element[places]))]
        element = pieces.element[order]
        rank = np.arange(len(order)) - np.searchsorted(element, element)
        chosen[order[rank < count]] = True
    return chosen


def _joined(parts: Sequence[Pieces]) -> Pieces:
    boxes, ranges = (
        tuple(map(Interval.concatenated, zip(*own, strict=True)))
        for own in ([one.boxes for one in parts], [one.ranges for one in parts])
    )
    return Pieces(boxes, np.concatenate([part.element for part in parts]), ranges)


def _subdivided(family: SearchedFunctions, pieces: Pieces) -> Pieces:
    """Equal subdivisions of each piece along its longest side, and the ranges on these.

    Lengths are relative to the element's box; neighbours have a common endpoint.
    """
    element = np.tile(pieces.element, _PARTS)
    wholes = [box.rad[pieces.element] for box in family.boxes.values()]
    pairs = zip(pieces.boxes, wholes, strict=True)
    longest = np.argmax([box.rad / np.maximum(whole, TINY) for box, whole in pairs], axis=0)
    boxes = []
    for k, box in enumerate(pieces.boxes):
        low, high = box.lo, box.hi
        with np.errstate(all="ignore"):
            inner = [low + (high - low) * (part / _PARTS) for part in range(1, _PARTS)]
        ends = [low]
        for end in inner:
            ends.append(np.clip(np.where(np.isfinite(end), end, low), ends[-1], high))
        ends.append(high)
        own = longest == k
        lows = [np.where(own, end, low) for end in ends[:-1]]
        highs = [np.where(own, end, high) for end in ends[1:]]
        boxes.append(Interval(np.concatenate(lows), np.concatenate(highs)))
    return Pieces(tuple(boxes), element, family.ranges(boxes, element))


def clustered(points: Array, tolerance: float, most: int) -> Whole:
    """The cluster (m,) of each point (d, m), at most `most` of them: boxes are halved along their
    longest side until none is longer than the tolerance.
    """
    cluster = np.zeros(points.shape[1], dtype=np.intp)
    count = 1
    while count < most:
        pause()
        low, high = cluster_ends(points, points, cluster, count)
        spread = high - low
        longest = np.argmax(spread, axis=0)
        width = np.take_along_axis(spread, longest[np.newaxis], axis=0)[0]
        wide = np.flatnonzero(width > tolerance)
        if not len(wide):
            break
        wide = wide[np.argsort(-width[wide], kind="stable")][: most - count]
        fresh = np.full(count, -1, dtype=np.intp)
        fresh[wide] = count + np.arange(len(wide))
        middle = 0.5 * low + 0.5 * high
        side = longest[cluster]
        value = np.take_along_axis(points, side[np.newaxis], axis=0)[0]
        upper = (fresh[cluster] >= 0) & (value > middle[side, cluster])
        cluster = np.where(upper, fresh[cluster], cluster)
        count += len(wide)
    return cluster


def cluster_ends(low: Array, high: Array, cluster: Whole, count: int) -> tuple[Array, Array]:
    """The least of `low` and the largest of `high` (d, m) in each cluster, (d, count)."""
    order = np.argsort(cluster, kind="stable")
    starts = np.searchsorted(cluster[order], np.arange(count))
    least = np.minimum.reduceat(low[:, order], starts, axis=1)
    return least, np.maximum.reduceat(high[:, order], starts, axis=1)
