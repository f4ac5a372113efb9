"""Bounds on the rounding errors of computed values and gradients, from intervals at a point."""

from __future__ import annotations

import math

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.rounding import Array, up_add, up_norm
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.structure.recurrences import written_out
from slomodel.errors import MissingRule


def value_error(part: ObjectivePart, f: float) -> float:
    """Upper bound on |f − f(c)| for the value f computed at the centre c; inf where none is known.

    The interval of the exact value is about as wide as the rounding error of any order of
    evaluation.
    """
    part = written_out(part)
    try:
        result = enclose([part.objective], boxed(part.values), part.sizes)
    except MissingRule:
        return math.inf
    return float(_distance(result[part.objective], np.asarray(f)).max(initial=0.0))


def gradient_error(part: ObjectivePart, g: Array) -> float:
    """Upper bound on ‖g − ∇f(c)‖ for the g (n,) computed at the centre c; inf where unknown."""
    try:
        result = gradient_interval(written_out(part))
    except MissingRule:
        return math.inf
    return float(up_norm(_distance(result, g)))


def gradient_interval(part: ObjectivePart) -> Interval:
    """The interval of ∇f(c) (n,). Raises MissingRule for a node without an interval rule."""
    result = enclose(part.gradient, boxed(part.values), part.sizes)
    parts = [
        result[graph].broadcast(np.shape(part.values[variable])).each(np.ravel)
        for variable, graph in zip(part.variables, part.gradient, strict=True)
    ]
    return Interval.concatenated([point(np.zeros(0)), *parts])


def _distance(enclosed: Interval, computed: Array) -> Array:
    """Largest distance, elementwise, of computed numbers from their intervals; inf for NaN."""
    with np.errstate(all="ignore"):
        off = np.maximum(up_add(enclosed.hi, -computed), up_add(computed, -enclosed.lo))
    return np.where(np.isnan(off), math.inf, off)
