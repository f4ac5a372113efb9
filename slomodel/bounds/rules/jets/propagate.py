"""Jets of every node of the gradient's graph over a ball, in the norms that are required."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, meet
from slomodel.bounds.arithmetic.rounding import Array, up_add
from slomodel.bounds.arithmetic.upper_bounds import FLOOR, rounded_up
from slomodel.bounds.ranges.derivatives import derivative_range, derivative_ranges
from slomodel.bounds.ranges.enclose import (
    aligned_interval,
    boxed,
    enclose_narrowed,
    variable_box,
)
from slomodel.bounds.ranges.kinks import Orders
from slomodel.bounds.ranges.liveness import has_neutral, neutral
from slomodel.bounds.ranges.smoothness import Walk, order_of
from slomodel.bounds.rules.jets import arrays as jets
from slomodel.bounds.rules.jets.arrays import ORDER, Jet
from slomodel.bounds.rules.jets.composition import Inner, ScalarDerivatives, composed
from slomodel.bounds.rules.jets.mixed_norms import Norm, below
from slomodel.bounds.rules.jets.norm_graph import Prepared
from slomodel.bounds.rules.jets.norm_rules import Choice, Elementwise, Linear, Product
from slomodel.bounds.rules.jets.product_norms import Options
from slomodel.bounds.stopping import pause
from slomodel.ir.expr import Expr, Input, Map
from slomodel.ir.function import ANALYTIC


@dataclass(slots=True)
class BallJets:
    """A ball around the centre of `prepared`, with the ranges and jets of the nodes there.

    `ranges` are intervals over the box around the ball; `orders` states how often each node is
    continuously differentiable in it. `below` are the jets at the centre, None for the centre
    itself.
    """

    prepared: Prepared
    radius: float
    ranges: dict[Expr, Interval]
    orders: dict[Expr, int]
    below: BallJets | None
    jets: dict[tuple[Expr, Norm], Jet] = field(default_factory=dict)
    derivatives: dict[Expr, ScalarDerivatives] = field(default_factory=dict)

    @property
    def radii(self) -> Array:
        return np.full(self.prepared.count, self.radius)

    def look(self, node: Expr, norm: Norm) -> Jet:
        return self.jets[node, self.prepared.available(node, norm)]

    def roots(self) -> list[Jet]:
        """The jets of the gradient's components, by variable."""
        own = self.prepared
        return [self.look(root, own.root_norm(root)) for root in own.roots]


def propagate(
    prepared: Prepared,
    radius: float,
    centre: BallJets | None = None,
    known: Mapping[Expr, Interval] = MappingProxyType({}),
) -> BallJets:
    """The jets over the ball of this radius; `centre` are those of radius 0, which tighten them.

    `known` are intervals of some nodes over the ball; they need not hold over the box around it.
    """
    # Bounds over a larger ball are valid, and products with radii near underflow would be lost.
    radius = max(radius, FLOOR) if radius > 0.0 else 0.0
    part = prepared.part
    boxes = boxed(prepared.values)
    boxes.update({v: variable_box(part, v, radius) for v in part.variables})
    ranges = (
        enclose_narrowed(prepared.roots, boxes, part.sizes, known, prepared.live)
        if radius
        else prepared.enclosed(*prepared.roots)
    )
    ball = BallJets(prepared, radius, ranges, _orders(prepared, ranges), centre)
    for node in prepared.order:
        for norm in prepared.norms.get(node, ()):
            pause()
            ball.jets[node, norm] = _capped(ball, node, norm, _jet(ball, node, norm))
    return ball


def _orders(prepared: Prepared, ranges: dict[Expr, Interval]) -> dict[Expr, int]:
    """How often each node is continuously differentiable over the box; -1: it may jump."""
    replaced = {node: live for node, live in prepared.live.items() if has_neutral(node)}
    walk = Walk(ranges, 0, replaced, prepared.part.sizes)
    result = {}
    for node in prepared.order:
        if node in prepared.scope.varying:
            walk.varying.add(node)
        own: Orders = np.asarray(ANALYTIC)
        if node in walk.varying and not isinstance(node, Input):
            own = order_of(node, walk)
        walk.put(node, own)
        result[node] = int(walk.least(node))
    return result


