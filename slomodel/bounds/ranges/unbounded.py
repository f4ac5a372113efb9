"""The node of an objective that has no bounded derivative on a box."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, interval
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.derivatives import derivative_range
from slomodel.bounds.ranges.enclose import boxes_over, enclose, live_in
from slomodel.bounds.ranges.liveness import Live, Sizes, read_by
from slomodel.bounds.ranges.smoothness import place
from slomodel.ir.expr import Expr, Map
from slomodel.ir.function import RangeRule

_ORDERS = 3
"""Derivatives of a function whose ranges are tried: those that L1 and L2 need, and D⁴f."""


def unbounded(part: ObjectivePart, radius: float) -> str:
    """The first node whose derivative of least order is unbounded on the box around the ball."""
    boxes = boxes_over(part, radius)
    live, sizes = live_in(part), part.sizes
    result = enclose([part.objective], boxes, part.sizes, live=live)
    order, varying = part.order, part.varying
    for k in range(_ORDERS + 1):
        for node in order:
            if not isinstance(node, Map) or node not in varying:
                continue
            operands = [_read(result[o], node, j, live, sizes) for j, o in enumerate(node.operands)]
            if _is_unbounded(node, k, result[node], operands, varying):
                what = "value" if k == 0 else f"derivative of order {k}"
                found_at = place(node, part.spans, part.objective)
                if node.function.ranges is RangeRule.UNKNOWN:
                    return f"{found_at} is by `{node.function}`, whose bounds are unknown"
                return f"{found_at} has an unbounded {what} in the ball"
    return "a product of derivatives is beyond the largest number, 1.8e308"


def _is_unbounded(
    node: Map, k: int, own: Interval, operands: list[Interval], varying: Collection[Expr]
) -> bool:
    if node.function.result == "bool" or not all(np.isfinite(a.magnitude).all() for a in operands):
        return False
    if k == 0:
        return not np.isfinite(own.magnitude).all()
    # One interval for all elements of an operand, since shapes of operands may differ.
    flat = [interval(np.min(a.lo), np.max(a.hi)) for a in operands if a.lo.size]
    for j, operand in enumerate(node.operands):
        if operand in varying and operand.dtype == "real" and len(flat) == len(operands):
            orders = tuple(k if i == j else 0 for i in range(len(operands)))
            if not np.isfinite(derivative_range(node.function, orders, *flat).magnitude).all():
                return True
    return False


def _read(a: Interval, node: Map, j: int, live: Live, sizes: Sizes) -> Interval:
    """The elements (m,) of operand j that the live elements of a node read; `a` if it reads all."""
    own = read_by(node, j, live.get(node), {}, sizes, {})
    return a if own is None else a.each(lambda array: array[own])
