"""Sums over j < i, j <= i, j > i or j >= i as running sums.

The sum of b_j over all j <= i is element i of the cumulative sums of b: n additions for the n sums,
in place of n^2 terms of which a condition leaves half. The law: the same terms in another order of
addition. Where b_j = exp(e_j) and logarithms or quotients of the sums are taken, they are the
exponentials of running log-sum-exps, which neither overflow nor underflow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from slomodel.functions import add, div, exp, ge, gt, le, log, log1p, lt, mul, neg, sub, where
from slomodel.functions.running import cumulative, running
from slomodel.functions.separated import (
    Move,
    Placed,
    Separated,
    combined,
    in_order,
    is_of_data,
    separated,
)
from slomodel.functions.shifted import logsumexp
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal
from slomodel.ir.expr import (
    Affine,
    Axes,
    Const,
    Einsum,
    Expr,
    Gather,
    Input,
    Iota,
    Map,
    Scan,
    Scatter,
    is_map,
)
from slomodel.ir.walk import postorder, users
from slomodel.rewrite.exponentials.scales import Scales
from slomodel.rewrite.replacement import remade

_ORDERS = {lt: (True, False), le: (True, True), gt: (False, False), ge: (False, True)}
"""For each comparison of an index with another one, whether it comes before, and may be equal."""
_SCALED_ABOVE = (log, log1p, div)


def with_running_sums(root: Expr) -> Mapping[Expr, Expr]:
    """Maps each node under the root to the node with running sums below it."""
    order = postorder(root)
    if not any(isinstance(node, Scan) or is_map(node, *_ORDERS) for node in order):
        return {node: node for node in order}
    above = users(order)
    scales = Scales()
    done: dict[Expr, Expr] = {}
    # The logarithms of nodes that are exponentials of running log-sum-exps.
    logs: dict[Expr, Expr] = {}
    for node in order:
        operands = tuple(done[operand] for operand in node.operands)
        result = node if operands == node.operands else remade(node, operands)
        own: Expr | None = None
        if isinstance(result, Einsum) and node.operands:
            result, own = _of_sum(result, scales, _is_scaled(node, above))
        elif isinstance(result, Scan) and _is_scaled(node, above):
            own = _log_of_scan(result)
        elif is_map(result, add) and isinstance(result, Map):
            result = _of_log_sum_exp(result) or result
        if node.operands and node.operands[0] in logs and _is_view(node):
            own = remade(node, (logs[node.operands[0]],))
        if own is not None:
            logs[node] = own
            result = build.apply(exp, own)
        done[node] = result
    return done


def _is_view(node: Expr) -> bool:
    """Whether the elements of a node are those of its operand at affine places."""
    if isinstance(node, Gather):
        return len(node.operands) == 1 and all(isinstance(one, Affine) for one in node.index)
    return _is_permutation(node)


def _is_permutation(node: Expr) -> bool:
    """Whether a node is its operand with its axes in another order."""
    if not isinstance(node, Einsum) or len(node.operands) != 1:
        return False
    return sorted(node.inputs[0]) == sorted(node.output) == list(range(len(node.dims)))


def _log_of_scan(node: Scan) -> Expr | None:
    """The logarithm of cumulative sums of exponentials; None for other scans."""
    factor, term = node.operands
    if not (isinstance(factor, Einsum) and not factor.operands and len(factor.dims) == node.rank):
        return None
    exponents = _exponents(term)
    return None if exponents is None else cumulative("cumlogsumexp", exponents, node.axis)


def _exponents(node: Expr) -> Expr | None:
    """The logarithms of exponentials that are read, permuted or put beside zeros; else None."""
    views: list[Expr] = []
    while _is_view(node) or isinstance(node, Scatter):
        if len(node.operands) > 1:
            return None
        views.append(node)
        (node,) = node.operands
    if not is_map(node, exp):
        return None
    (result,) = node.operands
    for view in reversed(views):
        result = remade(view, (result,))
        if isinstance(view, Scatter):
            filled = remade(view, (build.ones(view.operands[0].shape),))
            result = build.apply(add, result, build.apply(log, filled))
    return result


@dataclass(frozen=True, slots=True)
class _Order:
    """A condition on two indices: that of axis `inner` comes before that of axis `outer`.

    If not `from_below` it comes after it; `may_equal`: or is the same.
    """

    outer: int
    inner: int
    from_below: bool
    may_equal: bool


def _orders(condition: Expr, own: Axes) -> list[_Order]:
    """A comparison of two indices over one dim, read with either of them as the inner one."""
    if not (isinstance(condition, Map) and condition.function in _ORDERS and condition.rank == 2):
        return []
    first, second = condition.operands
    if not (isinstance(first, Iota) and isinstance(second, Iota) and first is second):
        return []
    a, b = (own[axis] for (axis,) in condition.axes)
    before, may_equal = _ORDERS[condition.function]
    return [_Order(b, a, before, may_equal), _Order(a, b, not before, may_equal)]


def _of_sum(node: Einsum, scales: Scales, is_scaled: bool) -> tuple[Expr, Expr | None]:
    """A contraction with running sums in place of an operand that a condition guards.

    And its logarithm, if it is the exponential of running log-sum-exps.
    """
    for place, (chosen, labels) in enumerate(zip(node.operands, node.inputs, strict=True)):
        if not isinstance(chosen, Map) or chosen.function is not where:
            continue
        condition, terms, other = chosen.operands
        if other is not Const(0.0) or len(set(labels)) < len(labels):
            continue
        elsewhere = {*node.output, *(one for k in _others(node, place) for one in node.inputs[k])}
        for order in _orders(condition, chosen.axes[0]):
            own = chosen.axes[1]
            if order.inner not in own or labels[order.inner] in elsewhere:
                continue
            if order.outer in own:
                pairs = _of_pairs(terms, own, order, scales if is_scaled else None)
                if pairs is None:
                    continue
                apart, logarithm = pairs
                along = tuple(labels[axis] for axis in apart.axes)
                result = _without_label(node, place, apart.expr, along, labels[order.inner])
                if len(node.operands) > 1 or logarithm is None or not _is_view(result):
                    return result, None
                return node, remade(result, (logarithm,))
            along = tuple(labels[order.outer if axis == order.inner else axis] for axis in own)
            axis, dropped = own.index(order.inner), labels[order.inner]
            if is_map(terms, exp) and is_scaled:
                logs = _sums("cumlogsumexp", terms.operands[0], axis, order)
                result = _without_label(node, place, logs, along, dropped)
                if len(node.operands) == 1 and sorted(along) == sorted(node.output):
                    return node, result
                sums: Expr = build.apply(exp, logs)
            elif not is_scaled or is_map(terms, exp) or scales.of(terms) is None:
                sums = _sums("cumsum", terms, axis, order)
            else:
                continue  # Sums of other terms with exponentials are scaled as they are written.
            return _without_label(node, place, sums, along, dropped), None
    return node, None


def _of_pairs(
    terms: Expr, own: Axes, order: _Order, scales: Scales | None
) -> tuple[Placed, Expr | None] | None:
    """The sums of terms of both indices that separate, and their logarithms if they have any.

    The axes are those of the condition. With `scales`, logarithms or quotients are taken of sums.
    """
    along, across = own.index(order.inner), own.index(order.outer)
    apart = separated(terms, along, across)
    if apart is None or (apart.inner is None and not apart.inner_exponents):
        return None
    logs: Expr | None = None
    if not apart.inner_exponents:
        assert apart.inner is not None
        inner = in_order(apart.inner)
        if scales is not None and scales.of(inner.expr) is not None:
            return None  # Sums of other terms with exponentials are scaled as they are written.
        axis = inner.axes.index(along)
        result = _placed(_sums("cumsum", inner.expr, axis, order), inner, apart)
    elif apart.inner is None and not is_of_data(apart.inner_exponents):
        exponents = apart.exponent(apart.inner_exponents)
        axis = exponents.axes.index(along)
        result = _placed(_sums("cumlogsumexp", exponents.expr, axis, order), exponents, apart)
        result = combined(add, apart.exponent(apart.outer_exponents), result)
        logs = result.expr if apart.outer is None else None
        result = combined(exp, result)
    else:
        of_data = is_of_data(apart.inner_exponents)
        sums = apart.decayed if of_data else apart.shifted
        result = sums(*_moves(order, terms.shape[along]))
    if apart.outer is not None:
        result = combined(mul, apart.outer, result)
    return Placed(result.expr, tuple(own[k] for k in result.axes)), logs


def _placed(sums: Expr, of: Placed, apart: Separated) -> Placed:
    axes = tuple(apart.across if k == apart.along else k for k in of.axes)
    return in_order(Placed(sums, axes))


def _moves(order: _Order, dim: Dim) -> tuple[Move, Move, Expr | None]:
    """How elements are sorted, how the last one in a sum is read, and where there is one."""

    def turned(array: Expr, axis: int) -> Expr:
        return array if order.from_below else build.flipped(array, axis)

    def read(array: Expr, axis: int) -> Expr:
        return turned(array if order.may_equal else _after_zero(array, axis), axis)

    if order.may_equal:
        return turned, read, None
    place = build.iota(dim)
    last = sub(build.size_of(dim), 1.0)
    return turned, read, gt(place, 0.0) if order.from_below else lt(place, last)


def _of_log_sum_exp(node: Map) -> Expr | None:
    """Running log-sum-exps for those of the terms for which a condition holds; else None."""
    inner = node.operands[1]
    for function in (log, None, exp, sub):
        if function is None:
            is_next = isinstance(inner, Einsum) and len(inner.operands) == 1
        else:
            is_next = is_map(inner, function)
        if not is_next:
            return None
        inner = inner.operands[0]
    if not isinstance(inner, Map) or inner.function is not where:
        return None
    condition, terms, other = inner.operands
    for order in _orders(condition, inner.axes[0]) if other is Const(-math.inf) else ():
        own = inner.axes[1]
        if order.inner not in own:
            continue
        if logsumexp(inner, (order.inner,)) is not node or len(own) < node.rank:
            continue
        if order.outer in own:
            result = _logs_of_pairs(terms, own, order)
            if result is not None and len(result.axes) == node.rank:
                return result.expr
            continue
        along = tuple(order.outer if axis == order.inner else axis for axis in own)
        sums = _sums("cumlogsumexp", terms, own.index(order.inner), order)
        rest = [axis for axis in range(inner.rank) if axis != order.inner]
        return build.transpose(sums, tuple(along.index(axis) for axis in rest))
    return None


def _logs_of_pairs(terms: Expr, own: Axes, order: _Order) -> Placed | None:
    """Running log-sum-exps of exponents of both indices that are sums of those of one index."""
    along, across = own.index(order.inner), own.index(order.outer)
    apart = separated(build.apply(exp, terms), along, across)
    if apart is None or not apart.inner_exponents or is_of_data(apart.inner_exponents):
        return None
    exponents = apart.exponent(apart.inner_exponents)
    axis = exponents.axes.index(along)
    sums = _placed(_sums("cumlogsumexp", exponents.expr, axis, order), exponents, apart)
    return combined(add, apart.exponent(apart.outer_exponents), sums)


def _others(node: Einsum, place: int) -> list[int]:
    return [k for k in range(len(node.operands)) if k != place]


def _sums(name: str, terms: Expr, axis: int, order: _Order) -> Expr:
    """The sums for each value of the outer index, which takes the axis of the inner one."""
    if not order.may_equal:
        terms = _where_read(terms, axis, order)
    if name == "cumsum":
        turned = terms if order.from_below else build.flipped(terms, axis)
        if not order.may_equal:
            turned = _after_zero(turned, axis)
        sums = cumulative(name, turned, axis)
        return sums if order.from_below else build.flipped(sums, axis)
    every = running(name, terms, axis, from_below=order.from_below)
    first = literal(int(order.from_below == order.may_equal))
    return build.gather(every, Affine.shifted(terms.rank, axis, first), terms.shape)


def _where_read(terms: Expr, axis: int, order: _Order) -> Expr:
    """The terms, and 0 at the end that is in no sum: its derivatives may be infinite there."""
    if isinstance(terms, Input) or (_is_view(terms) and isinstance(terms.operands[0], Input)):
        return terms
    dim = terms.shape[axis]
    place = build.iota(dim)
    read = lt(place, sub(build.size_of(dim), 1.0)) if order.from_below else gt(place, 0.0)
    axes = (axis,), tuple(range(terms.rank)), ()
    return build.apply_along(where, (read, terms, build.const(0.0)), axes, terms.shape)


def _after_zero(terms: Expr, axis: int) -> Expr:
    """0 and all terms but the last one along an axis."""
    wide = (*terms.shape[:axis], terms.shape[axis] + 1, *terms.shape[axis + 1 :])
    padded = build.scatter(terms, Affine.shifted(terms.rank, axis, literal(1)), wide)
    return build.gather(padded, Affine.identity(terms.rank), terms.shape)


def _without_label(node: Einsum, place: int, sums: Expr, along: Axes, label: int) -> Expr:
    """The contraction with another operand, which does not have a summed label."""
    operands = [sums if k == place else one for k, one in enumerate(node.operands)]
    every = [along if k == place else one for k, one in enumerate(node.inputs)]
    number = {one: k for k, one in enumerate(sorted({*range(len(node.dims))} - {label}))}
    inputs = [tuple(number[one] for one in own) for own in every]
    output = tuple(number[one] for one in node.output)
    dims: tuple[Dim, ...] = tuple(dim for k, dim in enumerate(node.dims) if k != label)
    return build.einsum(operands, inputs, output, dims)


def _is_scaled(node: Expr, above: Mapping[Expr, list[Expr]]) -> bool:
    """Whether a logarithm or a quotient of a sum is taken, whose exponentials are scaled."""
    stack, seen = [node], {node}
    while stack:
        for one in above[stack.pop()]:
            if is_map(one, *_SCALED_ABOVE):
                return True
            if one not in seen and (
                isinstance(one, (Einsum, Gather)) or is_map(one, add, sub, mul, neg, where)
            ):
                seen.add(one)
                stack.append(one)
    return False
