"""Values that are used only where a condition holds: it guards the indices in them."""

from __future__ import annotations

from dataclasses import replace

from slomodel.front.elaboration.errors import OUTSIDE, StatementError
from slomodel.front.elaboration.evaluation import Steps
from slomodel.front.elaboration.scope import Scope, ValueRequest
from slomodel.front.elaboration.values import Value, combine
from slomodel.front.text.syntax import Node
from slomodel.functions import land
from slomodel.ir.walk import inputs


def under_condition(node: Node, scope: Scope, condition: Value) -> Steps:
    """The value of an expression that is used only where a condition holds.

    If sizes or data decide whether its indices stay inside their axes, a condition on indices and
    data guards them.
    """
    model = scope.model
    before = model.requirements()
    problem: StatementError | None = None
    try:
        value = yield ValueRequest(node, scope)
    except StatementError as error:
        if error.diagnostic is None or error.diagnostic.code not in OUTSIDE:
            raise
        problem = error
    after = model.requirements()
    is_guard = not condition.rank and all(one.role == "data" for one in inputs(condition.expr))
    changed = (after.bounds, after.lookups) != (before.bounds, before.lookups)
    if is_guard and (problem is not None or changed):
        guard = condition if scope.guard is None else combine(land, scope.guard, condition)
        model.restore(before)
        try:
            return (yield ValueRequest(node, replace(scope, guard=guard)))
        except StatementError:
            model.restore(after)
    if problem is not None:
        raise problem
    return value
