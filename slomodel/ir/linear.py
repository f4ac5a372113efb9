"""Constructors of the linear kinds: `Einsum` (views absorbed), `Gather`, `Scatter`, `Reshape`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

from slomodel.errors import ShapeError
from slomodel.ir.dims import Dim, Shape, show_shape
from slomodel.ir.expr import (
    Affine,
    Axes,
    Const,
    Einsum,
    Expr,
    Gather,
    Index,
    Lookup,
    Reshape,
    Scatter,
    reads_axis,
)


def is_broadcast(node: Einsum) -> bool:
    """Whether the node only adds axes to its one operand, whose own axes stay in order."""
    if len(node.operands) != 1 or len(set(node.output)) != len(node.output):
        return False
    own = node.inputs[0]
    if len(node.dims) != len(node.output) or len(set(own)) != len(own):
        return False
    places = [node.output.index(label) for label in own]
    return places == sorted(places)


def repeats(node: Einsum) -> bool:
    """Whether some label does not occur in any operand.

    A sum over such a label multiplies by its size; in the output, the label repeats the result.
    """
    held = {label for own in node.inputs for label in own}
    return not held.issuperset(range(len(node.dims)))


@dataclass(frozen=True, slots=True)
class ContractionTree:
    """A contraction with some of its factors written out, as one sum of products over labels."""

    factors: tuple[tuple[Expr, Axes], ...]
    output: Axes
    dims: Shape
    contractions: tuple[Einsum, ...]
    """The nodes that were written out, the root first."""


def contraction_tree(root: Einsum, inner: Collection[Expr]) -> ContractionTree:
    """A contraction in which the factors in `inner`, contractions themselves, are written out.

    Those of `inner` have no diagonals. The labels of the root keep their numbers.
    """
    factors: list[tuple[Expr, Axes]] = []
    contractions = [root]
    dims = list(root.dims)
    waiting = [*zip(root.operands, root.inputs, strict=True)][::-1]
    while waiting:
        node, own = waiting.pop()
        if node not in inner:
            factors.append((node, own))
            continue
        assert isinstance(node, Einsum)
        contractions.append(node)
        place = dict(zip(node.output, own, strict=True))
        for label, dim in enumerate(node.dims):
            if label not in place:
                place[label] = len(dims)
                dims.append(dim)
        below = [tuple(place[label] for label in labels) for labels in node.inputs]
        waiting += [*zip(node.operands, below, strict=True)][::-1]
    return ContractionTree(tuple(factors), root.output, tuple(dims), tuple(contractions))


def einsum(
    operands: Sequence[Expr], inputs: Sequence[Axes], output: Axes, dims: Sequence[Dim]
) -> Expr:
    """The sum of products over labels (see `Einsum`), with views absorbed and labels in order."""
    _check_einsum(operands, inputs, output, dims)
    flat, labels, sizes = _without_views(operands, inputs, list(dims))
    flat, labels = _without_ones(flat, labels)
    used = [label for own in labels for label in own] + list(output)
    summed_free = [k for k in range(len(dims)) if k not in used]
    order = list(dict.fromkeys(used + summed_free))
    number = {label: k for k, label in enumerate(order)}
    renamed = tuple(tuple(number[label] for label in own) for own in labels)
    new_output = tuple(number[label] for label in output)
    if not flat and not order:
        return Const(1.0)
    if len(flat) == 1 and renamed[0] == new_output == tuple(range(len(order))):
        return flat[0]
    new_dims = tuple(sizes[label] for label in order)
    return Einsum(tuple(flat), renamed, new_output, new_dims)


def _check_einsum(
    operands: Sequence[Expr], inputs: Sequence[Axes], output: Axes, dims: Sequence[Dim]
) -> None:
    assert all(label < len(dims) for own in (*inputs, output) for label in own)
    for operand, own in zip(operands, inputs, strict=True):
        if tuple(dims[label] for label in own) != operand.shape:
            expected = show_shape(tuple(dims[label] for label in own))
            raise ShapeError(f"einsum expects {expected}, not {show_shape(operand.shape)}")
        if operand.dtype != "real" and (len(operands) > 1 or set(output) != set(range(len(dims)))):
            raise ShapeError("a sum of products needs numbers, not truth values")


def _without_views(
    operands: Sequence[Expr], inputs: Sequence[Axes], dims: list[Dim]
) -> tuple[list[Expr], list[Axes], list[Dim]]:
    """Replace operands that are views (sum-free Einsums of one operand) by the array viewed."""
    flat: list[Expr] = []
    labels: list[Axes] = []
    for operand, own in zip(operands, inputs, strict=True):
        viewed, places = operand, own
        while isinstance(viewed, Einsum) and _is_view(viewed):
            place = dict(zip(viewed.output, places, strict=True))
            places = tuple(place[label] for label in (viewed.inputs or ((),))[0])
            viewed = viewed.operands[0] if viewed.operands else Const(1.0)
        flat.append(viewed)
        labels.append(places)
    return flat, labels, dims


def _is_view(node: Einsum) -> bool:
    no_sum = set(node.output) == set(range(len(node.dims)))
    return len(node.operands) <= 1 and no_sum and len(set(node.output)) == len(node.output)


def _without_ones(operands: list[Expr], labels: list[Axes]) -> tuple[list[Expr], list[Axes]]:
    kept = [k for k, node in enumerate(operands) if node is not Const(1.0)]
    return [operands[k] for k in kept], [labels[k] for k in kept]


def broadcast(operand: Expr, axes: Axes, shape: Shape) -> Expr:
    """`operand` with its axis k at output axis `axes[k]`, constant along the others."""
    own = tuple(range(len(shape)))
    if axes == own and shape == operand.shape:
        return operand
    return einsum([operand], [axes], own, shape)


def transpose(operand: Expr, order: Axes) -> Expr:
    """The operand with its axes permuted: output axis k is axis `order[k]`."""
    if sorted(order) != list(range(operand.rank)):
        raise ShapeError(f"{order} is not an order of the axes of {show_shape(operand.shape)}")
    return einsum([operand], [tuple(range(operand.rank))], order, operand.shape)


def sum_over(operand: Expr, axes: Axes) -> Expr:
    """The sum along some axes; the others keep their order."""
    own = tuple(range(operand.rank))
    if not set(axes) <= set(own):
        raise ShapeError(f"{axes} must be axes of {show_shape(operand.shape)}")
    return einsum([operand], [own], tuple(k for k in own if k not in axes), operand.shape)


def inner(left: Expr, right: Expr) -> Expr:
    """The inner product of two arrays of one shape: a scalar."""
    own = tuple(range(left.rank))
    return einsum([left, right], [own, own], (), left.shape)


def outer(left: Expr, right: Expr) -> Expr:
    """The outer product, of shape left.shape + right.shape."""
    own = tuple(range(left.rank))
    other = tuple(range(left.rank, left.rank + right.rank))
    return einsum([left, right], [own, other], own + other, left.shape + right.shape)


def matmul(left: Expr, right: Expr) -> Expr:
    """NumPy's `@` for vectors and matrices: the last axis of `left` with the first of `right`."""
    if not left.rank or not right.rank or left.shape[-1] != right.shape[0]:
        raise ShapeError(f"`@` of {show_shape(left.shape)} and {show_shape(right.shape)}")
    own = tuple(range(left.rank))
    other = (own[-1], *range(left.rank, left.rank + right.rank - 1))
    dims = left.shape + right.shape[1:]
    return einsum([left, right], [own, other], own[:-1] + other[1:], dims)


