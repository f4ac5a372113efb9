"""Scalar functions of a network over intervals, and its losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.rounding import Array, up_norm
from slomodel.bounds.arithmetic.upper_bounds import floored, rounded_up
from slomodel.bounds.ranges.curvature.log_sum_exp import cumulant_bounds, largest_variance, shares
from slomodel.bounds.ranges.elements.element_functions import Slots
from slomodel.bounds.ranges.elements.element_ranges import element_ranges
from slomodel.bounds.ranges.smoothness import Smoothness, roughest
from slomodel.bounds.structure.linear_predictors import Elements
from slomodel.errors import Span
from slomodel.ir.expr import Expr, Input

ORDERS = 4
"""Highest order of derivatives."""


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function of elements (h, N): its graphs, data (h, N) and weight (h, N)."""

    own: Elements
    graphs: Mapping[Slots, Expr]
    data: Mapping[Input, Interval]
    weight: Interval
    spans: Mapping[Expr, Span]

    def over(self, u: Interval) -> tuple[list[Interval], Smoothness]:
        """Weight times the derivatives of orders 0 to 4 over intervals u (h, N)."""
        boxes = {self.own.arguments[0]: u.each(np.ravel)}
        data = {one: a.each(np.ravel) for one, a in self.data.items()}
        result = element_ranges(self.own.value, self.graphs, boxes, data, self.spans)
        orders = (result.derivatives[slots] for slots in sorted(self.graphs, key=len))
        wide = partial(np.reshape, shape=u.shape)
        return [self.weight * a.each(wide) for a in orders], result.smooth


@dataclass(frozen=True, slots=True)
class Loss:
    """g_i(o_i) = Σ_k φ_k(o_ki) + w_i log Σ_k exp o_ki, φ the sum of `singles` and w (N,)."""

    singles: tuple[Function, ...]
    weight: Interval | None

    def diagonal(self, o: Interval) -> tuple[list[Interval], Smoothness]:
        """The derivatives of orders 0 to 4 of φ_k over intervals o (h, N)."""
        ranges = [point(np.zeros(o.shape)) for _ in range(ORDERS + 1)]
        every = [one.over(o) for one in self.singles]
        for k, (own, _) in enumerate(every):
            ranges = [a + b for a, b in zip(ranges, own, strict=True)] if k else own
        return ranges, roughest(smooth for _, smooth in every)

    def norms(self, ranges: list[Interval], o: Interval) -> list[Array]:
        """Upper bounds on ‖D^k g_i‖, k = 1 to 4, (N,) each, from `diagonal` over intervals o.

        D^k of the functions of single outputs is diagonal: its norm is the largest entry.
        """
        _, gradient, *higher = ranges
        sizes = [floored(np.max(a.magnitude, axis=0)) for a in higher]
        if self.weight is not None:
            p, w = shares(o), floored(self.weight.magnitude)
            gradient = gradient + self.weight * p
            own = [floored(bound) for bound in cumulant_bounds(largest_variance(p))]
            sizes = [rounded_up(a + rounded_up(w * b)) for a, b in zip(sizes, own, strict=True)]
        return [rounded_up(np.asarray(up_norm(gradient.magnitude, 0))), *sizes]
