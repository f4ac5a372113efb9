"""Steps that move elements or act along axes: Gather, Scatter, Reshape, Extreme, Scan."""

from __future__ import annotations

import math

import numpy as np
from graph_maker import MAX_RANK, Maker, Reals

from slomodel import functions as fn
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, literal
from slomodel.ir.expr import Affine, Expr, Input, Lookup

Axis = list[tuple[int, int]]
"""Of one indexed axis: (output axis, coefficient) of each term."""


def whole_index(offsets: list[Dim], terms: list[Axis], rank: int) -> tuple[Affine, ...]:
    """The indices of all axes into an operand, over an output of this rank."""
    index = []
    for offset, own in zip(offsets, terms, strict=True):
        coefficients = [0] * rank
        for axis, coefficient in own:
            coefficients[axis] = coefficient
        index.append(Affine(offset, tuple(coefficients)))
    return tuple(index)


def one_axis(maker: Maker, dim: Dim) -> tuple[Dim, list[Dim], list[int]]:
    """How an axis is indexed: its offset, and dims and coefficients of the axes it becomes."""
    size = maker.size(dim)
    kinds = ["whole", "slice", "reversed"]
    kinds += ["element", "window", "every other"] if size else []
    match maker.one_of(kinds):
        case "slice":
            first = maker.whole(0, size)
            return literal(first), [dim - first - maker.whole(0, size - first)], [1]
        case "reversed":
            return dim - 1, [dim], [-1]
        case "element":
            k = maker.whole(0, size - 1)
            return (literal(k) if maker.chance() else dim - 1 - k), [], []
        case "window":
            width = maker.whole(1, size)
            return literal(0), [dim - (width - 1), literal(width)], [1, 1]
        case "every other":
            return literal(0), [literal((size + 1) // 2)], [2]
    return literal(0), [dim], [1]


def drawn_index(maker: Maker, shape: Shape) -> tuple[tuple[Affine, ...], Shape]:
    """An index into an array of this shape, and the shape of the result."""
    offsets: list[Dim] = []
    terms: list[Axis] = []
    result: list[Dim] = []
    whole: dict[Dim, int] = {}
    for dim in shape:
        if dim in whole and maker.chance():  # a diagonal
            offsets.append(literal(0))
            terms.append([(whole[dim], 1)])
            continue
        offset, dims, coefficients = one_axis(maker, dim)
        if dims == [dim] and coefficients == [1]:
            whole[dim] = len(result)
        offsets.append(offset)
        terms.append([(len(result) + k, c) for k, c in enumerate(coefficients)])
        result += dims
    return whole_index(offsets, terms, len(result)), tuple(result)


def gather(maker: Maker) -> None:
    """Slices, shifts, reversed axes, elements, diagonals, windows, every other element."""
    node = maker.pick(least_rank=1)
    index, shape = drawn_index(maker, node.shape)
    maker.add(limited(build.gather(node, index, shape)))


def scatter(maker: Maker) -> None:
    """An array put into the places that a random index of another one reads."""
    node = maker.pick(least_rank=1)
    index, shape = drawn_index(maker, node.shape)
    moved = fn.sin(build.gather(node, index, shape))
    maker.add(build.scatter(moved, index, node.shape))


def look_up(maker: Maker) -> None:
    """Elements at positions given by data, along one axis or all; positions may repeat."""
    node = maker.pick(least_rank=1)
    table, size = drawn_table(maker, node.shape[0])
    rest = range(table.rank, table.rank + node.rank - 1)
    shape = (*table.shape, *node.shape[1:])
    index = [Lookup(tuple(range(table.rank)), table), *(unit(axis, len(shape)) for axis in rest)]
    maker.add(limited(build.gather(node, index, shape)) if size else fn.sin(node))


def add_up(maker: Maker) -> None:
    """Elements added at the places that data say, once along an axis that another index has too."""
    node = maker.pick(least_rank=1)
    dim = maker.dim()
    table = maker.whole_data((node.shape[0],), maker.size(dim))
    index = [Lookup((0,), table), *(unit(axis, node.rank) for axis in range(node.rank))]
    if node.rank < MAX_RANK and maker.chance():
        maker.add(build.scatter(node, index, (dim, *node.shape)))
    else:
        index.pop(1)
        maker.add(build.scatter(node, index, (dim, *node.shape[1:])))


def drawn_table(maker: Maker, dim: Dim) -> tuple[Input, int]:
    """A table (…) of places along an axis, and the size of the axis."""
    size = maker.size(dim)
    shape = tuple(maker.dim() for _ in range(maker.whole(0, 2)))
    return maker.whole_data(shape, max(size, 1)), size


def unit(axis: int, rank: int) -> Affine:
    """The index that runs through one axis."""
    return Affine(literal(0), tuple(int(k == axis) for k in range(rank)))


def pad(maker: Maker) -> None:
    """An array inside a larger one of zeros: dims such as n + 2."""
    node = maker.pick(least_rank=1)
    before, after = maker.whole(0, 2), maker.whole(0, 2)
    offsets = [literal(before), *(literal(0) for _ in node.shape[1:])]
    index = whole_index(offsets, [[(k, 1)] for k in range(node.rank)], node.rank)
    shape = (node.shape[0] + before + after, *node.shape[1:])
    if maker.size(shape[0]) <= 6:
        maker.add(build.scatter(node, index, shape))
    else:
        maker.add(fn.sin(node))


def reshape(maker: Maker) -> None:
    """The elements in C order: flat, with an axis of size 1, halved, or with axes swapped."""
    node = maker.pick()
    count = maker.value(node).size
    shapes: list[Shape] = [(literal(count),), (literal(1), literal(count)), node.shape[::-1]]
    if count % 2 == 0:
        shapes.append((literal(2), literal(count // 2)))
    if node.rank < MAX_RANK:
        shapes.append((*node.shape, literal(1)))
    maker.add(build.reshape(node, maker.one_of(shapes)))


def limited(node: Expr) -> Expr:
    """Summed over the axes beyond the largest rank."""
    return build.sum_over(node, tuple(range(MAX_RANK, node.rank)))


MARGIN = 0.02


def extreme(maker: Maker) -> None:
    """The largest or smallest element along some axes; without ties, by a margin."""
    node = maker.pick(least_rank=1)
    axes = tuple(k for k in range(node.rank) if maker.chance()) or (0,)
    value = np.asarray(maker.value(node), dtype=float)
    if any(value.shape[axis] == 0 for axis in axes) or not (maker.ties or apart(value, axes)):
        maker.add(fn.sin(node))
    else:
        maker.add(build.extreme(node, maker.one_of(("max", "min")), axes))


def apart(value: Reals, axes: tuple[int, ...]) -> bool:
    """Whether no two elements along the axes are close."""
    rest = [k for k in range(value.ndim) if k not in axes]
    count = math.prod(value.shape[k] for k in axes)
    rows = value.transpose(*rest, *axes).reshape(*(value.shape[k] for k in rest), count)
    return float(np.min(np.diff(np.sort(rows, axis=-1), axis=-1), initial=1.0)) > MARGIN


def product(maker: Maker) -> None:
    """The product along an axis, or the recurrence that it is the end of."""
    node = maker.pick(least_rank=1)
    axis = maker.whole(0, node.rank - 1)
    if maker.chance():
        maker.add(build.product_over(node, axis))
    elif maker.size(node.shape[axis]):
        maker.add(build.scan(node, fn.sin(node), axis))
