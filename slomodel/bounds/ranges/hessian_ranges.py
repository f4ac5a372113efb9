"""Ranges over a ball of the nodes under an objective, from norms of their Hessians.

For each element u of a node let l = ‖∇u(c)‖, and over the ball of radius ρ let m >= sup ‖∇u‖ and
h >= sup ‖D²u‖. By Taylor's theorem

    |u(c + d) - u(c)| <= ρ l + ρ² h / 2,   ‖∇u(c + d) - ∇u(c)‖ <= ρ h,   m <= l + ρ h.

Linear nodes are applied to m and h by their magnitudes; φ of operands u_i has, over their ranges,

    ‖D²φ(u)‖ <= Σ_i sup|φ_i| h_i + Σ_ij sup|φ_ij| m_i m_j,

and products follow with Π|u| in the place of φ's derivatives.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, singledispatch
from itertools import combinations
from math import inf, prod
from operator import itemgetter

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.contraction import contract
from slomodel.bounds.arithmetic.interval import Interval, interval, meet, point
from slomodel.bounds.arithmetic.rounding import Array, Truths, up_add, up_mul, up_norm
from slomodel.bounds.ranges.affine_norms import squared_lengths
from slomodel.bounds.ranges.derivatives import derivative_range
from slomodel.bounds.ranges.enclose import boxed, enclose, live_in, range_of, variable_box
from slomodel.bounds.ranges.hessian import along_rows
from slomodel.bounds.ranges.incidence import by_grams, by_unknown, incidence
from slomodel.bounds.ranges.kinks import order_near, outside
from slomodel.bounds.ranges.liveness import Live, neutral
from slomodel.bounds.setting import Setting
from slomodel.bounds.stopping import pause
from slomodel.bounds.structure.curved_terms import moving_nodes
from slomodel.calculus import jvp
from slomodel.functions.compound import same, still
from slomodel.ir.build import direction
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Axes, Einsum, Expr, Gather, Input, Map, Reshape, Scatter, tables
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import dependents, postorder

_AT_ONCE = 2**21
"""Numbers of slopes that are computed together."""
_MOST_FACTORS = 4


@dataclass(frozen=True, slots=True, eq=False)
class CentreGraph:
    """The nodes under an objective in order and those that depend on x, with values at the centre.

    `lengths` are upper bounds on ‖∇u(c)‖ for each element of the latter; `slopes` holds ∇u(c)
    (n, *shape) of the `wanted` nodes, `incidence` which unknowns operands of contractions read.
    """

    order: tuple[Expr, ...]
    moving: frozenset[Expr]
    values: Mapping[Expr, Interval]
    lengths: Mapping[Expr, Array]
    slopes: Mapping[Expr, Interval]
    live: Live
    incidence: Mapping[Expr, Truths]


def slope_numbers(setting: Setting) -> int:
    """The number of directions times elements for all slopes of the objective's nodes."""
    order = postorder(setting.objective)
    moving = moving_nodes(order, setting.variables)
    return setting.n * sum(prod(concrete(node.shape, setting.sizes)) for node in moving)


def centre_graph(setting: Setting, wanted: Collection[Expr]) -> CentreGraph:
    """The values and slopes at the centre."""
    order = tuple(postorder(setting.objective))
    live = live_in(setting)
    values = enclose(order, boxed(setting.values), setting.sizes, live=live)
    for node in order:
        if isinstance(node, Map) and node.function is still:
            own = values[node]
            values[node] = point(own.mid) if np.isfinite(own.magnitude).all() else own
    # What is under a constant node may differ from it by rounding: enclosed again from it.
    fixed = [node for node in order if isinstance(node, Map) and node.function is still]
    if fixed:
        known = {node: values[node] for node in postorder(*fixed)}
        values = enclose(order, boxed(setting.values), setting.sizes, known=known, live=live)
    moving = moving_nodes(order, setting.variables)
    nodes = [n for n in order if n in moving and n.dtype == "real"]
    lengths, slopes = _slopes(setting, nodes, wanted, values)
    reads = incidence(setting, order, moving)
    return CentreGraph(order, frozenset(moving), values, lengths, slopes, live, reads)


def slopes_over(
    setting: Setting, ranges: Mapping[Expr, Interval], wanted: Collection[Expr]
) -> Mapping[Expr, Interval]:
    """∇u (n, *shape) of the wanted nodes where all nodes lie in their ranges."""
    return _slopes(setting, tuple(wanted), wanted, ranges)[1]


