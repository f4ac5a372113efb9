"""The derivatives of every node over a ball, from the variables to the objective.

Nodes that no loop is under also have the bounds of `hessian_ranges`, and slopes at the centre.
Loops are executed step by step on bounds in place of numbers. What is under log Σ exp is not
looked at: the sum is a rule of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, meet, point
from slomodel.bounds.arithmetic.rounding import Array, Truths, up_add, up_mul, up_norm
from slomodel.bounds.effort import MOST_NUMBERS
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.curvature.centre_graph import CentreGraph, centre_graph
from slomodel.bounds.ranges.curvature.hessian_ranges import BallGraph, ball_graph
from slomodel.bounds.ranges.derivative_norms.averages import log_sum, spread_of
from slomodel.bounds.ranges.derivative_norms.node_norms import (
    NodeNorms,
    Spread,
    at_step,
    stacked,
    sum_of,
)
from slomodel.bounds.ranges.derivative_norms.node_rules import norms_of, slopes_at_centre
from slomodel.bounds.ranges.enclose import boxed, enclose, range_of
from slomodel.bounds.stopping import pause
from slomodel.bounds.structure.curved_terms import varying_nodes
from slomodel.bounds.structure.log_sum_exp import log_sum_operand
from slomodel.functions.compound import same, stop_gradient
from slomodel.ir import build
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Axes, Einsum, Expr, Input, Map, Recur, Scan, is_map
from slomodel.ir.loop import SliceAt, StateAt
from slomodel.ir.walk import dependents, postorder

_WITHOUT_RANGES = {table.add, table.sub, table.neg, table.logaddexp, table.softplus, same}
"""Functions whose rule needs no range of their operands."""


@dataclass(frozen=True, slots=True, eq=False)
class _NodesRead:
    """Which nodes of a graph are looked at, and which of them have ranges.

    `sums` are the nodes log Σ exp u with u and the axes; `varying` nodes depend on x.
    """

    order: tuple[Expr, ...]
    sums: Mapping[Expr, tuple[Expr, Axes]]
    varying: frozenset[Expr]
    ranged: frozenset[Expr]


def _nodes_read(roots: Sequence[Expr], sources: Collection[Expr], has_ranges: bool) -> _NodesRead:
    """The plan for a graph over `sources` that depend on x; `has_ranges`: of all nodes."""
    order = [*postorder(*roots)]
    varying = varying_nodes(order, sources)
    sums = {}
    for node in order:
        if node in varying and (own := log_sum_operand(node, varying)) is not None:
            sums[node] = own
    wanted, ranged = set(roots), set[Expr]()
    for node in reversed(order):
        if node not in wanted:
            continue
        with_range = has_ranges or node in ranged
        if is_map(node, stop_gradient) and not with_range:
            continue
        if node in sums:
            wanted.add(sums[node][0])
            if not with_range:
                continue
        wanted.update(node.operands)
        if with_range or _reads_ranges(node, varying):
            ranged.update(node.operands)
    kept = tuple(node for node in order if node in wanted)
    return _NodesRead(kept, sums, frozenset(varying), frozenset(kept if has_ranges else ranged))


def _reads_ranges(node: Expr, varying: Collection[Expr]) -> bool:
    """Whether the rule of a node needs the ranges of operands that depend on x."""
    own = [k for k, operand in enumerate(node.operands) if operand in varying]
    if isinstance(node, Einsum):
        return len(own) > 1
    if not isinstance(node, Map) or node.function in _WITHOUT_RANGES or not own:
        return False
    if node.function is table.where:
        return 0 in own
    is_scaled = node.function is table.mul or (node.function is table.div and own == [0])
    return not (is_scaled and len(own) == 1)


@dataclass(slots=True)
class _Pass:
    """The bounds of all nodes so far over a ball, where these are not of a loop's body.

    `outer` and `centre` are the ranges, slopes and curvatures of nodes that no loop is under.
    """

    part: ObjectivePart
    radius: float
    centre: CentreGraph
    outer: BallGraph
    known: dict[Expr, NodeNorms]


def norms_over_ball(part: ObjectivePart, radius: float) -> NodeNorms | None:
    """The bounds of the objective; None where it is too large."""
    plan, outside, wanted = _outer(part)
    if outside is None:
        return None
    centre = _centre(part)
    assert centre is not None
    run = _Pass(part, radius, centre, ball_graph(outside, radius, centre), {})
    constants = [node for node in plan.order if node not in plan.varying]
    boxes = boxed(part.values)
    values = enclose(
        [node for node in constants if not is_map(node, stop_gradient)], boxes, part.sizes
    )
    for node in plan.order:
        pause()
        if node in run.known:
            continue
        if node not in plan.varying:
            shape = concrete(node.shape, part.sizes)
            if is_map(node, stop_gradient):
                own = run.centre.values.get(node, point(np.zeros(())))
            else:
                own = values[node]
            value = own.broadcast(shape)
            run.known[node] = NodeNorms.constant(shape, value, value)
        elif isinstance(node, Recur):
            own_states = _states(run, node, [run.known[o] for o in node.operands], plan)
            run.known |= zip(node.states, own_states, strict=True)
        else:
            run.known[node] = _node(run, node, plan, run.known, wanted)
    return run.known[part.objective]


@once_per_part
def _outer(part: ObjectivePart) -> tuple[_NodesRead, ObjectivePart | None, frozenset[Expr]]:
    """The plan, the part whose nodes no loop is under, and those that need slopes."""
    plan = _nodes_read((part.objective,), part.variables, False)
    varying = plan.varying
    loops = dependents(part.order, lambda node: isinstance(node, (Recur, Scan)) and node in varying)
    roots = [part.objective]
    if part.objective in loops:
        read = (operand for node in plan.order if node in loops for operand in node.operands)
        roots = [o for o in dict.fromkeys(read) if o in plan.varying and o not in loops]
        roots = [o for o in roots if o in plan.order and o.dtype == "real"]
    wanted = {u for u, _ in plan.sums.values() if u not in loops}
    wanted |= {root for root in roots if root in loops or root is not part.objective}
    total = part.objective if roots == [part.objective] else build.const(0.0)
    for root in roots if part.objective in loops else ():
        # As operands of a function that is not linear, the nodes themselves stay in the graph.
        axes = tuple(range(root.rank))
        over = Map(table.tanh, (root,), (axes,), root.shape)
        total = table.add(total, build.sum_over(over, axes))
    count = sum(prod(concrete(one.shape, part.sizes)) for one in plan.order)
    if count * part.n > MOST_NUMBERS or not roots:
        return plan, None, frozenset(wanted)
    return plan, replace(part, objective=total), frozenset(wanted)


@once_per_part
def _centre(part: ObjectivePart) -> CentreGraph | None:
    _, own, wanted = _outer(part)
    return None if own is None else centre_graph(own, wanted)


def _node(
    run: _Pass,
    node: Expr,
    plan: _NodesRead,
    known: Mapping[Expr, NodeNorms],
    wanted: Collection[Expr] = (),
) -> NodeNorms:
    """The bounds of one node, with its ranges where these are known or required."""
    part = run.part
    shape = concrete(node.shape, part.sizes)
    outer, range_ = run.outer.curves.get(node), run.outer.ranges.get(node)
    if isinstance(node, Input) or node.dtype != "real":
        result = NodeNorms.constant(shape)
        if outer is not None:
            result = replace(result, is_constant=False)
    elif node in plan.sums:
        result = log_sum(known[plan.sums[node][0]], plan.sums[node][1])
    else:
        result = norms_of(node, [known[o] for o in node.operands], part.sizes)
        result = _known_numbers(result, shape)
    if outer is not None:
        slope, curvature = (np.broadcast_to(a, shape) for a in (outer.slope, outer.curvature))
        if isinstance(node, Input):
            result = replace(result, slope=slope)
        else:
            upper, lower = (np.minimum(end, curvature) for end in result.ends)
            result = replace(result, slope=np.minimum(result.slope, slope), ends=(upper, lower))
        live = run.centre.live.get(node)
        if live is not None:
            result = _where_live(result, live)
        slopes, value = None, run.centre.values[node].broadcast(shape)
        if node in wanted:
            slopes = run.centre.slopes[node].broadcast((part.n, *shape))
        range_ = range_.broadcast(shape) if range_ is not None else None
        return replace(result, slopes=slopes, value=value, range=range_, radius=run.radius)
    is_fixed = all(known[o].is_constant for o in node.operands if o in known)
    if node.operands and is_fixed and node not in plan.sums:
        return _constant(run, node, known)
    if node.dtype == "real" and node not in plan.sums:
        own = slopes_at_centre(node, [known[o] for o in node.operands], part.sizes, part.n)
        result = replace(result, slopes=own)
    if node not in plan.sums:
        values = [known[o].value for o in node.operands]
        result = replace(result, value=_value(node, values, part))
    result = _by_slopes(result, run.radius)
    if node in plan.ranged:
        result = replace(result, range=_range(node, result, known, run))
    return replace(result, radius=run.radius)


def _value(node: Expr, operands: Sequence[Interval | None], part: ObjectivePart) -> Interval | None:
    """The value at the centre, if those of the operands are known."""
    known = [one for one in operands if one is not None]
    if len(known) < len(operands):
        return None
    return range_of(node, known, part.sizes, 0).broadcast(concrete(node.shape, part.sizes))


def _by_slopes(u: NodeNorms, radius: float) -> NodeNorms:
    """The bounds with ‖∇u‖ <= ‖∇u(c)‖ + r sup ‖D²u‖."""
    if u.slopes is None or not u.slopes.lo.size:
        return u
    far = up_add(up_norm(u.slopes.magnitude, 0), up_mul(np.asarray(radius), u.curvature))
    return replace(u, slope=np.where(far < u.slope, far, u.slope))


def _range(
    node: Expr, own: NodeNorms, known: Mapping[Expr, NodeNorms], run: _Pass
) -> Interval | None:
    """The range over the ball, from those of the operands and from the slope."""
    ranges = [one for o in node.operands if (one := known[o].range) is not None]
    result = None
    if len(ranges) == len(node.operands):
        shape = concrete(node.shape, run.part.sizes)
        result = range_of(node, ranges, run.part.sizes, 0).broadcast(shape)
    if node.dtype == "real" and own.value is not None:
        moved = own.value.widened(up_mul(np.asarray(run.radius), own.slope))
        result = moved if result is None else meet(result, moved)
    return result


def _known_numbers(u: NodeNorms, shape: tuple[int, ...]) -> NodeNorms:
    """The bounds with inf in place of NaN, of the whole shape."""

    def view(array: Array) -> Array:
        return np.broadcast_to(np.where(np.isnan(array), np.inf, array), shape)

    upper, lower = map(view, u.ends)
    return replace(u, slope=view(u.slope), ends=(upper, lower), third=view(u.third))


def _where_live(u: NodeNorms, live: Truths) -> NodeNorms:
    """The bounds with 0 for elements that nothing depends on."""

    def view(array: Array) -> Array:
        return np.where(live, array, 0.0)

    upper, lower = map(view, u.ends)
    return replace(u, slope=view(u.slope), ends=(upper, lower), third=view(u.third))


def _states(
    run: _Pass, node: Recur, operands: Sequence[NodeNorms], above: _NodesRead
) -> list[NodeNorms]:
    """The bounds of all states of a loop, executed step by step."""
    loop, sizes = node.loop, run.part.sizes
    length = loop.length.size(sizes)
    has_ranges = not above.ranged.isdisjoint(node.states)
    shapes = [concrete(shape, sizes) for shape in loop.shapes]
    states: list[list[NodeNorms | None]] = [[None] * length for _ in shapes]
    for own, first in zip(states, loop.initial, strict=True):
        if first is not None:
            initial = operands[first]
            for t in range(min(length, len(initial.slope))):
                own[t] = at_step(initial, t)
    moving = [
        one
        for one, source in loop.sources
        if isinstance(source, StateAt) or not operands[source.operand].is_constant
    ]
    bodies = [(update, _nodes_read((update.value,), moving, has_ranges)) for update in loop.updates]
    steps = range(length)
    for t in reversed(steps) if loop.backwards else steps:
        pause()
        for update, plan in bodies:
            if t < update.start.value(sizes):
                continue
            known: dict[Expr, NodeNorms] = {}
            for one, source in loop.sources:
                if isinstance(source, StateAt):
                    state = states[source.state][t + source.shift.value(sizes)]
                    shape = shapes[source.state]
                    known[one] = _zeros(shape) if state is None else state
                elif isinstance(source, SliceAt):
                    known[one] = at_step(operands[source.operand], t + source.shift.value(sizes))
                else:
                    known[one] = operands[source.operand]
            result = _body(run, update.value, plan, known)
            place = t + update.shift.value(sizes)
            before = states[update.state][place]
            states[update.state][place] = result if before is None else sum_of(before, result)
    return [
        _joined([_zeros(shape) if one is None else one for one in own], shape, run.part.n)
        for own, shape in zip(states, shapes, strict=True)
    ]


def _zeros(shape: tuple[int, ...]) -> NodeNorms:
    zero = point(np.zeros(shape))
    return NodeNorms.constant(shape, zero, zero)


def _body(run: _Pass, value: Expr, plan: _NodesRead, known: dict[Expr, NodeNorms]) -> NodeNorms:
    """The bounds of the value of a step."""
    for node in plan.order:
        if node in known:
            continue
        if isinstance(node, Recur) and node in plan.varying:
            own = _states(run, node, [known[o] for o in node.operands], plan)
            known |= zip(node.states, own, strict=True)
        elif node in plan.varying:
            known[node] = _node(run, node, plan, known)
        else:
            known[node] = _constant(run, node, known)
    return replace(known[value], terms=())


def _constant(run: _Pass, node: Expr, known: Mapping[Expr, NodeNorms]) -> NodeNorms:
    """A node of a body that does not depend on x."""
    shape = concrete(node.shape, run.part.sizes)
    values = [known[o].value for o in node.operands if o in known]
    given = [one for one in values if one is not None]
    if is_map(node, stop_gradient):
        return _zeros(shape)  # any one number may stand for it, as nothing depends on its value
    if len(given) < len(node.operands):
        return NodeNorms.constant(shape)
    result = range_of(node, given, run.part.sizes, 0).broadcast(shape)
    return NodeNorms.constant(shape, result, result)


def _joined(parts: list[NodeNorms], shape: tuple[int, ...], n: int) -> NodeNorms:
    """The bounds of a state at all positions."""
    axes = {one.spread.axes for one in parts if one.spread is not None}
    if len(axes) == 1:
        (common,) = axes
        filled = []
        for one in parts:
            if one.spread is None:
                first, second, third = (np.broadcast_to(a, shape) for a in spread_of(one, common))
                one = replace(one, spread=Spread(common, (first, second, third)))
            filled.append(one)
        parts = filled
    result = replace(
        stacked(parts, shape),
        value=_stack([one.value for one in parts], shape),
        range=_stack([one.range for one in parts], shape),
        radius=max((one.radius for one in parts), default=0.0),
    )
    if result.is_constant or n * len(parts) * prod(shape) > MOST_NUMBERS:
        return result
    nothing = point(np.zeros((n, *shape)))
    slopes = [nothing if one.is_constant else one.slopes for one in parts]
    return replace(result, slopes=_stack(slopes, (n, *shape), 1))


def _stack(
    parts: Sequence[Interval | None], shape: tuple[int, ...], axis: int = 0
) -> Interval | None:
    """Intervals of that shape along a new axis; None where one is not known."""
    known = [one.broadcast(shape) for one in parts if one is not None]
    if len(known) < len(parts) or not parts:
        return None
    return Interval(np.stack([a.lo for a in known], axis), np.stack([a.hi for a in known], axis))
