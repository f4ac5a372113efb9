"""The evaluated terms of an objective: second and third derivatives of their elements over a ball.

For log Σ_j exp u_j with weights p at the centre, u_j(c + d) - u_j(c) lies within D_j = ρ‖b_j‖ + e_j
of one number m·d for all j, where b_j = ∇u_j(c) - m and e_j is the remainder. So the weights over
the ball are κ_j p_j with

    exp(-D_j) / Σ p exp D  <=  κ_j  <=  exp(D_j) / Σ p exp(-D)  or  exp(D_j - Σ p_k (b_k·d - e_k)).

D²F[w, w] is the least Σ κ_j p_j (w_j - t)² over t, hence at most Σ κ_j p_j (w_j - m·v)², and at
least min κ times the variance with weights p; it is also at most ½Σ (w_j - t)², as ‖D²F‖ <= ½.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.midpoint_radius import Bounded
from slomodel.bounds.arithmetic.rounding import (
    SMALLEST_NORMAL,
    Array,
    down_mul,
    gamma,
    up_add,
    up_mul,
    up_norm,
    up_sqrt,
    up_sum,
)
from slomodel.bounds.ball import Displacements
from slomodel.bounds.norms.curvature_sums import CurvedRows, CurvedSum, Places
from slomodel.bounds.norms.loewner import Rows, Slots, balances, quotient, ratios
from slomodel.bounds.norms.shared_weights import SharedWeights
from slomodel.bounds.ranges.curvature.array_shifts import FEW_ELEMENTS, shifts_of_elements
from slomodel.bounds.ranges.curvature.hessian_ranges import BallGraph
from slomodel.bounds.ranges.curvature.log_sum_exp import Numbers, SummedClasses, growths
from slomodel.bounds.ranges.elements.element_functions import derivative_graphs
from slomodel.bounds.ranges.elements.element_ranges import element_ranges, ranges_over_pieces
from slomodel.bounds.structure.curved_terms import CurvedElements, CurvedLogSum
from slomodel.ir.dims import concrete, number_of_elements
from slomodel.ir.expr import Axes, Expr, Input
from slomodel.reference import aligned

_PIECES_OF_CELLS = 3
"""Pieces of the boxes of elements over a cell, which are shorter than those over the ball."""
_UNDERFLOW = 1e-290
"""More than a sum loses by products that underflow."""


def curved_rows(
    run: BallGraph, node: Expr, at_centre: Interval, over: Interval | None
) -> CurvedRows:
    """The rows of a node from its slopes (n, *shape) at the centre and over the ball."""
    n = run.part.n

    def rows(array: Array) -> Array:
        return np.ascontiguousarray(array.reshape(n, -1).T)

    own = Rows.of(at_centre.each(rows))
    curve = run.curves[node]
    curvature, bend = np.ravel(curve.curvature), np.ravel(curve.bend)
    if over is None:
        nothing = np.zeros(own.value.shape)
        everywhere = np.ones(nothing.shape, dtype=bool)
        return CurvedRows(own, nothing, np.zeros(len(nothing)), curvature, bend, everywhere)
    far = np.maximum(up_add(over.hi, -at_centre.lo), up_add(at_centre.hi, -over.lo))
    fixed = (over.lo == over.hi) & (at_centre.lo == over.lo) & (at_centre.hi == over.hi)
    moved = rows(np.where(fixed, 0.0, np.where(np.isnan(far), np.inf, np.maximum(far, 0.0))))
    reach = np.minimum(up_norm(moved, 1), np.ravel(curve.turn))
    return CurvedRows(own, moved, reach, curvature, bend, moved > 0.0)


def spread(array: Numbers, axes: Axes, shape: tuple[int, ...]) -> Numbers:
    """The array, whose axis k is axis `axes[k]` of the elements, for all elements (m,)."""
    turned = _diagonal(array, axes)
    return np.broadcast_to(aligned(turned, axes, len(shape)), shape).ravel()


def _diagonal(array: Numbers, axes: Axes) -> Numbers:
    """The array with its axes in order, those that occur twice taken together."""
    if len(set(axes)) < len(axes):
        first = next(k for k, axis in enumerate(axes) if axis in axes[k + 1 :])
        second = axes.index(axes[first], first + 1)
        kept: list[int] = [axis for k, axis in enumerate(axes) if k not in (first, second)]
        together: Numbers = np.diagonal(array, 0, first, second)
        return _diagonal(together, (*kept, axes[first]))
    return np.transpose(array, np.argsort(axes))


def _laid(a: Interval, axes: Axes, shape: tuple[int, ...]) -> Interval:
    return a.each(lambda array: spread(array, axes, shape))


def elements_sum(
    run: BallGraph, term: CurvedElements, adjoint: Interval, rows: Mapping[Expr, CurvedRows]
) -> CurvedSum | None:
    """The elements whose weight is not 0; None where none is left."""
    sizes = run.part.sizes
    shape = concrete(term.shape, sizes)
    if prod(shape) == 0:
        return None
    weight = _laid(adjoint, term.output, shape)
    for factor in term.factors:
        weight = weight * _laid(run.ranges[factor.node], factor.axes, shape)
    kept = np.flatnonzero((weight.lo != 0.0) | (weight.hi != 0.0))
    if not len(kept):
        return None
    weight = weight.each(lambda array: array[kept])
    boxes, own = {}, []
    for one, laid in zip(term.arguments, term.places, strict=True):
        boxes[one] = _laid(run.ranges[laid.node], laid.axes, shape).each(lambda a: a[kept])
        count = number_of_elements(laid.node.shape, sizes)
        places = np.arange(count).reshape(concrete(laid.node.shape, sizes))
        own.append(rows[laid.node].take(spread(places, laid.axes, shape)[kept]))
    data = {
        one: _laid(run.ranges[laid.node], laid.axes, shape).each(lambda a: a[kept])
        for one, laid in term.data.items()
    }
    graphs = derivative_graphs(term.value, term.arguments, most=3)
    by_length = ratios(balances([one.rows for one in own]))
    effort = run.part.effort
    if run.region.is_ball and len(own) == 1:
        result = element_ranges(term.value, graphs, boxes, data, {}, effort, by_length)
    else:
        most = None if run.region.is_ball else _PIECES_OF_CELLS
        result = ranges_over_pieces(term.value, graphs, boxes, data, by_length, effort, most)
    by_slots = {slots: weight * a for slots, a in result.derivatives.items()}
    second: dict[Slots, Interval]
    second = {slots: a for slots, a in by_slots.items() if len(slots) == 2}
    every = _Elements(term, {slots: graphs[slots] for slots in second}, kept, weight, boxes, data)
    return CurvedSum(
        tuple(own),
        second,
        {slots: a.magnitude for slots, a in by_slots.items() if len(slots) == 3},
        tuple(weight * a for a in result.dominating),
        _shared(run, every, shape, second, own),
    )


@dataclass(frozen=True, slots=True)
class _Elements:
    """The elements of a term that are `kept`, and the ranges of what they consist of."""

    term: CurvedElements
    graphs: Mapping[Slots, Expr]
    kept: Places
    weight: Interval
    boxes: Mapping[Input, Interval]
    data: Mapping[Input, Interval]


def _shared(
    run: BallGraph,
    every: _Elements,
    shape: tuple[int, ...],
    second: Mapping[Slots, Interval],
    rows: Sequence[CurvedRows],
) -> dict[Slots, SharedWeights]:
    """How far the weights of second derivatives move together, where that is less than apart."""
    term, m = every.term, len(every.kept)
    if m < FEW_ELEMENTS or run.region.radius == 0.0:
        return {}
    largest = float(np.max(every.weight.magnitude))
    known: dict[Expr, float] = {}
    centre: dict[Expr, Interval] = {}
    for one, laid in zip(term.arguments, term.places, strict=True):
        at = run.centre.values[laid.node].broadcast(concrete(laid.node.shape, run.part.sizes))
        centre[one] = _laid(at, laid.axes, shape).each(lambda a: a[every.kept])
        repeated = prod(size for axis, size in enumerate(shape) if axis not in laid.axes)
        known[one] = float(up_mul(up_sqrt(float(repeated)), run.shifts.of(laid.node)))
    over: dict[Expr, Interval] = dict([*every.boxes.items(), *every.data.items()])
    centre.update(every.data.items())
    moved = shifts_of_elements(run.part, [*every.graphs.values()], (over, centre), known)
    result: dict[Slots, SharedWeights] = {}
    for (slots, whole), (near, shift) in zip(second.items(), moved, strict=True):
        shared = SharedWeights(every.weight * near, float(up_mul(largest, shift)))
        p, q = slots
        if shared.pays(whole, rows[p].rows, rows[q].rows):
            result[slots] = shared
    return result


def log_sums_sum(
    run: BallGraph, term: CurvedLogSum, adjoint: Interval, rows: Mapping[Expr, CurvedRows]
) -> CurvedSum | None:
    """The sum over samples and classes, with one row b for each; None for no samples."""
    samples = SummedClasses.of(term.u, term.summed, run.part.sizes)
    k = samples.k
    if 0 in samples.shape:
        return None
    weight = adjoint.each(lambda array: np.repeat(np.ravel(array), k))
    live = np.flatnonzero((weight.lo != 0.0) | (weight.hi != 0.0))
    if not len(live):
        return None
    own, b, p, growth = _shares(run, term, rows)
    reach = samples_of(own.reach, k)
    mean = up_sum(up_mul(p.hi, reach), 1)
    together = np.minimum(
        up_add(reach, mean[:, np.newaxis]), up_mul(2.0, np.max(reach, 1))[:, None]
    )
    least = np.min(growth.lo, axis=1, keepdims=True)
    low = np.maximum(down_mul(p.lo, np.broadcast_to(least, p.shape)), 0.0)
    high = np.minimum(up_mul(p.hi, growth.hi), 1.0)
    lengths = samples_of(b.length, k)
    by_half = np.sum(0.5 * lengths**2, axis=1) < np.sum(high * lengths**2, axis=1)
    high = np.where(by_half[:, np.newaxis], 0.5, high)
    low = np.where(by_half[:, np.newaxis], 0.0, np.minimum(low, high))
    weighted = weight * Interval(low.ravel(), high.ravel())
    longest = np.max(up_add(lengths, together), axis=1, keepdims=True)
    third = up_mul(weighted.magnitude, np.broadcast_to(up_mul(2.0, longest), p.shape).ravel())
    moved = _moved_apart(own.moved, p.hi, k)
    one = CurvedRows(b, moved, together.ravel(), own.curvature, own.bend, own.bent)
    cubic = quotient(third, up_add(b.length, together.ravel()))
    return _restricted(CurvedSum((one,), {(0, 0): weighted}, {(0, 0, 0): cubic}), live)


def _shares(
    run: BallGraph, term: CurvedLogSum, rows: Mapping[Expr, CurvedRows]
) -> tuple[CurvedRows, Rows, Interval, Interval]:
    """Per sample: the rows of u, the rows b, the weights p (N, k) at the centre, and κ (N, k)."""
    samples = SummedClasses.of(term.u, term.summed, run.part.sizes)
    k = samples.k
    places = np.arange(prod(samples.shape), dtype=np.intp).reshape(samples.shape)
    own = rows[term.u].take(samples.rows(places).ravel())
    p = run.centre.apart[term.node].weights.each(samples.rows)
    middle = p.mid / np.maximum(np.sum(p.mid, axis=1, keepdims=True), SMALLEST_NORMAL)
    b = _centred(own.rows, middle)
    off = _off_mean(p, middle, b, len(p.lo))
    # Both b and b - Σ p b are within this error of the computed rows.
    error = up_add(b.error, np.repeat(off, k))
    b = Rows(Bounded(b.value, error), up_add(b.length, np.repeat(off, k)))
    return own, b, p, _growths(run.region, p, b, samples_of(own.bend, k), off)


def samples_of(array: Array, k: int) -> Array:
    return array.reshape(-1, k)


def _restricted(one: CurvedSum, live: Places) -> CurvedSum:
    return CurvedSum(
        tuple(own.take(live) for own in one.rows),
        {slots: a.each(lambda array: array[live]) for slots, a in one.second.items()},
        {slots: a[live] for slots, a in one.third.items()},
    )


def _centred(rows: Rows, middle: Array) -> Rows:
    """b_j = a_j - m, with m a mean of the computed rows of the sample."""
    N, k = middle.shape
    n = rows.value.shape[1]
    m = np.einsum("ij,ijl->il", middle, rows.value.reshape(N, k, n))
    wide = np.repeat(m, k, axis=0)
    b = rows.near - Bounded(wide, np.zeros(len(wide)))
    return Rows(b, np.asarray(up_add(np.asarray(up_norm(b.value, 1)), b.error)))


def _off_mean(p: Interval, middle: Array, b: Rows, N: int) -> Array:
    """Upper bounds (N,) on ‖Σ_j p_j b_j‖, which m makes nearly 0."""
    k, n = middle.shape[1], b.value.shape[1]
    near = np.einsum("ij,ijl->il", middle, b.value.reshape(N, k, n))
    lengths = samples_of(b.length, k)
    off = np.maximum(up_add(p.hi, -middle), up_add(middle, -p.lo))
    rate = np.asarray(gamma(2 * k + 8))
    own: Array = up_add(up_mul(off, lengths), up_mul(middle, up_mul(rate, lengths)))
    own = up_add(own, up_mul(middle, samples_of(b.error, k)))
    return np.asarray(
        up_add(up_add(np.asarray(up_norm(near, 1)), up_sum(own, 1)), np.asarray(_UNDERFLOW))
    )


def _growths(region: Displacements, p: Interval, b: Rows, bend: Array, off: Array) -> Interval:
    """The intervals (N, k) of κ over the region, `bend` (N, k) as in `CurvedRows`."""
    radius = np.asarray(region.radius)
    bent = up_mul(np.asarray(0.5), bend)
    reach = up_add(region.reach(np.abs(b.value).T), up_mul(radius, b.error))
    reach = np.minimum(reach, up_mul(radius, b.length))
    moved = up_add(samples_of(reach, p.shape[1]), bent)
    mean = up_add(up_mul(radius, off), up_sum(up_mul(p.hi, bent), 1))[:, np.newaxis]
    return growths(p, moved, mean)


def _moved_apart(moved: Array, p: Array, k: int) -> Array:
    """Entrywise bounds on how far a_j - Σ p a moves: by itself and by the mean."""
    wide = moved.reshape(-1, k, moved.shape[1])
    mean = np.einsum("ij,ijl->il", p, wide) * (1.0 + gamma(2 * k + 8))
    mean = np.where(mean > 0.0, mean + _UNDERFLOW, mean)
    return np.asarray(up_add(wide, np.broadcast_to(mean[:, None], wide.shape))).reshape(moved.shape)
