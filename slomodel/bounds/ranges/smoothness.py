"""The order of smoothness of an objective on a box, and the node that limits it.

The graphs of derivatives are those of the pieces. They bound the objective's derivatives only where
the pieces are proved to meet smoothly: on a convex set, a function that is C¹ and piecewise C² has
a gradient with Lipschitz constant sup ‖H‖ over the pieces; one that is C² and piecewise C³ a
Hessian with constant sup ‖D³f‖.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from types import MappingProxyType
from weakref import WeakKeyDictionary

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import down_ulps, up_ulps
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.enclose import aligned_interval, enclose, live_in
from slomodel.bounds.ranges.kinks import Orders, order_near, outside
from slomodel.bounds.ranges.liveness import Live, Sizes
from slomodel.calculus.kinked_products import KinkedPower, KinkedProducts
from slomodel.calculus.piecewise import continuity_order
from slomodel.errors import Span
from slomodel.functions.compound import stop_gradient
from slomodel.ir.expr import Einsum, Expr, Extreme, Input, Map, Recur
from slomodel.ir.function import ANALYTIC
from slomodel.ir.recur import bodies
from slomodel.ir.walk import postorder
from slomodel.reference import aligned

OUTSIDE = -2
"""Order of a node that is undefined somewhere in the box."""


@dataclass(frozen=True, slots=True)
class Smoothness:
    """The objective is `order` times continuously differentiable on each box of a batch (cells,).

    -1: it may jump; `OUTSIDE`: it may be undefined. `reason` names the first node responsible.
    """

    order: Orders
    reason: str = ""

    @property
    def least(self) -> int:
        """The order on all boxes."""
        return int(np.min(self.order, initial=ANALYTIC))


def roughest(every: Iterable[Smoothness]) -> Smoothness:
    """The least order of several, with the reason of the first that has it."""
    return min(every, key=lambda one: one.least, default=Smoothness(np.asarray(ANALYTIC)))


@dataclass(slots=True)
class Walk:
    """The state of a walk over the graph: intervals, orders and products of nodes.

    `deciding` are the nodes that a choice depends on.
    """

    ranges: Mapping[Expr, Interval]
    batch: int
    live: Live = field(default_factory=dict)
    sizes: Sizes = field(default_factory=dict)
    varying: set[Expr] = field(default_factory=set)
    deciding: set[Expr] = field(default_factory=set)
    orders: dict[Expr, Orders] = field(default_factory=dict)
    products: KinkedProducts = field(init=False)

    def __post_init__(self) -> None:
        self.products = KinkedProducts(self.varying)

    def put(self, node: Expr, orders: Orders) -> None:
        """Store the orders of a node's elements; dead ones count as analytic."""
        orders = np.broadcast_to(orders, self.ranges[node].shape)
        live = self.live.get(node)
        self.orders[node] = orders if live is None else np.where(live, orders, ANALYTIC)

    def least(self, node: Expr) -> Orders:
        """The least order of a node's elements, per cell."""
        orders = self.orders[node]
        axes = tuple(range(self.batch, orders.ndim))
        return np.asarray(np.min(orders, axis=axes, initial=ANALYTIC))

    def of_product(self, powers: Sequence[KinkedPower]) -> Orders:
        """The order (cells,) of a product of powers of nodes: the least over its elements."""
        orders = [np.minimum(self.least(power.base), power.order) for power in powers]
        return np.asarray(np.minimum.reduce(np.broadcast_arrays(*orders)))


def smoothness(
    objective: Expr,
    ranges: Mapping[Expr, Interval],
    batch: int = 0,
    spans: Mapping[Expr, Span] | None = None,
    live: Live | None = None,
    sizes: Sizes = MappingProxyType({}),
) -> Smoothness:
    """The smoothness of a scalar over boxes, from the intervals of its nodes there.

    `live` holds the elements that it depends on, for nodes with dead elements; `sizes` the dims of
    recurrences.
    """
    walk = Walk(ranges, batch, live or {}, sizes)
    _pass_over(postorder(objective), walk)
    order = walk.least(objective)
    return Smoothness(order, _reason(objective, walk, order, spans or {}))


