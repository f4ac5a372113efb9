"""Kinks and edges of domains of scalar functions, from intervals of their operands."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Truths, steps_at
from slomodel.bounds.ranges.values import elementwise, may_hold
from slomodel.ir.build import variable
from slomodel.ir.function import ANALYTIC, ScalarFunction

Orders = NDArray[np.int64]

_FAR = 1e300
"""Magnitude beyond which the spacing of doubles is taken to be the one there."""


def order_near(function: ScalarFunction, *operands: Interval) -> Orders:
    """How often the function is continuously differentiable on the operands, elementwise.

    The least order of the kinks that the operands may contain, otherwise ANALYTIC. Truth values
    count as analytic: jumps belong to the choices that depend on them.
    """
    result: Orders = np.full((), ANALYTIC)
    if function.result == "bool":
        return result
    for kink in function.kinks:
        there = True if kink.at is None else may_hold(kink.at, *operands)
        result = np.minimum(result, np.where(there, kink.order, ANALYTIC))
    return result


def outside(function: ScalarFunction, *operands: Interval, exactly: bool = False) -> Truths:
    """Where an operand certainly leaves the domain; a touched edge is left to infinite derivatives.

    `exactly`: where it may leave the domain at all, even by rounding.
    """
    result = np.zeros((), dtype=bool)
    steps = 0.0 if exactly else 4.0
    for a, (low, high) in zip(operands, function.domain, strict=False):
        slack = steps_at(np.minimum(a.magnitude, _FAR), steps)
        result = result | (a.lo < low - slack) | (a.hi > high + slack)
    if function.undefined is not None:
        inputs = tuple(variable(f"x{k}", ()) for k in range(function.arity))
        known = dict(zip(inputs, operands, strict=True))
        result = result | (elementwise(function.undefined(*inputs), known).hi > 0.0)
    if function is table.pow:
        x, p = operands
        whole = (p.lo == p.hi) & (np.floor(p.lo) == p.lo)
        # At 0 only powers below 2 have an infinite derivative that reveals the edge.
        slack = np.where(p.lo > 2.0, 0.0, steps_at(np.minimum(x.magnitude, _FAR), steps))
        below = x.lo < -slack
        result = result | (~whole & below) | ((p.lo < 0.0) & x.contains(0.0))
    return np.asarray(result)
