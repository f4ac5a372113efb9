"""Gathers moved below elementwise functions, so that functions of gathered elements share them.

Two gathers φ(u)[index] and ψ(u)[index] are nodes of their own, of which a function of both knows
ranges alone. As φ(u[index]) and ψ(u[index]) they are functions of one argument u[index].
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from slomodel.bounds.effort import MOST_NODES
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.structure.linear_predictors import affine_nodes
from slomodel.bounds.structure.short_sums import with_short_sums
from slomodel.functions.compound import stop_gradient
from slomodel.ir import build
from slomodel.ir.expr import (
    Affine,
    Axes,
    Expr,
    Gather,
    Index,
    Lookup,
    Map,
    Multiset,
    reads_axis,
    remake,
)


@once_per_part
def with_gathers_below(part: ObjectivePart) -> ObjectivePart | None:
    """The part with gathers below elementwise functions of affine nodes; None without such."""
    order = part.order
    if len(order) > MOST_NODES:
        return None
    varying = part.varying
    functions = _functions_of_affine(order, varying)
    done: dict[Expr, Expr] = {}
    for node in order:
        if isinstance(node, Gather) and node.operands[0] in functions:
            done[node] = _moved_below(node.operands[0], node, functions)
        else:
            done[node] = remake(node, tuple(done[operand] for operand in node.operands))
    result = part.rewritten(done, part.known)
    return None if result is part else result


@once_per_part
def element_forms(part: ObjectivePart) -> tuple[ObjectivePart, ...]:
    """The part and its forms in which more sums may be elementwise, the simplest first."""
    gathered = with_gathers_below(part)
    bases = (part,) if gathered is None else (part, gathered)
    summed = tuple(one for base in bases if (one := with_short_sums(base)) is not None)
    return bases + summed


def _functions_of_affine(order: Sequence[Expr], varying: Collection[Expr]) -> set[Expr]:
    """The elementwise functions of affine nodes that depend on x and are not affine themselves."""
    affine = affine_nodes(order, varying)
    result: set[Expr] = set()
    for node in order:
        if node not in varying or node in affine or not isinstance(node, Map):
            continue
        below = [operand for operand in node.operands if operand in varying]
        if node.function is not stop_gradient and all(
            one in affine or one in result for one in below
        ):
            result.add(node)
    return result


def _moved_below(node: Expr, gather: Gather, functions: Collection[Expr]) -> Expr:
    """The gathered elements of a node, of the gather's shape, gathered below its functions."""
    whole = tuple(range(gather.rank))
    result, axes = _gathered(node, gather.index, gather, functions)
    return result if axes == whole else build.broadcast(result, axes, gather.shape)


def _gathered(
    node: Expr, index: tuple[Index, ...], gather: Gather, functions: Collection[Expr]
) -> tuple[Expr, Axes]:
    """The node at an index over the gather's axes, and those axes that the result has."""
    if not index:
        return node, ()
    if isinstance(node, Map) and (node in functions or _is_linear_map(node, functions)):
        parts = [
            _gathered(operand, tuple(index[axis] for axis in own), gather, functions)
            for operand, own in zip(node.operands, node.axes, strict=True)
        ]
        read = tuple(sorted({axis for _, axes in parts for axis in axes}))
        shape = tuple(gather.shape[axis] for axis in read)
        along = [tuple(read.index(axis) for axis in axes) for _, axes in parts]
        result = build.apply_along(node.function, [one for one, _ in parts], along, shape)
        return result, read
    read = tuple(axis for axis in range(gather.rank) if any(reads_axis(one, axis) for one in index))
    shape = tuple(gather.shape[axis] for axis in read)
    return build.gather(node, [over_axes(one, read) for one in index], shape), read


def _is_linear_map(node: Map, functions: Collection[Expr]) -> bool:
    """Whether a node below the functions is elementwise too."""
    return node not in functions and node.function is not stop_gradient and node.dtype == "real"


def over_axes(one: Index, read: Axes) -> Index:
    """The index as a function of the axes `read` alone."""
    if isinstance(one, Lookup):
        return Lookup(tuple(read.index(axis) for axis in one.axes), one.table)
    if isinstance(one, Multiset):
        return Multiset(read.index(one.axis), one.size, one.degree, one.start, one.stop)
    return Affine(one.offset, tuple(one.coefficients[axis] for axis in read))
