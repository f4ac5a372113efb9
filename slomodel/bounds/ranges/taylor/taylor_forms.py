"""First-order Taylor forms of the nodes of a graph about the centre of a ball.

For each element u of a node there are a slope g = ∇u(c) and a remainder e with

    |u(c + d) - u(c) - g·d| <= e   and so   |u(c + d) - u(c)| <= w = ρ‖g‖ + e   for ‖d‖ <= ρ.

Linear nodes are applied to e. For φ of operands u_i, with ξ between u(c) and u(c + d),

    φ(u(c + d)) - φ(u(c)) = Σ φ_i (g_i·d + e_i) + ½ Σ φ_ij(ξ) w_i w_j,

the φ_i at the centre: e = Σ |φ_i| e_i + ½ Σ sup|φ_ij| w_i w_j. A product of m factors is the case
e = Σ_i |Π_(j≠i) u_j| e_i + Σ over sets S of two or more factors of Π_S w Π_(not S) |u|. Where φ is
not known to be C¹ over the ranges, and for nodes without a rule, e = w + ρ‖g‖ with the w that the
interval of the node gives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import singledispatch
from itertools import combinations
from math import inf

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, from_zero, meet, point
from slomodel.bounds.arithmetic.interval_einsum import contract
from slomodel.bounds.arithmetic.rounding import Array, up_add, up_mul
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.curvature.hessian_ranges import (
    MOST_FACTORS,
    laid,
    laid_interval,
    numbers,
    upper_sum,
)
from slomodel.bounds.ranges.derivatives import derivative_range
from slomodel.bounds.ranges.enclose import range_of
from slomodel.bounds.ranges.kinks import order_near, outside
from slomodel.bounds.ranges.liveness import Live, neutral
from slomodel.bounds.ranges.matrices import remainder_of_operation
from slomodel.functions.compound import same, stop_gradient
from slomodel.ir.dims import concrete
from slomodel.ir.expr import (
    Einsum,
    Expr,
    Gather,
    Map,
    MatrixOperation,
    Reshape,
    Scan,
    Scatter,
    tables,
)
from slomodel.ir.function import ScalarFunction
from slomodel.reference import positions


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

    def enclosed(self, node: Expr) -> Interval:
        """The range of a node from the ranges of its operands."""
        operands = [self.ranges[o] for o in node.operands]
        result = range_of(node, operands, self.part.sizes, 0)
        return neutral(node, result, self.centre.live)


def put(run: TaylorPass, node: Expr) -> None:
    """Add the form and the range of a node that depends on the variables."""
    at_centre = run.centre.values[node]
    if isinstance(node, Map) and node.function is stop_gradient and at_centre.is_point:
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


_NONE = np.asarray(inf)


@singledispatch
def remainder_of(node: Expr, run: TaylorPass) -> Array:
    """Upper bounds on the remainders of a node's elements; +inf without a rule."""
    return _NONE


@remainder_of.register
def _(node: Gather, run: TaylorPass) -> Array:
    sizes = run.part.sizes
    remainder = run.forms[node.operands[0]].remainder
    where = positions(
        node.index, concrete(node.shape, sizes), remainder.shape, sizes, run.part.tables
    )
    return np.asarray(remainder[where])


@remainder_of.register
def _(node: Reshape, run: TaylorPass) -> Array:
    shape = concrete(node.shape, run.part.sizes)
    return run.forms[node.operands[0]].remainder.reshape(shape)


@remainder_of.register
def _(node: Scatter, run: TaylorPass) -> Array:
    remainder = from_zero(run.forms[node.operands[0]].remainder)
    known = [point(run.part.tables[table]) for table in tables(node.index)]
    return range_of(node, [remainder, *known], run.part.sizes, 0).hi


