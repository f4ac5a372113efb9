"""Values of graphs of scalars at arrays of points, in doubles with running error bounds."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, around
from slomodel.bounds.arithmetic.midpoint_radius import Bounded, computed
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.ir.expr import Const, Expr, Input, Map
from slomodel.ir.walk import postorder

Known = Bounded[Array]
"""Numbers with elementwise errors."""


def values_at(graphs: Sequence[Expr], argument: Input, x: Array) -> list[Interval] | None:
    """Intervals that contain the graphs at every point of x; None where a node has no rule here or
    a number is not finite.
    """
    result: dict[Expr, Known] = {}
    with np.errstate(all="ignore"):
        for node in postorder(*graphs):
            one = _known(node, argument, x, result)
            if one is None:
                return None
            result[node] = one
        own = [result[graph] for graph in graphs]
        if not all(np.isfinite(one.value).all() and np.isfinite(one.error).all() for one in own):
            return None
        return [around(one.value, one.error) for one in own]


def _known(node: Expr, argument: Input, x: Array, known: dict[Expr, Known]) -> Known | None:
    if node is argument:
        return Bounded(x, np.zeros_like(x))
    if isinstance(node, Const):
        return Bounded(np.asarray(float(node.value)), np.zeros(()))
    if not isinstance(node, Map):
        return None
    operands = [known[o] for o in node.operands]
    function = node.function
    if function is table.neg:
        return Bounded(-operands[0].value, operands[0].error)
    if function is table.mul:
        return operands[0] * operands[1]
    if function is table.square:
        return operands[0] * operands[0]
    if function is table.add:
        return operands[0] + operands[1]
    if function is table.sub:
        return operands[0] - operands[1]
    stated = function.monotonicity
    if (
        stated is None
        or function.error_scale is not None
        or operands[0].error.any()
        or function.domain != ((-inf, inf),)
    ):
        return None
    value = np.asarray(function.numpy(operands[0].value), dtype=np.float64)
    return computed(value, function.worst_ulps("numpy"))
