"""Values of graphs of scalars at arrays of points, in doubles with an error that runs along.

An operation is off by a share u of its result, a product by at most the smallest double η more
where it underflows (Higham, Accuracy and Stability of Numerical Algorithms, sections 2.2 and 3.3);
the sums of errors here are of numbers >= 0, so that their few roundings are a small share, which
`GROWTH` of `settled` covers, and 8 η cover what their products lose to underflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, interval
from slomodel.bounds.arithmetic.rounding import GROWTH, SMALLEST, UNIT, Array, up_add
from slomodel.ir.expr import Const, Expr, Input, Map
from slomodel.ir.walk import postorder

Near = tuple[Array, Array]
"""Numbers and how far off they are at most; no error where they are exact."""
_EXACT = np.zeros(())


def values_at(graphs: Sequence[Expr], argument: Input, x: Array) -> list[Interval] | None:
    """Intervals that hold the graphs at every point of x; None where a node has no rule here or a
    number is not finite.
    """
    found: dict[Expr, Near] = {}
    with np.errstate(all="ignore"):
        for node in postorder(*graphs):
            one = _near(node, argument, x, found)
            if one is None:
                return None
            found[node] = one
        if not all(np.isfinite(a).all() for graph in graphs for a in found[graph]):
            return None
        return [_interval(*found[graph]) for graph in graphs]


def _interval(value: Array, error: Array) -> Interval:
    return interval(-up_add(-value, error), up_add(value, error))


def _near(node: Expr, argument: Input, x: Array, found: dict[Expr, Near]) -> Near | None:
    if node is argument:
        return x, _EXACT
    if isinstance(node, Const):
        return np.asarray(float(node.value)), _EXACT
    if not isinstance(node, Map):
        return None
    operands = [found[o] for o in node.operands]
    function = node.function
    if function is table.neg:
        return -operands[0][0], operands[0][1]
    if function is table.mul:
        return _product(*operands)
    if function is table.square:
        return _product(operands[0], operands[0])
    if function is table.add:
        return _sum(*operands)
    if function is table.sub:
        (a, e), (b, d) = operands
        return _sum((a, e), (-b, d))
    stated = function.monotonicity
    if (
        stated is None
        or stated.error_scale is not None
        or operands[0][1] is not _EXACT
        or function.domain != ((-inf, inf),)
    ):
        return None
    value = np.asarray(function.numpy(operands[0][0]), dtype=np.float64)
    steps = function.worst_ulps("numpy") + 1
    return value, np.abs(value) * (2.0 * UNIT * steps) + SMALLEST * steps


def _product(one: Near, other: Near) -> Near:
    """|ab - âb̂| <= |â| e_b + |b̂| e_a + e_a e_b for a within e_a of â and so for b."""
    (a, e), (b, d) = one, other
    value = a * b
    error = np.abs(value) * UNIT
    if e is not _EXACT:
        error += np.abs(b) * e
    if d is not _EXACT:
        error += (np.abs(a) + e) * d
    return value, (error + 8.0 * SMALLEST) * GROWTH


def _sum(one: Near, other: Near) -> Near:
    (a, e), (b, d) = one, other
    value = a + b
    return value, (np.abs(value) * UNIT + (e + d)) * GROWTH
