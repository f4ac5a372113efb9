"""Pickling of graphs as flat records: without recursion, and interned again on loading.

A pickle of several nodes stores the graph of each: pickle one root, or the source of them all.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable

from slomodel.ir.expr import (
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Input,
    Iota,
    Listing,
    Map,
    MatrixOperation,
    Recur,
    Reshape,
    Scan,
    Scatter,
    Triangle,
)
from slomodel.ir.walk import postorder

_Record = tuple[str, tuple[int, ...], tuple[object, ...]]


def flatten(root: Expr) -> list[_Record]:
    """The graph as a flat list in postorder, so that pickling a deep graph does not recurse."""
    place: dict[Expr, int] = {}
    records: list[_Record] = []
    for node in postorder(root):
        own: tuple[object, ...]
        if isinstance(node, Input):
            own = (node.name, node.role, node.shape, node.dtype)
        elif isinstance(node, Const):
            own = (node.value, node.written)
        elif isinstance(node, Iota):
            own = node.shape
        elif isinstance(node, Map):
            own = (node.function, node.axes, node.shape)
        elif isinstance(node, Einsum):
            own = (node.inputs, node.output, node.dims)
        elif isinstance(node, (Gather, Scatter)):
            own = (node.index, node.shape)
        elif isinstance(node, Extreme):
            own = (node.which, node.axes)
        elif isinstance(node, Scan):
            own = (node.axis,)
        elif isinstance(node, Recur):
            own = (node.loop, node.state)
        elif isinstance(node, MatrixOperation):
            own = (node.function,)
        elif isinstance(node, Triangle):
            own = ()
        elif isinstance(node, Listing):
            own = (node.what, node.shape[0], node.axis)
        else:
            own = (node.shape,)
        records.append((type(node).__name__, tuple(place[o] for o in node.operands), own))
        place[node] = len(place)
    return records


_KINDS: dict[str, Callable[..., Expr]] = {
    "Input": lambda operands, *own: Input(*own),
    "Const": lambda operands, *own: Const(*own),
    "Iota": lambda operands, *own: Iota(*own),
    "Map": lambda operands, function, axes, shape: Map(function, operands, axes, shape),
    "Einsum": Einsum,
    "Gather": lambda operands, *own: Gather(operands[0], *own),
    "Scatter": lambda operands, *own: Scatter(operands[0], *own),
    "Reshape": lambda operands, *own: Reshape(operands[0], *own),
    "Extreme": lambda operands, *own: Extreme(operands[0], *own),
    "Scan": lambda operands, *own: Scan(*operands, *own),
    "Recur": Recur,
    "MatrixOperation": lambda operands, function: MatrixOperation(function, operands),
    "Triangle": lambda operands: Triangle(operands[0]),
    "Listing": lambda operands, what, *own: Listing(what, operands, *own),
}


def restore(records: list[_Record]) -> Expr:
    """The root of the graph in these records, interned in this process; inverts `flatten`."""
    nodes: list[Expr] = []
    for kind, operands, own in records:
        nodes.append(_KINDS[kind](tuple(nodes[k] for k in operands), *own))
    return nodes[-1]


def _reduce(node: Expr) -> tuple[Callable[..., Expr], tuple[list[_Record]]]:
    return restore, (flatten(node),)


for _kind in (
    *(Input, Const, Iota, Map, Einsum, Gather, Scatter, Reshape, Extreme, Scan, Recur, Triangle),
    *(Listing, MatrixOperation),
):
    copyreg.pickle(_kind, _reduce)
