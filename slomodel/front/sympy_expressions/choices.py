"""Piecewise expressions, whose conditions on indices and data make the indices below them legal."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from slomodel.front.elaboration.values import Value, combine
from slomodel.front.sympy_expressions.evaluation import Steps, SymPyRequest
from slomodel.functions import land, lnot, where
from slomodel.ir.walk import inputs


def is_choice(node: sp.Basic) -> bool:
    """Whether a node is a Piecewise in which arrays are indexed."""
    return isinstance(node, sp.Piecewise) and any(one.expr.has(sp.Indexed) for one in node.args)


def choice(request: SymPyRequest) -> Steps:
    """The branch of the first condition that holds."""
    node, scope = request.node, request.scope
    branches: list[tuple[Value | None, Value]] = []
    before: Value | None = None
    for branch in node.args:
        condition: Value | None = None
        holds = before
        if branch.cond is not sp.true:
            condition = yield SymPyRequest(branch.cond, scope)
            holds = condition if before is None else combine(land, before, condition)
            other = combine(lnot, condition)
            before = other if before is None else combine(land, before, other)
        inner = scope
        if holds is not None and all(one.role == "data" for one in inputs(holds.expr)):
            guard = holds if scope.guard is None else combine(land, scope.guard, holds)
            inner = replace(scope, guard=guard)
        branches.append((condition, (yield SymPyRequest(branch.expr, inner))))
    result = branches[-1][1]
    for condition, value in reversed(branches[:-1]):
        assert condition is not None
        result = combine(where, condition, value, result)
    return result