def smoothness_in(
    part: ObjectivePart, ranges: Mapping[Expr, Interval], batch: int = 0
) -> Smoothness:
    """The smoothness of a part's objective."""
    live = live_in(part)
    return smoothness(part.objective, ranges, batch, part.spans, live, part.sizes)


def _pass_over(order: Sequence[Expr], walk: Walk) -> None:
    """Store the orders of all nodes of a postorder that have none yet."""
    walk.deciding.update(postorder(*_conditions(order)))
    for node in order:
        if node in walk.orders:
            continue
        if isinstance(node, Input):
            if node.role == "variable":
                walk.varying.add(node)
        elif any(o in walk.varying for o in node.operands) and not _is_constant(node):
            walk.varying.add(node)
        if node in walk.varying and not isinstance(node, Input):
            walk.put(node, order_of(node, walk))
        else:
            walk.put(node, np.asarray(ANALYTIC))


def _conditions(order: Sequence[Expr]) -> list[Expr]:
    choices = [one for one in order if isinstance(one, Map) and one.function is table.where]
    return [choice.operands[0] for choice in choices]


def _is_constant(node: Expr) -> bool:
    return isinstance(node, Map) and node.function is stop_gradient


@singledispatch
def order_of(node: Expr, walk: Walk) -> Orders:
    """The order of a node's elements (batch axes and its shape, or broadcastable to it)."""
    orders = [walk.least(operand) for operand in node.operands]
    least = np.minimum.reduce(np.broadcast_arrays(*orders))
    return np.asarray(least.reshape(least.shape + (1,) * node.rank))


@order_of.register
def _(node: Einsum, walk: Walk) -> Orders:
    """Factors with the same labels form one elementwise product."""
    groups = []
    for operands, powers in walk.products.groups(node):
        orders = [walk.least(operand) for operand in operands]
        least = np.minimum.reduce(np.broadcast_arrays(*orders))
        groups.append(np.maximum(least, walk.of_product(powers)) if powers else least)
    least = np.minimum.reduce(np.broadcast_arrays(*groups))
    return np.asarray(least.reshape(least.shape + (1,) * node.rank))


@order_of.register
def _(node: Extreme, walk: Walk) -> Orders:
    """As smooth as its operand where one element certainly is the extreme one, else with a kink."""
    a = walk.ranges[node.operands[0]]
    axes = tuple(walk.batch + axis for axis in node.axes)
    rest = tuple(k for k in range(a.lo.ndim) if k not in axes)
    order = (*rest, *axes)
    flat = tuple(a.shape[k] for k in rest)
    low, high = (a.lo, a.hi) if node.which == "max" else (-a.hi, -a.lo)
    lows = down_ulps(np.transpose(low, order).reshape((*flat, -1)))
    highs = np.sort(up_ulps(np.transpose(high, order).reshape((*flat, -1))), axis=-1)
    alone = np.ones(flat, dtype=bool)
    if lows.shape[-1] > 1:
        alone = np.asarray(np.max(lows, axis=-1) > highs[..., -2])
    least = walk.least(node.operands[0])
    least = least.reshape(least.shape + (1,) * node.rank)
    return np.asarray(np.where(alone, least, np.minimum(least, 0)))


@order_of.register
def _(node: Map, walk: Walk) -> Orders:
    operands = [
        aligned_interval(walk.ranges[o], node, k, walk.batch) for k, o in enumerate(node.operands)
    ]
    orders = [
        aligned(walk.orders[o], axes, node.rank, walk.batch)
        for o, axes in zip(node.operands, node.axes, strict=True)
    ]
    if node.function is table.where:
        return _choice(node, operands[0], orders, walk)
    result = np.minimum.reduce(np.broadcast_arrays(*orders))
    result = np.minimum(result, order_near(node.function, *operands))
    powers = walk.products.powers(node)
    if powers:
        product = walk.of_product(powers)
        result = np.maximum(result, product.reshape(product.shape + (1,) * node.rank))
    # Beyond the edge of a domain derivatives do not reveal a choice, which takes the other branch.
    left = outside(node.function, *operands, exactly=node in walk.deciding)
    return np.where(left, OUTSIDE, result)


