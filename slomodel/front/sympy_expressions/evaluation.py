"""Iterative evaluation of a SymPy expression: rules are generators that yield requests."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias

import sympy as sp

from slomodel.front.elaboration.values import Value
from slomodel.front.sympy_expressions.scope import IndexScope
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Input


@dataclass(frozen=True, slots=True)
class SymPyRequest:
    """A request for the value of a node in a scope."""

    node: sp.Basic
    scope: IndexScope


Steps: TypeAlias = Generator[SymPyRequest, Value, Value]
"""A rule in progress: it yields requests, receives their values, and returns its own value."""


def run(first: SymPyRequest, rule: Callable[[SymPyRequest], Steps]) -> Value:
    """The value of a request; equal requests are evaluated once."""
    done: dict[SymPyRequest, Value] = {}
    stack = [(first, rule(first))]
    answer: Value | None = None
    while stack:
        request, steps = stack[-1]
        try:
            wanted = next(steps) if answer is None else steps.send(answer)
        except StopIteration as stop:
            answer = done[request] = stop.value
            note(request.scope, answer.expr, request.node)
            stack.pop()
            continue
        answer = done.get(wanted)
        if answer is None:
            stack.append((wanted, rule(wanted)))
    return done[first]


def note(scope: IndexScope, expr: Expr, origin: sp.Basic) -> None:
    """Record the origin of a node, below the axes along which it is constant."""
    while isinstance(expr, Einsum) and build.is_broadcast(expr):
        expr = expr.operands[0]
    if not isinstance(expr, (Const, Input)):
        scope.translation.places.note(expr, origin)
