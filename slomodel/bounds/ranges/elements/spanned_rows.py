"""The rows a_i of affine numbers a_i·x + b_i of an objective of many variables, where they are few.

Quantities that depend on rows through their inner products alone, such as norms of Σ d_i a_i a_iᵀ,
are the same for rows of K coordinates with the same inner products: no array of n² numbers is
needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.midpoint_radius import Bounded, exact
from slomodel.bounds.arithmetic.rounding import underflow, up_add, up_mul, up_norm, up_sqrt
from slomodel.bounds.norms.loewner import Rows
from slomodel.bounds.part import Array, ObjectivePart
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.calculus import gradient
from slomodel.ir import build
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr

_PART = 1024
"""Columns of which the Gram matrix is added at once."""


def few_rows(part: ObjectivePart, affine: Sequence[Expr]) -> dict[Expr, Rows] | None:
    """Rows (size of the node, K) for each affine node, in coordinates of their common span.

    Hypothesis: K, the total number of rows, is at most n. None where they overflow doubles.
    """
    result = [Rows.of(_derivatives(part, node)) for node in affine]
    A, error, length = (np.concatenate([_of(one, k) for one in result]) for k in range(3))
    joined = Rows(Bounded(A, error), length)
    reduced = in_span(joined)
    if reduced is None:
        return None
    ends = np.cumsum([len(one.length) for one in result])
    places = zip([0, *ends[:-1]], ends, strict=True)
    taken = [reduced.take(np.arange(start, end)) for start, end in places]
    return dict(zip(affine, taken, strict=True))


def _of(rows: Rows, k: int) -> Array:
    return (rows.value, rows.error, rows.length)[k]


def _derivatives(part: ObjectivePart, node: Expr) -> Interval:
    """The derivatives (size of the node, n) of an affine node, one reverse sweep per row."""
    shape = concrete(node.shape, part.sizes)
    count = prod(shape)
    weight = build.data("row", node.shape)
    labels = tuple(range(node.rank))
    picked = build.einsum([weight, node], [labels, labels], (), node.shape)
    graphs = gradient(picked, part.variables)
    boxes = boxed(part.values, 1)
    boxes[weight] = point(np.eye(count).reshape((count, *shape)))
    result = enclose(graphs, boxes, part.sizes, 1)
    rows = [result[graph].broadcast((count, *result[graph].shape[1:])) for graph in graphs]
    return Interval.concatenated(
        [row.each(partial(np.reshape, shape=(count, -1))) for row in rows], 1
    )


def in_span(rows: Rows) -> Rows | None:
    """Rows (K, K) that are within their errors of an isometric image of given ones (K, n), K <= n.

    Let A be the rows, G = AAᵀ = LLᵀ + E. As A = G^½ V and L = (LLᵀ)^½ W with VVᵀ = I and W
    orthogonal, A - L Q = (G^½ - (LLᵀ)^½) V for Q = WᵀV, QQᵀ = I; and the difference of the square
    roots is at most ‖E‖^½ (Bhatia, Matrix Analysis, theorem X.1.1), which is added to the errors.
    Rows are scaled to lengths of at most 1 beforehand, so that this is relative to each.
    """
    count, n = rows.value.shape
    e = np.where(rows.length > 0.0, np.frexp(rows.length)[1], 0)
    if not np.isfinite(rows.length).all():
        return None
    G = exact(np.zeros((count, count)))
    for start in range(0, n, _PART):
        part = np.ldexp(rows.value[:, start : start + _PART], -e[:, np.newaxis])
        one = Bounded(part, underflow(part.size))
        G += one @ one.transposed
    values, V = np.linalg.eigh(G.value)
    L = V * np.sqrt(np.maximum(values, 0.0))
    root = exact(L)
    off = (G - root @ root.transposed).norm
    moved = up_mul(np.full(count, up_sqrt(off)), np.where(rows.length > 0.0, np.ldexp(1.0, e), 0.0))
    A = np.where(rows.length[:, np.newaxis] > 0.0, np.ldexp(L, e[:, np.newaxis]), 0.0)
    length = np.maximum(rows.length, np.asarray(up_norm(A, 1)))
    moved = up_add(moved, np.full(count, underflow(count)))  # underflow in ldexp
    return Rows(Bounded(A, np.asarray(up_add(rows.error, moved))), length)
