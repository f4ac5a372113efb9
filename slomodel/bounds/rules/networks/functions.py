"""Scalar functions of a network over intervals, one by one or over fewer, and its losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.rounding import Array, up_mul, up_norm
from slomodel.bounds.arithmetic.upper_bounds import floored, rounded_up
from slomodel.bounds.ranges.curvature.log_sum_exp import cumulant_bounds, largest_variance, shares
from slomodel.bounds.ranges.elements.element_functions import Slots
from slomodel.bounds.ranges.elements.element_ranges import element_ranges
from slomodel.bounds.ranges.smoothness import Smoothness, roughest
from slomodel.bounds.structure.separable import Elements
from slomodel.errors import Span
from slomodel.ir.expr import Expr, Input
from slomodel.ir.function import ANALYTIC

ORDERS = 4
"""Highest order of derivatives."""
_HULLS = 256
"""Hulls of neighbouring elements over which derivatives are bounded, where elements are many."""
_BINS = 2**11
"""Bins of equal length that cover all arguments; narrower ones lower maxima by less than 0.1 %."""
Sizes = tuple[Interval, list[Array], Smoothness]
"""A range (h, N), magnitudes of the derivatives of orders 1 to 4 (h, N), and the smoothness."""


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
        flat, data = u.each(np.ravel), self._data()
        result, smooth = self._ranges(self.graphs, flat, data)
        wide = partial(np.reshape, shape=u.shape)
        return [self.weight * a.each(wide) for a in result], smooth

    def sizes(self, u: Interval, is_large: bool) -> Sizes:
        """The range over intervals u (h, N), and magnitudes of the derivatives of orders 1 to 4.

        For a large network these are bounds over fewer intervals that cover all of u.
        """
        result = None
        if is_large:
            result = self._by_neighbours(u) if self.data else self._by_table(u)
        if result is not None:
            return result
        ranges, smooth = self.over(u)
        return ranges[0], [a.magnitude for a in ranges[1:]], smooth

    def _data(self) -> dict[Input, Interval]:
        return {one: a.each(np.ravel) for one, a in self.data.items()}

    def _ranges(
        self, graphs: Mapping[Slots, Expr], u: Interval, data: Mapping[Input, Interval]
    ) -> tuple[list[Interval], Smoothness]:
        """Ranges by order, without the weight."""
        result = element_ranges(
            self.own.value, graphs, {self.own.arguments[0]: u}, data, self.spans
        )
        orders = sorted(graphs, key=len)
        return [result.derivatives[slots] for slots in orders], result.smooth

    def _by_table(self, u: Interval) -> Sizes | None:
        """Derivatives over bins of equal length that cover all intervals: the maximum over the bins
        that an interval touches. None where intervals are unbounded or the function has a kink.
        """
        lo, hi = float(np.min(u.lo)), float(np.max(u.hi))
        if not (np.isfinite([lo, hi]).all() and lo < hi):
            return None
        ends = np.linspace(lo, hi, _BINS + 1)
        ends[0], ends[-1] = lo, hi
        result, smooth = self._ranges(self.graphs, Interval(ends[:-1], ends[1:]), {})
        first, last = _bin(ends, u.lo.ravel()), _bin(ends, u.hi.ravel())
        surely = (ends[first] <= u.lo.ravel()) & (u.hi.ravel() <= ends[last + 1])
        if smooth.least < ANALYTIC or not surely.all():
            return None
        largest = _largest_between(np.stack([a.magnitude for a in result[1:]]), first, last)
        weight = self.weight.magnitude
        value, _ = self._ranges({(): self.graphs[()]}, u.each(np.ravel), {})
        sizes = [up_mul(weight, one.reshape(u.shape)) for one in largest]
        return self.weight * value[0].each(partial(np.reshape, shape=u.shape)), sizes, smooth

    def _by_neighbours(self, u: Interval) -> Sizes | None:
        """Derivatives over hulls of elements with equal data, consecutive in the order of their
        midpoints. None where there would be too many hulls.
        """
        flat, data = u.each(np.ravel), self._data()
        keys = np.stack([end for a in data.values() for end in (a.lo, a.hi)])
        order = np.lexsort((flat.mid, *keys))
        changes = np.any(keys[:, order[1:]] != keys[:, order[:-1]], axis=0)
        runs = np.concatenate([[0], 1 + np.flatnonzero(changes)])
        if len(runs) > _HULLS // 4:
            return None
        length = -(-len(order) // _HULLS)
        within = [
            np.arange(a, b, length) for a, b in zip(runs, [*runs[1:], len(order)], strict=True)
        ]
        starts = np.concatenate(within)
        hulls = Interval(
            np.minimum.reduceat(flat.lo[order], starts), np.maximum.reduceat(flat.hi[order], starts)
        )
        first = {one: a.each(lambda array: array[order[starts]]) for one, a in data.items()}
        result, smooth = self._ranges(self.graphs, hulls, first)
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
        wide = [a.each(lambda array: array[place].reshape(u.shape)) for a in result]
        weight = self.weight.magnitude
        return self.weight * wide[0], [up_mul(weight, a.magnitude) for a in wide[1:]], smooth


def _bin(ends: Array, x: Array) -> NDArray[np.intp]:
    """Index of the bin of x among `ends`, which are equidistant up to rounding."""
    position = (x - ends[0]) / (ends[-1] - ends[0]) * (len(ends) - 1)
    result = np.clip(position.astype(np.intp), 0, len(ends) - 2)
    result -= (result > 0) & (ends[result] > x)
    result += (result < len(ends) - 2) & (ends[result + 1] < x)
    return np.asarray(result, dtype=np.intp)


def _largest_between(a: Array, first: NDArray[np.intp], last: NDArray[np.intp]) -> Array:
    """The largest a[:, first..last] (k, m) of (k, n), from the maxima of runs of 2^j entries."""
    levels = [a]
    while 2 << len(levels) - 1 <= a.shape[1]:
        half, before = 1 << len(levels) - 1, levels[-1]
        levels.append(np.maximum(before, np.pad(before, ((0, 0), (0, half)))[:, half:]))
    table = np.stack(levels)
    level = np.frexp((last - first + 1).astype(np.float64))[1] - 1
    other = last + 1 - (1 << level.astype(np.intp))
    by_place = table.transpose(0, 2, 1)
    return np.asarray(np.maximum(by_place[level, first], by_place[level, other]).T)


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
            own = [floored(bound) for bound in cumulant_bounds(largest_variance(p))]
            sizes = [rounded_up(a + rounded_up(w * b)) for a, b in zip(sizes, own, strict=True)]
        return [rounded_up(np.asarray(up_norm(gradient.magnitude, 0))), *sizes]
