"""Pickling of graphs as flat records: without recursion, and interned again on loading.

A pickle of several nodes stores the graph of each: pickle one root, or the source of them all.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable

from slomodel.ir.dims import Shape
from slomodel.ir.expr import KINDS, Const, Expr
from slomodel.ir.node import DType, interned, own_fields
from slomodel.ir.walk import postorder

_Record = tuple[type[Expr], tuple[int, ...], Shape, DType, dict[str, object]]


def flatten(root: Expr) -> list[_Record]:
    """The graph as a flat list in postorder, so that pickling a deep graph does not recurse."""
    place: dict[Expr, int] = {}
    records: list[_Record] = []
    for node in postorder(root):
        operands = tuple(place[operand] for operand in node.operands)
        records.append((type(node), operands, node.shape, node.dtype, own_fields(node)))
        place[node] = len(place)
    return records


def restore(records: list[_Record]) -> Expr:
    """The root of the graph in these records, interned in this process; inverts `flatten`."""
    nodes: list[Expr] = []
    for kind, places, shape, dtype, own in records:
        operands = tuple(nodes[k] for k in places)
        # Constants are interned by their bits.
        is_constant = kind is Const
        nodes.append(Const(**own) if is_constant else interned(kind, operands, shape, dtype, **own))  # type: ignore[arg-type]
    return nodes[-1]


def _reduce(node: Expr) -> tuple[Callable[..., Expr], tuple[list[_Record]]]:
    return restore, (flatten(node),)


for _kind in KINDS:
    copyreg.pickle(_kind, _reduce)
