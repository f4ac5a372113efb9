"""Ranges of functions of one argument over pieces that are cut again where they tell little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.enclose import enclose
from slomodel.bounds.interval import Interval
from slomodel.ir.expr import Expr, Input

Whole = NDArray[np.intp]
_TIGHT = 1.5
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

    def take(self, which: NDArray[np.bool_]) -> Pieces:
        part = itemgetter(which)
        ranges = tuple(a.each(part) for a in self.ranges)
        return Pieces(self.box.each(part), self.element[which], ranges)


def hulls(
    graphs: Sequence[Expr],
    argument: Input,
    box: Interval,
    data: Mapping[Input, Interval],
    found: Sequence[Interval],
) -> list[Interval]:
    """Hulls (m,) of the graphs' ranges, from pieces of the boxes (p, m) and ranges on these.

    An interval that holds a value of the function says how large it is at least; a piece is cut
    until no size is `_TIGHT` times the largest of these.
    """
    p, m = box.shape
    wide = [a.each(lambda x: np.broadcast_to(x, (p, m)).ravel()) for a in found]
    element = np.broadcast_to(np.arange(m), (p, m)).ravel()
    pieces = Pieces(box.each(np.ravel), element, tuple(wide))
    lo, hi = np.full((len(graphs), m), np.inf), np.full((len(graphs), m), -np.inf)
    least = np.zeros((len(graphs), m))
    for turn in range(_ROUNDS + 1):
        for k, a in enumerate(pieces.ranges):
            np.maximum.at(least[k], pieces.element, a.mignitude)
        loose = [
            a.magnitude > _TIGHT * own[pieces.element]
            for a, own in zip(pieces.ranges, least, strict=True)
        ]
        left = (
            np.logical_or.reduce(loose) if turn < _ROUNDS else np.zeros(len(loose[0]), dtype=bool)
        )
        done = pieces.take(~left)
        for k, a in enumerate(done.ranges):
            np.minimum.at(lo[k], done.element, a.lo)
            np.maximum.at(hi[k], done.element, a.hi)
        if not left.any():
            break
        pieces = pieces.take(left)
        cut = _largest(pieces, [one[left] for one in loose])
        pieces = _joined(pieces.take(~cut), _cut(graphs, argument, data, pieces.take(cut)))
    return [Interval(a, b) for a, b in zip(lo, hi, strict=True)]


def _largest(pieces: Pieces, loose: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Which pieces are among the largest of their element, for any graph for which it is loose."""
    chosen = np.zeros(len(pieces.element), dtype=bool)
    for a, own in zip(pieces.ranges, loose, strict=True):
        (places,) = np.nonzero(own)
        order = places[np.lexsort((-a.magnitude[places], pieces.element[places]))]
        element = pieces.element[order]
        rank = np.arange(len(order)) - np.searchsorted(element, element)
        chosen[order[rank < _LARGEST]] = True
    return chosen


def _joined(one: Pieces, other: Pieces) -> Pieces:
    def both(a: Interval, b: Interval) -> Interval:
        return Interval(np.concatenate([a.lo, b.lo]), np.concatenate([a.hi, b.hi]))

    return Pieces(
        both(one.box, other.box),
        np.concatenate([one.element, other.element]),
        tuple(both(a, b) for a, b in zip(one.ranges, other.ranges, strict=True)),
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
