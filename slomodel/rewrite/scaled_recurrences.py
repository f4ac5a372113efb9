"""Homogeneous recurrences in scaled states where logarithms are taken of what they give.

Where each step is homogeneous of degree 1 in the states f, as that of the forward algorithm in
probabilities, r_t = f_t q_0 ... q_{t-1} obeys it too, with r_{t-m} q_{t-m} ... q_{t-1} in place of
f_{t-m}, for any factors q. They are 1/max|r_t| where that is far from 1, so that f neither
overflows nor underflows, and log(f_t) = log(r_t) - sum(log(q_s) for s < t). The factors are taken
as constant (`stop_gradient`): the derivatives of log(f) are those of log(r) for fixed q. Axes along
which the elements of a state do not mix have factors of their own. Cumulative products are the case
f_t = a_t f_{t-1}, with q_t = 1/|a_t|.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from slomodel.calculus.signs import is_nonnegative
from slomodel.functions import (
    abs,
    add,
    div,
    exp,
    expm1,
    gt,
    land,
    log,
    log1p,
    log2,
    log10,
    lor,
    lt,
    maximum,
    mul,
    neg,
    normcdf,
    pow,
    sigmoid,
    sqrt,
    square,
    sub,
    where,
)
from slomodel.functions.compound import stop_gradient
from slomodel.functions.running import cumulative, running
from slomodel.functions.separated import Placed, combined, in_order
from slomodel.functions.translate import balanced
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal
from slomodel.ir.expr import (
    Affine,
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Input,
    Map,
    Recur,
    Scan,
    Scatter,
    is_map,
)
from slomodel.ir.loop import Loop, SliceAt, StateAt, Update
from slomodel.ir.recur import Reading, reading_of
from slomodel.ir.walk import postorder, substitute, users
from slomodel.rewrite.elementwise.matching import exponent_of_power
from slomodel.rewrite.exponentials.scaled_logs import ScaledLogarithms, beyond_zone
from slomodel.rewrite.exponentials.scales import Scales
from slomodel.rewrite.homogeneous_steps import HomogeneousStates, axis_of, group_of, is_factor
from slomodel.rewrite.replacement import remade

_NEAR_ONE = 2.0**24
"""States are scaled where the largest is above this or below its reciprocal: in single precision
too, products of four of them stay in range, and most steps scale nothing."""
_LOGARITHMS = {log: 1.0, log2: 1.0 / math.log(2.0), log10: 1.0 / math.log(10.0)}
_PASSED = (add, sub, mul, div, neg, where, sqrt, square, pow, abs)


@dataclass(frozen=True, slots=True)
class _ScaledResult:
    """A node as `rest` times the exponential of `shift`, along some axes of the node.

    `is_tail`: it is a product of tails, such as 1 - sigmoid(x), which are never exactly 0.
    """

    rest: Expr
    shift: Placed
    is_tail: bool = False


def with_scaled_recurrences(root: Expr) -> Mapping[Expr, Expr]:
    """Maps each node under the root to the node over scaled recurrences."""
    order = postorder(root)
    if not any(isinstance(node, Recur | Scan) for node in order):
        return {node: node for node in order}
    above = users(order)
    done: dict[Expr, Expr] = {}
    found: dict[Expr, _ScaledResult] = {}
    products: dict[Expr, _ScaledResult] = {}
    for node in order:
        operands = tuple(done[operand] for operand in node.operands)
        result = node if operands == node.operands else remade(node, operands)
        own: _ScaledResult | None = None
        if isinstance(result, Recur | Scan):
            if _is_taken_apart(node, above):
                own = _of_recur(result) if isinstance(result, Recur) else _of_scan(result)
            product = None if own is None or isinstance(result, Recur) else _as_sum(result)
            if product is not None:
                products[node] = product
        elif is_map(node, *_LOGARITHMS):
            assert isinstance(node, Map)
            inside = products.get(node.operands[0]) or found.get(node.operands[0])
            result = result if inside is None else _logarithm(node, inside)
        else:
            own = _over(node, operands, found)
            through = _over(node, operands, products)
            if through is not None:
                products[node] = through
            result = _complement(node, products) or result
        if own is not None:
            found[node] = own
            result = mul(own.rest, exp(_wide(own, node)))
        done[node] = result
    return done


def _complement(node: Expr, products: Mapping[Expr, _ScaledResult]) -> Expr | None:
    """1 - p for a product p of tails near 1, by the sum of their logarithms."""
    if not is_map(node, sub) or node.operands[0] is not Const(1.0):
        return None
    one = products.get(node.operands[1])
    if one is None or not one.is_tail or node.operands[1].shape != node.shape:
        return None
    return neg(expm1(_wide(one, node)))


def _wide(scaled: _ScaledResult, node: Expr) -> Expr:
    return build.broadcast(scaled.shift.expr, scaled.shift.axes, node.shape)


def _logarithm(node: Map, inside: _ScaledResult) -> Expr:
    """log(rest) + shift, to the base of a logarithm of a scaled node."""
    rest = build.apply(node.function, inside.rest)
    return add(rest, mul(_LOGARITHMS[node.function], _wide(inside, node)))


def _is_taken_apart(node: Expr, above: Mapping[Expr, list[Expr]]) -> bool:
    """Whether a logarithm of what a recurrence gives is taken, or a quotient of two such."""
    stack, seen = [node], {node}
    while stack:
        for one in above[stack.pop()]:
            if is_map(one, *_LOGARITHMS, log1p):
                return True
            if one not in seen and (
                isinstance(one, Einsum | Gather | Extreme) or is_map(one, *_PASSED)
            ):
                seen.add(one)
                stack.append(one)
    return any(is_map(one, div) and seen.issuperset(one.operands) for one in seen)


def _of_scan(node: Scan) -> _ScaledResult | None:
    """A cumulative product; None for other linear recurrences."""
    factor, term = node.operands
    if not _is_first_alone(term, node.axis):
        return None
    magnitude = abs(factor)
    q = stop_gradient(_reciprocal(magnitude, gt(magnitude, 0.0)))
    rest = build.scan(mul(factor, q), mul(term, q), node.axis)
    shift = cumulative("cumsum", neg(log(q)), node.axis)
    return _ScaledResult(rest, Placed(shift, tuple(range(node.rank))))


def _as_sum(node: Scan) -> _ScaledResult | None:
    """A cumulative product by the sums of the logarithms of its factors; None for other scans.

    Their derivatives are those of its logarithm, of which no terms cancel.
    """
    factor, term = node.operands
    padded: Scatter | None = None
    if node is not cumulative("cumprod", factor, node.axis):
        (first,) = term.operands
        if not isinstance(factor, Scatter) or first is not build.ones(first.shape):
            return None
        padded = factor
        (factor,) = factor.operands
    is_signed = not (is_nonnegative(factor) or _is_tail(factor))
    signs = build.ones(factor.shape)
    if is_signed:
        signs = stop_gradient(where(lt(factor, 0.0), -1.0, 1.0))
        factor = mul(factor, signs)
    logs = log(factor)
    if padded is not None:
        logs = remade(padded, (logs,))
        signs = build.scan(remade(padded, (signs,)), term, node.axis)
    elif is_signed:
        signs = cumulative("cumprod", signs, node.axis)
    if not is_signed:
        signs = build.ones(node.shape)
    shift = cumulative("cumsum", logs, node.axis)
    is_tail = _is_tail(factor)
    return _ScaledResult(signs, Placed(shift, tuple(range(node.rank))), is_tail)


def _is_tail(factor: Expr) -> bool:
    """Whether a factor is a tail or 1 less a tail, if a condition holds, and otherwise 1."""
    if is_map(factor, where):
        return all(one is Const(1.0) or _is_tail(one) for one in factor.operands[1:])
    if is_map(factor, sub) and factor.operands[0] is Const(1.0):
        return is_map(factor.operands[1], sigmoid, normcdf)
    return is_map(factor, sigmoid, normcdf, exp)


def _is_first_alone(term: Expr, axis: int) -> bool:
    """Whether only the first element along an axis may differ from 0."""
    if not isinstance(term, Scatter) or len(term.operands) > 1:
        return False
    (own,) = term.operands
    return own.shape[axis] == literal(1) and term.index[axis] == Affine.along(axis, own.rank)


def _reciprocal(magnitude: Expr, is_scaled: Expr) -> Expr:
    """1/m where a condition holds and both are finite; else 1."""
    inverse = div(1.0, magnitude)
    is_finite = land(lt(magnitude, Const(math.inf)), lt(inverse, Const(math.inf)))
    return where(land(is_scaled, is_finite), inverse, 1.0)


def _of_recur(node: Recur) -> _ScaledResult | None:
    """A state of a loop whose steps are homogeneous of degree 1 in it; else None."""
    group = group_of(node.loop, node.state)
    if group is None:
        return None
    scales = _Exponentials(node, group)
    *states, q = _scaled_loop(node, group, scales)
    logs = neg(log(stop_gradient(q)))
    # A state is scaled by the factors of the steps before it.
    sums = running("cumsum", logs, 0, from_below=True)
    shift = add(build.gather(sums, Affine.identity(q.rank), q.shape), scales.shift)
    return _ScaledResult(states[node.state], Placed(shift, (0, *(k + 1 for k in group.batch))))


class _Exponentials:
    """The scales of exponentials that a single state begins with, or is multiplied by at steps.

    `operands` are those of the loop, without the exponentials of the scales; the state has these
    as a factor, exp(shift). They are 0 where no exponential leaves the range.
    """

    def __init__(self, node: Recur, group: HomogeneousStates) -> None:
        self.operands = list(node.operands)
        self._scales = Scales()
        self._logarithms = ScaledLogarithms()
        loop = node.loop
        self._kept = (0, *(k + 1 for k in group.batch))
        shape = tuple(node.shape[k] for k in self._kept)
        self.shift: Expr = build.zeros(shape)
        if len(group.states) > 1 or any(
            isinstance(one, StateAt) and one.shift != literal(-1) for _, one in loop.sources
        ):
            return
        first = loop.initial[node.state]
        assert first is not None
        scale = self._scaled(first, node.rank, same=True)
        if scale is not None:
            self.shift = add(self.shift, build.broadcast(scale, tuple(range(1, len(shape))), shape))
        for read, source in loop.sources:
            if not isinstance(source, SliceAt) or not is_factor(loop, group, read):
                continue
            scale = self._scaled(source.operand, read.rank + 1, same=False)
            if scale is not None:
                count = (loop.length - group.start, *shape[1:])
                start = Affine.shifted(len(shape), 0, group.start + source.shift)
                index = Affine.shifted(len(shape), 0, group.start)
                own = build.scatter(build.gather(scale, start, count), index, shape)
                self.shift = add(self.shift, cumulative("cumsum", own, 0))

    def _scaled(self, number: int, rank: int, same: bool) -> Expr | None:
        """The scale of an operand, taken out of it: one for each step, or the `same` for all."""
        array = self.operands[number]
        own = self._scales.of(array) if self._scales.is_short(array) else None
        if own is None:
            return None
        kept = self._kept[1:] if same else self._kept
        mixed = tuple(axis for axis in range(rank) if axis not in kept)
        scale = beyond_zone(build.extreme(own, "max", mixed))
        wide = build.broadcast(scale, kept, array.shape)
        self.operands[number] = self._logarithms.times(array, wide)
        return scale


def _scaled_loop(node: Recur, group: HomogeneousStates, scales: _Exponentials) -> tuple[Expr, ...]:
    """The states of a loop, those of the group scaled, and the factors of all steps."""
    loop = node.loop
    readings: dict[Expr, Reading] = {}
    instead: dict[Expr, Expr] = {}
    shape = tuple(loop.shapes[node.state][k] for k in group.batch)
    factor = len(loop.shapes)

    def factors_of(lag: int) -> Expr:
        read: list[Expr] = [Input(f"factor {k}", "step", shape) for k in range(1, lag + 1)]
        readings.update({one: StateAt(factor, literal(-k)) for k, one in enumerate(read, 1)})
        return stop_gradient(reduce(mul, read))

    for one, source in loop.sources:
        readings[one] = reading_of(scales.operands, source)
        if isinstance(source, StateAt) and source.state in group.states and source.shift.const:
            wide = build.broadcast(factors_of(-source.shift.const), group.batch, one.shape)
            instead[one] = mul(one, wide)
    values = substitute(tuple(update.value for update in loop.updates), instead)
    updates = [replace(one, value=own) for one, own in zip(loop.updates, values, strict=True)]
    updates.append(Update(factor, Dim(), group.start, _factor(loop, group, readings)))
    first = [None if one is None else scales.operands[one] for one in loop.initial]
    ones = build.ones((group.start, *shape))
    states = [*zip(loop.shapes, first, strict=True), (shape, ones)]
    return build.recur(loop.length, states, updates, readings)


def _factor(loop: Loop, group: HomogeneousStates, readings: dict[Expr, Reading]) -> Expr:
    """The factor of a step, from the states at it."""
    largest: list[Expr] = []
    for k in sorted(group.states):
        own = Input(f"own {k}", "step", loop.shapes[k])
        readings[own] = StateAt(k, Dim())
        mixed = tuple(axis for axis in range(own.rank) if axis not in group.batch)
        largest.append(build.extreme(abs(own), "max", mixed))
    magnitude = balanced(maximum, largest)
    is_far = lor(gt(magnitude, _NEAR_ONE), land(lt(magnitude, 1.0 / _NEAR_ONE), gt(magnitude, 0.0)))
    return stop_gradient(_reciprocal(magnitude, is_far))


def _over(
    node: Expr, operands: Sequence[Expr], found: Mapping[Expr, _ScaledResult]
) -> _ScaledResult | None:
    """The scaled form of a node from those of its operands, if it has their shifts as a factor."""
    parts = [found.get(operand) for operand in node.operands]
    shift = None if all(part is None for part in parts) else _shift(node, parts)
    if shift is None:
        return None
    rests = tuple(
        operand if part is None else part.rest
        for operand, part in zip(operands, parts, strict=True)
    )
    is_one = isinstance(node, Gather) and rests[0] is build.ones(rests[0].shape)
    is_tail = isinstance(node, Gather) and any(part is not None and part.is_tail for part in parts)
    rest = build.ones(node.shape) if is_one else remade(node, rests)
    return _ScaledResult(rest, shift, is_tail)


def _shift(node: Expr, parts: Sequence[_ScaledResult | None]) -> Placed | None:
    """The shift of a node from those of its operands; None if it has none."""
    own = [None if part is None else _carried(node, k, part) for k, part in enumerate(parts)]
    known = [one for one in own if one is not None]
    if len(known) < sum(part is not None for part in parts):
        return None
    if isinstance(node, Einsum) or is_map(node, mul):
        return reduce(partial(combined, add), known)
    if isinstance(node, Gather | Extreme) or is_map(node, neg, abs):
        return known[0]
    power = exponent_of_power(node)
    if power is not None:
        return Placed(mul(power, known[0].expr), known[0].axes)
    if is_map(node, div):
        above, below = own
        if below is None:
            return above
        negative = Placed(neg(below.expr), below.axes)
        return negative if above is None else combined(add, above, negative)
    if is_map(node, add, sub, where):
        terms = [
            one
            for operand, one in zip(node.operands, own, strict=True)
            if operand is not Const(0.0) and operand.dtype != "bool"
        ]
        # States of one loop have one scale.
        return terms[0] if all(one == terms[0] for one in terms) else None
    return None


def _carried(node: Expr, number: int, part: _ScaledResult) -> Placed | None:
    """The shift of an operand along the axes of a node."""
    expr, axes = part.shift.expr, part.shift.axes
    if isinstance(node, Gather):
        index = [node.index[k] for k in axes]
        if number or not all(isinstance(one, Affine) for one in index):
            return None
        known = [one for one in index if isinstance(one, Affine)]
        along = tuple(k for k in range(node.rank) if any(one.coefficients[k] for one in known))
        narrow = [Affine(one.offset, tuple(one.coefficients[k] for k in along)) for one in known]
        return Placed(build.gather(expr, narrow, tuple(node.shape[k] for k in along)), along)
    places = [axis_of(node, number, axis) for axis in axes]
    if any(place is None for place in places) or len(set(places)) < len(places):
        return None
    return in_order(Placed(expr, tuple(place for place in places if place is not None)))
