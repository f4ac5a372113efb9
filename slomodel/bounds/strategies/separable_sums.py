"""Sums over elements of scalar functions of few affine numbers: ridge functions and their like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.element_ranges import (
    ElementRanges,
    Slots,
    derivative_graphs,
    element_ranges,
)
from slomodel.bounds.element_sums import Weighted, fourth_order, second_order, third_order
from slomodel.bounds.enclose import boxed, enclose
from slomodel.bounds.hessian import unit_directions
from slomodel.bounds.interval import Interval, interval
from slomodel.bounds.loewner import Rows
from slomodel.bounds.result import shown
from slomodel.bounds.rounding import Array, up_add, up_mul
from slomodel.bounds.separable import Elements, Laid, elements
from slomodel.bounds.setting import Candidate, Setting
from slomodel.bounds.smoothness import span_of
from slomodel.bounds.sparse_rows import SparseRows
from slomodel.calculus import jvp
from slomodel.ir.build import direction
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr, Input
from slomodel.ir.function import ANALYTIC

RULE = "separable sums"
MOST_VARIABLES = 400
"""For more the rows are too large; `large_sums` has other ones."""
MOST_NUMBERS = 2**22
Shaped = TypeVar("Shaped", Array, NDArray[np.intp])
AnyRows = TypeVar("AnyRows", Rows, SparseRows)


@dataclass(frozen=True, slots=True)
class Part(Generic[AnyRows]):
    """`Elements` with numbers: weights (m,), data (m,), arguments at the centre (m,), rows."""

    own: Elements
    graphs: Mapping[Slots, Expr]
    weight: Interval
    data: Mapping[Input, Interval]
    centre: tuple[Interval, ...]
    rows: tuple[AnyRows, ...]


def separable_sums(setting: Setting, radius: float) -> Candidate | None:
    """Loewner: f = Σ_i w_i φ_i(u_i), u_pi = a_pi·x + b_pi, has H = Σ_i w_i Σ_pq φ_i,pq a_pi a_qiᵀ.

    Over the ball u_pi is within r‖a_pi‖ of its value at the centre. Where w_i φ_i,pq lies in
    C_pq ± R_pq there, by |R_pq x y| <= R_pq (δ x² + y²/δ)/2 for every δ > 0,

        Σ_i A_i(C - E) <= H <= Σ_i A_i(C + E),  A_i(M) = Σ_pq M_pq a_pi a_qiᵀ, E diagonal,

    and ‖H‖ is at most the larger of λ_max of the right and -λ_min of the left; for one argument
    these have the weights inf and sup of w_i φ_i''. In the same way D³f = Σ_i w_i Σ φ_i,pqr
    a_pi ⊗ a_qi ⊗ a_ri is that of the middles of the ranges, a fixed form, plus at most their radii
    against |a·v|³. Hypothesis: each φ_i is C¹ (C² for L2), which `smoothness` shows.
    """
    parts = _parts(setting)
    if parts is None:
        return None
    return over_ball(setting, parts, radius)


def over_ball(setting: Setting, parts: tuple[Part[Rows], ...], radius: float) -> Candidate:
    """What `separable_sums` claims of these parts."""
    over = parts_over_ball(setting, parts, radius)
    if over.order < 1:
        return Candidate(RULE, np.inf, np.inf, over.reason)
    if over.order < 2:
        return Candidate(RULE, second_order(over.parts), np.inf, over.reason)
    hessian, by_size, by_middles = _norms(setting, over, radius)
    first = {"H by elements": hessian}
    second = {"|D³f| by elements": by_size, "D³f by middles and radii": by_middles}
    if over.order > 2 and radius > 0.0:
        centre = _centre(setting, parts)
        fourth = up_mul(radius, fourth_order(over.parts))
        second["‖D³f(c)‖ + r sup ‖D⁴f‖"] = float(up_add(centre[1], fourth))
        slope = up_add(centre[1], up_mul(0.5, fourth))
        first["‖H(c)‖ + r ‖D³f(c)‖ + r²/2 sup ‖D⁴f‖"] = float(
            up_add(centre[0], up_mul(radius, slope))
        )
    trace = tuple(f"{name} ≤ {shown(value)}" for name, value in (first | second).items())
    return Candidate(RULE, min(first.values()), min(second.values()), over.reason, trace)


@dataclass(frozen=True, slots=True)
class Over:
    """What the parts are over a ball, and how smooth."""

    parts: list[Weighted]
    order: int
    reason: str


def parts_over_ball(setting: Setting, parts: Sequence[Part[Rows]], radius: float) -> Over:
    found, order, reason = [], ANALYTIC, ""
    for part in parts:
        ranges = part_ranges(setting, part, radius)
        least = int(np.min(ranges.smooth.order, initial=ANALYTIC))
        if least < order:
            order, reason = least, ranges.smooth.reason
        scaled = {slots: part.weight * a for slots, a in ranges.derivatives.items()}
        found.append(Weighted(part.rows, scaled))
    return Over(found, order, reason)


def _norms(setting: Setting, over: Over, radius: float) -> tuple[float, float, float]:
    """‖H‖, and ‖D³f‖ by sizes and by middles; those at the centre are kept."""
    key = f"{RULE} at the centre"
    kept = setting.kept.get(key) if radius == 0.0 else None
    if not isinstance(kept, tuple):
        kept = (second_order(over.parts), *third_order(over.parts))
        if radius == 0.0:
            setting.kept[key] = kept
    return kept


def _centre(setting: Setting, parts: tuple[Part[Rows], ...]) -> tuple[float, float]:
    """‖H(c)‖ and ‖D³f(c)‖."""
    hessian, *third = _norms(setting, parts_over_ball(setting, parts, 0.0), 0.0)
    return hessian, min(third)


def _parts(setting: Setting) -> tuple[Part[Rows], ...] | None:
    """Found once a setting; None where the objective is of another kind or too large."""
    if RULE not in setting.kept:
        setting.kept[RULE] = _found_parts(setting)
    kept = setting.kept[RULE]
    return kept if isinstance(kept, tuple) else None


def _found_parts(setting: Setting) -> tuple[Part[Rows], ...] | None:
    if not 0 < setting.n <= MOST_VARIABLES:
        return None
    found = elements(setting.objective, setting.variables)
    return parts_of(setting, found) if found else None


def parts_of(setting: Setting, found: Sequence[Elements]) -> tuple[Part[Rows], ...] | None:
    """The numbers of parts of the objective; None where they are many."""
    if setting.n > MOST_VARIABLES:
        return None
    sizes = [prod(concrete(one.shape, setting.sizes)) for one in found]
    numbers = sum(m * len(one.arguments) for m, one in zip(sizes, found, strict=True))
    if numbers * setting.n > MOST_NUMBERS or not all(sizes):
        return None
    affine = affine_of(found)
    slopes = jacobians(setting, affine)

    def rows(node: Expr) -> Rows:
        shape = (setting.n, *concrete(node.shape, setting.sizes))
        whole = slopes[node].each(lambda a: np.broadcast_to(a, shape))
        return Rows.of(whole.each(lambda a: np.ascontiguousarray(a.reshape(setting.n, -1).T)))

    return with_rows(setting, found, {node: rows(node) for node in affine})


def affine_of(found: Sequence[Elements]) -> list[Expr]:
    """The affine nodes of which elements are functions."""
    return list(dict.fromkeys(laid.node for one in found for laid in one.affine))


def with_rows(
    setting: Setting, found: Sequence[Elements], rows: Mapping[Expr, AnyRows]
) -> tuple[Part[AnyRows], ...]:
    """The parts in numbers, from the rows of all their affine nodes."""
    affine: list[Expr] = list(rows)
    data: list[Expr] = [laid.node for one in found for laid in one.data.values()]
    weights: list[Expr] = [one.weight for one in found]
    values = enclose([*affine, *data, *weights], boxed(setting.values), setting.sizes)
    return tuple(_part(setting, one, values, rows) for one in found)


def jacobians(setting: Setting, affine: list[Expr]) -> dict[Expr, Interval]:
    """The derivatives (n, *shape) of affine nodes along all unit vectors."""
    v = tuple(direction(f"v.{x.name}", x.shape) for x in setting.variables)
    graphs = jvp(affine, dict(zip(setting.variables, v, strict=True)))
    boxes = boxed(setting.values, 1)
    boxes.update(unit_directions(setting, v, 1, 0))
    found = enclose(graphs, boxes, setting.sizes, 1)
    return {node: found[graph] for node, graph in zip(affine, graphs, strict=True)}


def _part(
    setting: Setting,
    own: Elements,
    values: Mapping[Expr, Interval],
    rows: Mapping[Expr, AnyRows],
) -> Part[AnyRows]:
    shape = concrete(own.shape, setting.sizes)

    def along(laid: Laid, array: Shaped) -> Shaped:
        """Along the elements (m,)."""
        missing = tuple(k for k in range(len(shape)) if k not in laid.axes)
        return np.broadcast_to(np.expand_dims(array, missing), shape).ravel()

    def flat(laid: Laid, a: Interval) -> Interval:
        return a.each(lambda array: along(laid, array))

    def taken(laid: Laid) -> AnyRows:
        own = rows[laid.node]
        places = np.arange(len(own.length))
        return own.take(along(laid, places.reshape(concrete(laid.node.shape, setting.sizes))))

    whole = Laid(own.weight, tuple(range(len(shape))))
    return Part(
        own,
        derivative_graphs(own.value, own.arguments),
        flat(whole, values[own.weight]),
        {one: flat(laid, values[laid.node]) for one, laid in own.data.items()},
        tuple(flat(laid, values[laid.node]) for laid in own.affine),
        tuple(taken(laid) for laid in own.affine),
    )


def part_ranges(setting: Setting, part: Part[AnyRows], radius: float) -> ElementRanges:
    """The ranges of the derivatives of a part's elements over a ball."""
    boxes = {}
    for one, centre, rows in zip(part.own.arguments, part.centre, part.rows, strict=True):
        reach: Array = up_mul(np.asarray(radius), rows.length)
        boxes[one] = interval(-up_add(-centre.lo, reach), up_add(centre.hi, reach))
    spans = {}
    for made, node in part.own.origins.items():
        span = span_of(node, setting.spans, setting.objective)
        if span is not None:
            spans[made] = span
    return element_ranges(part.own.value, part.graphs, boxes, part.data, spans)
