"""Rows a_i of affine numbers a_i·x + b_i with few entries each, represented by their magnitudes.

‖Σ d_i a_i a_iᵀ‖ for d >= 0 is at most the norm of Σ d_i |a_i||a_i|ᵀ, an array >= 0 of which only
products with vectors are needed: no array of n² numbers is formed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.rounding import (
    Array,
    nonnegative_sum,
    underflow,
    up_div,
    up_mul,
    up_norm,
    up_sum,
)
from slomodel.bounds.norms.spectral_norm import collatz_vector
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.stopping import pause
from slomodel.calculus.jvp import tangent
from slomodel.ir import build
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Axes, Einsum, Expr, Gather, Map, Reshape, Scatter
from slomodel.ir.walk import dependents, postorder
from slomodel.reference import aligned, positions

Columns = NDArray[np.intp]
Shaped = TypeVar("Shaped", Array, Columns)
_MOST_ENTRIES = 2**23
"""Entries of all rows together: 64 MB of magnitudes and as much of columns."""
_MOST_IN_A_ROW = 32
"""Most entries per row; for more the magnitudes of entries give poor bounds on norms."""


@dataclass(frozen=True, slots=True)
class SparseRows:
    """Rows (m, n): |a_ij| is at most the sum of `size` (m, p) where `column` (m, p) is j.

    No row is longer than its `length` (m,).
    """

    column: Columns
    size: Array
    length: Array

    @property
    def overlap(self) -> float:
        """The largest overlap of a column."""
        known = np.isfinite(self.length) & (self.length > 0.0)
        column, size = self.column[known], self.size[known] / self.length[known, np.newaxis]
        with np.errstate(all="ignore"):
            largest = float(np.bincount(column.ravel(), (size * size).ravel()).max(initial=0.0))
        return float(np.sqrt(largest)) if 1.0 < largest < np.inf else 1.0

    def take(self, which: NDArray[np.intp]) -> SparseRows:
        return SparseRows(self.column[which], self.size[which], self.length[which])


@dataclass(frozen=True, slots=True)
class _Entries:
    """The entries of each element of a node: arrays of its shape with one additional axis."""

    column: Columns
    size: Array


def largest_eigenvalue_of_sizes(parts: Sequence[tuple[SparseRows, Array]], n: int) -> float:
    """Upper bound on ‖Σ d_i |a_i||a_i|ᵀ‖ over all parts, d >= 0.

    For M >= 0 symmetric and any v > 0, λ_max(M) <= max_j (M v)_j / v_j: see `collatz_vector`.
    """
    parts = [(rows, d) for rows, d in parts if d.any()]
    if not parts:
        return 0.0
    terms = sum(rows.size.size for rows, _ in parts)
    lost = _lost(parts, terms)

    def apply(v: Array) -> Array:
        w = np.zeros(n)
        for rows, d in parts:
            pause()
            along = range(rows.column.shape[1])
            y = d * sum(rows.size[:, k] * v[rows.column[:, k]] for k in along)
            for k in along:
                w += np.bincount(rows.column[:, k], rows.size[:, k] * y, n)
        return w

    v = collatz_vector(apply, n)
    ratio = float(np.max(up_div(nonnegative_sum(apply(v), terms + 4, lost), v)))
    return ratio if ratio < np.inf else float(np.inf)


def _lost(parts: Sequence[tuple[SparseRows, Array]], terms: int) -> float:
    """Upper bound on the underflow in products of d_i, sizes and v <= 2, times later factors."""
    largest = max(max(1.0, float(np.max(rows.size, initial=0.0))) for rows, _ in parts)
    weight = max(max(1.0, float(np.max(d, initial=0.0))) for _, d in parts)
    return up_mul(underflow(8 * terms), up_mul(up_mul(largest, largest), weight))


def sparse_rows(part: ObjectivePart, affine: Sequence[Expr]) -> dict[Expr, SparseRows] | None:
    """Rows (size of the node, n) for each affine node; None where they have too many entries."""
    order = postorder(*affine)
    varying = dependents(order, set(part.variables).__contains__)
    result: dict[Expr, _Entries] = {}
    for variable, column in part.by_variable(np.arange(part.n)).items():
        result[variable] = _Entries(column[..., np.newaxis], np.ones((*column.shape, 1)))
    for node in order:
        if node in varying and node not in result:
            entries = _entries(node, result, varying, part)
            if (
                entries is None
                or entries.size.size > _MOST_ENTRIES
                or entries.size.shape[-1] > _MOST_IN_A_ROW
            ):
                return None
            result[node] = entries
    return {node: _rows(result[node]) for node in affine}


def _rows(own: _Entries) -> SparseRows:
    """The rows; one with two entries in a column has the sum of all entries as its norm bound."""
    p = own.size.shape[-1]
    column, size = own.column.reshape(-1, p), own.size.reshape(-1, p)
    ordered = np.sort(column, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    length = np.where(twice, up_sum(size, 1), up_norm(size, 1))
    return SparseRows(column, size, length)


@singledispatch
def _entries(
    node: Expr, known: Mapping[Expr, _Entries], varying: Collection[Expr], part: ObjectivePart
) -> _Entries | None:
    """The entries of a linear node from those of its operands; None where they are too many."""
    return None


@_entries.register
def _(
    node: Map, known: Mapping[Expr, _Entries], varying: Collection[Expr], part: ObjectivePart
) -> _Entries | None:
    shape = concrete(node.shape, part.sizes)
    columns, sizes = [], []
    for k, operand in enumerate(node.operands):
        if operand not in varying:
            continue
        others: list[Expr | None] = [None] * len(node.operands)
        others[k] = build.ones(operand.shape)
        slope = tangent(node, others)
        if slope is None:
            continue
        own = known[operand]
        factor = np.broadcast_to(_magnitude(slope, part), shape)[..., np.newaxis]
        axes, full = node.axes[k], (*shape, own.size.shape[-1])
        columns.append(np.broadcast_to(aligned(own.column, axes, len(shape)), full))
        sizes.append(up_mul(aligned(own.size, axes, len(shape)), np.asarray(factor)))
    if not columns or sum(column.size for column in columns) > _MOST_ENTRIES:
        return None
    return _Entries(np.concatenate(columns, axis=-1), np.concatenate(sizes, axis=-1))


@_entries.register
def _(
    node: Gather, known: Mapping[Expr, _Entries], varying: Collection[Expr], part: ObjectivePart
) -> _Entries | None:
    operand = node.operands[0]
    indexed = concrete(operand.shape, part.sizes)
    where = positions(
        node.index, concrete(node.shape, part.sizes), indexed, part.sizes, part.tables
    )
    return _Entries(known[operand].column[where], known[operand].size[where])


@_entries.register
def _(
    node: Reshape, known: Mapping[Expr, _Entries], varying: Collection[Expr], part: ObjectivePart
) -> _Entries | None:
    own = known[node.operands[0]]
    shape = (*concrete(node.shape, part.sizes), own.size.shape[-1])
    return _Entries(own.column.reshape(shape), own.size.reshape(shape))


@_entries.register
def _(
    node: Scatter, known: Mapping[Expr, _Entries], varying: Collection[Expr], part: ObjectivePart
) -> _Entries | None:
    """An element to which several elements are scattered has the entries of all of them."""
    own = known[node.operands[0]]
    p = own.size.shape[-1]
    shape = concrete(node.shape, part.sizes)
    where = positions(node.index, own.size.shape[:-1], shape, part.sizes, part.tables)
    flat = (
        np.ravel_multi_index(where, shape).ravel() if shape else np.zeros(own.size.size // p, int)
    )
    order = np.argsort(flat, kind="stable")
    target = flat[order]
    rank = np.arange(target.size) - np.searchsorted(target, target)
    deepest = int(rank.max(initial=0)) + 1
    if prod(shape) * deepest * p > _MOST_ENTRIES:
        return None
    column = np.zeros((prod(shape), deepest, p), dtype=np.intp)
    size = np.zeros((prod(shape), deepest, p))
    column[target, rank] = own.column.reshape(-1, p)[order]
    size[target, rank] = own.size.reshape(-1, p)[order]
    return _Entries(column.reshape(*shape, -1), size.reshape(*shape, -1))


@_entries.register
def _(
    node: Einsum, known: Mapping[Expr, _Entries], varying: Collection[Expr], part: ObjectivePart
) -> _Entries | None:
    """Σ c u over labels: the entries of every u of the sum, each times the magnitude of its c."""
    dims = concrete(node.dims, part.sizes)
    words = (*node.inputs, node.output)
    held = {label for word in words for label in word}
    if len(held) < len(dims) or any(len(set(word)) < len(word) for word in words):
        return None
    order = (*node.output, *(k for k in range(len(dims)) if k not in node.output))
    shape = tuple(dims[label] for label in order)
    (place,) = (k for k, operand in enumerate(node.operands) if operand in varying)
    own = known[node.operands[place]]
    p = own.size.shape[-1]
    if prod(shape) * p > _MOST_ENTRIES:
        return None
    factor = np.ones(shape)
    for k, operand in enumerate(node.operands):
        if k != place:
            laid = _laid(_magnitude(operand, part), node.inputs[k], order)
            factor = up_mul(factor, np.broadcast_to(laid, shape))
    result = (*(dims[label] for label in node.output), -1)
    column = np.broadcast_to(_laid(own.column, node.inputs[place], order), (*shape, p))
    size = up_mul(_laid(own.size, node.inputs[place], order), factor[..., np.newaxis])
    return _Entries(column.reshape(result), size.reshape(result))


def _laid(array: Shaped, own: Axes, order: Axes) -> Shaped:
    """An array with these labels, and possibly further axes, with the labels in another order."""
    axes = [*(own.index(label) for label in order if label in own), *range(len(own), array.ndim)]
    missing = tuple(k for k, label in enumerate(order) if label not in own)
    return np.expand_dims(np.transpose(array, axes), missing)


def _magnitude(node: Expr, part: ObjectivePart) -> Array:
    return enclose([node], boxed(part.values), part.sizes)[node].magnitude
