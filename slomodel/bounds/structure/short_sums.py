"""Sums of up to three terms written out, so that functions of distances are sums over elements.

Written out, √Σ_k (x_ik - x_jk)² with k < 3 is a scalar function of three affine arguments for each
pair (i, j), so that an objective of distances is separable.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce
from itertools import product
from math import prod

import slomodel.functions as table
from slomodel.bounds.effort import MOST_NODES
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.structure.linear_predictors import MOST_ARGUMENTS, affine_nodes, is_of_one
from slomodel.ir import build
from slomodel.ir.dims import Dim, concrete
from slomodel.ir.expr import Affine, Axes, Einsum, Expr, Map, remake
from slomodel.ir.linear import repeats
from slomodel.ir.walk import first_met

Fixed = Mapping[int, int]
"""The fixed index of each removed axis."""


@once_per_part
def with_short_sums(part: ObjectivePart) -> ObjectivePart | None:
    """The part with its nonlinear short sums written out; None without such sums."""
    order, varying = part.order, part.varying
    affine = affine_nodes(order, varying)
    arguments = {node for node in affine if not is_of_one(node, varying)}
    done: dict[Expr, Expr] = {}
    if len(order) > MOST_NODES:
        return None
    for node in order:
        sums = None
        if isinstance(node, Einsum) and node in varying and node not in affine and node.rank:
            sums = _written_out(node, done, part, arguments)
        done[node] = sums or remake(node, tuple(done[operand] for operand in node.operands))
    result = part.rewritten(done, part.known)
    return None if result is part else result


def _written_out(
    node: Einsum, done: Mapping[Expr, Expr], part: ObjectivePart, arguments: Collection[Expr]
) -> Expr | None:
    """The sum of elementwise products; None where its axes do not fit, or where its arguments are
    too many for one function, which products of factors are bounded without.
    """
    summed = [label for label in range(len(node.dims)) if label not in node.output]
    sizes = concrete(tuple(node.dims[label] for label in summed), part.sizes)
    if repeats(node) or len(set(node.output)) < node.rank or not summed:
        return None
    pairs = list(zip(node.operands, node.inputs, strict=True))
    shared = [operand for operand, labels in pairs if not set(labels).intersection(summed)]
    apart = [operand for operand in node.operands if operand not in shared]
    count = len(first_met(shared, arguments)) + prod(sizes) * len(first_met(apart, arguments))
    if not 0 < count <= MOST_ARGUMENTS:
        return None
    axes = [
        tuple(node.output.index(label) for label in own if label not in summed)
        for own in node.inputs
    ]
    if any(list(own) != sorted(set(own)) for own in axes):
        return None
    terms = []
    for places in product(*(range(size) for size in sizes)):
        at = dict(zip(summed, places, strict=True))
        factors: dict[tuple[Expr, Axes], int] = {}
        for operand, labels, own in zip(node.operands, node.inputs, axes, strict=True):
            fixed = {axis: at[label] for axis, label in enumerate(labels) if label in at}
            taken = _taken(done[operand], fixed), own
            factors[taken] = factors.get(taken, 0) + 1
        terms.append(_product(factors, node.shape))
    return reduce(table.add, terms)


def _product(factors: Mapping[tuple[Expr, Axes], int], shape: tuple[Dim, ...]) -> Expr:
    """The product of factors, each to its power, placed along some of the axes."""
    result: tuple[Expr, Axes] | None = None
    whole = tuple(range(len(shape)))
    for (factor, own), count in factors.items():
        power = {1: factor, 2: table.square(factor)}.get(count)
        if power is None:
            power = table.pow(factor, float(count))
        if result is None:
            result = power, own
        else:
            pair, along = (result[0], power), (result[1], own)
            result = build.apply_along(table.mul, pair, along, shape), whole
    assert result is not None
    node, own = result
    return node if own == whole else build.broadcast(node, own, shape)


def _taken(node: Expr, fixed: Fixed) -> Expr:
    """The slice of a node at fixed indices along some axes, pushed below elementwise functions."""
    if not fixed:
        return node
    if isinstance(node, Map):
        left = [axis for axis in range(node.rank) if axis not in fixed]
        parts, axes = [], []
        for operand, own in zip(node.operands, node.axes, strict=True):
            inner = {k: fixed[axis] for k, axis in enumerate(own) if axis in fixed}
            parts.append(_taken(operand, inner))
            axes.append(tuple(left.index(axis) for axis in own if axis in left))
        shape = tuple(node.shape[axis] for axis in left)
        return build.apply_along(node.function, parts, axes, shape)
    shape = tuple(dim for axis, dim in enumerate(node.shape) if axis not in fixed)
    index, free = [], 0
    for axis in range(node.rank):
        if axis in fixed:
            index.append(Affine(Dim((), fixed[axis]), (0,) * len(shape)))
        else:
            index.append(Affine.along(free, len(shape)))
            free += 1
    return build.gather(node, index, shape)
