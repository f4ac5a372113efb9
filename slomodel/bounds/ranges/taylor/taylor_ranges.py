"""Ranges of the nodes of a graph over a ball, by first-order Taylor forms about its centre.

Intervals over the box around a ball of n variables let every variable vary by ρ at once, a sum
of n of them by nρ. In a ball an affine u varies by ρ‖∇u‖ only. Composition preserves most of
this: see `taylor_forms`, and for recurrences `taylor_recurrences`. The forms are Taylor models of
order one (Makino and Berz, 2003) whose domain is a ball in the 2-norm.

A number marked `stop_gradient` may be replaced by any constant: here, by its value at the centre.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.ball import Displacements
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.curvature.slopes import slope_elements, slopes_of
from slomodel.bounds.ranges.enclose import boxed, boxes_over, enclose, live_in
from slomodel.bounds.ranges.liveness import neutral
from slomodel.bounds.ranges.taylor.taylor_forms import CentreSlopes, TaylorForm, TaylorPass, put
from slomodel.bounds.ranges.taylor.taylor_recurrences import put_states
from slomodel.bounds.stopping import pause
from slomodel.functions.compound import stop_gradient
from slomodel.ir.expr import Expr, Input, Map, Recur
from slomodel.ir.recur import all_bodies
from slomodel.ir.walk import dependents, postorder


@once_per_part
def centre_slopes(part: ObjectivePart, most: int) -> CentreSlopes:
    """The centre slopes; lengths are left out beyond `most` directions times elements."""
    roots = (part.objective, *part.gradient)
    order = tuple(postorder(*roots, *all_bodies(*roots)))
    live = live_in(part, *roots)
    values = enclose(order, boxed(part.values), part.sizes, live=live)
    for node in order:
        if isinstance(node, Map) and node.function is stop_gradient:
            values[node] = _constant(values[node])
    return CentreSlopes(order, values, _lengths(part, order, most), live)


def _constant(a: Interval) -> Interval:
    """The constant that replaces a `stop_gradient` node where its value at the centre is finite."""
    return point(a.mid) if np.isfinite(a.magnitude).all() else a


def _lengths(part: ObjectivePart, order: Sequence[Expr], most: int) -> dict[Expr, Array]:
    """Upper bounds on ‖∇u(c)‖ for each element of the nodes that depend on the variables."""
    varying = dependents(order, set(part.variables).__contains__)
    nodes = [n for n in order if n in varying and n.dtype == "real" and not isinstance(n, Input)]
    if part.n * slope_elements(part, nodes) > most:
        return {}
    return slopes_of(part, nodes, (), {}, Displacements.ball(part.n, 1.0))[0]


def taylor_ranges(part: ObjectivePart, radius: float, most: int) -> dict[Expr, Interval]:
    """Ranges over the ball of all nodes under the objective and its gradient.

    Hypothesis and conclusion are those of `enclose`, over the ball instead of a box. All ranges are
    of one graph in which `stop_gradient` nodes are the same constants. Without slopes (more than
    `most` numbers) the ranges are those of intervals over the box.
    """
    centre = centre_slopes(part, most)
    run = TaylorPass(part, radius, centre)
    varying = dependents(centre.order, set(part.variables).__contains__)
    boxes = boxes_over(part, radius)
    with np.errstate(all="ignore"):
        for node in centre.order:
            pause()
            if node in run.ranges:
                continue
            if isinstance(node, Input):
                run.ranges[node] = neutral(node, boxes[node], centre.live)
                if node in varying:
                    shape = boxes[node].shape
                    run.forms[node] = TaylorForm(np.full(shape, radius), np.zeros(shape))
            elif node not in varying:
                run.ranges[node] = run.enclosed(node)
            elif isinstance(node, Recur):
                put_states(run, node)
            else:
                put(run, node)
    return run.ranges
