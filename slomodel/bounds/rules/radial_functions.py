"""Sums of functions of lengths of affine arrays, Σ w φ(‖Ax + b‖²), by ranges of the lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np
from numpy.typing import NDArray

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, from_zero, hull, point
from slomodel.bounds.arithmetic.rounding import Array, up_mul
from slomodel.bounds.effort import MOST_NUMBERS
from slomodel.bounds.enclosure import DerivativeBounds, Enclosure, both_ends
from slomodel.bounds.norms.element_derivatives import Weighted, matrix_of_third, second_order_ends
from slomodel.bounds.norms.loewner import Rows, largest_eigenvalue, quotient
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.affine_norms import lengths_over_ball
from slomodel.bounds.ranges.elements.element_functions import Slots
from slomodel.bounds.ranges.elements.element_ranges import element_ranges
from slomodel.bounds.ranges.elements.element_sums import (
    ElementSum,
    LiveElements,
    parts_of,
    parts_over_ball,
)
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.ranges.hessian import jacobians
from slomodel.bounds.ranges.smoothness import Smoothness, roughest
from slomodel.bounds.ranges.values import elementwise
from slomodel.bounds.rules.majorant_series import constant_hessian
from slomodel.bounds.structure.linear_predictors import Elements
from slomodel.bounds.structure.radial_functions import SquaredLengths, radial_sums
from slomodel.calculus import jvp
from slomodel.ir.build import const
from slomodel.ir.dims import concrete, number_of_elements
from slomodel.ir.expr import Axes, Const, Expr, Input, is_map
from slomodel.ir.walk import postorder, substitute

_AT_LENGTH_0 = 2
"""The order to which f is proved to be smooth where a length may be 0, by F alone."""
_SLOPE, _ROUND, _ALONG = (0,), (1, 1), (2, 2)
_LINEAR, _CUBIC, _BOTH, _INNER = (3, 3, 3), (4, 4, 4), (5, 5, 5), (6, 6, 6)
"""Keys of the slope by t, of the two eigenvalues of D², of the coefficients of D³, their sum and
the value at the critical point: most as many as the order, none of them an argument, as these are
not derivatives by it.
"""


@dataclass(frozen=True, slots=True, eq=False)
class _RadialSum:
    """Elements weight · φ(t²), t = ‖u‖ of group `group` (m,): u (G, k), its Jacobian (G, k, n).

    `graphs` are those of `derivatives_by_length` in the argument of `value`, φ(t²); `profile` those
    of `profile_of`, empty where their slope is not 0 at t = 0.
    """

    value: Expr
    argument: Input
    graphs: dict[Slots, Expr]
    profile: dict[Slots, Expr]
    weight: Interval
    data: dict[Input, Interval]
    group: NDArray[np.intp]
    u: Interval
    J: Interval

    def over(self, part: ObjectivePart, radius: float) -> tuple[Weighted, Smoothness]:
        """The sum over a ball, and its smoothness."""
        lengths, largest = lengths_over_ball(self.u, self.J, radius)
        boxes = {self.argument: lengths.each(lambda array: array[self.group])}
        result = element_ranges(self.value, self.graphs, boxes, self.data, {}, part.effort)
        by, smooth = result.derivatives, result.smooth
        eigenvalues, cubic = hull(by[_ROUND], by[_ALONG]), _largest_cubic(by)
        is_finite = np.isfinite(eigenvalues.magnitude) & np.isfinite(cubic)
        if self.profile and not (is_finite.all() and smooth.least > 1):
            ends = lengths.hi[self.group]
            boxes = {self.argument: from_zero(ends)}
            value, graphs = self.profile[()], {k: one for k, one in self.profile.items() if k}
            result = element_ranges(value, graphs, boxes, self.data, {}, part.effort)
            if result.smooth.least > smooth.least:
                # Where pieces do not meet, their derivatives by t² say nothing of those of F.
                order = np.minimum(result.smooth.order, _AT_LENGTH_0)
                smooth = Smoothness(order, result.smooth.reason)
                cubic = np.full_like(cubic, np.inf)
                eigenvalues = Interval(np.full_like(cubic, -np.inf), cubic)
            if result.smooth.least > 0:
                along = result.derivatives[_ALONG]
                eigenvalues = Interval(
                    np.fmax(eigenvalues.lo, along.lo), np.fmin(eigenvalues.hi, along.hi)
                )
            if result.smooth.least > 1:
                cubic = np.fmin(cubic, result.derivatives[_CUBIC].magnitude)
        second = self.weight * eigenvalues
        cubic = up_mul(up_mul(self.weight.magnitude, cubic), largest[self.group])
        groups, k, n = self.J.shape
        rows = Rows.of(self.J.each(lambda array: array.reshape(groups * k, n)))
        places = (self.group[:, np.newaxis] * k + np.arange(k)).ravel()
        own = rows.take(places)
        third = from_zero(quotient(np.repeat(cubic, k), own.length))
        wide = second.each(lambda array: np.repeat(array, k))
        return Weighted((own,), {(0, 0): wide, (0, 0, 0): third}), smooth


def radial_functions(part: ObjectivePart, radius: float) -> Enclosure | None:
    """L1 and L2 of f = Σ w φ(‖A x + b‖²) + sums of functions of few affine numbers.

    Hypothesis: every φ(t²) is C¹ (C² for L2) and piecewise smooth on the range of t = ‖u‖, u = A x
    + b, over the ball. By u, with the cosine κ of u and w, ‖w‖ = 1,

        D²[w, w] = 2φ' (1 - κ²) + (2φ' + 4t²φ'') κ²,   D³[w, w, w] = 12tφ'' κ + 8t³φ''' κ³,

    so that the part of H lies between the multiples of AᵀA by the least and the largest value of
    2φ' and 2φ' + 4t²φ'', and |D³f[v, v, v]| <= sup |D³| ‖A‖ ‖A v‖².

    φ(t²) may be written by t, as t³ or cosh(t), with derivatives by t² that divide by 0. Where
    F(t) = φ(t²) has F'(0) = 0 and is C² on [0, max t], f is C² at u = 0 too: the eigenvalues are
    F''(t) and F'(t)/t, the average of F'' over (0, t), and tend to F''(0). D³ is 3 (F'' - F'/t)/t κ
    (1 - κ²) + F''' κ³, and (F'' - F'/t)/t = ∫₀¹ s F'''(st) ds is at most M/2 for M = sup |F'''|
    over (0, t): |D³| <= M (3κ - κ³)/2 <= M. The averages need F' to be Lipschitz only.
    """
    known = _known(part)
    if known is None:
        return None
    every = [one.over(part, radius) for one in known.radial]
    others = parts_over_ball(part, known.others, radius)
    parts = [*(own for own, _ in every), *others.parts]
    smooth = roughest([*(smooth for _, smooth in every), others.smooth])
    order, reason = smooth.least, smooth.reason
    if order < 1:
        return Enclosure(order=order, reason=reason)
    third = largest_eigenvalue(matrix_of_third(parts)) if order > 1 else np.inf
    over = DerivativeBounds(second_order_ends(parts), third)
    beside = DerivativeBounds(both_ends(known.curvature), 0.0)
    return Enclosure(over=over.plus(beside), order=order, reason=reason)


def _largest_cubic(by: Mapping[Slots, Interval]) -> Array:
    """Upper bounds on |a κ + b κ³| over κ in [0, 1]: the larger of |a + b| and, unless a and b have
    one sign, of 2|a|κ/3 at the critical point κ² = -a / (3b), or at 1 if that is less.
    """
    a, b = by[_LINEAR], by[_CUBIC]
    has_one_sign = ((a.lo >= 0.0) & (b.lo >= 0.0)) | ((a.hi <= 0.0) & (b.hi <= 0.0))
    inner = np.where(has_one_sign, 0.0, by[_INNER].magnitude)
    largest = np.maximum(by[_BOTH].magnitude, inner)
    return np.asarray(np.where(np.isnan(largest), np.inf, largest))


def derivatives_by_length(value: Expr, squared: Input, length: Input) -> dict[Slots, Expr]:
    """Graphs in t = ‖u‖ of the eigenvalues of D²[φ(‖u‖²)], of a = 12tφ'' and b = 8t³φ''', of a + b
    and of the magnitude of a κ + b κ³ at its critical point.
    """
    graphs = [value]
    for _ in range(3):
        graphs += jvp((graphs[-1],), {squared: const(1.0)})
    own = table.square(length)
    _, first, second, third = (substitute((graph,), {squared: own})[0] for graph in graphs)
    round_ = table.mul(2.0, first)
    linear = table.mul(table.mul(12.0, length), second)
    cubic = table.mul(table.mul(8.0, table.mul(own, length)), third)
    ratio = table.abs(table.div(linear, table.mul(3.0, cubic)))
    turned = table.sqrt(table.minimum(1.0, ratio))
    return {
        _ROUND: round_,
        _ALONG: table.add(round_, table.mul(table.mul(4.0, own), second)),
        _LINEAR: linear,
        _CUBIC: cubic,
        _BOTH: table.add(linear, cubic),
        _INNER: table.div(table.mul(table.mul(2.0, table.abs(linear)), turned), 3.0),
    }


def profile_of(value: Expr, squared: Input, length: Input) -> dict[Slots, Expr]:
    """Graphs of F(t) = φ(t²), F', F'' and F''', powers and roots of t² written as those of t."""
    by_length: dict[Expr, Expr] = {root(squared): length for root in (table.root, table.sqrt)}
    for node in postorder(value):
        if is_map(node, table.pow) and node.operands[0] is squared:
            exponent = node.operands[1]
            if isinstance(exponent, Const):
                by_length[node] = table.pow(length, 2.0 * float(exponent.value))
    (own,) = substitute((value,), {**by_length, squared: table.square(length)})
    graphs = [own]
    for _ in range(3):
        graphs += jvp((graphs[-1],), {length: const(1.0)})
    return {(): own, _SLOPE: graphs[1], _ALONG: graphs[2], _CUBIC: graphs[3]}


def _is_level_at_0(slope: Expr, length: Input, data: Mapping[Input, Interval]) -> bool:
    """Whether F'(0) is 0 for all elements."""
    at_0 = elementwise(slope, {length: point(np.zeros(())), **data})
    return bool(np.all(at_0.magnitude == 0.0))


@dataclass(frozen=True, slots=True)
class _RadialNumbers:
    """The parts in numbers, and an upper bound on the curvature of a quadratic remainder."""

    radial: list[_RadialSum]
    others: Sequence[ElementSum[Rows]]
    curvature: float = 0.0


@once_per_part
def _known(part: ObjectivePart) -> _RadialNumbers | None:
    """The parts in numbers; None where the objective is of another kind or too large.

    A quadratic remainder counts by its norm where its elements are too many.
    """
    result = radial_sums(part) if part.n else None
    if result is None:
        return None
    arrays = [u for _, one in result.radial for u, _ in one.arrays]
    numbers = [number_of_elements(u.shape, part.sizes) for u in arrays]
    if sum(numbers) * part.n > MOST_NUMBERS or not all(numbers):
        return None
    others = parts_of(part, result.others) if result.others else ()
    curvature: float | None = 0.0
    if others is None:
        others, curvature = (), constant_hessian(replace(part, objective=result.rest))
    radial = [_numbers_of(part, *one) for one in result.radial]
    rows = sum(len(one.group) * one.u.shape[1] for one in radial)
    if curvature is None or rows * part.n > MOST_NUMBERS:
        return None
    return _RadialNumbers(radial, others, curvature)


def _numbers_of(part: ObjectivePart, own: Elements, lengths: SquaredLengths) -> _RadialSum:
    (place,), (squared,) = own.affine, own.arguments
    data: list[Expr] = [laid.node for laid in own.data.values()]
    arrays = [u for u, _ in lengths.arrays]
    values = enclose([*arrays, own.weight, *data], boxed(part.values), part.sizes)
    kept = concrete(lengths.node.shape, part.sizes)
    groups = prod(kept)

    def flat(u: Expr, summed: Axes, array: Array, front: int) -> Array:
        """An array of the shape of u behind `front` axes as (groups, k, *front)."""
        shape = concrete(u.shape, part.sizes)
        wide = np.broadcast_to(array, (*array.shape[:front], *shape))
        turned = [*(axis for axis in range(len(shape)) if axis not in summed), *summed]
        whole = np.transpose(wide, (*(axis + front for axis in turned), *range(front)))
        return np.ascontiguousarray(whole.reshape(groups, -1, *array.shape[:front]))

    def joined(known: Mapping[Expr, Interval], front: int) -> Interval:
        parts = [known[u].each(partial(flat, u, axes, front=front)) for u, axes in lengths.arrays]
        return Interval.concatenated(parts, 1)

    live = LiveElements.of(part, own)
    places = np.arange(groups).reshape(kept)
    weight = values[own.weight].each(lambda a: np.broadcast_to(a, live.shape).ravel()[live.kept])
    numbers = {
        one: values[laid.node].each(partial(live.along, laid)) for one, laid in own.data.items()
    }
    length = Input("length", "variable", ())
    profile = profile_of(own.value, squared, length)
    return _RadialSum(
        substitute((own.value,), {squared: table.square(length)})[0],
        length,
        derivatives_by_length(own.value, squared, length),
        profile if _is_level_at_0(profile.pop(_SLOPE), length, numbers) else {},
        weight,
        numbers,
        np.asarray(live.along(place, places)),
        joined(values, 0),
        joined(jacobians(part, arrays), 1),
    )
