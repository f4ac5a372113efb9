"""Ranges of functions of one argument over pieces that are cut again where they tell little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Array, Truths
from slomodel.bounds.ranges.enclose import enclose
from slomodel.ir.expr import Expr, Input

Whole = NDArray[np.intp]
_TIGHT = 1.05
"""A piece is cut where a size is so many times one that the function attains for sure."""
_PARTS = 4
_ROUNDS = 10
_LARGEST = 3
"""So many pieces of an element are cut at once, those of the largest sizes."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Intervals of the argument (q,) with the element that each belongs to, and on them those of
    each graph.
    """

    box: Interval
    element: Whole
    ranges: tuple[Interval, ...]

    def take(self, which: Truths) -> Pieces:
        part = itemgetter(which)
        ranges = tuple(a.each(part) for a in self.ranges)
        return Pieces(self.box.each(part), self.element[which], ranges)


@dataclass(slots=True)
class Search:
    """Hulls of the graphs' ranges for m elements, from pieces of their boxes.

    An interval that holds a value of the function says how large it is at least; a piece is cut
    until no size is `_TIGHT` times the largest of these. `data` are (m,) or (1,).
    """

    graphs: Sequence[Expr]
    argument: Input
    data: Mapping[Input, Interval]
    count: int
    hulls: list[Interval] = field(init=False)
    least: Array = field(init=False)
    left: list[Pieces] = field(default_factory=list)

    def __post_init__(self) -> None:
        shape = (len(self.graphs), self.count)
        self.least = np.zeros(shape)
        nothing = np.full(shape, np.inf)
        self.hulls = [Interval(a, -a) for a in nothing]

    def add(self, pieces: Pieces, last: bool = False) -> None:
        """Pieces that cover their elements; those that are tight, or `last`, go into the hulls."""
        for own, a in zip(self.least, pieces.ranges, strict=True):
            np.maximum.at(own, pieces.element, a.mignitude)
        loose = np.logical_or.reduce(self._loose(pieces))
        if last:
            loose[:] = False
        done = pieces.take(~loose)
        for hull, a in zip(self.hulls, done.ranges, strict=True):
            np.minimum.at(hull.lo, done.element, a.lo)
            np.maximum.at(hull.hi, done.element, a.hi)
        if loose.any():
            self.left.append(pieces.take(loose))

    def found(self) -> list[Interval]:
        """The hulls, after the cuts."""
        for turn in range(_ROUNDS):
            if not self.left:
                break
            pieces = _joined(self.left)
            cut = _largest(pieces, self._loose(pieces))
            new = _cut(self.graphs, self.argument, self.data, pieces.take(cut))
            self.left.clear()
            self.add(_joined([pieces.take(~cut), new]), last=turn == _ROUNDS - 1)
        return self.hulls

    def _loose(self, pieces: Pieces) -> list[Truths]:
        pairs = zip(pieces.ranges, self.least, strict=True)
        return [a.magnitude > _TIGHT * own[pieces.element] for a, own in pairs]


def _largest(pieces: Pieces, loose: Sequence[Truths]) -> Truths:
    """Which pieces are among the largest of their element, for any graph for which it is loose."""
    chosen = np.zeros(len(pieces.element), dtype=bool)
    for a, own in zip(pieces.ranges, loose, strict=True):
        (places,) = np.nonzero(own)
        order = places[np.lexsort((-a.magnitude[places], pieces.element[places]))]
        element = pieces.element[order]
        rank = np.arange(len(order)) - np.searchsorted(element, element)
        chosen[order[rank < _LARGEST]] = True
    return chosen


def _joined(parts: Sequence[Pieces]) -> Pieces:
    def all_of(several: Sequence[Interval]) -> Interval:
        lows, highs = [a.lo for a in several], [a.hi for a in several]
        return Interval(np.concatenate(lows), np.concatenate(highs))

    return Pieces(
        all_of([one.box for one in parts]),
        np.concatenate([one.element for one in parts]),
        tuple(all_of(own) for own in zip(*(one.ranges for one in parts), strict=True)),
    )


def _cut(
    graphs: Sequence[Expr], argument: Input, data: Mapping[Input, Interval], pieces: Pieces
) -> Pieces:
    """Equal parts of each piece, neighbours with a common end, and the ranges on these."""
    low, high = pieces.box.lo, pieces.box.hi
    with np.errstate(all="ignore"):
        inner = [low + (high - low) * (k / _PARTS) for k in range(1, _PARTS)]
    ends = [low]
    for end in inner:
        ends.append(np.clip(np.where(np.isfinite(end), end, low), ends[-1], high))
    ends.append(high)
    box = Interval(np.concatenate(ends[:-1]), np.concatenate(ends[1:]))
    element = np.tile(pieces.element, _PARTS)
    flat = {one: a.each(np.ravel) for one, a in data.items()}
    own = {one: a if a.shape == (1,) else a.each(itemgetter(element)) for one, a in flat.items()}
    found = enclose(graphs, {argument: box, **own}, {}, 1)
    wide = tuple(found[g].each(lambda x: np.broadcast_to(x, element.shape)) for g in graphs)
    return Pieces(box, element, wide)
