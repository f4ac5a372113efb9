"""Iterative evaluation of expressions, so that deep nesting does not recurse."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeAlias

from slomodel.front.elaboration.errors import error, misplaced_row
from slomodel.front.elaboration.scope import ValueRequest
from slomodel.front.elaboration.values import Value

Steps: TypeAlias = Generator[ValueRequest, Value, Value]
"""A running rule: it yields requests, receives their values, and returns its own."""

MOST_EXPANDED = 60_000
"""Limit on evaluated nodes beyond those of the text: functions are expanded at each use."""


def run(request: ValueRequest, rule: Callable[[ValueRequest], Steps | Value]) -> Value:
    """The value of a request; `rule` returns the steps for a node, or its value at once."""
    stack: list[tuple[ValueRequest, Steps]] = []
    pending: ValueRequest | None = request
    value: Value | None = None
    while True:
        if pending is not None:
            current = pending
            result = rule(current)
            if isinstance(result, Value):
                value = _checked(current, result)
            else:
                stack.append((current, result))
                value = None
            _count(current, request)
        if not stack:
            assert value is not None
            return value
        current, steps = stack[-1]
        try:
            pending = next(steps) if value is None else steps.send(value)
            value = None
        except StopIteration as stop:
            stack.pop()
            pending = None
            value = _checked(current, stop.value)


def _checked(request: ValueRequest, value: Value) -> Value:
    """The value, checked against the request; the span of its node is recorded."""
    if value.row is not None and not request.row:
        raise misplaced_row(value.row)
    request.scope.model.note(value, request.node.span)
    return value


def _count(current: ValueRequest, whole: ValueRequest) -> None:
    """Count a node; the error for too many marks the whole expression, not a function's body."""
    model = current.scope.model
    model.steps += 1
    # Each node of the text is at least one character.
    if model.steps > len(model.source.text) + MOST_EXPANDED:
        raise error(
            "E223",
            "the model is too large once its functions are expanded",
            whole.node.span,
            "put numbers into data files, and repeated parts into `sum(… for i in n)`",
        )
