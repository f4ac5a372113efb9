"""The value of every node kind in plain NumPy: slow, obvious, and the reference for every test.

Arrays may be real or complex: complex steps give derivatives to full precision, for functions
whose NumPy definition accepts complex numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch
from itertools import combinations_with_replacement
from string import ascii_letters
from typing import Any, Literal, TypeVar, assert_never

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import ShapeError
from slomodel.ir.dims import concrete, show_shape
from slomodel.ir.expr import (
    Affine,
    Axes,
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Index,
    Input,
    Iota,
    Listing,
    Lookup,
    Map,
    MatrixOperation,
    Multiset,
    Recur,
    Reshape,
    Scan,
    Scatter,
    Triangle,
    tables,
)
from slomodel.ir.walk import postorder
from slomodel.reference.matrices import value_of_operation
from slomodel.reference.recurrence import states_of

Array = NDArray[np.generic]
Kind = TypeVar("Kind", bound=np.generic)
Sizes = Mapping[str, int]


def evaluate(
    roots: Sequence[Expr],
    values: Mapping[Input, Array],
    sizes: Sizes | None = None,
    between: Callable[[], None] | None = None,
) -> list[Array]:
    """The values of the roots, each of the shape of its node.

    `between` is called before each node, and may raise an exception. Raises ShapeError if a size or
    an input is missing or does not fit.
    """
    every = evaluate_all(roots, values, sizes, between)
    return [every[root] for root in roots]


def evaluate_all(
    roots: Sequence[Expr],
    values: Mapping[Input, Array],
    sizes: Sizes | None = None,
    between: Callable[[], None] | None = None,
) -> dict[Expr, Array]:
    """The arrays of all nodes under the roots, in evaluation order."""
    known = sizes_of(values, sizes or {})
    results: dict[Expr, Array] = {}
    with np.errstate(all="ignore"):
        for node in postorder(*roots):
            if between is not None:
                between()
            if isinstance(node, Input):
                results[node] = _input(node, values, known)
            else:
                results[node] = meaning(node, [results[o] for o in node.operands], known)
    return results


def sizes_of(values: Mapping[Input, Array], sizes: Sizes) -> dict[str, int]:
    """The given sizes with those that follow from the shapes of the values."""
    known = dict(sizes)
    for node, array in values.items():
        for dim, size in zip(node.shape, np.shape(array), strict=False):
            if len(dim.terms) == 1 and dim.terms[0][1] == 1:
                known.setdefault(dim.terms[0][0], size - dim.const)
    return known


def _input(node: Input, values: Mapping[Input, Array], sizes: Sizes) -> Array:
    if node not in values:
        raise ShapeError(f"no value is given for {node.role} `{node.name}`")
    array = np.asarray(values[node])
    if array.shape != concrete(node.shape, sizes):
        expected = show_shape(node.shape)
        raise ShapeError(f"`{node.name}` has shape {array.shape}, expected {expected}")
    return array


@singledispatch
def meaning(node: Expr, operands: list[Array], sizes: Sizes) -> Array:
    """The value of one node from those of its operands."""
    raise TypeError(f"no meaning for {type(node).__name__}")


@meaning.register
def _(node: Const, operands: list[Array], sizes: Sizes) -> Array:
    return np.asarray(node.value)


@meaning.register
def _(node: Iota, operands: list[Array], sizes: Sizes) -> Array:
    return np.arange(node.shape[0].size(sizes), dtype=np.float64)


@meaning.register
def _(node: Map, operands: list[Array], sizes: Sizes) -> Array:
    wide = [aligned(array, node.axes[k], node.rank) for k, array in enumerate(operands)]
    return np.asarray(node.function.numpy(*wide)).reshape(concrete(node.shape, sizes))


def aligned(array: NDArray[Kind], axes: Axes, rank: int, front: int = 0) -> NDArray[Kind]:
    """An array whose axis front + k is axis front + axes[k], with others of length 1 up to rank."""
    return np.expand_dims(array, tuple(front + k for k in range(rank) if k not in axes))


def missing_axes(node: Map, k: int) -> tuple[int, ...]:
    """The axes along which operand k is broadcast."""
    return tuple(axis for axis in range(node.rank) if axis not in node.axes[k])


@meaning.register
def _(node: Einsum, operands: list[Array], sizes: Sizes) -> Array:
    shape = concrete(node.dims, sizes)
    unique = tuple(dict.fromkeys(node.output))
    present = {label for labels in node.inputs for label in labels}
    alone = [label for label in range(len(shape)) if label not in present]
    arrays: list[NDArray[Any]] = [*operands, *(np.ones(shape[label]) for label in alone)]
    labels = [*node.inputs, *((label,) for label in alone)]
    if not arrays:
        arrays, labels = [np.ones(())], [()]
    spec = ",".join("".join(ascii_letters[k] for k in own) for own in labels)
    spec += f"->{''.join(ascii_letters[k] for k in unique)}"
    # In pairs, since five matrices of 20 columns at once take seconds. NumPy does not optimise the
    # order for extended precision.
    pairs = len(arrays) > 2 and all(np.asarray(array).dtype.kind in "fc" for array in arrays)
    result = np.asarray(np.einsum(spec, *arrays, optimize="greedy" if pairs else False))
    if node.dtype == "bool":
        result = result.astype(bool)
    if len(unique) == len(node.output):
        return result
    out = np.zeros(tuple(shape[label] for label in node.output), dtype=result.dtype)
    grid = np.indices(result.shape)
    out[tuple(grid[unique.index(label)] for label in node.output)] = result
    return out


def positions(
    index: Sequence[Index],
    iterated: tuple[int, ...],
    indexed: tuple[int, ...],
    sizes: Sizes,
    tables: Mapping[Expr, Array],
) -> tuple[NDArray[np.intp], ...]:
    """For each indexed axis, the index at every iterated position.

    `tables` holds the values of the tables that are looked up. Raises ShapeError if an index falls
    outside its axis.
    """
    grid = np.indices(iterated, dtype=np.intp)
    result = []
    for one, size in zip(index, indexed, strict=True):
        if isinstance(one, Affine):
            where = np.full(iterated, one.offset.value(sizes), dtype=np.intp)
            for axis, coefficient in enumerate(one.coefficients):
                where += coefficient * grid[axis]
        elif isinstance(one, Lookup):
            table = np.asarray(tables[one.table]).astype(np.intp)
            where = table[tuple(grid[axis] for axis in one.axes)]
        else:
            where = _places(one, sizes)[grid[one.axis]]
        if where.size and (where.min() < 0 or where.max() >= size):
            raise ShapeError(f"index {where.min()}..{where.max()} leaves an axis of size {size}")
        result.append(where)
    return tuple(result)


def _places(one: Multiset, sizes: Sizes) -> NDArray[np.intp]:
    """The values of a `Multiset` index, as an array along its axis."""
    numbers = range(one.size.size(sizes))
    parts = list(combinations_with_replacement(numbers, one.stop - one.start))
    every = combinations_with_replacement(numbers, one.degree)
    return np.array([parts.index(whole[one.start : one.stop]) for whole in every], dtype=np.intp)


@meaning.register
def _(node: Gather, operands: list[Array], sizes: Sizes) -> Array:
    array = operands[0]
    where = positions(
        node.index, concrete(node.shape, sizes), array.shape, sizes, _table_values(node, operands)
    )
    return np.asarray(array[where])


@meaning.register
def _(node: Scatter, operands: list[Array], sizes: Sizes) -> Array:
    array = operands[0]
    out = np.zeros(concrete(node.shape, sizes), dtype=array.dtype)
    own = _table_values(node, operands)
    np.add.at(out, positions(node.index, array.shape, out.shape, sizes, own), array)
    return out


def _table_values(node: Gather | Scatter, operands: Sequence[Array]) -> dict[Expr, Array]:
    """The values of the tables that the index of a node reads, from those of its operands."""
    return dict(zip(tables(node.index), operands[1:], strict=True))


@meaning.register
def _(node: Reshape, operands: list[Array], sizes: Sizes) -> Array:
    shape = concrete(node.shape, sizes)
    if operands[0].size != np.prod(shape, dtype=int):
        given = operands[0].shape
        raise ShapeError(f"{given} cannot be reshaped to {shape}: the total sizes differ")
    return operands[0].reshape(shape)


@meaning.register
def _(node: Extreme, operands: list[Array], sizes: Sizes) -> Array:
    if node.which == "max":
        return np.asarray(np.max(operands[0], axis=node.axes, initial=-np.inf))
    return np.asarray(np.min(operands[0], axis=node.axes, initial=np.inf))


@meaning.register
def _(node: Listing, operands: list[Array], sizes: Sizes) -> Array:
    first = operands[0]
    match node.what:
        case "parent" | "offset":
            counts = first.astype(np.intp)
            result = np.repeat(np.arange(len(counts)), counts)
            if node.what == "offset":
                result = np.arange(len(result)) - (np.cumsum(counts) - counts)[result]
        case "select":
            result = np.nonzero(first)[node.axis]
        case "order":
            result = np.argsort(first, kind="stable")
        case "below" | "upto":
            values = np.sort(first[~np.isnan(first)])
            side: Literal["left", "right"] = "left" if node.what == "below" else "right"
            result = np.searchsorted(values, operands[1], side)
        case _:
            assert_never(node.what)
    if result.shape != concrete(node.shape, sizes):
        raise ShapeError(f"an index set has {len(result)} tuples, not {show_shape(node.shape)}")
    return result.astype(np.float64)


@meaning.register
def _(node: Triangle, operands: list[Array], sizes: Sizes) -> Array:
    matrix = operands[0].astype(np.float64)
    result = np.zeros(concrete(node.shape, sizes))
    result[: len(matrix)] = np.linalg.qr(matrix, mode="r")
    return result


@meaning.register
def _(node: MatrixOperation, operands: list[Array], sizes: Sizes) -> Array:
    return value_of_operation(node.function, operands, concrete(node.shape, sizes))


@meaning.register
def _(node: Scan, operands: list[Array], sizes: Sizes) -> Array:
    factor, term = (np.moveaxis(array, node.axis, 0) for array in operands)
    result = np.array(term, dtype=np.result_type(factor, term))
    for i in range(1, len(result)):
        result[i] += factor[i] * result[i - 1]
    return np.moveaxis(result, 0, node.axis)


@meaning.register
def _(node: Recur, operands: list[Array], sizes: Sizes) -> Array:
    def values(roots: Sequence[Expr], given: Mapping[Expr, Array]) -> list[Array]:
        every: dict[Expr, Array] = {}
        for one in postorder(*roots):
            own = [every[operand] for operand in one.operands]
            every[one] = given[one] if one in given else meaning(one, own, sizes)
        return [every[root] for root in roots]

    return states_of(node.loop, operands, sizes, values)[node.state]
