"""Sums over the elements on one side of a limit: `sum(exp(x[j]) for j in N if time[j] >= time[i])`.

The elements are sorted by their data once, and added up in that order: each sum is one of the
partial sums, so that N elements and M limits take N + M operations instead of N M.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from functools import partial, reduce
from typing import TypeAlias

from slomodel.front.elaboration.errors import StatementError
from slomodel.front.elaboration.evaluation import Steps
from slomodel.front.elaboration.indices.grouping import read_at
from slomodel.front.elaboration.indices.index_sets import bind_iterations
from slomodel.front.elaboration.indices.linear_conditions import conjuncts
from slomodel.front.elaboration.scope import Elaboration, Scope, ValueRequest
from slomodel.front.elaboration.sums.reductions import comprehension
from slomodel.front.elaboration.values import Label, Value, combine, number, with_unit_axes
from slomodel.front.text.syntax import Compare, Comprehension, Condition
from slomodel.functions import gt, land, sub, where
from slomodel.functions.running import cumulative
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal
from slomodel.ir.expr import Affine, Expr, Listed
from slomodel.ir.walk import inputs

_NEUTRAL = {"sum": 0.0, "logsumexp": -math.inf}
_CUMULATIVE = {"sum": "cumsum", "logsumexp": "cumlogsumexp"}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COUNTED: dict[str, Listed] = {"<": "below", "<=": "upto", ">": "upto", ">=": "below"}
"""How many of the sorted elements precede the first for which the condition changes."""

OrderedSum: TypeAlias = Generator[ValueRequest, Value, Value | None]


def by_index(node: Comprehension, request: ValueRequest) -> Steps:
    """The value of a reduction over indices."""
    scope = request.scope
    compared = (conjunct for conjunct in conjuncts(node.condition) if isinstance(conjunct, Compare))
    if node.function.text in _NEUTRAL and any(one.op in _MIRRORED for one in compared):
        before = scope.model.requirements()
        try:
            result = yield from ordered_sum(node, scope)
        except StatementError:
            result = None  # the general rule reports the error, or a condition prevents it
        if result is not None:
            return result
        scope.model.restore(before)
    return (yield from comprehension(node, request))


def ordered_sum(node: Comprehension, scope: Scope) -> OrderedSum:
    """The sum or log-sum-exp over the elements on one side of a limit; None if it is not one."""
    name = node.function.text
    if name not in _NEUTRAL or len(node.iterations) != 1:
        return None
    (label,), inner = bind_iterations(node.iterations, scope)
    sides: list[tuple[Value, str, Value]] = []
    rest: list[Value] = []
    for condition in conjuncts(node.condition):
        side = yield from _sides(condition, label, inner)
        if side is not None:
            sides.append(side)
            continue
        value = yield ValueRequest(condition, inner)
        if value.rank or set(value.labels) - {label}:
            return None
        rest.append(value)
    if len(sides) != 1:
        return None
    body = yield ValueRequest(node.body, inner)
    if body.labels != (label,):
        return None
    neutral = number(_NEUTRAL[name])
    if rest:
        body = combine(where, reduce(partial(combine, land), rest), body, neutral)
    key, op, limit = sides[0]
    table, count = _partial_results(name, with_unit_axes(body), key, (op, limit), scope.model)
    result = read_at(table, {table.labels[0]: count})
    if name == "logsumexp":
        result = combine(where, combine(gt, count, number(0.0)), result, neutral)
    return result


def _sides(
    condition: Condition, label: Label, inner: Scope
) -> Generator[ValueRequest, Value, tuple[Value, str, Value] | None]:
    """The data over `label`, the comparison, and the limit over one other index, of a condition."""
    if not isinstance(condition, Compare) or condition.op not in _MIRRORED:
        return None
    left = yield ValueRequest(condition.left, inner)
    right = yield ValueRequest(condition.right, inner)
    op = condition.op
    if right.labels == (label,):
        left, right, op = right, left, _MIRRORED[op]
    known = [one.role == "data" for one in inputs(left.expr, right.expr)]
    if not known or not all(known) or left.rank or right.rank:
        return None
    alone = left.labels == (label,) and len(right.labels) == 1 and right.labels != (label,)
    return (left, op, right) if alone else None


def _partial_results(
    name: str, body: Value, key: Value, side: tuple[str, Value], model: Elaboration
) -> tuple[Value, Value]:
    """The results over the first k elements in sorted order, for all k, and the k of each limit."""
    op, limit = side
    (label,) = key.labels
    size = label.dim
    order = build.listing("order", (key.expr,), size)
    counts = build.listing(_COUNTED[op], (key.expr, limit.expr), limit.labels[0].dim)
    if op in (">", ">="):
        order = build.gather(order, [Affine(size - 1, (-1,))], (size,))
        counts = build.apply(sub, build.size_of(size), counts)
    sorted_label = model.label("", size)
    elements = read_at(body, {label: Value(order, (sorted_label,))})
    added = cumulative(_CUMULATIVE[name], elements.expr, 0)
    table = build.scatter(added, _one_further(added), (size + 1, *added.shape[1:]))
    ends = model.label("", size + 1)
    return Value(table, (ends,), body.axes), Value(counts, limit.labels)


def _one_further(array: Expr) -> list[Affine]:
    every = range(array.rank)
    return [
        Affine(Dim() if axis else literal(1), tuple(int(k == axis) for k in every))
        for axis in every
    ]
