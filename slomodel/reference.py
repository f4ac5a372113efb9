"""The plain NumPy meaning of every node kind: slow, obvious, and the oracle of every test.

Arrays may be real or complex; a complex step through it gives derivatives to full precision for
functions whose NumPy meaning takes complex numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from string import ascii_letters

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import ShapeError
from slomodel.ir.dims import concrete, show_shape
from slomodel.ir.expr import (
    Affine,
    Const,
    Einsum,
    Expr,
    Gather,
    Input,
    Iota,
    Map,
    Reshape,
    Scatter,
)
from slomodel.ir.walk import postorder

Array = NDArray[np.generic]
Sizes = Mapping[str, int]


def evaluate(
    roots: Sequence[Expr], values: Mapping[Input, Array], sizes: Sizes | None = None
) -> list[Array]:
    """The arrays that the roots stand for, each of its node's shape.

    Raises ShapeError where a size or an input is missing or does not fit.
    """
    every = evaluate_all(roots, values, sizes)
    return [every[root] for root in roots]


def evaluate_all(
    roots: Sequence[Expr], values: Mapping[Input, Array], sizes: Sizes | None = None
) -> dict[Expr, Array]:
    """The array of every node under the roots, in evaluation order."""
    known = _sizes_of(values, sizes or {})
    results: dict[Expr, Array] = {}
    with np.errstate(all="ignore"):
        for node in postorder(*roots):
            if isinstance(node, Input):
                results[node] = _input(node, values, known)
            else:
                results[node] = meaning(node, [results[o] for o in node.operands], known)
    return results


@dataclass(frozen=True)
class NonFinite:
    """The first node, in evaluation order, that made a NaN or infinity of finite operands."""

    node: Expr
    element: tuple[int, ...]
    value: float
    operands: tuple[Array, ...]


def first_nonfinite(
    roots: Sequence[Expr], values: Mapping[Input, Array], sizes: Sizes | None = None
) -> NonFinite | None:
    """Where a NaN or infinity first appears; None where all is finite.

    A non-finite element that the roots do not depend on (a branch that `where` does not take)
    is passed over: only nodes from which a non-finite path leads to a root count.
    """
    every = evaluate_all(roots, values, sizes)
    bad = {node for node, array in every.items() if not np.all(np.isfinite(array))}
    reached = {root for root in roots if root in bad}
    for node in reversed(list(every)):
        if node in reached:
            reached.update(operand for operand in node.operands if operand in bad)
    for node, array in every.items():
        if node in reached and not any(operand in bad for operand in node.operands):
            where = np.argwhere(~np.isfinite(array))[0]
            element = tuple(int(k) for k in where)
            operands = tuple(every[operand] for operand in node.operands)
            return NonFinite(node, element, float(array[element].real), operands)
    return None


def _sizes_of(values: Mapping[Input, Array], sizes: Sizes) -> dict[str, int]:
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
    aligned = []
    for array, axes in zip(operands, node.axes, strict=True):
        missing = tuple(k for k in range(node.rank) if k not in axes)
        aligned.append(np.expand_dims(array, missing))
    return np.asarray(node.function.numpy(*aligned)).reshape(concrete(node.shape, sizes))


@meaning.register
def _(node: Einsum, operands: list[Array], sizes: Sizes) -> Array:
    shape = concrete(node.dims, sizes)
    unique = tuple(dict.fromkeys(node.output))
    present = {label for labels in node.inputs for label in labels}
    alone = [label for label in range(len(shape)) if label not in present]
    arrays = [*operands, *(np.ones(shape[label]) for label in alone)] or [np.ones(())]
    labels = [*node.inputs, *((label,) for label in alone)] or [()]
    spec = ",".join("".join(ascii_letters[k] for k in own) for own in labels)
    result = np.asarray(np.einsum(f"{spec}->{''.join(ascii_letters[k] for k in unique)}", *arrays))
    if node.dtype == "bool":
        result = result.astype(bool)
    if len(unique) == len(node.output):
        return result
    out = np.zeros(tuple(shape[label] for label in node.output), dtype=result.dtype)
    grid = np.indices(result.shape)
    out[tuple(grid[unique.index(label)] for label in node.output)] = result
    return out


def positions(
    index: Sequence[Affine], iterated: tuple[int, ...], indexed: tuple[int, ...], sizes: Sizes
) -> tuple[NDArray[np.intp], ...]:
    """For each indexed axis the index at every iterated position.

    Raises ShapeError where one falls outside its axis.
    """
    grid = np.indices(iterated, dtype=np.intp)
    result = []
    for one, size in zip(index, indexed, strict=True):
        where = np.full(iterated, _signed(one, sizes), dtype=np.intp)
        for axis, coefficient in enumerate(one.coefficients):
            where += coefficient * grid[axis]
        if where.size and (where.min() < 0 or where.max() >= size):
            raise ShapeError(f"index {where.min()}..{where.max()} leaves an axis of size {size}")
        result.append(where)
    return tuple(result)


def _signed(one: Affine, sizes: Sizes) -> int:
    return one.offset.const + sum(c * sizes[name] for name, c in one.offset.terms)


@meaning.register
def _(node: Gather, operands: list[Array], sizes: Sizes) -> Array:
    array = operands[0]
    return np.asarray(array[positions(node.index, concrete(node.shape, sizes), array.shape, sizes)])


@meaning.register
def _(node: Scatter, operands: list[Array], sizes: Sizes) -> Array:
    array = operands[0]
    out = np.zeros(concrete(node.shape, sizes), dtype=array.dtype)
    np.add.at(out, positions(node.index, array.shape, out.shape, sizes), array)
    return out


@meaning.register
def _(node: Reshape, operands: list[Array], sizes: Sizes) -> Array:
    shape = concrete(node.shape, sizes)
    if operands[0].size != np.prod(shape, dtype=int):
        raise ShapeError(f"{operands[0].shape} cannot take the shape {shape}: other total size")
    return operands[0].reshape(shape)
