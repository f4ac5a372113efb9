"""How far off values of an objective and of its gradient may be, from intervals round a point."""

from __future__ import annotations

import math

import numpy as np

from slomodel.bounds.intervals.enclose import boxed, enclose
from slomodel.bounds.intervals.interval import Interval
from slomodel.bounds.intervals.rounding import Array
from slomodel.bounds.setting import Setting
from slomodel.errors import MissingRule


def value_error(setting: Setting, f: float) -> float:
    """A bound of |f − f(c)|, f a number computed at the centre c; inf where nothing is known.

    The interval of the exact value has the width of the rounding errors of any order of
    evaluation, and f is not far outside.
    """
    try:
        found = enclose([setting.objective], boxed(setting.values), setting.sizes)
    except MissingRule:
        return math.inf
    return float(_distance(found[setting.objective], np.asarray(f)).max(initial=0.0))


def gradient_error(setting: Setting, g: Array) -> float:
    """A bound of ‖g − ∇f(c)‖, g (n,) computed at the centre c; inf where nothing is known."""
    try:
        found = enclose(setting.gradient, boxed(setting.values), setting.sizes)
    except MissingRule:
        return math.inf
    ends = np.cumsum([np.size(setting.values[variable]) for variable in setting.variables])
    square = 0.0
    for variable, graph, part in zip(
        setting.variables, setting.gradient, np.split(g, ends[:-1]), strict=True
    ):
        shape = np.shape(setting.values[variable])
        off = _distance(found[graph], part.reshape(shape))
        square += float(np.sum(off * off))
    # The roundings of the sum of squares are far below the rounding errors that it sums.
    return math.sqrt(square)


def _distance(enclosed: Interval, computed: Array) -> Array:
    """The largest distance of the numbers computed from any of their intervals; inf for NaN."""
    with np.errstate(all="ignore"):
        off = np.maximum(enclosed.hi - computed, computed - enclosed.lo)
    return np.where(np.isnan(off), math.inf, off)
