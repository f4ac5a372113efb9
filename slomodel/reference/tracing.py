"""The origin of a NaN or an infinity, traced from an element back through the elements it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from slomodel.ir.expr import (
    Einsum,
    Expr,
    Extreme,
    Gather,
    Input,
    Listing,
    Map,
    MatrixOperation,
    Recur,
    Reshape,
    Scan,
    Scatter,
    Triangle,
)
from slomodel.reference.recurrence import inputs_at, states_of
from slomodel.reference.values import (
    Array,
    Sizes,
    evaluate,
    evaluate_all,
    meaning,
    missing_axes,
    sizes_of,
)

Truths = NDArray[np.bool_]


@dataclass(frozen=True)
class NonFinite:
    """The first node in evaluation order that computed a NaN or infinity from finite operands."""

    node: Expr
    element: tuple[int, ...]
    value: float
    operands: tuple[Array, ...]


def first_nonfinite(
    roots: Sequence[Expr], values: Mapping[Input, Array], sizes: Sizes | None = None
) -> NonFinite | None:
    """Where a NaN or infinity first appears; None if all values are finite.

    A non-finite element from which no non-finite element of a root is computed is ignored: one in a
    branch that `where` does not take there, for example.
    """
    known = sizes_of(values, sizes or {})
    every = evaluate_all(roots, values, known)
    bad = {node: ~np.isfinite(array) for node, array in every.items()}
    blamed = {root: bad[root] for root in roots}
    for node in reversed(list(every)):
        if node not in blamed or not blamed[node].any():
            continue
        taken = [every[operand] for operand in node.operands]
        for k, operand in enumerate(node.operands):
            used = read(node, k, blamed[node], taken, known) & bad[operand]
            blamed[operand] = blamed[operand] | used if operand in blamed else used
    for node, array in every.items():
        if node in blamed and blamed[node].any():
            element = tuple(int(k) for k in np.argwhere(blamed[node])[0])
            operands = tuple(every[operand] for operand in node.operands)
            return NonFinite(node, element, float(array[element].real), operands)
    return None


def inside_loop(at: NonFinite, sizes: Sizes) -> tuple[NonFinite, int] | None:
    """The node in the body of a recurrence that is not finite first, and its step.

    None for other nodes. A state that is not finite at the start of the loop is not explained.
    """
    node = at.node
    if not isinstance(node, Recur):
        return None
    loop = node.loop

    def values(roots: Sequence[Expr], given: Mapping[Expr, Array]) -> list[Array]:
        return evaluate(roots, _of_inputs(given), sizes)

    states = states_of(loop, at.operands, sizes, values)
    steps = range(loop.length.size(sizes))
    for t in reversed(steps) if loop.backwards else steps:
        for k, update in enumerate(loop.updates):
            if t >= update.start.value(sizes):
                given = inputs_at(loop, k, t, states, at.operands, sizes)
                inner = first_nonfinite([update.value], _of_inputs(given), sizes)
                if inner is not None and not isinstance(inner.node, Input):
                    return inner, t
    return None


def _of_inputs(given: Mapping[Expr, Array]) -> dict[Input, Array]:
    return {one: array for one, array in given.items() if isinstance(one, Input)}


@singledispatch
def read(node: Expr, k: int, which: Truths, operands: list[Array], sizes: Sizes) -> Truths:
    """The elements of operand k from which the elements `which` of the node are computed."""
    raise TypeError(f"{type(node).__name__} has no operands")


@read.register
def _(node: Map, k: int, which: Truths, operands: list[Array], sizes: Sizes) -> Truths:
    if node.function.name == "where" and k > 0:
        condition = np.expand_dims(operands[0].astype(bool), missing_axes(node, 0))
        which = which & (condition if k == 1 else ~condition)
    return np.asarray(np.any(which, axis=missing_axes(node, k)))


def _all(table: Array) -> Truths:
    return np.ones(table.shape, dtype=bool)


def _positive(counts: Array) -> Truths:
    return counts.astype(np.float64) > 0


@read.register
def _(node: Einsum, k: int, which: Truths, operands: list[Array], sizes: Sizes) -> Truths:
    back = Einsum((node,), (node.output,), node.inputs[k], node.dims)
    return _positive(meaning(back, [which.astype(np.float64)], sizes))


@read.register
def _(node: Gather, k: int, which: Truths, operands: list[Array], sizes: Sizes) -> Truths:
    if k:
        return _all(operands[k])
    back = Scatter(node, node.index, node.operands[0].shape)
    return _positive(meaning(back, [which.astype(np.float64), *operands[1:]], sizes))


@read.register
def _(node: Scatter, k: int, which: Truths, operands: list[Array], sizes: Sizes) -> Truths:
    if k:
        return _all(operands[k])
    back = Gather(node, node.index, node.operands[0].shape)
    return _positive(meaning(back, [which.astype(np.float64), *operands[1:]], sizes))


@read.register
def _(node: Reshape, k: int, which: Truths, operands: list[Array], sizes: Sizes) -> Truths:
    return which.reshape(operands[0].shape)


@read.register
def _(node: Extreme, k: int, which: Truths, operands: list[Array], sizes: Sizes) -> Truths:
    return np.broadcast_to(np.expand_dims(which, node.axes), operands[0].shape)


@read.register
def _(node: Scan, k: int, which: Truths, operands: list[Array], sizes: Sizes) -> Truths:
    turned = np.flip(which, node.axis)
    return np.flip(np.logical_or.accumulate(turned, axis=node.axis), node.axis)


@read.register
def _(node: Recur, k: int, which: Truths, operands: list[Array], sizes: Sizes) -> Truths:
    return _all(operands[k])


@read.register
def _(node: Listing, k: int, which: Truths, operands: list[Array], sizes: Sizes) -> Truths:
    return _all(operands[k])


@read.register
def _(node: MatrixOperation, k: int, which: Truths, operands: list[Array], sizes: Sizes) -> Truths:
    """All matrices whose index of the batch is used."""
    batch = node.operands[0].rank - 2
    used = which.any(axis=tuple(range(batch, node.rank)))
    wide = used.reshape(used.shape + (1,) * (operands[k].ndim - batch))
    return np.broadcast_to(wide, operands[k].shape)


@read.register
def _(node: Triangle, k: int, which: Truths, operands: list[Array], sizes: Sizes) -> Truths:
    """For a triangle: column j of the factor depends on the columns up to j."""
    columns = np.flip(np.logical_or.accumulate(np.flip(which.any(axis=0))))
    return np.broadcast_to(columns, operands[0].shape)
