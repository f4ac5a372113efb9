"""Quotients by sums of positive terms, written with the logarithm of the sum.

A weight of an average, a_k / Σ_j a_j for a = exp u, is exp(u_k - L) with L = log Σ exp u. In this
form its exponent is at most 0, and the derivatives of L are averages and covariances of those of
u, however large u is. So are those of log Σ_j Π_i a_ij for positive factors, where u is the sum of
the logarithms.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import slomodel.functions as table
from slomodel.bounds.effort import MOST_NODES
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.structure.log_sum_exp import log_sum_operand
from slomodel.functions.compound import same, stop_gradient
from slomodel.functions.shifted import logsumexp
from slomodel.ir import build
from slomodel.ir.dims import Shape, number_of_elements
from slomodel.ir.expr import Axes, Const, Einsum, Expr, Map, is_map, remake
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import postorder, users

_MOST_ELEMENTS = 2**16
"""Terms of sums of products, which then are all stored: a few milliseconds an operation."""
_READS_OF_SHIFTED = 2
"""Nodes that read the u of log Σ exp(u - max u): the difference and the maximum."""
_NEVER = Const(float("-inf"))
_NONE = Const(0.0)


@dataclass(frozen=True, slots=True)
class Averages:
    """A part without quotients by sums of positive terms where these can be avoided.

    The nodes `exponents` are the logarithms of quotients; those `of_weights` are at most 0.
    """

    part: ObjectivePart
    exponents: frozenset[Expr]
    of_weights: frozenset[Expr]


@once_per_part
def with_averages(part: ObjectivePart) -> Averages:
    """The part with quotients by sums, and logarithms of sums, as log Σ exp."""
    order = part.order
    result = _Averages(part)
    if len(order) <= MOST_NODES and any(is_map(node, table.exp) for node in order):
        for node in order:
            result.put(node)
        part = part.rewritten(result.done, part.known)
    of_weights = {node for node in part.order if _is_exponent(node)}
    of_weights |= result.of_weights.intersection(part.order)
    exponents = of_weights | result.exponents.intersection(part.order)
    return Averages(part, frozenset(exponents), frozenset(of_weights))


class _Averages:
    """The rewriting of one graph: new nodes by old ones, and logarithms of positive new nodes."""

    def __init__(self, part: ObjectivePart) -> None:
        self.done: dict[Expr, Expr] = {}
        self.exponents: set[Expr] = set()
        self.of_weights: set[Expr] = set()
        self._part = part
        self._varying = set(part.varying)
        self._users = users(part.order)
        self._logarithms: dict[Expr, Expr | None] = {}

    def put(self, node: Expr) -> None:
        result = remake(node, tuple(self.done[operand] for operand in node.operands))
        if node in self._varying:
            self._varying.add(result)
            result = self._rewritten(result)
            self._varying.add(result)
        self.done[node] = result

    def _rewritten(self, node: Expr) -> Expr:
        if not isinstance(node, Map):
            return node
        if node.function is table.log and not _is_shifted_sum(node.operands[0]):
            return self._log(node.operands[0]) or node
        if node.function is table.add:
            return self._without_common_terms(node) or node
        if node.function is table.where and node.operands[1] is _NONE:
            return self._mirrored(node) or node
        if node.function is table.xlogy and node.operands[0] not in self._varying:
            logarithm = self._log(node.operands[1])
            if logarithm is not None:
                pair = [node.operands[0], logarithm]
                return build.apply_along(table.mul, pair, node.axes, node.shape)
        if node.function is table.div:
            above, below = node.operands
            logarithm = self._log(below) if _has_sum(below) else None
            if logarithm is not None:
                divisor = _Divisor(below, logarithm, node.axes[1])
                quotient = self._quotient(above, node.axes[0], divisor, node.shape)
                return quotient or node
            if below in self._varying and _is_exponential(below):
                logarithm = self._log(below)
                assert logarithm is not None
                inverse = table.exp(table.neg(logarithm))
                self._varying.update((inverse, *inverse.operands, logarithm))
                pair = [above, inverse]
                return build.apply_along(table.mul, pair, node.axes, node.shape)
        return node

    def _mirrored(self, node: Map) -> Expr | None:
        """A choice by a known condition with its alternative 0 in the last place."""
        condition, _, other = node.operands
        if condition in self._varying or other is _NONE:
            return None
        parts = [_opposite(condition), other, _NONE]
        return build.apply_along(table.where, parts, [node.axes[0], node.axes[2], ()], node.shape)

    def _without_common_terms(self, node: Map) -> Expr | None:
        """m + log Σ exp(u - m) with the terms of u that all classes share outside; else None.

        A u that is read elsewhere may be that of a weight exp(u_k - log Σ exp u), and stays.
        """
        for m, total in (node.operands, node.operands[::-1]):
            result = log_sum_operand(total, self._varying) if is_map(m, stop_gradient) else None
            if result is None or node.axes[0] != node.axes[1]:
                continue
            shifted = total.operands[0].operands[0].operands[0]
            u, summed = result
            if shifted.operands != (u, m) or len(self._users.get(u, ())) > _READS_OF_SHIFTED:
                continue
            apart = without_common_terms(u, summed)
            if apart is not None:
                return table.add(logsumexp(apart[0], summed), apart[1])
        return None

    def _log(self, node: Expr) -> Expr | None:
        """log of a node that is positive by its form; None for any other."""
        if node not in self._logarithms:
            self._logarithms[node] = self._log_of(node)
        return self._logarithms[node]

    def _log_of(self, node: Expr) -> Expr | None:
        if isinstance(node, Const):
            return table.log(node) if node.value > 0.0 else None
        if isinstance(node, Einsum):
            return self._log_of_sum(node)
        if not isinstance(node, Map) or node not in self._varying:
            return None
        if node.function is table.exp:
            return node.operands[0]
        if _is_choice(node, self._varying):
            inner = self._log(node.operands[1])
            if inner is None:
                return None
            parts = [node.operands[0], inner, _NEVER]
            return build.apply_along(table.where, parts, node.axes, node.shape)
        if node.function not in (table.mul, table.div, table.add):
            return None
        first, second = (self._log(operand) for operand in node.operands)
        if first is None or second is None:
            return None
        if node.function is not table.add:
            joined = table.add if node.function is table.mul else table.sub
            return build.apply_along(joined, [first, second], node.axes, node.shape)
        if any(_is_choice(one, self._varying) for one in node.operands):
            return None
        over = build.apply_along(table.sub, [second, first], node.axes[::-1], node.shape)
        pair, along = [first, table.softplus(over)], [node.axes[0], _all(node.shape)]
        return build.apply_along(table.add, pair, along, node.shape)

    def _log_of_sum(self, node: Einsum) -> Expr | None:
        """log Σ Π of positive factors, as log Σ exp of the sum of their logarithms."""
        if _is_shifted_sum(node) or not node.operands:
            return table.log(node)
        summed = tuple(label for label in range(len(node.dims)) if label not in node.output)
        known = [self._log(operand) for operand in node.operands]
        logarithms = [one for one in known if one is not None]
        if len(logarithms) < len(known) or len(set(node.output)) < len(node.output):
            return None
        if number_of_elements(node.dims, self._part.sizes) > _MOST_ELEMENTS:
            return None
        if any(len(set(own)) < len(own) for own in node.inputs):
            return None
        labels = list(node.inputs)
        total = _along(logarithms[0], labels[0], node.dims)
        for one, own in zip(logarithms[1:], labels[1:], strict=True):
            total = table.add(total, _along(one, own, node.dims))
        apart = without_common_terms(total, summed)
        result = logsumexp(total, summed) if summed else total
        if apart is not None:
            result = table.add(logsumexp(apart[0], summed), apart[1])
        kept = sorted(node.output)
        return build.transpose(result, tuple(kept.index(label) for label in node.output))

    def _quotient(
        self,
        above: Expr,
        axes: Axes,
        divisor: _Divisor,
        shape: Shape,
        chosen: _KnownCondition | None = None,
    ) -> Expr | None:
        """above / divisor with a weight as a factor; None where no factor is positive.

        It is read where the `chosen` condition holds.
        """
        if above not in self._varying:
            return None
        if isinstance(above, Einsum):
            return self._quotient_of_sum(above, axes, divisor, shape)
        if not isinstance(above, Map):
            return None
        inner = [tuple(axes[axis] for axis in own) for own in above.axes]
        if _is_choice(above, self._varying):
            chosen = _KnownCondition(above.operands[0], inner[0])
            result = self._quotient(above.operands[1], inner[1], divisor, shape, chosen)
            return None if result is None else chosen.of(result, _all(shape), shape, _NONE)
        if above.function is table.exp:
            return self._weight(above, axes, divisor, shape, chosen)
        if above.function in (table.mul, table.div):
            for k in (0, 1) if above.function is table.mul else (0,):
                result = self._quotient(above.operands[k], inner[k], divisor, shape, chosen)
                if result is not None:
                    pair, along = list(above.operands), list(inner)
                    pair[k], along[k] = result, _all(shape)
                    return build.apply_along(above.function, pair, along, shape)
        return None

    def _weight(
        self,
        above: Map,
        axes: Axes,
        divisor: _Divisor,
        shape: Shape,
        chosen: _KnownCondition | None,
    ) -> Expr:
        """exp(u) / divisor as the exponential of a difference."""
        u, along = above.operands[0], axes
        is_summand = _is_summand(above, axes, divisor.node, divisor.axes)
        if chosen is not None and not is_summand:
            part = chosen.of(above, axes, shape, _NONE)
            is_summand = _is_summand(part, _all(shape), divisor.node, divisor.axes)
            if is_summand:
                u, along = chosen.of(u, axes, shape, _NEVER), _all(shape)
        exponent = build.apply_along(
            table.sub, [u, divisor.logarithm], [along, divisor.axes], shape
        )
        weight = table.exp(exponent)
        self._varying.update((u, exponent, weight))
        self.exponents.add(exponent)
        if is_summand:
            self.of_weights.add(exponent)
        return weight

    def _quotient_of_sum(
        self, above: Einsum, axes: Axes, divisor: _Divisor, shape: Shape
    ) -> Expr | None:
        """Σ Π factors / divisor, with the divisor under one factor that has all its axes."""
        if len(set(above.output)) < len(above.output):
            return None
        place = dict(zip(axes, above.output, strict=True))
        labels = [place.get(axis) for axis in divisor.axes]
        for k, (operand, own) in enumerate(zip(above.operands, above.inputs, strict=True)):
            if any(label not in own for label in labels) or len(set(own)) < len(own):
                continue
            along = tuple(own.index(label) for label in labels if label is not None)
            if list(along) != sorted(along):
                continue
            part = _Divisor(divisor.node, divisor.logarithm, along)
            quotient = self._quotient(operand, tuple(range(operand.rank)), part, operand.shape)
            if quotient is not None:
                operands = [quotient if j == k else one for j, one in enumerate(above.operands)]
                total = build.einsum(operands, above.inputs, above.output, above.dims)
                return build.broadcast(total, axes, shape) if axes != _all(shape) else total
        return None


@dataclass(frozen=True, slots=True)
class _Divisor:
    """A positive node with its logarithm, whose axis k is axis `axes[k]` of the quotient."""

    node: Expr
    logarithm: Expr
    axes: Axes


@dataclass(frozen=True, slots=True)
class _KnownCondition:
    """A condition on data, whose axis k is axis `axes[k]` of a quotient."""

    condition: Expr
    axes: Axes

    def of(self, node: Expr, axes: Axes, shape: Shape, other: Expr) -> Expr:
        """The node where the condition holds, else a constant."""
        parts = [self.condition, node, other]
        return build.apply_along(table.where, parts, [self.axes, axes, ()], shape)


def without_common_terms(u: Expr, summed: Axes) -> tuple[Expr, Expr] | None:
    """v and g with u = v + g, g of the axes that are not summed; None where one would be 0.

    log Σ exp u = g + log Σ exp v: what all classes share does not move their weights.
    """
    varying, common = _parted(u, _all(u.shape), u.shape, summed)
    return None if varying is None or common is None else (varying, common)


def _parted(node: Expr, axes: Axes, shape: Shape, summed: Axes) -> tuple[Expr | None, Expr | None]:
    """The terms of a sum that vary along the summed axes, over `shape`, and the others."""
    kept = [axis for axis in _all(shape) if axis not in summed]
    if not set(axes).intersection(summed):
        along = tuple(kept.index(axis) for axis in axes)
        return None, build.broadcast(node, along, tuple(shape[axis] for axis in kept))
    if is_map(node, table.add) or is_map(node, table.sub) or is_map(node, same):
        assert isinstance(node, Map)
        parts = [
            _parted(operand, tuple(axes[axis] for axis in own), shape, summed)
            for operand, own in zip(node.operands, node.axes, strict=True)
        ]
        if node.function is same:
            return parts[0]
        varying, common = zip(*parts, strict=True)
        return _joined(node.function, *varying), _joined(node.function, *common)
    return build.broadcast(node, axes, shape) if axes != _all(shape) else node, None


def _joined(function: ScalarFunction, first: Expr | None, second: Expr | None) -> Expr | None:
    """The sum or difference of two terms, of which None counts as 0."""
    if first is None or second is None:
        return (
            table.neg(second) if second is not None and function is table.sub else first or second
        )
    return function(first, second)


def _all(shape: Shape) -> Axes:
    return tuple(range(len(shape)))


def _along(node: Expr, axes: Axes, shape: Shape) -> Expr:
    """The node, whose axis k is axis `axes[k]` of the result, over a shape."""
    order = sorted(range(len(axes)), key=axes.__getitem__)
    turned = build.transpose(node, tuple(order))
    placed = tuple(sorted(axes))
    return turned if placed == _all(shape) else build.broadcast(turned, placed, shape)


def _opposite(condition: Expr) -> Expr:
    """The negation, of an equation as sums with that condition have it."""
    for one, other in ((table.eq, table.ne), (table.ne, table.eq)):
        if is_map(condition, one):
            assert isinstance(condition, Map)
            return build.apply_along(other, condition.operands, condition.axes, condition.shape)
    return table.lnot(condition)


def _is_choice(node: Expr, varying: Collection[Expr]) -> bool:
    """Whether a node is `where` of a known condition with 0 as the alternative."""
    if not isinstance(node, Map) or node.function is not table.where:
        return False
    condition, _, other = node.operands
    return condition not in varying and isinstance(other, Const) and other.value == 0.0


def _has_sum(node: Expr) -> bool:
    """Whether there is a sum among the products, quotients and sums that a node consists of."""
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, Einsum) and len(one.output) < len(one.dims):
            return True
        if isinstance(one, Map) and one.function is table.add:
            return True
        if isinstance(one, Map) and one.function in (table.mul, table.div):
            stack += one.operands
    return False


def _is_exponential(node: Expr) -> bool:
    """Whether a node is a product or quotient of exponentials and positive constants alone."""
    if isinstance(node, Const):
        return node.value > 0.0
    if not isinstance(node, Map):
        return False
    if node.function is table.exp:
        return True
    is_product = node.function in (table.mul, table.div)
    return is_product and all(map(_is_exponential, node.operands))


def _is_shifted_sum(node: Expr) -> bool:
    """Whether a node is Σ exp(u - m) for an m that is marked constant."""
    if not isinstance(node, Einsum) or len(node.operands) != 1:
        return False
    if not is_map(node.operands[0], table.exp):
        return False
    inner = node.operands[0].operands[0]
    return is_map(inner, table.sub) and is_map(inner.operands[1], stop_gradient)


def _is_summand(part: Expr, axes: Axes, total: Expr, along: Axes) -> bool:
    """Whether a part is one of the positive terms that make up a total."""
    if isinstance(total, Map) and total.function is table.add:
        pairs = zip(total.operands, total.axes, strict=True)
        return any(
            _is_summand(part, axes, one, tuple(along[axis] for axis in own)) for one, own in pairs
        )
    if total is part:
        return axes == along
    if not isinstance(total, Einsum) or total.operands != (part,):
        return False
    (labels,) = total.inputs
    place = dict(zip(labels, axes, strict=True))
    if len(place) < len(labels):
        return False
    return tuple(place[label] for label in total.output) == along


def _is_exponent(node: Expr) -> bool:
    """Whether a node is u_k - log Σ exp u, as written by the author of a model."""
    if not isinstance(node, Map) or node.function is not table.sub:
        return False
    u, total = node.operands
    shift: Expr | None = None
    if isinstance(total, Map) and total.function is table.add:
        shift, total = total.operands
        if is_map(total, stop_gradient):
            shift, total = total, shift
    if not is_map(total, table.log):
        return False
    result = log_sum_operand(total, set(postorder(total)))
    if result is None:
        return False
    inner, summed = result
    sums = total.operands[0]
    moved = sums.operands[0].operands[0]
    kept = tuple(axis for axis in range(inner.rank) if axis not in summed)
    if node.axes != (tuple(range(inner.rank)), kept):
        return False
    return u is (moved if shift is None else inner) and shift in (None, moved.operands[-1])
