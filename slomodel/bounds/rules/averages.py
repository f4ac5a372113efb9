"""Any objective, node by node from its variables on: what averages and sums preserve."""

from __future__ import annotations

import numpy as np

import slomodel.functions as table
from slomodel.bounds.centre import hessian_at_centre
from slomodel.bounds.enclosure import DerivativeBounds, Enclosure, both_ends
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.derivative_norms.propagate import norms_over_ball
from slomodel.bounds.ranges.unbounded import unbounded
from slomodel.bounds.structure.log_sum_exp import log_sum_operand
from slomodel.ir.expr import Expr, Recur, is_map
from slomodel.ir.walk import postorder


def averages(part: ObjectivePart, radius: float) -> Enclosure | None:
    """L1 and L2 from bounds on ∇u, D²u and D³u of every node u, from the variables to f.

    Hypothesis: none; a node that is not proved to be smooth over its ranges has no finite bound.
    log Σ exp of nodes has as derivatives means, variances and third cumulants of theirs; nested
    ones are one log Σ exp over all paths, so that nothing grows by more than a power of the depth.
    """
    if not 0.0 < radius < np.inf or part.n == 0 or not _has_averages(part):
        return None
    result = norms_over_ball(part, radius)
    if result is None:
        return None
    numbers = (float(a) for a in (*result.ends, result.third))
    upper, lower, third = (np.inf if np.isnan(a) else a for a in numbers)
    if not np.isfinite([upper, lower]).all():
        return Enclosure(reason=unbounded(part, radius))
    centre = DerivativeBounds(both_ends(hessian_at_centre(part)))
    order = 3 if np.isfinite(third) else 1
    return Enclosure(centre, DerivativeBounds((upper, lower), third), order)


@once_per_part
def _has_averages(part: ObjectivePart) -> bool:
    """Whether a recurrence averages what it has computed before.

    Elsewhere other rules have smaller bounds in less time.
    """
    loops = [node for node in part.order if isinstance(node, Recur) and node in part.varying]
    while loops:
        for update in loops.pop().loop.updates:
            order = postorder(update.value)
            loops += [node for node in order if isinstance(node, Recur)]
            if any(log_sum_operand(one, order) or _is_of_two(one) for one in order):
                return True
    return False


def _is_of_two(node: Expr) -> bool:
    return is_map(node, table.logaddexp) or is_map(node, table.softplus)
