"""Objectives that are sums of functions of lengths, φ(‖Ax + b‖²), and of functions of few numbers.

A function of a length depends on all elements of Ax + b, however many these are, but its second
derivatives by them have two eigenvalues only.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import slomodel.functions as table
from slomodel.bounds.setting import Setting, once_per_setting
from slomodel.bounds.structure.separable import Elements, affine_nodes, parts_over
from slomodel.ir.expr import Axes, Einsum, Expr, Map


@dataclass(frozen=True, slots=True)
class SquaredLengths:
    """The node Σ u² over the axes `summed` of an affine u, with the other axes of u in order."""

    node: Expr
    u: Expr
    summed: Axes

    @property
    def kept(self) -> Axes:
        """The axes of u along which there is a length for each index."""
        return tuple(axis for axis in range(self.u.rank) if axis not in self.summed)


@dataclass(frozen=True, slots=True)
class RadialSums:
    """f = Σ weight φ(s) over the elements of all `radial` parts, s squared lengths, + `others`."""

    radial: tuple[tuple[Elements, SquaredLengths], ...]
    others: tuple[Elements, ...]


@once_per_setting
def radial_sums(setting: Setting) -> RadialSums | None:
    """The objective as such a sum, up to an affine function; None where it is of another kind, or
    has no function of a length but squares.
    """
    order, varying = setting.order, setting.varying
    affine = affine_nodes(order, varying)
    squares: dict[Expr, SquaredLengths] = {}
    for node in order:
        lengths = _lengths(node, affine)
        if lengths is not None:
            squares[node] = lengths
    if not squares:
        return None
    parts = parts_over(setting.objective, varying, affine, squares.keys())
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
    return RadialSums(tuple(radial), tuple(others))


def _lengths(node: Expr, affine: Collection[Expr]) -> SquaredLengths | None:
    """A node Σ u² with an affine u, its axes in order."""
    if not isinstance(node, Einsum) or len(set(node.inputs)) != 1:
        return None
    labels, first = node.inputs[0], node.operands[0]
    if len(node.operands) == 1 and isinstance(first, Map) and first.function is table.square:
        (u,) = first.operands
        is_whole = first.axes[0] == tuple(range(first.rank))
    else:
        u = first
        is_whole = len(node.operands) == 2 and node.operands[1] is first
    if not is_whole or u not in affine or len(set(labels)) < len(labels):
        return None
    places = [labels.index(label) for label in node.output if label in labels]
    if len(places) < len(node.output) or places != sorted(set(places)):
        return None
    if len(labels) < len(node.dims):
        return None
    summed = tuple(axis for axis, label in enumerate(labels) if label not in node.output)
    return SquaredLengths(node, u, summed) if summed else None
