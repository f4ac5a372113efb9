"""Parts of an objective that are sums over elements, evaluated, with their ranges over balls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.interval import Interval, meet
from slomodel.bounds.arithmetic.rounding import Array, Truths, up_mul
from slomodel.bounds.effort import MOST_NUMBERS
from slomodel.bounds.norms.element_derivatives import Weighted
from slomodel.bounds.norms.loewner import Rows, balances, ratios
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.elements.element_functions import Slots, derivative_graphs
from slomodel.bounds.ranges.elements.element_ranges import ElementRanges, element_ranges
from slomodel.bounds.ranges.elements.sparse_rows import SparseRows
from slomodel.bounds.ranges.enclose import boxed, boxes_over, enclose, live_in
from slomodel.bounds.ranges.hessian import jacobians
from slomodel.bounds.ranges.smoothness import Smoothness, roughest, span_of
from slomodel.bounds.structure.linear_predictors import Elements, Laid
from slomodel.ir.dims import concrete, number_of_elements
from slomodel.ir.expr import Expr, Input
from slomodel.reference import aligned

MOST_VARIABLES = 400
"""Largest number of entries of all rows; beyond it they are represented otherwise."""
Shaped = TypeVar("Shaped", Array, NDArray[np.intp])
AnyRows = TypeVar("AnyRows", Rows, SparseRows)


@dataclass(frozen=True, slots=True, eq=False)
class ElementSum(Generic[AnyRows]):
    """Evaluated `Elements`: weights (m,), data (m,), arguments at the centre (m,), rows.

    Compared by identity, so that results for a part can be cached.
    """

    own: Elements
    graphs: Mapping[Slots, Expr]
    weight: Interval
    data: Mapping[Input, Interval]
    centre: tuple[Interval, ...]
    rows: tuple[AnyRows, ...]


def parts_of(part: ObjectivePart, terms: Sequence[Elements]) -> tuple[ElementSum[Rows], ...] | None:
    """The evaluated parts of the objective; None where they are too large."""
    if part.n > MOST_VARIABLES:
        return None
    sizes = [_count(part, one) for one in terms]
    numbers = sum(m * len(one.arguments) for m, one in zip(sizes, terms, strict=True))
    if numbers * part.n > MOST_NUMBERS or not all(sizes):
        return None
    affine = affine_of(terms)
    slopes = jacobians(part, affine)

    def rows(node: Expr) -> Rows:
        shape = (part.n, *concrete(node.shape, part.sizes))
        whole = slopes[node].broadcast(shape)
        return Rows.of(whole.each(lambda a: np.ascontiguousarray(a.reshape(part.n, -1).T)))

    return with_rows(part, terms, {node: rows(node) for node in affine})


def affine_of(terms: Sequence[Elements]) -> list[Expr]:
    """The affine nodes that the elements are functions of."""
    return list(dict.fromkeys(laid.node for one in terms for laid in one.affine))


def with_rows(
    part: ObjectivePart, terms: Sequence[Elements], rows: Mapping[Expr, AnyRows], orders: int = 4
) -> tuple[ElementSum[AnyRows], ...]:
    """The evaluated parts, with derivatives to an order, from the rows of their affine nodes."""
    affine: list[Expr] = list(rows)
    data: list[Expr] = [laid.node for one in terms for laid in one.data.values()]
    weights: list[Expr] = [one.weight for one in terms]
    values = enclose([*affine, *data, *weights], boxed(part.values), part.sizes)
    return tuple(_part(part, one, values, rows, orders) for one in terms)


def _live(part: ObjectivePart, own: Elements) -> Truths | None:
    """The live elements, of the shape of `own`; None means all, also where no element is live."""
    live = live_in(part).get(own.whole)
    return live if live is not None and live.any() else None


@dataclass(frozen=True, slots=True)
class LiveElements:
    """The live elements of a sum: those of its shape at the flat positions `kept`."""

    shape: tuple[int, ...]
    kept: NDArray[np.intp] | slice

    @classmethod
    def of(cls, part: ObjectivePart, own: Elements) -> LiveElements:
        live = _live(part, own)
        kept = slice(None) if live is None else np.flatnonzero(live)
        return cls(concrete(own.shape, part.sizes), kept)

    def along(self, laid: Laid, array: Shaped) -> Shaped:
        """The array broadcast to all elements, restricted to the live ones (m,)."""
        wide = aligned(array, laid.axes, len(self.shape))
        return np.broadcast_to(wide, self.shape).ravel()[self.kept]


def _count(part: ObjectivePart, own: Elements) -> int:
    live = _live(part, own)
    return number_of_elements(own.shape, part.sizes) if live is None else int(np.sum(live))


def _part(
    part: ObjectivePart,
    own: Elements,
    values: Mapping[Expr, Interval],
    rows: Mapping[Expr, AnyRows],
    orders: int,
) -> ElementSum[AnyRows]:
    live = LiveElements.of(part, own)

    def flat(laid: Laid, a: Interval) -> Interval:
        return a.each(lambda array: live.along(laid, array))

    def taken(laid: Laid) -> AnyRows:
        own = rows[laid.node]
        places = np.arange(len(own.length))
        return own.take(live.along(laid, places.reshape(concrete(laid.node.shape, part.sizes))))

    whole = Laid(own.weight, tuple(range(len(live.shape))))
    graphs = derivative_graphs(own.value, own.arguments)
    return ElementSum(
        own,
        {p: one for p, one in graphs.items() if len(p) <= orders},
        flat(whole, values[own.weight]),
        {one: flat(laid, values[laid.node]) for one, laid in own.data.items()},
        tuple(flat(laid, values[laid.node]) for laid in own.affine),
        tuple(taken(laid) for laid in own.affine),
    )


def part_ranges(part: ObjectivePart, summed: ElementSum[AnyRows], radius: float) -> ElementRanges:
    """The ranges over a ball of the derivatives of the elements of a sum."""
    boxes = {}
    for one, centre, rows in zip(summed.own.arguments, summed.centre, summed.rows, strict=True):
        reach: Array = up_mul(np.asarray(radius), rows.length)
        boxes[one] = centre.widened(reach)
    if part.limits:
        live = LiveElements.of(part, summed.own)
        nodes = [laid.node for laid in summed.own.affine]
        result = enclose(nodes, boxes_over(part, radius), part.sizes)
        for one, laid in zip(summed.own.arguments, summed.own.affine, strict=True):
            within = result[laid.node].each(partial(live.along, laid))
            boxes[one] = meet(boxes[one], within)
    spans = {}
    for made, node in summed.own.origins.items():
        span = span_of(node, part.spans, part.objective)
        if span is not None:
            spans[made] = span
    by_length = ratios(balances(summed.rows))
    return element_ranges(
        summed.own.value, summed.graphs, boxes, summed.data, spans, part.effort, by_length
    )


@dataclass(frozen=True, slots=True)
class Over:
    """The parts over a ball, and how smooth their sum is there."""

    parts: list[Weighted]
    smooth: Smoothness

    @property
    def order(self) -> int:
        return self.smooth.least

    @property
    def reason(self) -> str:
        return self.smooth.reason


def parts_over_ball(part: ObjectivePart, parts: Sequence[ElementSum[Rows]], radius: float) -> Over:
    every = [part_ranges(part, summed, radius) for summed in parts]
    smooth = roughest(ranges.smooth for ranges in every)
    result = []
    for summed, ranges in zip(parts, every, strict=True):
        scaled = {slots: summed.weight * a for slots, a in ranges.derivatives.items()}
        dominating = tuple(summed.weight * a for a in ranges.dominating)
        result.append(Weighted(summed.rows, scaled, dominating))
    return Over(result, smooth)
