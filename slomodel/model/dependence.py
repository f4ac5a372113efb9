"""The elements of x on which each element of an expression depends, found from its graph.

Each node is mapped to a Boolean matrix (elements of the node, n), which is sparse: the pattern of
its Jacobian. Operations propagate it by their index structure; values of x play no role.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from slomodel.ir.dims import concrete
from slomodel.ir.expr import (
    Einsum,
    Expr,
    Extreme,
    Gather,
    Input,
    Map,
    Reshape,
    Scan,
    Scatter,
    tables_of,
)
from slomodel.ir.walk import dependents, postorder
from slomodel.reference import evaluate
from slomodel.reference.values import missing_axes, positions
from slomodel.solve.facts import Pattern

Positions = NDArray[np.intp]

# Largest number of stored elements of a pattern: 100 MB.
MOST_STORED = 20_000_000


class TooDense(Exception):
    """Raised where a pattern would hold more than MOST_STORED elements."""


@dataclass(frozen=True, slots=True)
class _Bound:
    """Sizes of dims, the values of given inputs, and those of the tables that indices read."""

    sizes: Mapping[str, int]
    values: Mapping[Input, NDArray[np.generic]]
    tables: Mapping[Expr, NDArray[np.generic]]

    def shape(self, node: Expr) -> tuple[int, ...]:
        return concrete(node.shape, self.sizes)

    def size(self, node: Expr) -> int:
        return int(np.prod(self.shape(node), dtype=int))


def dependence(
    roots: Sequence[Expr],
    variables: Sequence[Input],
    values: Mapping[Input, NDArray[np.generic]],
    sizes: Mapping[str, int],
) -> Pattern:
    """The rows of all roots, one after another, and the columns of all variables: CSR, Boolean.

    An element that is not stored is a derivative that is 0 everywhere, as far as the graph shows.
    `values` are those of the data. Raises TooDense.
    """
    from scipy.sparse import csr_array, vstack

    order = postorder(*roots)
    varying = dependents(order, set(variables).__contains__)
    needed = list(dict.fromkeys(t for node in order for t in tables_of(node) if node in varying))
    tables = dict(zip(needed, evaluate(needed, values, sizes), strict=True))
    known = _Bound(sizes, values, tables)
    n = sum(known.size(variable) for variable in variables)
    result: dict[Expr, Pattern] = {}
    first = 0
    for one in variables:
        m = known.size(one)
        columns, ends = _counted(m) + np.int32(first), _counted(m + 1)
        result[one] = csr_array((np.ones(m, bool), columns, ends), shape=(m, n))
        first += m
    users = _last_users(order)
    for node in order:
        if node in varying and node not in result:
            # Truth values are constant between the points where they change.
            own = [result.get(operand) for operand in node.operands]
            if node.dtype != "bool" and any(one is not None for one in own):
                result[node] = _propagated(node, own, known)
        for done in users.get(node, ()):
            if done not in roots:
                result.pop(done, None)
    empty = {root: csr_array((known.size(root), n), dtype=bool) for root in roots}
    return vstack([result.get(root, empty[root]) for root in roots], format="csr")


def _counted(m: int) -> NDArray[np.int32]:
    """0, 1, …, m − 1 in 32 bits, which take half the memory and suffice for MOST_STORED."""
    return np.arange(m, dtype=np.int32)


def _last_users(order: Sequence[Expr]) -> dict[Expr, list[Expr]]:
    """For each node the operands that no later node in the order reads."""
    last = {operand: node for node in order for operand in node.operands}
    result: dict[Expr, list[Expr]] = {}
    for operand, node in last.items():
        result.setdefault(node, []).append(operand)
    return result


@singledispatch
def _propagated(node: Expr, operands: Sequence[Pattern | None], known: _Bound) -> Pattern:
    """The pattern of a node from those of its operands, None for one that is constant.

    Every element of a node without a rule depends on all elements of its operands.
    """
    rows = known.size(node)
    whole = [
        _read(np.zeros(operand.shape[0], np.intp), None, operand, 1)
        for operand in operands
        if operand is not None
    ]
    return _read(None, np.zeros(rows, np.intp), _union(whole), rows)


def _union(patterns: Sequence[Pattern]) -> Pattern:
    total = patterns[0]
    for pattern in patterns[1:]:
        total = total + pattern
    return total


def _read(to: Positions | None, taken: Positions | None, operand: Pattern, rows: int) -> Pattern:
    """The pattern whose row to[k] is the union of the rows taken[k] of an operand.

    None stands for 0, 1, …. Raises TooDense.
    """
    from scipy.sparse import csr_array

    lengths = np.diff(operand.indptr)
    stored = int(lengths.sum() if taken is None else lengths[taken].sum())
    if stored > MOST_STORED and (to is None or rows > 1):
        raise TooDense
    if to is None:
        return operand[taken]
    columns = _counted(len(to)) if taken is None else taken.astype(np.int32)
    own = (to.astype(np.int32), columns)
    chosen = csr_array((np.ones(len(to), bool), own), shape=(rows, operand.shape[0]))
    return chosen @ operand


@_propagated.register
def _(node: Map, operands: Sequence[Pattern | None], known: _Bound) -> Pattern:
    shape = known.shape(node)
    parts = []
    for k, (one, operand) in enumerate(zip(node.operands, operands, strict=True)):
        if operand is None:
            continue
        own = np.arange(operand.shape[0]).reshape(known.shape(one))
        if own.shape == shape:
            parts.append(operand)
            continue
        aligned = np.broadcast_to(np.expand_dims(own, missing_axes(node, k)), shape)
        parts.append(_read(None, aligned.ravel(), operand, aligned.size))
    return _union(parts)


@_propagated.register
def _(node: Einsum, operands: Sequence[Pattern | None], known: _Bound) -> Pattern:
    dims = concrete(node.dims, known.sizes)
    masks = [
        (labels, known.values[one] != 0.0)
        for one, labels in zip(node.operands, node.inputs, strict=True)
        if isinstance(one, Input) and one in known.values
    ]
    parts = []
    for labels, operand in zip(node.inputs, operands, strict=True):
        if operand is None:
            continue
        own = [mask for mask in masks if mask[1].ndim and not mask[1].all()]
        ranged = {*labels, *node.output}
        if (
            np.prod([float(dims[k]) for k in {*ranged, *(k for m in own for k in m[0])}])
            < MOST_STORED
        ):
            ranged |= {k for m in own for k in m[0]}
        own = [mask for mask in own if ranged.issuperset(mask[0])]
        parts.append(_contracted(node.output, labels, tuple(ranged), dims, own, operand))
    return _union(parts)


def _contracted(
    output: Sequence[int],
    labels: Sequence[int],
    ranged: Sequence[int],
    dims: Sequence[int],
    masks: Sequence[tuple[Sequence[int], NDArray[np.bool_]]],
    operand: Pattern,
) -> Pattern:
    """One operand's part of a contraction, over the labels in `ranged` where all masks hold."""
    if float(np.prod([float(dims[k]) for k in ranged])) > MOST_STORED:
        raise TooDense
    shape = tuple(dims[k] for k in ranged)
    grid = dict(zip(ranged, np.indices(shape, sparse=True), strict=True))
    held = np.ones(shape, bool)
    for own, mask in masks:
        held &= mask[tuple(grid[k] for k in own)]

    def flat(own: Sequence[int]) -> Positions:
        total = np.zeros((1,) * len(shape), np.intp)
        for k in own:
            total = total * dims[k] + grid[k]
        return np.broadcast_to(total, shape)[held]

    rows = int(np.prod([dims[k] for k in output], dtype=int))
    return _read(flat(output), flat(labels), operand, rows)