def gather(operand: Expr, index: Sequence[Index], shape: Shape) -> Expr:
    """`out[o] = operand[index(o)]`; the caller checks the bounds (sizes may be unknown)."""
    _check_index(index, operand.shape, shape)
    same = tuple(Affine.along(k, len(shape)) for k in range(len(shape)))
    if tuple(index) == same and shape == operand.shape:
        return operand
    return Gather(operand, tuple(index), shape)


def slice_at(array: Expr, axis: int, position: Dim) -> Expr:
    """The slice of an array at a position along an axis."""
    rest = [dim for k, dim in enumerate(array.shape) if k != axis]
    index = [Affine.along(k, len(rest)) for k in range(len(rest))]
    index.insert(axis, Affine(position, (0,) * len(rest)))
    return gather(array, index, tuple(rest))


def scatter(operand: Expr, index: Sequence[Index], shape: Shape) -> Expr:
    """Zeros of `shape` with `operand[o]` added at `index(o)`: the adjoint of `gather`."""
    _check_index(index, shape, operand.shape)
    if operand.dtype != "real":
        raise ShapeError("a scatter adds numbers, not truth values")
    same = tuple(Affine.along(k, len(shape)) for k in range(len(shape)))
    if tuple(index) == same and shape == operand.shape:
        return operand
    return Scatter(operand, tuple(index), shape)


def _check_index(index: Sequence[Index], indexed: Shape, iterated: Shape) -> None:
    if len(index) != len(indexed):
        raise ShapeError(f"{len(index)} indices into {show_shape(indexed)}")
    for one in index:
        if isinstance(one, Lookup):
            _check_lookup(one, iterated)
        elif isinstance(one, Affine):
            assert len(one.coefficients) == len(iterated)
    for axis in range(len(iterated)):
        if not any(reads_axis(one, axis) for one in index):
            raise ShapeError(f"axis {axis} of the result does not occur in any index")


def _check_lookup(one: Lookup, iterated: Shape) -> None:
    if one.table.dtype == "bool":
        raise ShapeError("an index is a whole number, not a truth value")
    result = tuple(iterated[axis] for axis in one.axes)
    if one.table.shape != result:
        expected = show_shape(result)
        raise ShapeError(f"the table {show_shape(one.table.shape)} is looked up over {expected}")


def reshape(operand: Expr, shape: Shape) -> Expr:
    """The same elements in C order; the total sizes are compared if they are known."""
    if operand.shape == shape:
        return operand
    if all(dim.is_literal for dim in operand.shape + shape):
        before, after = (prod(dim.const for dim in own) for own in (operand.shape, shape))
        if before != after:
            result = f"{show_shape(operand.shape)} has {before} elements"
            raise ShapeError(f"{result}, {show_shape(shape)} has {after}")
    if isinstance(operand, Reshape):
        return reshape(operand.operands[0], shape)
    return Reshape(operand, shape)
