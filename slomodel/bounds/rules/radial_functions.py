"""Sums of functions of lengths of affine arrays, Σ w φ(‖Ax + b‖²), by ranges of the lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np
from numpy.typing import NDArray

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, from_zero, hull
from slomodel.bounds.arithmetic.rounding import Array, up_mul
from slomodel.bounds.effort import MOST_NUMBERS
from slomodel.bounds.enclosure import DerivativeBounds, Enclosure
from slomodel.bounds.norms.element_derivatives import Weighted, matrix_of_third, second_order_ends
from slomodel.bounds.norms.loewner import Rows, largest_eigenvalue, quotient
from slomodel.bounds.ranges.affine_norms import lengths_over_ball
from slomodel.bounds.ranges.elements.element_functions import Slots
from slomodel.bounds.ranges.elements.element_ranges import element_ranges
from slomodel.bounds.ranges.elements.element_sums import (
    MOST_VARIABLES,
    ElementSum,
    LiveElements,
    parts_of,
    parts_over_ball,
)
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.ranges.hessian import jacobians
from slomodel.bounds.ranges.smoothness import Smoothness, roughest
from slomodel.bounds.setting import Setting, once_per_setting
from slomodel.bounds.structure.radial_functions import SquaredLengths, radial_sums
from slomodel.bounds.structure.separable import Elements
from slomodel.calculus import jvp
from slomodel.calculus.signs import parities
from slomodel.ir.build import const
from slomodel.ir.dims import concrete, number_of_elements
from slomodel.ir.expr import Expr, Input, is_map
from slomodel.ir.walk import postorder, substitute

_ROUND, _ALONG = (1, 1), (2, 2)
_LINEAR, _CUBIC, _BOTH, _INNER = (3, 3, 3), (4, 4, 4), (5, 5, 5), (6, 6, 6)
"""Keys of the two eigenvalues of D², of the coefficients of D³, their sum and the value at the
critical point: as many as the order, none of them an argument, as these are not derivatives by it.
"""


@dataclass(frozen=True, slots=True, eq=False)
class _RadialSum:
    """Elements weight · φ(t²), t = ‖u‖ of group `group` (m,): u (G, k), its Jacobian (G, k, n).

    `graphs` are those of `derivatives_by_length` in the argument of `value`, φ(t²); `even` those of
    `derivatives_of_even`, empty where φ(t²) is not written as an even function of t.
    """

    value: Expr
    argument: Input
    graphs: dict[Slots, Expr]
    even: dict[Slots, Expr]
    weight: Interval
    data: dict[Input, Interval]
    group: NDArray[np.intp]
    u: Interval
    J: Interval

    def over(self, setting: Setting, radius: float) -> tuple[Weighted, Smoothness]:
        """The sum over a ball, and its smoothness."""
        lengths, largest = lengths_over_ball(self.u, self.J, radius)
        boxes = {self.argument: lengths.each(lambda array: array[self.group])}
        result = element_ranges(self.value, self.graphs, boxes, self.data, {}, setting.effort)
        by, smooth = result.derivatives, result.smooth
        eigenvalues, cubic = hull(by[_ROUND], by[_ALONG]), _largest_cubic(by)
        is_finite = np.isfinite(eigenvalues.magnitude) & np.isfinite(cubic)
        if self.even and not (is_finite.all() and smooth.least > 1):
            ends = lengths.hi[self.group]
            boxes = {self.argument: Interval(-ends, ends)}
            value, graphs = self.even[()], {slots: one for slots, one in self.even.items() if slots}
            result = element_ranges(value, graphs, boxes, self.data, {}, setting.effort)
            if result.smooth.least > smooth.least:
                # Where pieces do not meet, their derivatives by t² say nothing of those of F.
                smooth, cubic = result.smooth, np.full_like(cubic, np.inf)
                eigenvalues = Interval(np.full_like(cubic, -np.inf), cubic)
            along = result.derivatives[_ALONG]
            eigenvalues = Interval(
                np.fmax(eigenvalues.lo, along.lo), np.fmin(eigenvalues.hi, along.hi)
            )
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


def radial_functions(setting: Setting, radius: float) -> Enclosure | None:
    """L1 and L2 of f = Σ w φ(‖A x + b‖²) + sums of functions of few affine numbers.

    Hypothesis: every φ(t²) is C¹ (C² for L2) and piecewise smooth on the range of t = ‖u‖, u = A x
    + b, over the ball. By u, with the cosine κ of u and w, ‖w‖ = 1,

        D²[w, w] = 2φ' (1 - κ²) + (2φ' + 4t²φ'') κ²,   D³[w, w, w] = 12tφ'' κ + 8t³φ''' κ³,

    so that the part of H lies between the multiples of AᵀA by the least and the largest value of
    2φ' and 2φ' + 4t²φ'', and |D³f[v, v, v]| <= sup |D³| ‖A‖ ‖A v‖².

    φ(t²) may be written by t, as cosh(t), with derivatives by t² that divide by 0. Where F(t) =
    φ(t²) is an even function of t in C², F'(0) = 0 and the two eigenvalues are F'(t)/t, the average
    of F'' over (0, t), and F''(t). D³ is 3 (F'' - F'/t)/t κ (1 - κ²) + F''' κ³, and (F'' - F'/t)/t
    = ∫₀¹ s F'''(st) ds is at most M/2 for M = sup |F'''| over (0, t): |D³| <= M (3κ - κ³)/2 <= M.
    """
    known = _known(setting)
    if known is None:
        return None
    every = [one.over(setting, radius) for one in known[0]]
    others = parts_over_ball(setting, known[1], radius)
    parts = [*(own for own, _ in every), *others.parts]
    smooth = roughest([*(smooth for _, smooth in every), others.smooth])
    order, reason = smooth.least, smooth.reason
    if order < 1:
        return Enclosure(order=order, reason=reason)
    third = largest_eigenvalue(matrix_of_third(parts)) if order > 1 else np.inf
    over = DerivativeBounds(second_order_ends(parts), third)
    return Enclosure(over=over, order=order, reason=reason)


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


def derivatives_of_even(value: Expr, squared: Input, length: Input) -> dict[Slots, Expr]:
    """Graphs of F(t) = φ(t²), F'' and F'''; empty where F is not written as an even function."""
    by_length = {root(squared): length for root in (table.root, table.sqrt)}
    (own,) = substitute((value,), {**by_length, squared: table.square(length)})
    order = postorder(own)
    has_kink = any(is_map(one, table.abs) for one in order)
    if has_kink or parities(order, length).get(own) != 1:
        return {}
    graphs = [own]
    for _ in range(3):
        graphs += jvp((graphs[-1],), {length: const(1.0)})
    return {(): own, _ALONG: graphs[2], _CUBIC: graphs[3]}


@once_per_setting
def _known(setting: Setting) -> tuple[list[_RadialSum], Sequence[ElementSum[Rows]]] | None:
    """The parts in numbers; None where the objective is of another kind or too large."""
    if not 0 < setting.n <= MOST_VARIABLES:
        return None
    result = radial_sums(setting)
    if result is None:
        return None
    numbers = [number_of_elements(one.u.shape, setting.sizes) for _, one in result.radial]
    if sum(numbers) * setting.n > MOST_NUMBERS or not all(numbers):
        return None
    others = parts_of(setting, result.others) if result.others else ()
    if others is None:
        return None
    radial = [_numbers_of(setting, *one) for one in result.radial]
    if sum(len(one.group) * one.u.shape[1] for one in radial) * setting.n > MOST_NUMBERS:
        return None
    return radial, others


def _numbers_of(setting: Setting, own: Elements, lengths: SquaredLengths) -> _RadialSum:
    (place,), (squared,) = own.affine, own.arguments
    data: list[Expr] = [laid.node for laid in own.data.values()]
    values = enclose([lengths.u, own.weight, *data], boxed(setting.values), setting.sizes)
    shape = concrete(lengths.u.shape, setting.sizes)
    turned = (*lengths.kept, *lengths.summed)
    groups = prod(shape[axis] for axis in lengths.kept)
    u = values[lengths.u].each(
        lambda a: np.transpose(np.broadcast_to(a, shape), turned).reshape(groups, -1)
    )
    n = setting.n

    def jacobian(array: Array) -> Array:
        wide = np.broadcast_to(array, (n, *shape))
        moved = np.transpose(wide, (*(axis + 1 for axis in turned), 0))
        return np.ascontiguousarray(moved.reshape(*u.shape, n))

    live = LiveElements.of(setting, own)
    places = np.arange(groups).reshape([shape[axis] for axis in lengths.kept])
    weight = values[own.weight].each(lambda a: np.broadcast_to(a, live.shape).ravel()[live.kept])
    length = Input("length", "variable", ())
    value = substitute((own.value,), {squared: table.square(length)})[0]
    return _RadialSum(
        value,
        length,
        derivatives_by_length(own.value, squared, length),
        derivatives_of_even(own.value, squared, length),
        weight,
        {one: values[laid.node].each(partial(live.along, laid)) for one, laid in own.data.items()},
        np.asarray(live.along(place, places)),
        u,
        jacobians(setting, [lengths.u])[lengths.u].each(jacobian),
    )
