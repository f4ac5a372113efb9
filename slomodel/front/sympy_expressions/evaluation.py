"""Reading a SymPy expression with a stack of its own: rules ask for the values of their parts."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias

import sympy as sp

from slomodel.front.elaboration.values import Value
from slomodel.front.sympy_expressions.scope import Scope
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Input


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for the value of a node where it stands."""

    node: sp.Basic
    scope: Scope


Steps: TypeAlias = Generator[Ask, Value, Value]
"""A rule in progress: it yields requests, receives their values, and returns its own."""


def run(first: Ask, rule: Callable[[Ask], Steps]) -> Value:
    """The value of a request; equal requests are answered once."""
    done: dict[Ask, Value] = {}
    stack = [(first, rule(first))]
    answer: Value | None = None
    while stack:
        ask, steps = stack[-1]
        try:
            wanted = next(steps) if answer is None else steps.send(answer)
        except StopIteration as stop:
            answer = done[ask] = stop.value
            note(ask.scope, answer.expr, ask.node)
            stack.pop()
            continue
        answer = done.get(wanted)
        if answer is None:
            stack.append((wanted, rule(wanted)))
    return done[first]


def note(scope: Scope, expr: Expr, origin: sp.Basic) -> None:
    """Remember what a node stands for, below the axes along which it is constant."""
    while isinstance(expr, Einsum) and build.is_broadcast(expr):
        expr = expr.operands[0]
    if not isinstance(expr, (Const, Input)):
        scope.reading.places.note(expr, origin)