@_propagated.register
def _(node: Gather, operands: Sequence[Pattern | None], known: _Bound) -> Pattern:
    inner = known.shape(node.operands[0])
    where = positions(node.index, known.shape(node), inner, known.sizes, known.tables)
    taken = _ravelled(where, inner, known.size(node))
    return _read(None, taken, operands[0], len(taken))


@_propagated.register
def _(node: Scatter, operands: Sequence[Pattern | None], known: _Bound) -> Pattern:
    inner, outer = known.shape(node.operands[0]), known.shape(node)
    where = positions(node.index, inner, outer, known.sizes, known.tables)
    to = _ravelled(where, outer, known.size(node.operands[0]))
    return _read(to, None, operands[0], known.size(node))


def _ravelled(where: Sequence[Positions], shape: tuple[int, ...], size: int) -> Positions:
    """Flat positions (size,) in an array of a shape, from those along its axes."""
    if not shape:
        return np.zeros(size, np.intp)
    return np.ravel_multi_index(tuple(one.ravel() for one in where), shape)


@_propagated.register
def _(node: Reshape, operands: Sequence[Pattern | None], known: _Bound) -> Pattern:
    return operands[0]


@_propagated.register
def _(node: Extreme, operands: Sequence[Pattern | None], known: _Bound) -> Pattern:
    inner = known.shape(node.operands[0])
    kept = [size for k, size in enumerate(inner) if k not in node.axes]
    grid = np.arange(int(np.prod(kept, dtype=int))).reshape(kept)
    to = np.broadcast_to(np.expand_dims(grid, node.axes), inner).ravel()
    return _read(to, None, operands[0], grid.size)


@_propagated.register
def _(node: Scan, operands: Sequence[Pattern | None], known: _Bound) -> Pattern:
    """Every element along the axis depends on all elements of the operands along it."""
    inner = known.shape(node)
    kept = inner[: node.axis] + inner[node.axis + 1 :]
    grid = np.arange(int(np.prod(kept, dtype=int))).reshape(kept)
    line = np.broadcast_to(np.expand_dims(grid, node.axis), inner).ravel()
    own = _union([operand for operand in operands if operand is not None])
    return _read(None, line, _read(line, None, own, grid.size), line.size)
