"""Losses of networks by sample: functions of single outputs o_k, and log Σ exp of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from slomodel.bounds.cumulants import cumulant_bounds, largest_variance, shares
from slomodel.bounds.element_ranges import Slots, element_ranges
from slomodel.bounds.interval import Interval, point
from slomodel.bounds.jet_arrays import settled
from slomodel.bounds.rounding import Array, up_norm
from slomodel.bounds.separable import Elements
from slomodel.bounds.smoothness import Smoothness
from slomodel.errors import Span
from slomodel.ir.expr import Expr, Input
from slomodel.ir.function import ANALYTIC

ORDERS = 4


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
        flat = {self.own.arguments[0]: u.each(np.ravel)}
        data = {one: a.each(np.ravel) for one, a in self.data.items()}
        found = element_ranges(self.own.value, self.graphs, flat, data, self.spans)
        ranges = []
        for order in range(ORDERS + 1):
            a = found.derivatives[(0,) * order].each(partial(np.reshape, shape=u.shape))
            ranges.append(self.weight * a)
        return ranges, found.smooth


@dataclass(frozen=True, slots=True)
class Loss:
    """g_i(o_i) = Σ_k φ_k(o_ki) + w_i log Σ_k exp o_ki, φ the sum of `singles` and w (N,)."""

    singles: tuple[Function, ...]
    weight: Interval | None

    def diagonal(self, o: Interval) -> tuple[list[Interval], Smoothness]:
        """The derivatives of orders 0 to 4 of φ_k over intervals o (h, N)."""
        ranges = [point(np.zeros(o.shape)) for _ in range(ORDERS + 1)]
        smooth = Smoothness(np.asarray(ANALYTIC))
        for k, one in enumerate(self.singles):
            own, its = one.over(o)
            ranges = [a + b for a, b in zip(ranges, own, strict=True)] if k else own
            if np.min(its.order, initial=ANALYTIC) < np.min(smooth.order, initial=ANALYTIC):
                smooth = its
        return ranges, smooth

    def over(self, o: Interval) -> tuple[list[Array], Smoothness]:
        """At least ‖D^k g_i‖, k = 1 to 4, over intervals o (h, N): (N,) each.

        D^k of functions of single outputs is diagonal, so that its norm is the largest entry.
        """
        (_, gradient, *higher), smooth = self.diagonal(o)
        sizes = [np.max(a.magnitude, axis=0) for a in higher]
        if self.weight is not None:
            p, w = shares(o), self.weight.magnitude
            gradient = gradient + self.weight * p
            own = cumulant_bounds(largest_variance(p))
            sizes = [settled(a + settled(w * b)) for a, b in zip(sizes, own, strict=True)]
        return [settled(np.asarray(up_norm(gradient.magnitude, 0))), *sizes], smooth
