"""Which elements of the nodes under some roots the roots depend on.

An element is dead if no root reads it: where each path to a root goes through a branch of `where`
that is not taken, or past a gather that takes others. Its value and its derivatives count for
nothing, so that no rule may ask of it to have any: the pairs i >= j of a sum over i < j.
A product with a 0 kills nothing, since 0 times infinity is no number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import singledispatch

import numpy as np

import slomodel.functions as table
from slomodel.bounds.intervals.interval import Interval
from slomodel.bounds.intervals.rounding import Truths
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
from slomodel.reference import positions

Sizes = Mapping[str, int]
_NOTHING = np.zeros((), dtype=bool)
Live = Mapping[Expr, Truths]
"""Where a node is live, of its shape, for nodes that have dead elements."""

_HARMLESS = (
    *(table.add, table.sub, table.neg, table.mul, table.square),
    *(table.where, table.maximum, table.minimum, same),
)
"""They have a value for all operands that are numbers, and jets in every norm from those of the
operands; in a spectral norm an array with elements set to 0 may be larger than the array.
"""


def has_neutral(node: Expr) -> bool:
    """Whether dead elements of a node are replaced by 0: those of functions that may have no value.

    All that reads them then is finite, as it is made of numbers.
    """
    return (
        isinstance(node, Map)
        and node.function.result == "real"
        and (node.function not in _HARMLESS)
    )


def neutral(node: Expr, a: Interval, live: Live) -> Interval:
    """The interval of a node (batch axes and its shape) with 0 for dead elements.

    Of data only those that are not finite are replaced.
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
    """The conditions of `where` that depend on data alone."""
    moving = dependents(order, lambda node: isinstance(node, Input) and node.role != "data")
    found = [
        node.operands[0] for node in order if isinstance(node, Map) and node.function is table.where
    ]
    return [condition for condition in dict.fromkeys(found) if condition not in moving]


def may_have_dead(order: Iterable[Expr]) -> bool:
    """Whether there is a gather of what was computed, which may leave some of it out."""
    return any(
        isinstance(node, Gather) and not isinstance(node.operands[0], Input) for node in order
    )


def live_elements(
    order: Sequence[Expr],
    roots: Collection[Expr],
    conditions: Mapping[Expr, Interval],
    sizes: Sizes,
) -> dict[Expr, Truths]:
    """The live elements of the nodes of a postorder, all of the roots' being live.

    `conditions` has the truth values of those that are known, without batch axes.
    """
    found: dict[Expr, Truths | None] = dict.fromkeys(roots)
    for node in reversed(order):
        if node not in found:
            continue
        own = found[node]
        if own is not None and own.all():
            own = found[node] = None
        for k, operand in enumerate(node.operands):
            before = found.get(operand, _NOTHING)
            if before is None:
                continue
            read = read_by(node, k, own, conditions, sizes)
            found[operand] = None if read is None else before | read
    return {node: own for node, own in found.items() if own is not None}


def read_by(
    node: Expr,
    k: int,
    live: Truths | None,
    conditions: Mapping[Expr, Interval],
    sizes: Sizes,
) -> Truths | None:
    """Which elements of operand k the live ones of a node read; None where all are."""
    if (
        isinstance(node, Map)
        and node.function is table.where
        and k
        and node.operands[0] in conditions
    ):
        shape = concrete(node.shape, sizes)
        condition = conditions[node.operands[0]]
        missing = tuple(axis for axis in range(node.rank) if axis not in node.axes[0])
        taken = condition.hi == 1.0 if k == 1 else condition.lo == 0.0
        taken = np.broadcast_to(np.expand_dims(taken, missing), shape)
        live = taken if live is None else live & taken
    return _read(node, k, live, sizes)


@singledispatch
def _read(node: Expr, k: int, live: Truths | None, sizes: Sizes) -> Truths | None:
    """Of kinds without a rule all elements are."""
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
    """The elements where axes of one label have one index, with one axis a label."""
    unique = tuple(dict.fromkeys(labels))
    if len(unique) == len(labels):
        return labels, array
    grid = np.indices(tuple(array.shape[labels.index(label)] for label in unique))
    return unique, array[tuple(grid[unique.index(label)] for label in labels)]


@_read.register
def _(node: Gather, k: int, live: Truths | None, sizes: Sizes) -> Truths | None:
    shape = concrete(node.operands[0].shape, sizes)
    where = positions(node.index, concrete(node.shape, sizes), shape, sizes)
    out = np.zeros(shape, dtype=bool)
    out[where if live is None else tuple(one[live] for one in where)] = True
    return out


@_read.register
def _(node: Scatter, k: int, live: Truths | None, sizes: Sizes) -> Truths | None:
    if live is None:
        return None
    shape = concrete(node.operands[0].shape, sizes)
    return np.asarray(live[positions(node.index, shape, live.shape, sizes)])


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
    """An element is read by all results from its own on."""
    if live is None:
        return None
    back = np.flip(live, node.axis)
    return np.flip(np.logical_or.accumulate(back, axis=node.axis), node.axis)