def _jet(ball: BallJets, node: Expr, norm: Norm) -> Jet:
    own = ball.prepared
    value = own.at_centre(node, norm)
    if node not in own.scope.varying:
        return jets.constant(value, own.count)
    if isinstance(node, Input):
        block = own.blocks[node.name]
        return jets.variable(float(up_add(value, ball.radius)), block, own.count)
    rule = own.rules[node, norm]
    if isinstance(rule, Linear):
        parts = zip(rule.operands, rule.options, strict=True)
        return jets.total([_least(ball, operand, options) for operand, options in parts])
    if isinstance(rule, Product):
        pairs = [
            (ball.look(rule.left, one), ball.look(rule.right, other))
            for one, other in rule.options.norms
        ]
        return jets.multiple(rule.options.factor, jets.product(pairs))
    if isinstance(rule, Choice):
        assert isinstance(node, Map)
        return _chosen(ball, node, rule, norm)
    assert isinstance(node, Map)
    return _elementwise(ball, node, rule, norm)


def _least(ball: BallJets, operand: Expr, options: Options) -> Jet:
    least = jets.least([ball.look(operand, word) for (word,) in options.norms])
    return jets.multiple(options.factor, least)


def _capped(ball: BallJets, node: Expr, norm: Norm, jet: Jet) -> Jet:
    """The jet capped by those in larger norms and by that at the centre plus its growth."""
    own = ball.prepared
    larger = [o for o in own.norms[node] if (node, o) in ball.jets and below(norm, o)]
    if larger:
        jet = jets.least([jet, *(ball.jets[node, other] for other in larger)])
    if node not in own.scope.varying:
        return jet
    value = rounded_up(np.asarray(own.at_centre(node, norm)))
    # Continuous: the value. C^k: derivatives up to the k-th, with the next one almost everywhere.
    orders = ball.orders[node] + 1
    centre: Sequence[Array] = (value,)
    if ball.below is not None:
        centre = (value, *ball.below.jets[node, norm][1:])
    return jets.centred(jet, centre, orders, ball.radii, ball.radius)


def _chosen(ball: BallJets, node: Map, rule: Choice, norm: Norm) -> Jet:
    """The jet of a choice: of one operand if all elements certainly come from it, else of both."""
    taken = _taken(ball, node)
    for k, all_of_it in enumerate(taken):
        if all_of_it:
            return _least(ball, rule.operands[k], rule.whole[k])
    parts = [
        _least(ball, operand, options)
        for operand, options in zip(rule.operands, rule.parts, strict=True)
    ]
    return jets.largest(parts) if set(norm) <= {"m"} else jets.total(parts)


def _taken(ball: BallJets, node: Map) -> tuple[bool, bool]:
    """Whether every element is known to be that of the first operand, and of the second."""
    operands = [aligned_interval(ball.ranges[o], node, k) for k, o in enumerate(node.operands)]
    if node.function is table.where:
        condition = operands[0]
        return bool(np.all(condition.lo == 1.0)), bool(np.all(condition.hi == 0.0))
    a, b = operands if node.function is table.maximum else reversed(operands)
    return bool(np.all(a.lo > b.hi)), bool(np.all(b.lo > a.hi))


def _elementwise(ball: BallJets, node: Map, rule: Elementwise, norm: Norm) -> Jet:
    if node not in ball.derivatives:
        ball.derivatives[node] = _derivatives(ball, node, rule.operand)
    look: Callable[[Options], Jet] = partial(_least, ball, rule.operand)
    inner = Inner(
        look(rule.own), look(rule.flat), look(rule.rows), look(rule.columns), look(rule.entry)
    )
    return composed(ball.derivatives[node], inner, norm)


def _derivatives(ball: BallJets, node: Map, operand: Expr) -> ScalarDerivatives:
    """The ranges of φ and its derivatives over those of the operands."""
    shape = ball.prepared.scope.shape(node)
    place = next(k for k, o in enumerate(node.operands) if o is operand)
    arguments = []
    for k, one in enumerate(node.operands):
        a = _narrowed(ball, one) if k == place else ball.ranges[one]
        arguments.append(aligned_interval(a, node, k))
    orders = range(ORDER + 1)
    if len(arguments) == 1:
        ranges = derivative_ranges(node.function, orders, arguments[0])
    else:
        by = [tuple(order if k == place else 0 for k in range(len(arguments))) for order in orders]
        ranges = [derivative_range(node.function, one, *arguments) for one in by]
    wide = [a.broadcast(shape) for a in ranges]
    return ScalarDerivatives.of([neutral(node, a, ball.prepared.live) for a in wide])


def _narrowed(ball: BallJets, node: Expr) -> Interval:
    """The range of a node over the box, intersected with its growth from the centre."""
    box = ball.ranges[node]
    if ball.radius == 0.0 or ball.orders[node] < 0:
        return box
    word = "".join("m" for _ in range(node.rank))
    moved = float(jets.shift(ball.look(node, word)[1], ball.radii, ball.radius))
    if not np.isfinite(moved):
        return box
    centre = ball.prepared.enclosed(node)[node]
    return meet(box, centre.widened(moved))
