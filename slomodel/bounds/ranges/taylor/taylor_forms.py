"""First-order Taylor forms of the nodes of a graph about the centre of a ball.

For each element u of a node there are a slope g = ∇u(c) and a remainder e with

    |u(c + d) - u(c) - g·d| <= e   and so   |u(c + d) - u(c)| <= w = ρ‖g‖ + e   for ‖d‖ <= ρ.

Linear nodes are applied to e. For φ of operands u_i, with ξ between u(c) and u(c + d),

    φ(u(c + d)) - φ(u(c)) = Σ φ_i (g_i·d + e_i) + ½ Σ φ_ij(ξ) w_i w_j,

the φ_i at the centre: e = Σ |φ_i| e_i + ½ Σ sup|φ_ij| w_i w_j, the sum of `hessian_ranges` for
‖D²φ(u)‖ with 2e in the place of ‖D²u‖ and w in that of ‖∇u‖. Where φ is not known to be C¹ over the
ranges, and for nodes without a rule, e = w + ρ‖g‖ with the w that the interval of the node gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, meet
from slomodel.bounds.arithmetic.rounding import Array, Truths, up_add, up_mul
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.curvature.hessian_ranges import derivatives_of
from slomodel.bounds.ranges.curvature.slopes import Forms, numbers
from slomodel.bounds.ranges.enclose import range_of
from slomodel.bounds.ranges.liveness import Live, neutral
from slomodel.bounds.ranges.matrices import remainder_of_operation
from slomodel.functions.compound import stop_gradient
from slomodel.ir.expr import Expr, MatrixOperation, Scan, is_map


@dataclass(frozen=True, slots=True)
class CentreSlopes:
    """The nodes under the objective and its gradient in order, with their values at the centre and
    upper bounds on ‖∇u(c)‖ for each element u; `lengths` is empty where there are too many.
    """

    order: tuple[Expr, ...]
    values: dict[Expr, Interval]
    lengths: dict[Expr, Array]
    live: Live


@dataclass(frozen=True, slots=True)
class TaylorForm:
    """|u(c + d) - u(c)| <= `moved`, and |u(c + d) - u(c) - ∇u(c)·d| <= `remainder`; elementwise."""

    moved: Array
    remainder: Array


@dataclass(slots=True)
class TaylorPass:
    """One pass over the graph: ranges of all nodes, forms of those that depend on the variables."""

    part: ObjectivePart
    radius: float
    centre: CentreSlopes
    ranges: dict[Expr, Interval] = field(default_factory=dict)
    forms: dict[Expr, TaylorForm] = field(default_factory=dict)

    @property
    def steep(self) -> Mapping[Expr, Interval]:
        return self.centre.values

    @property
    def has_slopes(self) -> bool:
        return True

    def reads(self, known: Mapping[Expr, Forms]) -> Mapping[Expr, Truths]:
        return {}

    def is_mixed(self, known: Mapping[Expr, Forms]) -> bool:
        return False

    def enclosed(self, node: Expr) -> Interval:
        """The range of a node from the ranges of its operands."""
        operands = [self.ranges[o] for o in node.operands]
        result = range_of(node, operands, self.part.sizes, 0)
        return neutral(node, result, self.centre.live)


def put(run: TaylorPass, node: Expr) -> None:
    """Add the form and the range of a node that depends on the variables."""
    at_centre = run.centre.values[node]
    if is_map(node, stop_gradient) and at_centre.is_point:
        run.ranges[node] = at_centre
        run.forms[node] = TaylorForm(np.zeros(at_centre.shape), np.zeros(at_centre.shape))
        return
    own = run.enclosed(node)
    moved = distance(own, at_centre)
    if node not in run.centre.lengths:
        run.ranges[node] = own
        run.forms[node] = TaylorForm(moved, np.full(moved.shape, inf))
        return
    along = up_mul(np.asarray(run.radius), numbers(run.centre.lengths[node], moved.shape))
    remainder = numbers(remainder_of(node, run), moved.shape)
    moved = np.minimum(moved, up_add(along, remainder))
    remainder = np.minimum(remainder, up_add(moved, along))
    near = at_centre.widened(moved)
    run.ranges[node] = neutral(node, meet(own, near), run.centre.live)
    run.forms[node] = TaylorForm(moved, remainder)


def distance(a: Interval, centre: Interval) -> Array:
    """Upper bounds on the distance of any number in `a` from any number in `centre`."""
    far = np.maximum(up_add(a.hi, -centre.lo), up_add(centre.hi, -a.lo))
    return numbers(np.maximum(far, 0.0), np.broadcast_shapes(a.shape, centre.shape))


def remainder_of(node: Expr, run: TaylorPass) -> Array:
    """Upper bounds on the remainders of a node's elements; +inf without a rule."""
    if isinstance(node, Scan):
        return _of_scan(node, run)
    if isinstance(node, MatrixOperation):
        return _of_operation(node, run)
    if is_map(node, stop_gradient):
        return np.asarray(inf)
    known = {
        o: Forms(own.moved, own.moved, up_mul(np.asarray(2.0), own.remainder))
        for o in node.operands
        if (own := run.forms.get(o)) is not None
    }
    _, twice = derivatives_of(node, run, known)
    return np.asarray(up_mul(np.asarray(0.5), twice))


def _of_operation(node: MatrixOperation, run: TaylorPass) -> Array:
    centre = [run.centre.values[o] for o in node.operands]
    still_forms = [TaylorForm(np.zeros(one.shape), np.zeros(one.shape)) for one in centre]
    forms = [run.forms.get(o, own) for o, own in zip(node.operands, still_forms, strict=True)]
    moved, remainder = [form.moved for form in forms], [form.remainder for form in forms]
    value = run.centre.values[node]
    return remainder_of_operation(node.function, centre, moved, remainder, value)


def _of_scan(node: Scan, run: TaylorPass) -> Array:
    """y_t = a_t y_(t-1) + b_t step by step, each step a product of two factors and a sum."""
    a, b = (_laid_first(run, o, node.axis) for o in node.operands)
    y = np.moveaxis(run.centre.values[node].magnitude, node.axis, 0)
    slopes = np.moveaxis(run.centre.lengths[node], node.axis, 0)
    remainder = np.empty(y.shape)
    for t in range(len(y)):
        own = np.broadcast_to(b.remainder[t], y.shape[1:])
        if t:
            moved = up_add(up_mul(np.asarray(run.radius), slopes[t - 1]), remainder[t - 1])
            own = up_add(own, up_mul(a.size[t], remainder[t - 1]))
            own = up_add(own, up_mul(y[t - 1], a.remainder[t]))
            own = up_add(own, up_mul(a.moved[t], moved))
        remainder[t] = own
    return np.moveaxis(remainder, 0, node.axis)


@dataclass(frozen=True, slots=True)
class _Steps:
    """Magnitudes at the centre and forms of an operand of a recurrence, time first."""

    size: Array
    moved: Array
    remainder: Array


def _laid_first(run: TaylorPass, operand: Expr, axis: int) -> _Steps:
    size = run.centre.values[operand].magnitude
    form = run.forms.get(operand) or TaylorForm(np.zeros(size.shape), np.zeros(size.shape))
    return _Steps(*(np.moveaxis(one, axis, 0) for one in (size, form.moved, form.remainder)))
