"""How nodes read the axes of their operands: element by element along their own, or together."""

from __future__ import annotations

from collections.abc import Container, Iterator
from enum import Enum

from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.loops.layouts import is_summed_in_loop
from slomodel.ir.expr import (
    Affine,
    Einsum,
    Expr,
    Gather,
    Index,
    Input,
    Lookup,
    Map,
    Scan,
    Scatter,
    reads_axis,
)

SHORT = 4
"""Elements of an axis that is written out: three such arrays of a loop fill half the registers."""

Place = tuple[Expr, int]
"""An axis of a node or, as ~label, a label along which it sums."""


class ReadMode(Enum):
    """How a node reads an axis of an operand along which it does not run itself.

    Element by element, or only together with all other elements.
    """

    ELEMENTS = "elements"
    WHOLE = "whole"


def reads(node: Expr, numbers: Numbers) -> Iterator[tuple[int, int, int | ReadMode]]:
    """Each operand and axis that a node reads, with its own axis, ~label or the mode."""
    if isinstance(node, Map):
        for k, own in enumerate(node.axes):
            yield from ((k, p, axis) for p, axis in enumerate(own))
        return
    for k, operand in enumerate(node.operands):
        for p in range(operand.rank):
            yield k, p, axis_read(node, k, p, numbers)


def axis_read(node: Expr, k: int, p: int, numbers: Numbers) -> int | ReadMode:
    if isinstance(node, Einsum) and is_loop(node, numbers):
        label = node.inputs[k][p]
        return node.output.index(label) if label in node.output else ~label
    if isinstance(node, Gather) and not k:
        return _alone(node.index[p]) if _is_fixed(node.index[p]) else ReadMode.WHOLE
    if isinstance(node, Scatter) and not k:
        places = [q for q, one in enumerate(node.index) if reads_axis(one, p)]
        if not all(isinstance(node.index[q], Affine | Lookup) for q in places):
            return ReadMode.WHOLE
        alone = len(places) == 1 and _is_fixed(node.index[places[0]])
        return places[0] if alone else ReadMode.ELEMENTS
    return p if isinstance(node, Scan) else ReadMode.WHOLE


def is_loop(node: Einsum, numbers: Numbers) -> bool:
    """Whether a sum of products is computed in a loop, and not by a product of matrices.

    A product of matrices that has one long side at most is computed in the loop along it.
    """
    if not node.operands or len(set(node.output)) < len(node.output):
        return False
    same = len({frozenset(own) for own in node.inputs}) == 1
    if same or is_summed_in_loop(node, in_order=True):
        return True
    return has_one_long_side(node, numbers)


def has_one_long_side(node: Einsum, numbers: Numbers) -> bool:
    return sum(dim.value(numbers) > SHORT for dim in node.dims) == 1


def _is_fixed(index: Index) -> bool:
    """Whether an index is a number, or runs along one axis."""
    if not isinstance(index, Affine):
        return False
    return sum(1 for c in index.coefficients if c) <= 1


def _alone(index: Index) -> int | ReadMode:
    assert isinstance(index, Affine)
    return next((axis for axis, c in enumerate(index.coefficients) if c), ReadMode.ELEMENTS)


def _is_plain(index: Index, axis: int) -> bool:
    """Whether an index with one axis held at a position is an index again, into a sliced table."""
    if not reads_axis(index, axis) or isinstance(index, Affine):
        return True
    return isinstance(index, Lookup) and isinstance(index.table, Input)


def computes(node: Expr, axis: int, chosen: Container[Place], numbers: Numbers) -> bool:
    """Whether the elements of a node at one position along an axis can be computed alone.

    `chosen` are the axes that are written out.
    """
    if isinstance(node, Map | Scan):
        return True
    if isinstance(node, Einsum):
        return is_loop(node, numbers)
    if isinstance(node, Gather):
        return all(_is_plain(one, axis) for one in node.index)
    if isinstance(node, Scatter):
        entry = node.index[axis]
        moved = _alone(entry) if _is_fixed(entry) else ReadMode.WHOLE
        if isinstance(moved, int):
            return (node.operands[0], moved) in chosen and axis_read(
                node, 0, moved, numbers
            ) == axis
        return moved is ReadMode.ELEMENTS
    return False
