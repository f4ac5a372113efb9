"""Lookups in the steps of a loop at places that are consecutive but for a few jumps: slices.

The neighbours `f[(i + 1) % n]` of a periodic grid are two slices of it, those that end at an edge,
`f[min(i + 1, n - 1)]`, a slice and an element. Slices are read and added in vectors; places that
are looked up are read one by one, and additions at them wait for one another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from slomodel.codegen.loops.access import Numbers
from slomodel.functions import add
from slomodel.ir import build
from slomodel.ir.dims import Dim
from slomodel.ir.expr import (
    Affine,
    Expr,
    Gather,
    Index,
    Input,
    Lookup,
    Recur,
    Scatter,
    reads_axis,
)
from slomodel.ir.loop import Whole
from slomodel.ir.recur import with_values
from slomodel.ir.walk import inputs, rewrite
from slomodel.reference import evaluate

_MOST_PIECES = 3
"""A shift along a periodic axis has two pieces, one between edges that repeat has up to three."""
_MOST_ELEMENTS = 1 << 20

IndexPiece = tuple[int, int, int]
"""From one place of index data up to another one, and the integer at the first; they grow by 1."""
Pieces = Mapping[Expr, tuple[IndexPiece, ...]]


def pieces_of(
    prepared: Mapping[Input, Expr], numbers: Numbers
) -> dict[Expr, tuple[IndexPiece, ...]]:
    """The pieces of those prepared index data that sizes alone determine, where they are few."""
    result: dict[Expr, tuple[IndexPiece, ...]] = {}
    for data, graph in prepared.items():
        if data.rank != 1 or data.dtype != "whole" or inputs(graph):
            continue
        if 0 < graph.shape[0].size(numbers) <= _MOST_ELEMENTS:
            table = np.asarray(evaluate([graph], {}, numbers)[0]).astype(int)
            starts = [0, *(np.flatnonzero(np.diff(table) != 1) + 1)]
            if len(starts) <= _MOST_PIECES:
                ends = [*starts[1:], table.size]
                result[data] = tuple(
                    (int(a), int(b), int(table[a])) for a, b in zip(starts, ends, strict=True)
                )
    return result


def with_index_pieces(roots: tuple[Expr, ...], pieces: Pieces) -> tuple[Expr, ...]:
    """Roots in which the steps of loops read, and add to, slices in place of these index data."""
    if not pieces:
        return roots
    return rewrite(
        roots, lambda node: _loop_by_slices(node, pieces) if isinstance(node, Recur) else node
    )


def _by_slices(node: Expr, pieces: Pieces) -> Expr:
    if not isinstance(node, Gather | Scatter) or node.operands[0].dtype != "real":
        return node
    for k, one in enumerate(node.index):
        if isinstance(one, Lookup) and one.table in pieces and _is_alone(node.index, k):
            terms = [_slice(node, k, piece) for piece in pieces[one.table]]
            return rewrite((reduce(add, terms),), lambda part: _by_slices(part, pieces))[0]
    return node


def _loop_by_slices(node: Recur, pieces: Pieces) -> Expr:
    """A state of a loop whose steps read the index data as a whole."""
    if not any(operand in pieces for operand in node.operands):
        return node
    # What does not depend on states is looked up at all steps at once, outside the loop.
    values = [update.value for update in node.loop.updates]
    apart = with_values(node, values, _stores)[node.state]
    assert isinstance(apart, Recur)
    own = {
        one: pieces[apart.operands[source.operand]]
        for one, source in apart.loop.sources
        if isinstance(source, Whole) and apart.operands[source.operand] in pieces
    }
    values = [update.value for update in apart.loop.updates]
    result = rewrite(tuple(values), lambda one: _by_slices(one, own))
    return with_values(apart, result, _stores)[node.state]


def _stores(node: Expr) -> bool:
    return False


def _is_alone(index: Sequence[Index], k: int) -> bool:
    """Whether all other indices along the axis of index k are affine."""
    (axis,) = index[k].axes  # type: ignore[union-attr]
    others = (one for j, one in enumerate(index) if j != k and reads_axis(one, axis))
    return all(isinstance(one, Affine) for one in others)


def _slice(node: Gather | Scatter, k: int, piece: IndexPiece) -> Expr:
    """The part of a gather, or of a scatter, at one piece of the index data in index k."""
    start, stop, first = piece
    (axis,) = node.index[k].axes  # type: ignore[union-attr]
    whole = node.operands[0]
    shape = list(node.shape if isinstance(node, Gather) else whole.shape)
    here = [
        Affine(Dim((), start if j == axis else 0), tuple(int(i == j) for i in range(len(shape))))
        for j in range(len(shape))
    ]
    full = tuple(shape)
    shape[axis] = Dim((), stop - start)
    index = [_moved(one, axis, start) for one in node.index]
    index[k] = Affine(Dim((), first), tuple(int(i == axis) for i in range(len(shape))))
    if isinstance(node, Gather):
        return build.scatter(build.gather(whole, index, tuple(shape)), here, full)
    return build.scatter(build.gather(whole, here, tuple(shape)), index, node.shape)


def _moved(one: Index, axis: int, start: int) -> Index:
    """An index as a function of the place along an axis past `start`."""
    if isinstance(one, Affine) and one.coefficients[axis]:
        return Affine(one.offset + start * one.coefficients[axis], one.coefficients)
    return one