def _slopes(
    setting: Setting,
    nodes: Sequence[Expr],
    wanted: Collection[Expr],
    known: Mapping[Expr, Interval],
) -> tuple[dict[Expr, Array], dict[Expr, Interval]]:
    """Upper bounds on the lengths of the nodes' gradients, and those of the wanted nodes."""
    v = tuple(direction(f"slope.{x.name}", x.shape) for x in setting.variables)
    graphs = jvp(nodes, dict(zip(setting.variables, v, strict=True)))
    below = postorder(*graphs)
    turning = dependents(below, set(v).__contains__)
    elements = sum(prod(concrete(g.shape, setting.sizes)) for g in below if g in turning)
    live = live_in(setting, *graphs)
    front = {node: a.each(itemgetter(np.newaxis)) for node, a in known.items()}
    at_once = max(_AT_ONCE // max(elements, 1), 1)
    lengths: dict[Expr, list[Array]] = {node: [] for node in nodes}
    parts: dict[Expr, list[Interval]] = {node: [] for node in wanted}
    for start in range(0, setting.n, at_once):
        rows = np.eye(setting.n)[start : start + at_once]
        boxes = boxed(setting.values, 1) | along_rows(setting, v, 1, 0, rows)
        found = enclose(graphs, boxes, setting.sizes, 1, known=front, live=live)
        for node, graph in zip(nodes, graphs, strict=True):
            shape = (len(rows), *concrete(node.shape, setting.sizes))
            own = found[graph].each(partial(np.broadcast_to, shape=shape))
            lengths[node].append(np.asarray(up_norm(own.magnitude, 0)))
            if node in parts:
                parts[node].append(own)
    return (
        {node: np.asarray(up_norm(np.stack(own), 0)) for node, own in lengths.items()},
        {node: _joined(own) for node, own in parts.items()},
    )


def _joined(parts: Sequence[Interval]) -> Interval:
    return Interval(np.concatenate([a.lo for a in parts]), np.concatenate([a.hi for a in parts]))


@dataclass(frozen=True, slots=True)
class NodeBounds:
    """Upper bounds over the ball on ‖∇u‖ and on ‖D²u‖ for each element u of a node."""

    slope: Array
    curvature: Array


@dataclass(slots=True)
class BallGraph:
    """The ranges of all nodes over a ball, and bounds on derivatives of those that depend on x."""

    setting: Setting
    radius: float
    centre: CentreGraph
    ranges: dict[Expr, Interval] = field(default_factory=dict)
    curves: dict[Expr, NodeBounds] = field(default_factory=dict)


def ball_graph(setting: Setting, radius: float, centre: CentreGraph) -> BallGraph:
    """Hypothesis and conclusion are those of `enclose`, over the ball instead of a box."""
    run = BallGraph(setting, radius, centre)
    narrower = squared_lengths(centre.order, setting, setting.values, radius)
    with np.errstate(all="ignore"):
        for node in centre.order:
            pause()
            if node not in centre.moving:
                run.ranges[node] = centre.values[node]
            elif isinstance(node, Input):
                box = variable_box(setting, node, radius)
                run.ranges[node] = neutral(node, box, centre.live)
                run.curves[node] = NodeBounds(np.ones(box.shape), np.zeros(box.shape))
            else:
                _put(run, node, narrower.get(node))
    return run


def _put(run: BallGraph, node: Expr, narrower: Interval | None) -> None:
    operands = [run.ranges[o] for o in node.operands]
    own = range_of(node, operands, run.setting.sizes, 0)
    if narrower is not None:
        own = meet(own, narrower)
    if node.dtype != "real":
        run.ranges[node] = own
        return
    at_centre, shape = run.centre.values[node], concrete(node.shape, run.setting.sizes)
    slope, curvature = (_number(one, shape) for one in derivatives_of(node, run))
    length, radius = _number(run.centre.lengths[node], shape), np.asarray(run.radius)
    slope = np.minimum(slope, up_add(length, up_mul(radius, curvature)))
    bent = up_add(length, up_mul(up_mul(np.asarray(0.5), radius), curvature))
    moved = up_mul(radius, np.minimum(slope, bent))
    near = interval(-up_add(-at_centre.lo, moved), up_add(at_centre.hi, moved))
    run.ranges[node] = neutral(node, meet(own, near), run.centre.live)
    live = run.centre.live.get(node)
    if live is not None:
        slope, curvature = np.where(live, slope, 0.0), np.where(live, curvature, 0.0)
    run.curves[node] = NodeBounds(slope, curvature)


def _number(x: Array, shape: tuple[int, ...]) -> Array:
    """`x` broadcast to that shape, with inf in the place of NaN."""
    return np.broadcast_to(np.where(np.isnan(x), inf, x), shape)


@singledispatch
def derivatives_of(node: Expr, run: BallGraph) -> tuple[Array, Array]:
    """Upper bounds on ‖∇u‖ and ‖D²u‖ for the elements of a node; +inf without a rule."""
    return np.asarray(inf), np.asarray(inf)


@derivatives_of.register(Gather)
@derivatives_of.register(Reshape)
@derivatives_of.register(Scatter)
def _(node: Gather | Reshape | Scatter, run: BallGraph) -> tuple[Array, Array]:
    index = () if isinstance(node, Reshape) else tables(node.index)
    known = [point(run.setting.tables[one]) for one in index]
    own = run.curves[node.operands[0]]
    slope, curvature = (
        range_of(node, [up_to(x), *known], run.setting.sizes, 0).hi
        for x in (own.slope, own.curvature)
    )
    return slope, curvature


@derivatives_of.register
def _(node: Einsum, run: BallGraph) -> tuple[Array, Array]:
    varying = [k for k, o in enumerate(node.operands) if o in run.curves]
    if len(varying) > _MOST_FACTORS:
        return np.asarray(inf), np.asarray(inf)
    sizes = [up_to(run.ranges[o].magnitude) for o in node.operands]
    dims = concrete(node.dims, run.setting.sizes)
    curves = {k: run.curves[node.operands[k]] for k in varying}

    def product(changed: Mapping[int, Array]) -> Array:
        factors = [up_to(changed[k]) if k in changed else size for k, size in enumerate(sizes)]
        return contract(list(zip(factors, node.inputs, strict=True)), node.output, dims).hi

    slope = [product({k: curves[k].slope}) for k in varying]
    known = run.centre.incidence
    reads = {k: own for k in varying if (own := known.get(node.operands[k])) is not None}

    def parts(changed: Mapping[int, Array]) -> list[tuple[Array, Axes]]:
        factors = [changed.get(k, size.hi) for k, size in enumerate(sizes)]
        return list(zip(factors, node.inputs, strict=True))

    curvature = []
    for k in (k for k in varying if curves[k].curvature.any()):
        own = product({k: curves[k].curvature})
        if k in reads:
            own = np.minimum(own, by_unknown(parts({k: curves[k].curvature}), k, reads[k], node))
        curvature.append(own)
    for k, j in combinations(varying, 2):
        slopes = {k: curves[k].slope, j: curves[j].slope}
        both = product(slopes)
        if k in reads and j in reads:
            grams = by_grams(parts(slopes), (k, j), (reads[k], reads[j]), node)
            both = both if grams is None else np.minimum(both, grams)
        curvature.append(up_mul(np.asarray(2.0), both))
    return upper_sum(slope), upper_sum(curvature)


@derivatives_of.register
def _(node: Map, run: BallGraph) -> tuple[Array, Array]:
    function = node.function
    if function is same:
        own = run.curves[node.operands[0]]
        return laid(own.slope, node, 0), laid(own.curvature, node, 0)
    ranges = [laid_interval(run.ranges[o], node, k) for k, o in enumerate(node.operands)]
    curves = {
        k: NodeBounds(laid(curve.slope, node, k), laid(curve.curvature, node, k))
        for k, o in enumerate(node.operands)
        if (curve := run.curves.get(o)) is not None
    }
    if function is table.where:
        return _of_choice(ranges[0], curves)
    if function.result != "real" or "bool" in function.operand_types:
        return np.asarray(inf), np.asarray(inf)
    return _of_function(function, ranges, curves)


def _of_choice(condition: Interval, curves: Mapping[int, NodeBounds]) -> tuple[Array, Array]:
    """Those of the branch that is certainly taken."""
    true, false = condition.lo == 1.0, condition.hi == 0.0
    nothing = np.zeros((1,) * condition.lo.ndim)
    none = NodeBounds(nothing, nothing)
    first, second = curves.get(1, none), curves.get(2, none)

    def chosen(a: Array, b: Array) -> Array:
        return np.where(true, a, np.where(false, b, inf))

    return chosen(first.slope, second.slope), chosen(first.curvature, second.curvature)


def _of_function(
    function: ScalarFunction, ranges: list[Interval], curves: Mapping[int, NodeBounds]
) -> tuple[Array, Array]:
    arity = len(ranges)

    def largest(*by: int) -> Array:
        orders = tuple(by.count(k) for k in range(arity))
        return derivative_range(function, orders, *ranges).magnitude

    slopes, curvatures = [], []
    for i, own in curves.items():
        first = largest(i)
        slopes.append(up_mul(first, own.slope))
        if own.curvature.any():
            curvatures.append(up_mul(first, own.curvature))
        for j in (k for k in curves if k >= i):
            second = largest(i, j)
            if second.any():
                both = up_mul(second, up_mul(own.slope, curves[j].slope))
                curvatures.append(both if i == j else up_mul(np.asarray(2.0), both))
    smooth = ~outside(function, *ranges) & (order_near(function, *ranges) >= 1)
    slope, curvature = (np.where(smooth, upper_sum(one), inf) for one in (slopes, curvatures))
    return slope, curvature


def upper_sum(terms: list[Array]) -> Array:
    """Upper bounds on the elementwise sum of arrays."""
    result = np.zeros(())
    for term in terms:
        result = np.asarray(up_add(result, term))
    return result


def up_to(x: Array) -> Interval:
    """The interval [0, x] for x >= 0, elementwise."""
    return Interval(np.zeros(x.shape), np.asarray(x))


def laid(array: Array, node: Map, k: int) -> Array:
    """Operand k of a node, with axes of length 1 where the node has axes that it lacks."""
    missing = tuple(axis for axis in range(node.rank) if axis not in node.axes[k])
    return np.expand_dims(array, missing)


def laid_interval(a: Interval, node: Map, k: int) -> Interval:
    """Like `laid`, of both ends."""
    return a.each(lambda array: laid(array, node, k))