@remainder_of.register
def _(node: Einsum, run: TaylorPass) -> Array:
    varying = [k for k, o in enumerate(node.operands) if o in run.forms]
    if len(varying) > MOST_FACTORS:
        return _NONE
    forms = [run.forms.get(o) for o in node.operands]
    sizes = [from_zero(run.centre.values[o].magnitude) for o in node.operands]
    dims = concrete(node.dims, run.part.sizes)

    def product(changed: dict[int, Array]) -> Interval:
        factors = [from_zero(changed[k]) if k in changed else size for k, size in enumerate(sizes)]
        labelled = list(zip(factors, node.inputs, strict=True))
        return contract(labelled, node.output, dims)

    terms = []
    for count in range(1, len(varying) + 1):
        for chosen in combinations(varying, count):
            own = {k: form for k in chosen if (form := forms[k]) is not None}
            parts = {k: f.remainder if count == 1 else f.moved for k, f in own.items()}
            if all(part.any() for part in parts.values()):
                terms.append(product(parts).hi)
    return upper_sum(terms)


@remainder_of.register
def _(node: MatrixOperation, run: TaylorPass) -> Array:
    centre = [run.centre.values[o] for o in node.operands]
    still_forms = [TaylorForm(np.zeros(one.shape), np.zeros(one.shape)) for one in centre]
    forms = [run.forms.get(o, own) for o, own in zip(node.operands, still_forms, strict=True)]
    moved, remainder = [form.moved for form in forms], [form.remainder for form in forms]
    value = run.centre.values[node]
    return remainder_of_operation(node.function, centre, moved, remainder, value)


@remainder_of.register
def _(node: Scan, run: TaylorPass) -> Array:
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


@remainder_of.register
def _(node: Map, run: TaylorPass) -> Array:
    function = node.function
    if function is same:
        form = run.forms.get(node.operands[0])
        return np.zeros(()) if form is None else laid(form.remainder, node, 0)
    ranges = [laid_interval(run.ranges[o], node, k) for k, o in enumerate(node.operands)]
    forms = {
        k: TaylorForm(laid(form.moved, node, k), laid(form.remainder, node, k))
        for k, o in enumerate(node.operands)
        if (form := run.forms.get(o)) is not None
    }
    if function is table.where:
        return _of_choice(ranges[0], forms)
    if function is stop_gradient or function.result != "real" or "bool" in function.operand_types:
        return _NONE
    centre = [laid_interval(run.centre.values[o], node, k) for k, o in enumerate(node.operands)]
    return _of_function(function, ranges, centre, forms)


def _of_choice(condition: Interval, forms: dict[int, TaylorForm]) -> Array:
    """The remainder of the branch that is certainly taken."""
    first, second = (
        forms[k].remainder if k in forms else np.zeros((1,) * condition.lo.ndim) for k in (1, 2)
    )
    unknown = np.where(condition.hi == 0.0, second, inf)
    return np.asarray(np.where(condition.lo == 1.0, first, unknown))


def _of_function(
    function: ScalarFunction,
    ranges: list[Interval],
    centre: list[Interval],
    forms: dict[int, TaylorForm],
) -> Array:
    """Σ |φ_i(c)| e_i + ½ Σ sup|φ_ij| w_i w_j, where φ is C¹ and piecewise C² on the ranges."""
    arity = len(ranges)

    def largest(at: list[Interval], *by: int) -> Array:
        orders = tuple(by.count(k) for k in range(arity))
        return derivative_range(function, orders, *at).magnitude

    terms = []
    for i, form in forms.items():
        if form.remainder.any():
            terms.append(up_mul(largest(centre, i), form.remainder))
        for j in (k for k in forms if k >= i):
            curvature = largest(ranges, i, j)
            if curvature.any():
                second = up_mul(curvature, up_mul(form.moved, forms[j].moved))
                terms.append(up_mul(np.asarray(0.5), second) if i == j else second)
    smooth = ~outside(function, *ranges) & (order_near(function, *ranges) >= 1)
    return np.asarray(np.where(smooth, upper_sum(terms), inf))
