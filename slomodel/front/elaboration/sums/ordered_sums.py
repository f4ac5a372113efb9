"""Sums over the elements on one side of a limit: `sum(exp(x[j]) for j in N if time[j] >= time[i])`.

The elements are sorted by their data once, and added up in that order: each sum is one of the
partial sums, so that N elements and M limits take N + M operations instead of N M.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TypeAlias

from slomodel.front.elaboration.errors import StatementError
from slomodel.front.elaboration.evaluation import Steps
from slomodel.front.elaboration.indices.contraction import total
from slomodel.front.elaboration.indices.grouping import read_at
from slomodel.front.elaboration.indices.index_sets import bind_iterations
from slomodel.front.elaboration.indices.linear_conditions import conjuncts
from slomodel.front.elaboration.indices.tuples import has_dependent_range
from slomodel.front.elaboration.scope import Elaboration, Scope, ValueRequest
from slomodel.front.elaboration.sums.indicators import names_in, with_choices_as_conditions
from slomodel.front.elaboration.sums.reductions import comprehension, is_in_recurrence
from slomodel.front.elaboration.values import Label, Value, combine, number, with_unit_axes
from slomodel.front.text.syntax import (
    BoolOp,
    Compare,
    Comprehension,
    Condition,
    NumberLiteral,
    SumChain,
)
from slomodel.front.text.syntax import Expr as Expression
from slomodel.functions import add, exp, gt, land, log, mul, sub, where
from slomodel.functions.running import cumulative, running
from slomodel.functions.separated import Placed, after_lowest, after_zero, is_of_data, separated
from slomodel.ir import build
from slomodel.ir.expr import Affine, Expr, Index, Listed, Lookup
from slomodel.ir.walk import inputs

_NEUTRAL = {"sum": 0.0, "logsumexp": -math.inf}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COUNTED: dict[str, Listed] = {"<": "below", "<=": "upto", ">": "upto", ">=": "below"}
"""How many of the sorted elements precede the first for which the condition changes."""

OrderedSum: TypeAlias = Generator[ValueRequest, Value, Value | None]


def by_index(node: Comprehension, request: ValueRequest) -> Steps:
    """The value of a reduction over indices."""
    scope = request.scope
    own = node if is_in_recurrence(scope) else with_choices_as_conditions(node, scope)
    compared = (one for one in conjuncts(own.condition) if isinstance(one, Compare))
    if own.function.text in _NEUTRAL and any(one.op in _MIRRORED for one in compared):
        for attempt in (ordered_sum, _ordered_pairs):
            before = scope.model.requirements()
            try:
                result = yield from attempt(own, scope)
            except StatementError:
                result = None  # the general rule reports the error, or a condition prevents it
            if result is not None:
                return result
            scope.model.restore(before)
    return (yield from comprehension(node, request))


def ordered_sum(node: Comprehension, scope: Scope) -> OrderedSum:
    """The sum or log-sum-exp over the elements on one side of a limit; None if it is not one."""
    name = node.function.text
    if len(node.iterations) != 1 or has_dependent_range(node.iterations, scope):
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
    body = with_unit_axes((yield ValueRequest(node.body, inner)))
    if label not in body.labels:
        return None
    key, op, limit = sides[0]
    limited = Limited(key, op, limit, reduce(partial(combine, land), rest) if rest else None)
    if limit.labels[0] not in body.labels:
        return _of_elements(name, body, limited, scope.model)
    return None if body.rank else _of_pairs(name, body, limited, scope.model)


def _ordered_pairs(node: Comprehension, scope: Scope) -> OrderedSum:
    """A sum over pairs as the sum of ordered sums over one of the indices."""
    if node.function.text != "sum" or len(node.iterations) != 2:
        return None
    if has_dependent_range(node.iterations, scope):
        return None
    for k, own in enumerate(node.iterations):
        other = node.iterations[1 - k]
        (label,), outer = bind_iterations((other,), scope)
        mine = {name.text for name in own.names}
        conditions = conjuncts(node.condition)
        inside = tuple(one for one in conditions if mine & names_in(one))
        if not inside:
            continue
        both = inside[0] if len(inside) == 1 else BoolOp("and", inside, inside[0].span)
        part = yield from ordered_sum(replace(node, iterations=(own,), condition=both), outer)
        if part is None:
            continue
        for one in conditions:
            if one not in inside:
                value = yield ValueRequest(one, outer)
                part = combine(where, value, part, number(0.0))
        return total(part, [label])
    return None


def _difference(condition: Compare) -> tuple[Expression, Expression] | None:
    """a and b if the condition compares a - b with 0, which is as exact as a with b."""
    left, right = condition.left, condition.right
    if not (isinstance(right, NumberLiteral) and right.value == 0.0):
        return None
    if not isinstance(left, SumChain) or len(left.rest) != 1 or left.rest[0].op != "-":
        return None
    return left.first, left.rest[0].operand


@dataclass(frozen=True, slots=True)
class Limited:
    """The elements with `key op limit` for which further data hold as well."""

    key: Value
    op: str
    limit: Value
    holds: Value | None

    @property
    def label(self) -> Label:
        return self.key.labels[0]

    def sorted(self, array: Expr, axis: int) -> Expr:
        """The elements along an axis with those first that are in the most sums."""
        size = self.label.dim
        order = build.listing("order", (self.key.expr,), size)
        if self.op in (">", ">="):
            order = build.gather(order, [Affine(size - 1, (-1,))], (size,))
        return _read(array, axis, order)

    @property
    def counts(self) -> Expr:
        """How many of the sorted elements are in the sum of each limit."""
        dim = self.limit.labels[0].dim
        counts = build.listing(_COUNTED[self.op], (self.key.expr, self.limit.expr), dim)
        if self.op in (">", ">="):
            counts = build.apply(sub, build.size_of(self.label.dim), counts)
        return counts


def _read(array: Expr, axis: int, places: Expr) -> Expr:
    """The elements of an array at places along an axis."""
    shape = (*array.shape[:axis], places.shape[0], *array.shape[axis + 1 :])
    index: list[Index] = list(Affine.identity(array.rank))
    index[axis] = Lookup((axis,), places)
    return build.gather(array, index, shape)


def _of_elements(name: str, body: Value, limited: Limited, model: Elaboration) -> Value:
    """Sums or log-sum-exps of terms that do not depend on the index of the limit."""
    neutral = number(_NEUTRAL[name])
    if limited.holds is not None:
        body = combine(where, limited.holds, body, neutral)
    axis = body.labels.index(limited.label)
    terms = limited.sorted(body.expr, axis)
    if name == "sum":
        table = after_zero(cumulative("cumsum", terms, axis), axis)
    elif limited.holds is None:
        table = cumulative("cumlogsumexp", after_lowest(terms, axis), axis)
    else:
        table = running("cumlogsumexp", terms, axis, from_below=True)
    ends = model.label("", limited.label.dim + 1)
    labels = (*body.labels[:axis], ends, *body.labels[axis + 1 :])
    count = Value(limited.counts, limited.limit.labels)
    result = read_at(Value(table, labels, body.axes), {ends: count})
    if name == "logsumexp":
        result = combine(where, combine(gt, count, number(0.0)), result, neutral)
    return result


def _of_pairs(name: str, body: Value, limited: Limited, model: Elaboration) -> Value | None:
    """Sums or log-sum-exps of terms in which the index of the limit occurs apart."""
    along, across = (body.labels.index(one.labels[0]) for one in (limited.key, limited.limit))
    if name == "sum":
        terms = separated(body.expr, along, across)
    else:
        terms = separated(build.apply(exp, body.expr), along, across)
    if terms is None:
        return None

    def value(one: Placed) -> Value:
        labels = [body.labels[k] for k in one.axes]
        order = sorted(range(len(labels)), key=lambda k: labels[k].order)
        expr = build.transpose(one.expr, tuple(order))
        return Value(expr, tuple(labels[k] for k in order))

    if not terms.inner_exponents:
        if name != "sum":
            return None
        ones = Value(build.ones((limited.label.dim,)), (limited.label,))
        inner = ones if terms.inner is None else value(terms.inner)
        result = _of_elements(name, inner, limited, model)
    elif terms.inner is None and not is_of_data(terms.inner_exponents, limited.key.expr):
        exponents = value(terms.exponent(terms.inner_exponents))
        result = _of_elements("logsumexp", exponents, limited, model)
        result = combine(add, value(terms.exponent(terms.outer_exponents)), result)
        result = result if name == "logsumexp" else combine(exp, result)
    else:
        counts = limited.counts
        exists = build.apply(gt, counts, build.const(0.0))
        terms = terms.where_inner(None if limited.holds is None else limited.holds.expr)
        by_key = is_of_data(terms.inner_exponents, limited.key.expr)
        sums = terms.decayed if by_key else terms.shifted

        def read(array: Expr, k: int) -> Expr:
            return _read(after_zero(array, k), k, counts)

        result = value(sums(limited.sorted, read, exists))
        result = result if name == "sum" else combine(log, result)
    return result if terms.outer is None else combine(mul, value(terms.outer), result)


def _sides(
    condition: Condition, label: Label, inner: Scope
) -> Generator[ValueRequest, Value, tuple[Value, str, Value] | None]:
    """The data over `label`, the comparison, and the limit over one other index, of a condition."""
    if not isinstance(condition, Compare) or condition.op not in _MIRRORED:
        return None
    sides = _difference(condition) or (condition.left, condition.right)
    left = yield ValueRequest(sides[0], inner)
    right = yield ValueRequest(sides[1], inner)
    op = condition.op
    if right.labels == (label,):
        left, right, op = right, left, _MIRRORED[op]
    known = [one.role == "data" for one in inputs(left.expr, right.expr)]
    if not known or not all(known) or left.rank or right.rank:
        return None
    alone = left.labels == (label,) and len(right.labels) == 1 and right.labels != (label,)
    return (left, op, right) if alone else None
