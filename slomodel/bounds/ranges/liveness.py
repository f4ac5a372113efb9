"""Liveness of array elements: which elements of the nodes below some roots the roots depend on.

An element is dead if no root reads it: every path to a root goes through a branch of `where` that
is not taken, or a gather that selects other elements, as for the pairs i >= j of a sum over i < j.
The roots do not depend on its value or derivatives, so that it need not have any. A product with 0
does not make an element dead, since 0 times infinity is NaN.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Truths
from slomodel.functions.compound import same
from slomodel.ir.dims import concrete
from slomodel.ir.expr import (
    Axes,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Input,
    Map,
    Reshape,
    Scan,
    Scatter,
)
from slomodel.ir.walk import dependents
from slomodel.reference import aligned, positions

Sizes = Mapping[str, int]
Tables = Mapping[Expr, NDArray[np.float64]]
"""The integer arrays that indices read."""
_NOTHING = np.zeros((), dtype=bool)
Live = Mapping[Expr, Truths]
"""The live elements of a node, of its shape; only nodes with dead elements have an entry."""

_HARMLESS = (
    *(table.add, table.sub, table.neg, table.mul, table.square),
    *(table.where, table.maximum, table.minimum, same),
)
"""Functions whose dead elements are not set to 0: they are finite for finite operands, and an array
with some elements set to 0 may have a larger spectral norm than the array.
"""


def has_neutral(node: Expr) -> bool:
    """Whether dead elements of a node are set to 0: for functions that may be undefined there.

    Nodes that read these elements are then finite.
    """
    return (
        isinstance(node, Map)
        and node.function.result == "real"
        and (node.function not in _HARMLESS)
    )


def neutral(node: Expr, a: Interval, live: Live) -> Interval:
    """The interval of a node (batch axes and its shape) with dead elements set to 0.

    In data, only dead elements that are not finite are replaced.
    """
    own = live.get(node)
    if own is None:
        return a
    if isinstance(node, Input):
        own = own | (np.isfinite(a.lo) & np.isfinite(a.hi))
    elif not has_neutral(node):
        return a
    return a.each(lambda array: np.where(own, array, 0.0))


def fixed_choices(order: Sequence[Expr]) -> list[Expr]:
    """The conditions of `where` that depend on data only."""
    varying = dependents(order, lambda node: isinstance(node, Input) and node.role != "data")
    conditions = [
        node.operands[0] for node in order if isinstance(node, Map) and node.function is table.where
    ]
    return [condition for condition in dict.fromkeys(conditions) if condition not in varying]


def may_have_dead(order: Iterable[Expr]) -> bool:
    """Whether there is a gather of a computed array, which may omit some of its elements."""
    return any(
        isinstance(node, Gather) and not isinstance(node.operands[0], Input) for node in order
    )


def live_elements(
    order: Sequence[Expr],
    roots: Collection[Expr],
    conditions: Mapping[Expr, Interval],
    sizes: Sizes,
    tables: Tables,
) -> dict[Expr, Truths]:
    """The live elements of the nodes of a postorder; all elements of the roots are live.

    `conditions` holds the truth values of known conditions of `where`, without batch axes; `tables`
    the integer arrays that indices read.
    """
    live: dict[Expr, Truths | None] = dict.fromkeys(roots)
    for node in reversed(order):
        if node not in live:
            continue
        own = live[node]
        if own is not None and own.all():
            own = live[node] = None
        for k, operand in enumerate(node.operands):
            before = live.get(operand, _NOTHING)
            if before is None:
                continue
            read = read_by(node, k, own, conditions, sizes, tables)
            live[operand] = None if read is None else before | read
    return {node: own for node, own in live.items() if own is not None}


def read_by(
    node: Expr,
    k: int,
    live: Truths | None,
    conditions: Mapping[Expr, Interval],
    sizes: Sizes,
    tables: Tables,
) -> Truths | None:
    """The elements of operand k that the live elements of a node read; None for all of them."""
    if (
        isinstance(node, Map)
        and node.function is table.where
        and k
        and node.operands[0] in conditions
    ):
        shape = concrete(node.shape, sizes)
        condition = conditions[node.operands[0]]
        taken = condition.hi == 1.0 if k == 1 else condition.lo == 0.0
        taken = np.broadcast_to(aligned(taken, node.axes[0], node.rank), shape)
        live = taken if live is None else live & taken
    if isinstance(node, Gather | Scatter) and k:
        return None  # a table
    if isinstance(node, Gather):
        return _gathered(node, live, sizes, tables)
    if isinstance(node, Scatter):
        return _scattered(node, live, sizes, tables)
    return _read(node, k, live, sizes)


@singledispatch
def _read(node: Expr, k: int, live: Truths | None, sizes: Sizes) -> Truths | None:
    """All elements: the default for kinds of nodes without a rule."""
    return None


@_read.register
def _(node: Map, k: int, live: Truths | None, sizes: Sizes) -> Truths | None:
    if live is None:
        return None
    dropped = tuple(axis for axis in range(node.rank) if axis not in node.axes[k])
    return np.asarray(live.any(axis=dropped)) if dropped else live


@_read.register
def _(node: Einsum, k: int, live: Truths | None, sizes: Sizes) -> Truths | None:
    own = node.inputs[k]
    if live is None and len(set(own)) == len(own) and len(set(node.output)) == len(node.output):
        return None
    size = concrete(node.dims, sizes)
    if live is None:
        live = np.ones(concrete(node.shape, sizes), dtype=bool)
    labels, live = _diagonal(node.output, live)
    dropped = tuple(axis for axis, label in enumerate(labels) if label not in own)
    live = np.asarray(live.any(axis=dropped))
    labels = tuple(label for label in labels if label in own)
    unique = tuple(dict.fromkeys(own))
    order = [labels.index(label) for label in unique if label in labels]
    missing = tuple(axis for axis, label in enumerate(unique) if label not in labels)
    wide = np.expand_dims(np.transpose(live, order), missing)
    read = np.broadcast_to(wide, tuple(size[label] for label in unique))
    if len(unique) == len(own):
        return np.asarray(read)
    out = np.zeros(tuple(size[label] for label in own), dtype=bool)
    grid = np.indices(read.shape)
    out[tuple(grid[unique.index(label)] for label in own)] = read
    return out


def _diagonal(labels: Axes, array: Truths) -> tuple[Axes, Truths]:
    """The diagonal elements along axes with the same label, with one axis per label."""
    unique = tuple(dict.fromkeys(labels))
    if len(unique) == len(labels):
        return labels, array
    grid = np.indices(tuple(array.shape[labels.index(label)] for label in unique))
    return unique, array[tuple(grid[unique.index(label)] for label in labels)]


def _gathered(node: Gather, live: Truths | None, sizes: Sizes, tables: Tables) -> Truths | None:
    shape = concrete(node.operands[0].shape, sizes)
    where = positions(node.index, concrete(node.shape, sizes), shape, sizes, tables)
    out = np.zeros(shape, dtype=bool)
    out[
        where if live is None else tuple(np.broadcast_to(one, live.shape)[live] for one in where)
    ] = True
    return out


def _scattered(node: Scatter, live: Truths | None, sizes: Sizes, tables: Tables) -> Truths | None:
    if live is None:
        return None
    shape = concrete(node.operands[0].shape, sizes)
    return np.asarray(live[positions(node.index, shape, live.shape, sizes, tables)])


@_read.register
def _(node: Reshape, k: int, live: Truths | None, sizes: Sizes) -> Truths | None:
    return None if live is None else live.reshape(concrete(node.operands[0].shape, sizes))


@_read.register
def _(node: Extreme, k: int, live: Truths | None, sizes: Sizes) -> Truths | None:
    if live is None:
        return None
    shape = concrete(node.operands[0].shape, sizes)
    return np.asarray(np.broadcast_to(np.expand_dims(live, node.axes), shape))


@_read.register
def _(node: Scan, k: int, live: Truths | None, sizes: Sizes) -> Truths | None:
    """An element is read by the results at its own index and at later ones."""
    if live is None:
        return None
    back = np.flip(live, node.axis)
    return np.flip(np.logical_or.accumulate(back, axis=node.axis), node.axis)
