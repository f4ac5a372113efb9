"""Definitions, checks and the objective."""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.front.elaboration.errors import error, shape_error
from slomodel.front.elaboration.expressions.expressions import evaluate, requested
from slomodel.front.elaboration.indices.contraction import total
from slomodel.front.elaboration.indices.index_sets import bind_iterations, defined
from slomodel.front.elaboration.recurrences.recurrences import check_group, recurrent
from slomodel.front.elaboration.scope import Elaboration, Scope, Symbol
from slomodel.front.elaboration.values import Value, combine, number, show
from slomodel.front.text.syntax import (
    CheckStatement,
    Comprehension,
    Let,
    Negate,
    Node,
    ObjectiveStatement,
    ProductChain,
    SumChain,
)
from slomodel.front.text.traversal import children
from slomodel.functions import eq, where
from slomodel.ir.expr import Expr
from slomodel.ir.walk import inputs
from slomodel.problem import Check


def declare_let(statement: Let, model: Elaboration) -> None:
    name = statement.name
    scope = Scope(model)
    if statement.indices is None:
        value = evaluate(statement.expr, scope, sparse=True)
    else:
        labels, inner = bind_iterations(statement.indices, scope)
        value = defined(statement, labels, evaluate(statement.expr, inner), scope)
        model.note(value, statement.expr.span)
    model.declare(Symbol(name.text, "definition", name.span, value=value))


def declare_recurrence(group: Sequence[Let], model: Elaboration) -> None:
    """Declare the arrays that a recurrence computes, each with time as its first axis."""
    check_group(group)
    for statement in group:
        if statement.name.text in model.symbols:
            model.declare(Symbol(statement.name.text, "definition", statement.name.span))
    steps = recurrent(group, Scope(model))
    result: list[Value] = []
    try:
        request = next(steps)
        while True:
            request = steps.send(requested(request))
    except StopIteration as stop:
        result = stop.value
    for statement, value in zip(group, result, strict=True):
        name = statement.name
        model.declare(Symbol(name.text, "definition", name.span, value=value))


def check_condition(statement: CheckStatement, model: Elaboration) -> Check:
    """A condition on data as one truth value: for arrays it must hold for all elements."""
    node = statement.condition
    value = evaluate(node, Scope(model))
    named = [array.name for array in inputs(value.expr) if array.role == "variable"]
    if named:
        message = f"`check` tests data, and `{named[0]}` is a variable"
        remedy = "declare its set instead, as in `var x > 0` or `var x in [0, 1]`"
        raise error("E219", message, statement.span, remedy)
    return Check(holds_everywhere(value).expr, node.span.text, statement.span)


def holds_everywhere(condition: Value) -> Value:
    """A single truth value: whether all elements are true."""
    if not condition.rank:
        return condition
    failures = total(combine(where, condition, number(0.0), number(1.0)))
    return combine(eq, failures, number(0.0))


def objective_value(statement: ObjectiveStatement, model: Elaboration) -> Expr:
    value = evaluate(statement.expr, Scope(model))
    if value.rank:
        text = statement.expr.span.text
        short = text if len(text) <= 30 and "\n" not in text else "…"
        message = f"the objective must be a number, not an array of shape {show(value)}"
        remedy = f"did you mean `sum({short})` or `sumsq({short})`?"
        inner = _sum_of_arrays(statement.expr, model)
        if inner is not None:
            reduced = f"`{inner.function.text}(… for {inner.iterations[0].name.text} in …)`"
            remedy = f"the terms of {reduced} are arrays: index all that stands in them"
        raise shape_error("E213", message, statement.expr.span, remedy)
    return value.expr


def _sum_of_arrays(objective: Node, model: Elaboration) -> Comprehension | None:
    """A reduction by `for` in the terms of an objective that gives an array; None without one."""
    match objective:
        case Comprehension():
            return objective if evaluate(objective, Scope(model)).rank else None
        case Negate() | SumChain() | ProductChain():
            found = (_sum_of_arrays(child, model) for child in children(objective))
            return next((one for one in found if one is not None), None)
    return None
