"""Ranges that move with the steps of a recurrence: `sum(w[s] * I[t-s] for s in range(1, t+1))`.

A list of tuples would combine several steps. So the index runs over all values that it takes at any
step, and a condition excludes those outside the range.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import partial, reduce

from slomodel.front.elaboration.errors import StatementError
from slomodel.front.elaboration.indices.affine_index import affine
from slomodel.front.elaboration.indices.index_sets import (
    check_names,
    index_value,
    label_of,
    range_arguments,
)
from slomodel.front.elaboration.indices.linear_conditions import conjuncts
from slomodel.front.elaboration.indices.tuples import TupleSet, is_dependent
from slomodel.front.elaboration.scope import Scope, ValueRequest
from slomodel.front.elaboration.values import Label, Value, combine
from slomodel.front.text.syntax import Comprehension, Expr, FunctionCall, Node
from slomodel.functions import ge, land, lt
from slomodel.ir.dims import Dim
from slomodel.ir.walk import inputs


def widest(node: Comprehension, scope: Scope) -> Generator[ValueRequest, Value, TupleSet | None]:
    """The tuples of a sum over the widest ranges, with conditions; None for ranges of other kinds.

    An end that is `min` or `max` of several is bounded by one that is the same at all steps.
    """
    labels: list[Label] = []
    inside: list[Value] = []
    inner = scope
    for iteration in node.iterations:
        check_names(iteration, inner, ())
        names = {label.name for label in labels}
        if is_dependent(iteration, inner, names):
            assert isinstance(iteration.domain, FunctionCall)
            low, high, step = range_arguments(iteration.domain, inner)
            start = Dim() if low is None else _outermost(low, "max", inner)
            end = _outermost(high, "min", inner)
            if step != 1 or start is None or end is None:
                return None
            name = iteration.name.text
            label = scope.model.label(name, end - start, start, is_range=True)
            for limit, function in ((low, ge), (high, lt)):
                if limit is not None:
                    value = yield ValueRequest(limit, inner)
                    inside.append(combine(function, index_value(label), value))
        else:
            label = label_of(iteration, inner)
        labels.append(label)
        inner = inner.with_local({label.name: label})
    guards = [*inside, *([] if scope.guard is None else [scope.guard])]
    guard = reduce(partial(combine, land), guards)
    guarded = replace(inner, guard=guard)
    left = conjuncts(node.condition)
    if node.condition is not None:
        condition = yield ValueRequest(node.condition, guarded)
        if not condition.rank:
            # As it stands: an equation with the index of time must not group the terms by step.
            inside.append(condition)
            left = ()
            if all(one.role == "data" for one in inputs(condition.expr)):
                guarded = replace(inner, guard=combine(land, guard, condition))
    return TupleSet(tuple(labels), guarded, {}, left, tuple(inside))


def _outermost(end: Expr, name: str, scope: Scope) -> Dim | None:
    """The end of a range at the steps where it is widest; None if it is not affine in indices."""
    ends: tuple[Node, ...] = (end,)
    if isinstance(end, FunctionCall) and end.function.text == name and not end.kwargs:
        ends = end.args
    forms = []
    for one in ends:
        try:
            forms.append(affine(one, scope))
        except StatementError:
            continue
    fixed = [form.offset for form in forms if not form.labels]
    moving = [form.least if name == "max" else form.most for form in forms]
    return next(iter([*fixed, *moving]), None)
