"""Losses of networks per sample: functions of single outputs o_k, and log Σ exp of all outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.rounding import Array, up_norm
from slomodel.bounds.arithmetic.upper_bounds import floored, rounded_up
from slomodel.bounds.ranges.log_sum_exp import cumulant_bounds, largest_variance, shares
from slomodel.bounds.ranges.smoothness import Smoothness
from slomodel.bounds.rules.networks.functions import ORDERS, Function
from slomodel.ir.function import ANALYTIC


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

    def over(self, o: Interval, is_large: bool = False) -> tuple[list[Array], Smoothness]:
        """Upper bounds on ‖D^k g_i‖, k = 1 to 4, over intervals o (h, N): (N,) each."""
        if self.weight is None and len(self.singles) == 1:
            _, (first, *higher), smooth = self.singles[0].sizes(o, is_large)
            gradient = rounded_up(np.asarray(up_norm(first, 0)))
            return [gradient, *(floored(np.max(a, axis=0)) for a in higher)], smooth
        ranges, smooth = self.diagonal(o)
        return self.norms(ranges, o), smooth

    def norms(self, ranges: list[Interval], o: Interval) -> list[Array]:
        """The same from the derivatives of functions of single outputs.

        Their D^k is diagonal, so that its norm is the largest entry.
        """
        _, gradient, *higher = ranges
        sizes = [floored(np.max(a.magnitude, axis=0)) for a in higher]
        if self.weight is not None:
            p, w = shares(o), floored(self.weight.magnitude)
            gradient = gradient + self.weight * p
            own = [floored(one) for one in cumulant_bounds(largest_variance(p))]
            sizes = [rounded_up(a + rounded_up(w * b)) for a, b in zip(sizes, own, strict=True)]
        return [rounded_up(np.asarray(up_norm(gradient.magnitude, 0))), *sizes]
