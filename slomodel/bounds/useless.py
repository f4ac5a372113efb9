"""Finite bounds that are useless, far beyond the curvature sampled in the ball, and why."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, interval
from slomodel.bounds.attained import curvature, points
from slomodel.bounds.ball import Vector
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.derivatives import derivative_range
from slomodel.bounds.ranges.smoothness import place
from slomodel.bounds.ranges.taylor.taylor_ranges import taylor_ranges
from slomodel.errors import MissingRule
from slomodel.ir.expr import Expr, Map
from slomodel.reference import evaluate_all

USELESS = 1e12
"""A bound beyond this multiple of the curvature sampled in the ball is useless. Steps of length
1/L1 would be too short by this factor: moves of 1e-12 change no more than the last digits of x.
"""
_LARGE = 100.0
"""A bound beyond this multiple of the curvature sampled in the ball is explained as large."""
_ORDERS = 3
"""Derivatives of a node whose ranges are compared."""
_MOST_NUMBERS = 2**20
"""Largest number of slopes for Taylor ranges; beyond it ranges are taken over the enclosing box."""
_MARKED = 1.1
"""A node is named where its range, or that of a derivative, exceeds the sampled one by this factor
more than its operands' ranges do.
"""
_NONE_MARKED = (
    "no sub-expression has a range far beyond what is seen: the loss is where the sizes of their "
    "derivatives are added up"
)
_LEAST = 1e-300
"""Sampled magnitudes below this count as this, so that ratios to them are finite."""


def useless_bound(part: ObjectivePart, radius: float, L1: float, seen: float = 0.0) -> str:
    """Why a finite L1 over a ball is useless; empty where it is not, or cannot be compared.

    `seen` is a lower bound on the curvature in the ball that is known already.
    """
    if USELESS * seen >= L1:
        return ""
    return _beyond(USELESS, "useless", part, radius, L1)


def large_bound(part: ObjectivePart, radius: float, L1: float) -> str:
    """As `useless_bound`, for a finite L1 far above the curvature at sampled points."""
    return _beyond(_LARGE, "large", part, radius, L1)


def _beyond(factor: float, word: str, part: ObjectivePart, radius: float, L1: float) -> str:
    if not (0.0 < radius < math.inf and 0.0 < L1 < math.inf and part.n):
        return ""
    if curvature(part, part.x, L1 / factor) >= L1 / factor:
        return ""
    seen_at = list(points(part, radius))
    seen = max(curvature(part, x) for x in seen_at)
    if not 0.0 < seen < L1 / factor:
        return ""
    text = f"the bound is {word}: {L1 / seen:.1e} times the curvature seen in the ball"
    try:
        culprit = _culprit(part, radius, seen_at)
    except MissingRule:
        culprit = ""
    return f"{text}; {culprit}" if culprit else text


def _culprit(part: ObjectivePart, radius: float, seen_at: list[Vector]) -> str:
    """The node most responsible for the looseness.

    Its range over the ball, or that of one of its derivatives, exceeds the sampled one by the
    largest factor relative to that of its operands.
    """
    result = taylor_ranges(part, radius, _MOST_NUMBERS)
    order, varying = part.order, part.varying
    ranges = {node: _hull(result[node]) for node in order}
    seen = _seen(part, seen_at)
    excess = {node: _ratio(ranges[node], seen[node]) if node in varying else 1.0 for node in order}
    worst, text = _MARKED, _NONE_MARKED
    for node in order:
        if node not in varying or node.dtype != "real":
            continue
        before = max((excess[o] for o in node.operands), default=1.0)
        for what, own, other in _properties(node, ranges, seen, varying):
            gained = _ratio(own, other) / before
            if gained > worst:
                worst = gained
                where = place(node, part.spans, part.objective)
                high, low = (f"{float(a.magnitude):.1e}" for a in (own, other))
                text = f"for all that is proved, {where} has {what} up to {high}; seen is {low}"
    return text


def _seen(part: ObjectivePart, seen_at: list[Vector]) -> dict[Expr, Interval]:
    """The interval of each node's elements at points of the ball, as far as they are finite."""
    result: dict[Expr, Interval] = {}
    for x in seen_at:
        values = {**part.values, **part.by_variable(x)}
        for node, array in evaluate_all([part.objective], values, part.sizes).items():
            finite = np.asarray(array, dtype=np.float64)
            finite = finite[np.isfinite(finite)]
            if finite.size:
                own = interval(np.min(finite), np.max(finite))
                before = result.get(node, own)
                low, high = np.minimum(own.lo, before.lo), np.maximum(own.hi, before.hi)
                result[node] = Interval(low, high)
    zero = Interval(np.zeros(()), np.zeros(()))
    return {node: result.get(node, zero) for node in part.order}


def _properties(
    node: Expr,
    ranges: Mapping[Expr, Interval],
    seen: Mapping[Expr, Interval],
    varying: Collection[Expr],
) -> Iterator[tuple[str, Interval, Interval]]:
    """Intervals of the node's values and its derivatives by operands, over the box and sampled."""
    yield "values", ranges[node], seen[node]
    if not isinstance(node, Map):
        return
    over, at = ([known[one] for one in node.operands] for known in (ranges, seen))
    for k in range(1, _ORDERS + 1):
        for j, operand in enumerate(node.operands):
            if operand in varying and operand.dtype == "real":
                orders = tuple(k if i == j else 0 for i in range(len(node.operands)))
                own, other = (derivative_range(node.function, orders, *one) for one in (over, at))
                yield f"a derivative of order {k}", own, other


def _hull(a: Interval) -> Interval:
    """One interval for all elements."""
    if not a.lo.size:
        return Interval(np.zeros(()), np.zeros(()))
    return interval(np.min(a.lo), np.max(a.hi))


def _ratio(own: Interval, seen: Interval) -> float:
    """Ratio of the magnitude over the box to the sampled magnitude; at least 1."""
    high, low = float(own.magnitude), max(float(seen.magnitude), _LEAST)
    return max(min(high, 1e300) / low, 1.0) if math.isfinite(high) else 1e300
