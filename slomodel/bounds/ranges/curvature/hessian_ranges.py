"""Ranges over a ball of the nodes under an objective, from norms of their Hessians.

For each element u of a node let l = ‖∇u(c)‖, and over the ball of radius ρ let m >= sup ‖∇u‖ and
h >= sup ‖D²u‖. By Taylor's theorem

    |u(c + d) - u(c)| <= ρ l + ρ² h / 2,   ‖∇u(c + d) - ∇u(c)‖ <= ρ h,   m <= l + ρ h.

Linear nodes are applied to m and h by their magnitudes; φ of operands u_i has, over their ranges,

    ‖D²φ(u)‖ <= Σ_i sup|φ_i| h_i + Σ_ij sup|φ_ij| m_i m_j,

and products follow with Π|u| in place of φ's derivatives. For F = log Σ exp u, ∇F is the mean
of the ∇u_j with the weights at x, and D²F that of the D²u_j plus the covariance of the ∇u_j. Over
another region K, ‖∇u‖ and ‖D²u‖ are replaced by the largest ∇u·y and D²u[y, y'] for y and y' in K,
or for one of them of length 1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from itertools import combinations
from math import inf
from types import MappingProxyType
from typing import Protocol, TypeGuard

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, from_zero, meet, point
from slomodel.bounds.arithmetic.interval_einsum import contract
from slomodel.bounds.arithmetic.rounding import (
    Array,
    Truths,
    down_mul,
    down_sqrt,
    up_add,
    up_div,
    up_mul,
    up_sqrt,
    up_total,
)
from slomodel.bounds.ball import Displacements
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.affine_norms import squared_lengths
from slomodel.bounds.ranges.curvature.array_shifts import ArrayShifts
from slomodel.bounds.ranges.curvature.centre_graph import CentreGraph, given_weights
from slomodel.bounds.ranges.curvature.incidence import by_grams, by_unknown
from slomodel.bounds.ranges.curvature.log_sum_exp import (
    SummedClasses,
    largest_mean,
    largest_spread,
    weights_within,
)
from slomodel.bounds.ranges.curvature.slopes import Forms, NodeBounds, numbers, slopes_of
from slomodel.bounds.ranges.curvature.vectors import Vector, VectorBounds, Vectors
from slomodel.bounds.ranges.derivatives import derivative_range
from slomodel.bounds.ranges.enclose import aligned_interval, range_of
from slomodel.bounds.ranges.kinks import order_near, outside
from slomodel.bounds.ranges.liveness import neutral
from slomodel.bounds.stopping import pause
from slomodel.functions.compound import same
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Axes, Einsum, Expr, Gather, Input, Map, Reshape, Scatter, tables
from slomodel.ir.function import ScalarFunction
from slomodel.reference import aligned

MOST_FACTORS = 4
"""Largest number of variable factors: more give over 11 remainder terms, and use the interval."""
_NOT_POSITIVE = Interval(np.asarray(-inf), np.asarray(0.0))


_Of = Mapping[Expr, Forms]


class SecondOrder(Protocol):
    """What the second derivatives of a node are bounded from, beside those of its operands.

    First derivatives are taken over `steep`, second ones over `ranges`.
    """

    @property
    def part(self) -> ObjectivePart: ...

    @property
    def ranges(self) -> Mapping[Expr, Interval]: ...

    @property
    def steep(self) -> Mapping[Expr, Interval]: ...

    @property
    def has_slopes(self) -> bool:
        """Whether ∇u is known otherwise and 0 is returned in its place."""
        ...

    def reads(self, known: _Of) -> Mapping[Expr, Truths]:
        """Which unknowns occur in elements, where vectors in both places are of length 1."""
        ...

    def is_mixed(self, known: _Of) -> bool:
        """Whether the bounds on ∇u differ by the place."""
        ...


@dataclass(slots=True)
class BallGraph:
    """The ranges of all nodes over a region, and bounds on derivatives of those that depend on x.

    `forms` holds the bounds of `curves` by the places of D²u: two vectors of length 1; one in K;
    both in K. Over a ball the first suffice. `weights` are those of the nodes log Σ exp u over the
    region, of u's shape; `distances` are those of matrices from the identity.
    """

    part: ObjectivePart
    region: Displacements
    centre: CentreGraph
    ranges: dict[Expr, Interval] = field(default_factory=dict)
    curves: dict[Expr, NodeBounds] = field(default_factory=dict)
    forms: tuple[dict[Expr, Forms], ...] = field(default_factory=lambda: ({}, {}, {}))
    weights: dict[Expr, Interval] = field(default_factory=dict)
    distances: dict[Expr, Array] = field(default_factory=dict)
    lengths: dict[Expr, float] = field(default_factory=dict)
    vector_bounds: dict[Vector, VectorBounds] = field(default_factory=dict)

    @property
    def vectors(self) -> Vectors:
        """Arrays of elements as vectors; kept in `vector_bounds`."""
        own = self.part, self.region.radius, self.ranges, self.forms[0], self.centre
        return Vectors(*own, self.vector_bounds)

    @property
    def steep(self) -> Mapping[Expr, Interval]:
        return self.ranges

    @property
    def has_slopes(self) -> bool:
        return False

    def reads(self, known: _Of) -> Mapping[Expr, Truths]:
        return self.centre.incidence if known is self.forms[0] else {}

    def is_mixed(self, known: _Of) -> bool:
        return known is self.forms[1]

    @property
    def shifts(self) -> ArrayShifts:
        """How far whole arrays move, once all ranges are known; kept in `lengths`."""
        for variable in self.part.variables:
            self.lengths.setdefault(variable, self.region.radius)
        return ArrayShifts(self.part, self.ranges, self.centre.values, self.lengths)

    def put(self, node: Expr, own: NodeBounds) -> None:
        """Store the bounds of a node."""
        self.curves[node] = own
        self.forms[0][node] = Forms(own.slope, own.slope, own.curvature)
        if not self.region.is_ball:
            self.forms[1][node] = Forms(own.reach, own.slope, own.turn)
            self.forms[2][node] = Forms(own.reach, own.reach, own.bend)


def ball_graph(part: ObjectivePart, radius: float, centre: CentreGraph) -> BallGraph:
    """`region_graph` over a ball, where more is known of ranges of Σ u² for affine u."""
    narrower = squared_lengths(centre.order, part, part.values, radius)
    region = Displacements.ball(part.n, radius)
    return region_graph(part, region, centre, part.values, narrower)


def region_graph(
    part: ObjectivePart,
    region: Displacements,
    centre: CentreGraph,
    values: Mapping[Input, Array],
    narrower: Mapping[Expr, Interval] = MappingProxyType({}),
) -> BallGraph:
    """Hypothesis and conclusion are those of `enclose`, over the part of a region within limits.

    That part is convex and contains the point that the region surrounds.
    """
    run = BallGraph(part, region, centre)
    with np.errstate(all="ignore"):
        for variable, width in part.by_variable(region.widths).items():
            at = values[variable]
            box = Interval(-up_add(-at, width), up_add(at, width))
            if variable in part.limits:
                box = meet(box, part.limits[variable])
            run.ranges[variable] = neutral(variable, box, centre.live)
            none = np.zeros(at.shape)
            run.put(variable, NodeBounds(np.ones(at.shape), width, none, none, none))
        for node in centre.order:
            pause()
            if node in run.ranges:
                continue
            if node not in centre.varying:
                run.ranges[node] = centre.values[node]
            else:
                _put(run, node, narrower.get(node))
    return run


def slopes_over(run: BallGraph, wanted: Collection[Expr]) -> dict[Expr, Interval]:
    """∇u (n, *shape) of the wanted nodes over the region."""
    means, part = run.centre.means, run.part
    weights = {node: one.weights for node, one in run.centre.apart.items()}
    given = given_weights(run.centre, run.weights, weights)
    ranges = {made: run.ranges[node] for node, made in means.items() if node in run.ranges}
    made = [means[node] for node in wanted]
    everywhere = Displacements.ball(part.n, 1.0)
    result = slopes_of(part, made, made, ranges, everywhere, given)[2]
    return {node: result[means[node]] for node in wanted}


def _put(run: BallGraph, node: Expr, narrower: Interval | None) -> None:
    operands = [run.ranges[o] for o in node.operands]
    own = range_of(node, operands, run.part.sizes, 0)
    if is_sum_of_squares(node) and node.operands[0] in run.curves:
        own = meet(own, _squared_norm(run, node))
    if node in run.centre.inner:
        run.ranges[node] = neutral(node, own, run.centre.live)
        return
    if narrower is not None:
        own = meet(own, narrower)
    closer = run.vectors.range_of(node)
    if closer is not None:
        own = meet(own, closer)
    if node in run.centre.at_most_0:
        own = meet(own, _NOT_POSITIVE)
    if node in run.centre.log_sums:
        run.weights[node] = _weights_over(run, node)
    if node.dtype != "real":
        run.ranges[node] = own
        return
    result = _bounds_of(run, node)
    at_centre = run.centre.values[node]
    half = up_mul(np.asarray(0.5), result.bend)
    moved = np.minimum(result.reach, up_add(_reach_at_centre(run, node), half))
    run.ranges[node] = neutral(node, meet(own, at_centre.widened(moved)), run.centre.live)
    live = run.centre.live.get(node)
    if live is not None:
        arrays = (result.slope, result.reach, result.curvature, result.turn, result.bend)
        result = NodeBounds(*(np.where(live, array, 0.0) for array in arrays))
    run.put(node, result)


def is_sum_of_squares(node: Expr) -> TypeGuard[Einsum]:
    """Whether a node is Σ u² of the elements of one node u."""
    return (
        isinstance(node, Einsum)
        and len(node.operands) == 2
        and node.operands[0] is node.operands[1]
        and node.inputs[0] == node.inputs[1]
        and len(set(node.inputs[0])) == len(node.inputs[0])
        and len(set(node.output)) == len(node.output)
    )


def _squared_norm(run: BallGraph, node: Einsum) -> Interval:
    """A lower bound on q = Σ u², by the component along u(c).

    ‖u‖ >= y·u for y = u(c)/‖u(c)‖, y·∇u(c) = ∇q(c)/(2‖u(c)‖), and u differs from u(c) + ∇u(c)·d by
    at most half of D²u[d, d]. Elementwise ranges let all elements fall at once.
    """
    u, sizes = node.operands[0], run.part.sizes
    shape, dims = concrete(node.shape, sizes), concrete(node.dims, sizes)
    at_centre = numbers(run.centre.values[node].lo, shape)
    bends = [from_zero(run.centre.values[u].magnitude), from_zero(run.curves[u].bend)]
    bend = contract([(one, node.inputs[0]) for one in bends], node.output, dims).hi
    moved = up_add(_reach_at_centre(run, node), numbers(bend, shape))
    least = down_sqrt(np.maximum(at_centre, 0.0))
    with np.errstate(all="ignore"):
        fall = up_mul(np.asarray(0.5), up_div(moved, least))
        low = np.where(least > 0.0, np.maximum(-up_add(-least, fall), 0.0), 0.0)
    low = np.where(np.isnan(low), 0.0, down_mul(low, low))
    return Interval(np.maximum(low, 0.0), np.full(shape, inf))


def _reach_at_centre(run: BallGraph, node: Expr) -> Array:
    shape = concrete(node.shape, run.part.sizes)
    if run.region.is_ball:
        length = numbers(run.centre.lengths[node], shape)
        return np.asarray(up_mul(np.asarray(run.region.radius), length))
    return numbers(run.centre.reaches[node], shape)


def _bounds_of(run: BallGraph, node: Expr) -> NodeBounds:
    shape, radius = concrete(node.shape, run.part.sizes), np.asarray(run.region.radius)
    length, start = numbers(run.centre.lengths[node], shape), _reach_at_centre(run, node)
    slope, curvature = (numbers(a, shape) for a in _derivatives(node, run, run.forms[0]))
    closer = run.vectors.elements_of(node)
    if closer is not None:
        slope, curvature = (
            np.minimum(a, b) for a, b in zip((slope, curvature), closer, strict=True)
        )
    turn = np.asarray(up_mul(radius, curvature))
    if run.region.is_ball:
        slope = np.minimum(slope, up_add(length, turn))
        reach = np.asarray(up_mul(radius, slope))
        return NodeBounds(slope, reach, curvature, turn, np.asarray(up_mul(radius, turn)))
    reach, own = (numbers(a, shape) for a in _derivatives(node, run, run.forms[1]))
    turn = np.minimum(turn, own)
    _, bend = (numbers(a, shape) for a in _derivatives(node, run, run.forms[2]))
    bend = np.minimum(bend, up_mul(radius, turn))
    slope = np.minimum(slope, up_add(length, turn))
    reach = np.minimum(np.minimum(reach, up_mul(radius, slope)), up_add(start, bend))
    return NodeBounds(slope, reach, curvature, turn, bend)


def _derivatives(node: Expr, run: BallGraph, known: _Of) -> tuple[Array, Array]:
    if node in run.centre.log_sums:
        return _of_log_sum(node, run, known)
    return derivatives_of(node, run, known)


@singledispatch
def derivatives_of(node: Expr, run: SecondOrder, known: _Of) -> tuple[Array, Array]:
    """Bounds on ∇u in the first place and on D²u for the elements of a node; inf without a rule."""
    return np.asarray(inf), np.asarray(inf)


@derivatives_of.register(Gather)
@derivatives_of.register(Reshape)
@derivatives_of.register(Scatter)
def _(node: Gather | Reshape | Scatter, run: SecondOrder, known: _Of) -> tuple[Array, Array]:
    index = () if isinstance(node, Reshape) else tables(node.index)
    own_tables = [point(run.part.tables[one]) for one in index]
    own = known[node.operands[0]]
    slope, curvature = (
        range_of(node, [from_zero(x), *own_tables], run.part.sizes, 0).hi
        for x in (own.first, own.curvature)
    )
    return slope, curvature


@derivatives_of.register
def _(node: Einsum, run: SecondOrder, known: _Of) -> tuple[Array, Array]:
    varying = [k for k, o in enumerate(node.operands) if o in known]
    if len(varying) > MOST_FACTORS:
        return np.asarray(inf), np.asarray(inf)
    over, steep = (
        [from_zero(a[o].magnitude) for o in node.operands] for a in (run.ranges, run.steep)
    )
    dims = concrete(node.dims, run.part.sizes)
    curves = {k: known[node.operands[k]] for k in varying}

    def product(changed: Mapping[int, Array], sizes: Sequence[Interval]) -> Array:
        factors = [from_zero(changed[k]) if k in changed else size for k, size in enumerate(sizes)]
        return contract(list(zip(factors, node.inputs, strict=True)), node.output, dims).hi

    slope = [] if run.has_slopes else [product({k: curves[k].first}, steep) for k in varying]
    result = {k: run.reads(known).get(node.operands[k]) for k in varying}
    reads = {k: own for k, own in result.items() if own is not None}

    def parts(changed: Mapping[int, Array]) -> list[tuple[Array, Axes]]:
        factors = [changed.get(k, size.hi) for k, size in enumerate(over)]
        return list(zip(factors, node.inputs, strict=True))

    curvature = []
    for k in (k for k in varying if curves[k].curvature.any()):
        own = product({k: curves[k].curvature}, steep)
        if k in reads:
            own = np.minimum(own, by_unknown(parts({k: curves[k].curvature}), k, reads[k], node))
        curvature.append(own)
    for k, j in combinations(varying, 2):
        slopes = {k: curves[k].first, j: curves[j].second}
        both, twice = product(slopes, over), {k: curves[k].second, j: curves[j].first}
        if k in reads and j in reads:
            grams = by_grams(parts(slopes), (k, j), (reads[k], reads[j]), node)
            both = both if grams is None else np.minimum(both, grams)
        curvature += [both, product(twice, over) if run.is_mixed(known) else both]
    return up_total(slope), up_total(curvature)


@derivatives_of.register
def _(node: Map, run: SecondOrder, known: _Of) -> tuple[Array, Array]:
    function = node.function
    if function is same:
        only = known.get(node.operands[0])
        if only is None:
            return np.zeros(()), np.zeros(())
        first, curvature = (
            aligned(a, node.axes[0], node.rank) for a in (only.first, only.curvature)
        )
        return first, curvature
    ranges, steep = (
        [aligned_interval(a[o], node, k) for k, o in enumerate(node.operands)]
        for a in (run.ranges, run.steep)
    )
    curves = {
        k: Forms(
            *(aligned(a, node.axes[k], node.rank) for a in (own.first, own.second, own.curvature))
        )
        for k, o in enumerate(node.operands)
        if (own := known.get(o)) is not None
    }
    if function is table.where:
        return _of_choice(ranges[0], curves)
    if function.result != "real" or "bool" in function.operand_types:
        return np.asarray(inf), np.asarray(inf)
    return _of_function(function, ranges, steep, curves, run.has_slopes)


def _weights_over(run: BallGraph, node: Expr) -> Interval:
    """The weights of log Σ exp u over the region."""
    term, apart = run.centre.log_sums[node].term, run.centre.apart[node]
    samples = SummedClasses.of(term.u, term.summed, run.part.sizes)
    reach = apart.reaches
    if reach is None:
        reach = np.asarray(up_mul(np.asarray(run.region.radius), apart.lengths))
    return weights_within(samples, apart.weights, reach, run.curves[term.u].bend)


def _of_log_sum(node: Expr, run: BallGraph, known: _Of) -> tuple[Array, Array]:
    """The mean of the bounds of u, and that of its curvatures plus a covariance."""
    term, apart = run.centre.log_sums[node].term, run.centre.apart[node]
    samples = SummedClasses.of(term.u, term.summed, run.part.sizes)
    most, own = samples.rows(run.weights[node].hi), run.curves[term.u]
    variance = largest_spread(most, samples.rows(up_add(apart.lengths, own.turn)))
    if known is not run.forms[0]:
        assert apart.reaches is not None
        along = largest_spread(most, samples.rows(up_add(apart.reaches, own.bend)))
        variance = along if known is run.forms[2] else up_sqrt(up_mul(variance, along))
    by_slope = largest_mean(most, samples.rows(up_mul(known[term.u].first, known[term.u].second)))
    variance = np.minimum(variance, by_slope)
    slope = largest_mean(most, samples.rows(known[term.u].first))
    curvature = up_add(largest_mean(most, samples.rows(known[term.u].curvature)), variance)
    return samples.sums(slope), samples.sums(curvature)


def _of_choice(condition: Interval, curves: Mapping[int, Forms]) -> tuple[Array, Array]:
    """The slope and curvature of the branch that is certainly taken."""
    true, false = condition.lo == 1.0, condition.hi == 0.0
    nothing = np.zeros((1,) * condition.lo.ndim)
    none = Forms(nothing, nothing, nothing)
    first, second = curves.get(1, none), curves.get(2, none)

    def chosen(a: Array, b: Array) -> Array:
        return np.where(true, a, np.where(false, b, inf))

    return chosen(first.first, second.first), chosen(first.curvature, second.curvature)


def _of_function(
    function: ScalarFunction,
    ranges: list[Interval],
    steep: list[Interval],
    curves: Mapping[int, Forms],
    has_slopes: bool,
) -> tuple[Array, Array]:
    """Σ |φ_i| and Σ |φ_i| ‖D²u_i‖ + Σ |φ_ij| ‖∇u_i‖‖∇u_j‖, where φ is C¹ and piecewise C²."""
    arity = len(ranges)

    def largest(at: list[Interval], *by: int) -> Array:
        orders = tuple(by.count(k) for k in range(arity))
        return derivative_range(function, orders, *at).magnitude

    slopes, curvatures = [], []
    for i, own in curves.items():
        bends = bool(own.curvature.any())
        if bends or not has_slopes:
            first = largest(steep, i)
            slopes.append(up_mul(first, own.first))
        if bends:
            curvatures.append(up_mul(first, own.curvature))
        for j in (k for k in curves if k >= i):
            second = largest(ranges, i, j)
            if second.any():
                other = curves[j]
                curvatures.append(up_mul(second, up_mul(own.first, other.second)))
                if i != j:
                    curvatures.append(up_mul(second, up_mul(own.second, other.first)))
    smooth = ~outside(function, *ranges) & (order_near(function, *ranges) >= 1)
    slope, curvature = (np.where(smooth, up_total(one), inf) for one in (slopes, curvatures))
    return slope, curvature
