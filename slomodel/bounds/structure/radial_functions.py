"""Objectives that are sums of functions of lengths, φ(‖Ax + b‖²), and of functions of few numbers.

A function of a length depends on all elements of Ax + b, however many these are, but its second
derivatives by them have two eigenvalues only.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import slomodel.functions as table
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.structure.linear_predictors import Elements, affine_nodes, parts_over
from slomodel.ir import build
from slomodel.ir.expr import Axes, Const, Einsum, Expr, Map
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import substitute

Arrays = tuple[tuple[Expr, Axes], ...]
"""Affine arrays, each with some of its axes."""


@dataclass(frozen=True, slots=True)
class SquaredLengths:
    """The node Σ_k Σ u_k² of affine `arrays` u_k, each over the axes beside it.

    The other axes of each array are those of the node, in order.
    """

    node: Expr
    arrays: Arrays


@dataclass(frozen=True, slots=True)
class RadialSums:
    """f = Σ weight φ(s) over the elements of all `radial` parts, s squared lengths, + `others`, the
    elements of `rest`.
    """

    radial: tuple[tuple[Elements, SquaredLengths], ...]
    others: tuple[Elements, ...]
    rest: Expr


@once_per_part
def radial_sums(part: ObjectivePart) -> RadialSums | None:
    """The objective as such a sum, up to an affine function; None where it is of another kind, or
    has no function of a length but squares.
    """
    order, varying = part.order, part.varying
    affine = affine_nodes(order, varying)
    squares: dict[Expr, SquaredLengths] = {}
    for node in order:
        arrays = _arrays(node, affine)
        if arrays and (len(arrays) > 1 or arrays[0][1]):
            squares[node] = SquaredLengths(node, arrays)
    if not squares:
        return None
    parts = parts_over(part.objective, varying, affine, squares.keys())
    if parts is None:
        return None
    radial, others = [], []
    for one in parts:
        nodes = [laid.node for laid in one.affine]
        if not any(node in squares for node in nodes):
            others.append(one)
        elif len(nodes) == 1:
            radial.append((one, squares[nodes[0]]))
        else:
            return None
    if all(one.value in one.arguments for one, _ in radial):
        return None
    zeros = {one.whole: build.zeros(one.whole.shape) for one, _ in radial}
    (rest,) = substitute((part.objective,), zeros)
    return RadialSums(tuple(radial), tuple(others), rest)


def _arrays(node: Expr, affine: Collection[Expr]) -> Arrays:
    """The affine arrays whose squares a node adds up, and the axes of each over which it does;
    none for other nodes.
    """
    if isinstance(node, Map):
        return _of_map(node, affine)
    if not isinstance(node, Einsum) or len(set(node.inputs)) != 1:
        return ()
    labels, first = node.inputs[0], node.operands[0]
    if len(node.operands) == 1:
        arrays = _arrays(first, affine)
    else:
        is_square = node.operands[1:] == (first,) and first in affine
        arrays = ((first, ()),) if is_square else ()
    if any(axes for _, axes in arrays) or len(set(labels)) < len(labels):
        return ()
    places = [labels.index(label) for label in node.output if label in labels]
    if len(places) < len(node.output) or places != sorted(set(places)):
        return ()
    if len(labels) < len(node.dims):
        return ()
    summed = tuple(axis for axis, label in enumerate(labels) if label not in node.output)
    return tuple((u, summed) for u, _ in arrays)


def _of_map(node: Map, affine: Collection[Expr]) -> Arrays:
    """Squares, their sums and multiples."""
    whole = tuple(range(node.rank))
    for function, k in ((table.mul, 0), (table.mul, 1), (table.div, 1)):
        factor = node.operands[k] if node.function is function else None
        if isinstance(factor, Const) and factor.value > 0.0 and node.axes[1 - k] == whole:
            arrays = _arrays(node.operands[1 - k], affine)
            return tuple((_scaled(u, function, k, table.sqrt(factor)), axes) for u, axes in arrays)
    if any(axes != whole for axes in node.axes):
        return ()
    if node.function is table.square:
        return ((node.operands[0], ()),) if node.operands[0] in affine else ()
    if node.function is not table.add:
        return ()
    parts = [_arrays(operand, affine) for operand in node.operands]
    return tuple(one for part in parts for one in part) if all(parts) else ()


def _scaled(u: Expr, function: ScalarFunction, k: int, factor: Expr) -> Expr:
    """u times a number, or divided by it; k is the place of the number."""
    whole: Axes = tuple(range(u.rank))
    pair, axes = ((factor, u), ((), whole)) if k == 0 else ((u, factor), (whole, ()))
    return build.apply_along(function, pair, axes, u.shape)
