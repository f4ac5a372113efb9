"""NumPy meanings of functions that are stated as graphs of simpler ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from slomodel.functions.piecewise import Reals
from slomodel.ir.expr import Const, Expr, Input, Map
from slomodel.ir.function import Array
from slomodel.ir.walk import postorder


def graph_values(graph: Expr, at: Mapping[Input, Reals]) -> Reals:
    """The values of a graph of scalars at arrays, by the meanings of its functions."""
    known: dict[Expr, Array] = {node: np.asarray(values) for node, values in at.items()}
    with np.errstate(all="ignore"):
        for node in postorder(graph):
            if isinstance(node, Const):
                known[node] = np.asarray(node.value)
            elif isinstance(node, Map):
                known[node] = node.function.numpy(*(known[one] for one in node.operands))
    return np.asarray(known[graph], dtype=np.float64)
