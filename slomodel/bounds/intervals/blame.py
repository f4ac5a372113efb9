"""Which part of an objective has no bounded derivative on a box."""

from __future__ import annotations

import numpy as np

from slomodel.bounds.intervals.derivatives import derivative_range
from slomodel.bounds.intervals.enclose import boxed, enclose, live_in
from slomodel.bounds.intervals.interval import Interval, around, interval
from slomodel.bounds.intervals.live import Live
from slomodel.bounds.intervals.smoothness import place
from slomodel.bounds.setting import Setting
from slomodel.ir.expr import Expr, Input, Map
from slomodel.ir.walk import dependents, postorder

_ORDERS = 3


def unbounded(setting: Setting, radius: float) -> str:
    """The first part whose derivative of least order is not bounded on the box round the ball."""
    boxes = boxed(setting.values)
    boxes.update({v: around(setting.values[v], radius) for v in setting.variables})
    live = live_in(setting)
    found = enclose([setting.objective], boxes, setting.sizes, live=live)
    order = postorder(setting.objective)
    moving = dependents(order, lambda n: isinstance(n, Input) and n.role == "variable")
    for k in range(_ORDERS + 1):
        for node in order:
            if (
                node in moving
                and isinstance(node, Map)
                and _is_unbounded(node, k, found, moving, live)
            ):
                what = "value" if k == 0 else f"derivative of order {k}"
                found_at = place(node, setting.spans, setting.objective)
                return f"{found_at} has an unbounded {what} in the ball"
    return "a product of derivatives is beyond the largest number, 1.8e308"


def _is_unbounded(
    node: Map, k: int, found: dict[Expr, Interval], moving: set[Expr], live: Live
) -> bool:
    operands = [_read(found[o], node, j, live) for j, o in enumerate(node.operands)]
    if node.function.result == "bool" or not all(np.isfinite(a.magnitude).all() for a in operands):
        return False
    if k == 0:
        return not np.isfinite(found[node].magnitude).all()
    # Each operand at once would need shapes to fit; one value of each is told by itself.
    flat = [interval(np.min(a.lo), np.max(a.hi)) for a in operands if a.lo.size]
    for j, operand in enumerate(node.operands):
        if operand in moving and operand.dtype == "real" and len(flat) == len(operands):
            orders = tuple(k if i == j else 0 for i in range(len(operands)))
            if not np.isfinite(derivative_range(node.function, orders, *flat).magnitude).all():
                return True
    return False


def _read(a: Interval, node: Map, j: int, live: Live) -> Interval:
    """What the live elements of a node read of its operand j."""
    if node not in live:
        return a
    dropped = tuple(axis for axis in range(node.rank) if axis not in node.axes[j])
    own = live[node].any(axis=dropped)
    return a.each(lambda array: array[own])
