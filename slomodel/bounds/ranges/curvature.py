"""Proved curvature along a vector at a point."""

from __future__ import annotations

import math
from math import prod

import numpy as np

from slomodel.bounds.arithmetic.contraction import contract
from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.ranges.enclose import boxed, enclose, live_in
from slomodel.bounds.ranges.hessian import derivatives
from slomodel.bounds.setting import Setting
from slomodel.bounds.structure.recurrences import written_out
from slomodel.errors import MissingRule


def curvature_above(setting: Setting, v: Array) -> float:
    """Upper bound on vᵀH(c)v / vᵀv for v (n,); inf where none is known.

    H(c)v is enclosed elementwise by the graph of its product, at the cost of a few evaluations.
    """
    setting = written_out(setting)
    graphs = derivatives(setting)
    boxes, start, parts = boxed(setting.values), 0, []
    for variable, own in zip(setting.variables, graphs.v, strict=True):
        shape = np.shape(setting.values[variable])
        parts.append(v[start : start + prod(shape)].reshape(shape))
        boxes[own] = point(parts[-1])
        start += prod(shape)
    try:
        with np.errstate(all="ignore"):
            live = live_in(setting, *graphs.second)
            found = enclose(graphs.second, boxes, setting.sizes, live=live)
    except MissingRule:
        return math.inf
    low, high = np.zeros(0), np.zeros(0)
    for graph, part in zip(graphs.second, parts, strict=True):
        low = np.concatenate([low, np.broadcast_to(found[graph].lo, part.shape).ravel()])
        high = np.concatenate([high, np.broadcast_to(found[graph].hi, part.shape).ravel()])
    u, n = point(v), len(v)
    with np.errstate(all="ignore"):
        form = contract([(u, (0,)), (Interval(low, high), (0,))], (), (n,))
        ratio = form / contract([(u, (0,)), (u, (0,))], (), (n,))
    largest = float(ratio.hi)
    return math.inf if math.isnan(largest) else largest
