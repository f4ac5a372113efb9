"""What a node is over a region: the series of its elements, or decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.monomials import Monomials
from slomodel.bounds.arithmetic.power_series import PowerSeries
from slomodel.bounds.arithmetic.rounding import Array, Truths
from slomodel.bounds.ranges.enclose import aligned_interval
from slomodel.ir.expr import Map
from slomodel.reference import aligned


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """Decision values over the region, 1, 0 or [0, 1], and those at its centre."""

    over: Interval
    at_centre: Truths


Value: TypeAlias = PowerSeries | Decision


def at_centre(value: Value) -> Array:
    if isinstance(value, Decision):
        return np.asarray(value.at_centre, dtype=np.float64)
    return np.asarray(value.c[0])


def slice_of(value: Value, t: int) -> Value:
    """Element t along the first axis."""
    if isinstance(value, Decision):
        return Decision(value.over.each(lambda array: array[t]), value.at_centre[t])
    return value.each(lambda array: array[:, t])


def stacked(table: Monomials, parts: Sequence[PowerSeries], axis: int) -> PowerSeries:
    degree = max((one.degree for one in parts), default=0)
    c = np.stack([one.padded(degree) for one in parts], axis=axis + 1)
    return PowerSeries(
        table,
        c,
        np.stack([one.tail for one in parts], axis=axis),
        np.stack([one.error for one in parts], axis=axis),
    )


def is_constant(value: Value) -> bool:
    if isinstance(value, Decision):
        return bool((value.over.lo == value.over.hi).all())
    return value.is_constant


def interval_of(value: Value) -> Interval:
    return value.over if isinstance(value, Decision) else value.interval


def common_shape(values: Sequence[Value]) -> tuple[int, ...]:
    return np.broadcast_shapes(*(at_centre(one).shape for one in values))


def laid_out(value: Value, node: Map, k: int) -> Value:
    """Operand k, with axes of length 1 where the node has axes that it lacks."""
    axes, rank = node.axes[k], node.rank
    if len(axes) == rank:
        return value
    if isinstance(value, Decision):
        return Decision(aligned_interval(value.over, node, k), aligned(value.at_centre, axes, rank))
    return value.each(lambda array: aligned(array, axes, rank, 1))


def spread_over(value: Value, shape: tuple[int, ...]) -> Value:
    """The value broadcast to this shape."""
    if isinstance(value, Decision):
        over = value.over.broadcast(shape)
        return Decision(over, np.broadcast_to(value.at_centre, shape))
    if value.c.shape[1:] == value.tail.shape == value.error.shape == shape:
        return value
    return value.each(lambda array: np.broadcast_to(array, (len(array), *shape)))
