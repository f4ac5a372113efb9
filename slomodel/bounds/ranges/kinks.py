"""Where scalar functions have kinks and edges of domains, from intervals of their operands."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Truths, down_ulps, up_ulps
from slomodel.functions.compound import hypot
from slomodel.ir.function import ANALYTIC, ScalarFunction

Orders = NDArray[np.int64]


def _near(a: Interval, b: Interval) -> Truths:
    """Where two intervals meet, or are apart by a few steps of the last place only."""
    below = up_ulps(a.hi) < down_ulps(b.lo)
    above = down_ulps(a.lo) > up_ulps(b.hi)
    return np.asarray(~(below | above))


_ZERO = Interval(np.zeros(()), np.zeros(()))


def order_near(function: ScalarFunction, *operands: Interval) -> Orders:
    """How often the function is continuously differentiable on the operands, elementwise.

    Its own class where the operands may contain a kink or jump, else ANALYTIC.
    """
    if function is table.huber:
        t, delta = operands
        # The pieces meet C¹ at |t| = delta; for delta < 0 there is the kink of |t| at 0.
        second = np.where(_near(t, delta) | _near(t, -delta), 1, ANALYTIC)
        return np.where((delta.lo < 0.0) & _near(t, _ZERO), 0, second)
    return np.where(_kink(function, *operands), function.smoothness, ANALYTIC)


def _kink(function: ScalarFunction, *operands: Interval) -> Truths:
    """Where the operands may lie at a point at which the function has a kink or jump."""
    if function.smoothness == ANALYTIC or function.result == "bool":
        return np.zeros((), dtype=bool)
    if function in (table.abs, table.sign, table.relu, table.root):
        return _near(operands[0], _ZERO)
    if function in (table.maximum, table.minimum):
        return _near(*operands)
    if function is hypot:
        return _near(operands[0], _ZERO) & _near(operands[1], _ZERO)
    if function is table.clip:
        x, low, high = operands
        return _near(x, low) | _near(x, high) | _near(low, high)
    if function is table.where:
        return np.asarray((operands[0].lo < 1.0) & (operands[0].hi > 0.0))
    return np.ones((), dtype=bool)


def outside(function: ScalarFunction, *operands: Interval, exactly: bool = False) -> Truths:
    """Where an operand surely leaves the domain; a touched edge is left to infinite derivatives.

    `exactly`: where it may leave the domain at all, be it by rounding.
    """
    result = np.zeros((), dtype=bool)
    steps = 0.0 if exactly else 4.0
    for a, (low, high) in zip(operands, function.domain, strict=False):
        slack = steps * np.spacing(np.minimum(a.magnitude, 1e300))
        result = result | (a.lo < low - slack) | (a.hi > high + slack)
    if function is table.div:
        result = result | operands[1].contains(0.0)
    if function is table.pow:
        x, p = operands
        whole = (p.lo == p.hi) & (np.floor(p.lo) == p.lo)
        # At 0 only powers below 2 have an infinite derivative to tell of the edge.
        slack = np.where(p.lo > 2.0, 0.0, steps * np.spacing(np.minimum(x.magnitude, 1e300)))
        below = x.lo < -slack
        result = result | (~whole & below) | ((p.lo < 0.0) & x.contains(0.0))
    return np.asarray(result)
