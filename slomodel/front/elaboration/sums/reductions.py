"""Reductions over indices, such as `sum(expr for i in n if condition)`, and along array axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce

from slomodel.errors import Span
from slomodel.front.elaboration.errors import (
    OUTSIDE,
    StatementError,
    error,
    shape_error,
    suggestion,
)
from slomodel.front.elaboration.evaluation import Steps
from slomodel.front.elaboration.indices.affine_index import is_at_least_zero
from slomodel.front.elaboration.indices.contraction import total
from slomodel.front.elaboration.indices.grouping import (
    keys_of,
    position_within,
    read_at,
    rows_by_group,
    summed_by_group,
)
from slomodel.front.elaboration.indices.index_sets import bind_iterations, index_at, size_product
from slomodel.front.elaboration.indices.linear_conditions import conjuncts, limits_of
from slomodel.front.elaboration.indices.tuples import TupleSet, has_dependent_range, tuple_set
from slomodel.front.elaboration.scope import Elaboration, Ongoing, Scope, ValueRequest
from slomodel.front.elaboration.sums.cumulative import running
from slomodel.front.elaboration.sums.indicators import with_choices_as_conditions
from slomodel.front.elaboration.sums.moving_ranges import widest
from slomodel.front.elaboration.values import (
    Label,
    Value,
    combine,
    number,
    show,
    square_root,
    squared,
    union,
    with_unit_axes,
)
from slomodel.front.text.syntax import Comprehension, Condition
from slomodel.functions import abs, div, ge, land, mul, where
from slomodel.functions.shifted import log_softmax, logsumexp, softmax
from slomodel.functions.translate import balanced
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal
from slomodel.ir.expr import Affine, Axes, Expr
from slomodel.ir.walk import inputs
from slomodel.problem import Check

_NEUTRAL = {"prod": 1.0, "max": -math.inf, "min": math.inf, "logsumexp": -math.inf}
"""The value that replaces an element excluded by `if`."""


_TERM: dict[str, Callable[[Value], Value]] = {
    "sumsq": squared,
    "norm2": squared,
    "norm1": partial(combine, abs),
}
"""The summand of reductions that are sums of a function of each element."""
_BY_INDEX = ("sum", "mean", *_NEUTRAL, *_TERM)


def comprehension(node: Comprehension, request: ValueRequest) -> Steps:
    scope = request.scope
    own = node if is_in_recurrence(scope) else with_choices_as_conditions(node, scope)
    if own is not node:
        before = scope.model.requirements()
        try:
            return (yield from _comprehension(own, scope))
        except StatementError:
            # As written: a choice may also be between arrays.
            scope.model.restore(before)
    return (yield from _comprehension(node, scope))


def _comprehension(node: Comprehension, scope: Scope) -> Steps:
    name = node.function.text
    if name not in _BY_INDEX:
        message = f"`{name}` does not take `for`"
        remedy = suggestion(name, _BY_INDEX) or "`sum`, `mean` and `prod` do"
        raise error("E212", message, node.function.span, remedy)
    if has_dependent_range(node.iterations, scope):
        found = yield from running(node, scope)
        if found is not None:
            return found
        return (yield from _over_dependent(node, scope))
    labels, inner = bind_iterations(node.iterations, scope)
    if node.condition is None:
        return (yield from _over(node, scope, TupleSet(labels, inner, {}, ())))
    # A condition may be what ensures that an index stays inside its axis.
    before = scope.model.requirements()
    result, outside = None, None
    try:
        result = yield from _over_list(node, scope, guarded=False)
    except StatementError as problem:
        if problem.diagnostic is None or problem.diagnostic.code not in OUTSIDE:
            raise
        outside = problem
    after = scope.model.requirements()
    if result is not None and (after.bounds, after.lookups) == (before.bounds, before.lookups):
        return result
    # Sizes or data decide whether an index stays inside: for the tuples that the condition leaves.
    scope.model.restore(before)
    attempts = [partial(_over_list, node, scope, guarded=True), partial(_masked, node, scope)]
    if _is_one_sided(node.condition, inner):
        # Most tuples are left, or half of them: shifted arrays are read faster than lists.
        attempts.reverse()
    for attempt in attempts:
        try:
            return (yield from attempt())
        except StatementError:
            scope.model.restore(before)
    if result is None:
        assert outside is not None
        raise outside
    scope.model.restore(after)
    return result


def _is_one_sided(condition: Condition, scope: Scope) -> bool:
    """Whether a condition is one comparison of indices, as `l <= t`, and not a band."""
    limits = limits_of(condition, scope)
    return len(limits) == 1 and not limits[0].form.rest


def _over_dependent(node: Comprehension, scope: Scope) -> Steps:
    """A reduction over ranges that depend on other indices or on data.

    In a recurrence a range that depends on time cannot be a list, which would combine several
    steps: a condition then excludes the tuples outside the range.
    """
    before = scope.model.requirements()
    try:
        return (yield from _over_list(node, scope, guarded=False))
    except StatementError:
        if not is_in_recurrence(scope):
            raise
        scope.model.restore(before)
        tuples = yield from widest(node, scope)
        if tuples is None:
            raise
    return (yield from _over(node, scope, tuples))


def _masked(node: Comprehension, scope: Scope) -> Steps:
    """A reduction over all tuples, where the condition guards indices; without lists of tuples.

    In a recurrence these would combine several steps.
    """
    assert node.condition is not None
    labels, inner = bind_iterations(node.iterations, scope)
    condition = yield ValueRequest(node.condition, inner)
    if condition.rank or any(one.role != "data" for one in inputs(condition.expr)):
        raise StatementError(None)
    guarded = replace(inner, guard=condition)
    if is_in_recurrence(scope):
        return (yield from _over(node, scope, TupleSet(labels, guarded, {}, (), (condition,))))
    return (yield from _over(node, scope, TupleSet(labels, guarded, {}, conjuncts(node.condition))))


def is_in_recurrence(scope: Scope) -> bool:
    return any(isinstance(one, Ongoing) for one in scope.local.values())


def _over_list(node: Comprehension, scope: Scope, guarded: bool) -> Steps:
    """A reduction over tuples that depend on data."""
    tuples = yield from tuple_set(node.iterations, conjuncts(node.condition), scope, guarded)
    return (yield from _over(node, scope, tuples))


def _over(node: Comprehension, scope: Scope, tuples: TupleSet) -> Steps:
    """A reduction over a set of tuples, some of which are excluded by conditions."""
    name, labels, inner = node.function.text, tuples.labels, tuples.scope
    groups = dict(tuples.groups)
    conditions = list(tuples.inside)
    left = tuples.left
    for key in (yield from keys_of(left, inner, labels)):
        # The rows of a group are elements along one axis.
        if name in _NEUTRAL and len(union([*groups.values(), key.place])) > 1:
            continue
        groups[key.label], inside = position_within(key.label.dim, key.place, scope.model)
        conditions += [] if inside is None else [inside]
        left = tuple(one for one in left if one is not key.equation)
    known = {
        label.name: index_at(label, value)
        for label, value in groups.items()
        if label not in tuples.groups
    }
    inner = inner.with_local(known)
    if inner.guard is not None:
        inner = replace(inner, guard=read_at(inner.guard, groups))
    body = yield ValueRequest(node.body, inner)
    as_written = node.condition is not None and left == conjuncts(node.condition)
    for one in (node.condition,) if as_written else left:
        assert one is not None
        condition = yield ValueRequest(one, inner)
        if condition.rank:
            message = f"the condition of a sum must be one truth value, not {show(condition)}"
            raise shape_error("E212", message, one.span, "index its arrays: `y[i] > 0`")
        conditions.append(condition)
    holds = reduce(partial(combine, land), conditions) if conditions else None
    if name == "mean" and not groups:
        require_nonempty(name, scope.model, [label.dim for label in labels], node.span)
    if name in _TERM:
        body = _TERM[name](body)
        body = total(body) if body.rank else body
    if name not in _NEUTRAL:
        result = _sum(scope, node, labels, body, holds, groups)
        return square_root(result) if name == "norm2" else result
    neutral = number(_NEUTRAL[name])
    if holds is not None:
        body = combine(where, holds, body, neutral)
        scope.note(body, node.span)
    if not groups:
        return reduced(name, body, scope.model, node.span, labels=labels)
    # Each group becomes a row, padded with the neutral element of the reduction.
    listed = union(groups.values())
    rest = [label for label in labels if label not in listed]
    body = reduced(name, body, scope.model, node.span, labels=rest) if rest else body
    rows, inside, along = rows_by_group(body, groups, scope.model)
    body = combine(where, inside, rows, neutral)
    scope.note(body, node.span)
    return reduced(name, body, scope.model, node.span, labels=[along], may_be_empty=True)


def _sum(
    scope: Scope,
    node: Comprehension,
    labels: Sequence[Label],
    body: Value,
    condition: Value | None,
    groups: Mapping[Label, Value],
) -> Value:
    """The sum or mean of the terms for which the condition holds, per group if there are groups."""
    counted = number(1.0)
    if condition is not None:
        counted = combine(where, condition, counted, number(0.0))
        body = combine(where, condition, body, number(0.0))
        scope.note(body, (node.condition or node).span)
    count: Value | None = None
    if groups:
        count = summed_by_group(counted, groups, labels)
        result = summed_by_group(body, groups, labels)
    else:
        result = total(body, labels, ())
        if condition is not None:
            count = total(counted, labels, ())
    if node.function.text == "mean":
        if count is not None:
            scope.model.counts[count.expr] = node.span
        return combine(div, result, count or size_product([label.dim for label in labels]))
    return result


MOST_UNROLLED = 32
"""Products of at most this many factors are written out; longer ones are recurrences."""

_Reduction = Callable[[Expr, Axes], Expr]


def reduced(
    name: str,
    value: Value,
    model: Elaboration,
    span: Span,
    *,
    labels: Sequence[Label] = (),
    axes: Sequence[int] = (),
    may_be_empty: bool = False,
) -> Value:
    """`prod`, `max`, `min` or `logsumexp` of a value over some labels and some axes.

    Along a label on which it does not depend, the value is repeated. It is an error if there are no
    elements, unless `may_be_empty`.
    """
    value = with_unit_axes(value)
    absent = [label for label in labels if label not in value.labels]
    every = (*absent, *value.labels)
    shape = tuple(label.dim for label in every) + value.dims
    expr = build.broadcast(value.expr, tuple(range(len(absent), len(shape))), shape)
    dropped = [k for k, label in enumerate(every) if label in labels]
    dropped += [len(every) + axis for axis in axes]
    if name != "prod" and not may_be_empty:
        require_nonempty(name, model, [shape[k] for k in dropped], span)
    kept = tuple(label for label in value.labels if label not in labels)
    rest = tuple(axis for k, axis in enumerate(value.axes) if k not in axes)
    return Value(_REDUCTIONS[name](expr, tuple(sorted(dropped))), kept, rest)


def softened(name: str, value: Value, axis: int, model: Elaboration, span: Span) -> Value:
    """`softmax` or `log_softmax` of a value along one axis."""
    require_nonempty(name, model, [value.dims[axis]], span)
    place = len(value.labels) + axis
    function = softmax if name == "softmax" else log_softmax
    return Value(function(value.expr, (place,)), value.labels, value.axes)


def require_nonempty(name: str, model: Elaboration, dims: Sequence[Dim], span: Span) -> None:
    """Raise an error for a mean or extreme of no elements, now or at bind."""
    for dim in dims:
        at_least_one = is_at_least_zero(dim - 1)
        if at_least_one is False:
            message = f"the {name} of no elements is undefined"
            raise shape_error("E212", message, span, "take it over at least one element")
        if at_least_one is None:
            condition = ge(build.size_of(dim), 1.0)
            model.checks.append(Check(condition, span.text, span, f"`{span.text}` has no elements"))


def _product(expr: Expr, axes: Axes) -> Expr:
    """The product along `axes`, in a form whose derivative is right where factors are 0."""
    for axis in reversed(axes):
        dim = expr.shape[axis]
        if dim.is_literal and 1 <= dim.const <= MOST_UNROLLED:
            elements = [_element(expr, axis, k) for k in range(dim.const)]
            # Pairwise, so that the graph remains shallow.
            expr = balanced(mul, elements)
        else:
            expr = build.product_over(expr, axis)
    return expr


def _element(expr: Expr, axis: int, k: int) -> Expr:
    rest = [j for j in range(expr.rank) if j != axis]
    index = [
        Affine(literal(k) if j == axis else Dim(), tuple(int(j == other) for other in rest))
        for j in range(expr.rank)
    ]
    return build.gather(expr, index, tuple(expr.shape[j] for j in rest))


_REDUCTIONS: dict[str, _Reduction] = {
    "prod": _product,
    "max": lambda expr, axes: build.extreme(expr, "max", axes),
    "min": lambda expr, axes: build.extreme(expr, "min", axes),
    "logsumexp": logsumexp,
}