@order_of.register
def _(node: Recur, walk: Walk) -> Orders:
    """A composition of the body with itself: as smooth as the body at the states of all steps."""
    least = np.minimum.reduce(np.broadcast_arrays(*(walk.least(o) for o in node.operands)))
    values = bodies(node)
    result = enclose(values, {}, walk.sizes, walk.batch, known=walk.ranges)
    order = postorder(*values)
    of_body = Walk(result, walk.batch, walk.live, walk.sizes)
    of_body.orders.update(walk.orders)
    of_body.varying |= {*walk.varying, *node.states}
    of_body.deciding |= walk.deciding
    for state in node.states:
        of_body.put(state, np.asarray(ANALYTIC))
    _pass_over(order, of_body)
    least = np.minimum.reduce(
        np.broadcast_arrays(least, *(of_body.least(value) for value in values))
    )
    return np.asarray(least.reshape(least.shape + (1,) * node.rank))


def _choice(node: Map, condition: Interval, orders: list[Orders], walk: Walk) -> Orders:
    """The branch that is certainly taken; where both may be, the proved order of their joint."""
    true, false = condition.lo == 1.0, condition.hi == 0.0
    if node.operands[0] not in walk.varying:
        # The branch taken is fixed, though possibly unknown to this walk.
        return np.where(true, orders[1], np.where(false, orders[2], np.minimum(*orders[1:])))
    either = np.minimum(*np.broadcast_arrays(*orders[1:]))
    if not (true | false).all():
        either = np.minimum(either, _join(node, walk.varying))
    # The compared values may jump from one side to the other, skipping equality.
    either = np.where(orders[0] < 0, np.minimum(either, -1), either)
    result = np.where(true, orders[1], np.where(false, orders[2], either))
    # A comparison with an undefined value is false, so that the choice may jump there. Intervals
    # do not show that: a choice that another one depends on may lack values in them.
    least = OUTSIDE if node in walk.deciding else -1
    return np.where(orders[0] == OUTSIDE, np.minimum(result, least), result)


_joins: WeakKeyDictionary[Map, int] = WeakKeyDictionary()


def _join(node: Map, varying: Collection[Expr]) -> int:
    """The order of a joint, computed once per node: the node determines its dependence on x."""
    if node not in _joins:
        _joins[node] = continuity_order(node, varying)
    return _joins[node]


def _reason(objective: Expr, walk: Walk, order: Orders, spans: Mapping[Expr, Span]) -> str:
    """The first node of least order, by its source text and line."""
    least = int(order.min(initial=ANALYTIC))
    if least >= ANALYTIC:
        return ""
    blamed = objective
    for node in postorder(objective):
        if node in walk.varying and int(walk.orders[node].min(initial=ANALYTIC)) == least:
            blamed = node
            break
    return f"{place(blamed, spans, objective)} {_TROUBLE.get(least, 'has a derivative that jumps')}"


_TROUBLE = {
    OUTSIDE: "has no value in a part of the ball",
    -1: "may jump in the ball",
    0: "has a kink in the ball: the gradient jumps",
    1: "has a second derivative that jumps in the ball: the Hessian has no Lipschitz constant",
    2: "has a third derivative that jumps in the ball",
}


def place(node: Expr, spans: Mapping[Expr, Span], objective: Expr) -> str:
    """A node by its source text and line, or by its kind where it has none."""
    span = span_of(node, spans, objective)
    if span is not None:
        return f"`{span.text}` in line {span.line}"
    name = node.function.name if isinstance(node, Map) else type(node).__name__.lower()
    if isinstance(node, Recur):
        return "a recurrence"
    return f"`{name}`"


def span_of(node: Expr, spans: Mapping[Expr, Span], objective: Expr) -> Span | None:
    """The source span of a node, or of the node it derives from; not every node was written."""
    if node in spans:
        return spans[node]
    above = {node}
    for other in postorder(objective):
        if not above.isdisjoint(other.operands):
            above.add(other)
            if other in spans:
                return spans[other]
    return None
