"""Iterative evaluation of expressions, so that deep nesting causes no recursion."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeAlias

from slomodel.front.elaboration.errors import StatementError, dense_needed, error, misplaced_row
from slomodel.front.elaboration.scope import ValueRequest
from slomodel.front.elaboration.values import Value

Steps: TypeAlias = Generator[ValueRequest, Value, Value]
"""A rule in progress: it yields requests, receives their values, and returns its own value."""

MOST_EXPANDED = 60_000
"""Limit on evaluated nodes in addition to those of the text: functions are expanded at each use."""


def run(request: ValueRequest, rule: Callable[[ValueRequest], Steps | Value]) -> Value:
    """The value of a request; `rule` returns the steps for a node, or its value at once.

    A StatementError is raised in the rule that made the request, which may have an alternative.
    """
    stack: list[tuple[ValueRequest, Steps]] = []
    pending: ValueRequest | None = request
    outcome: Value | StatementError | None = None
    while True:
        try:
            if pending is not None:
                current, pending = pending, None
                result = rule(current)
                if isinstance(result, Value):
                    outcome = _checked(current, result)
                else:
                    stack.append((current, result))
                    outcome = None
                _count(current, request)
            if not stack:
                assert isinstance(outcome, Value)
                return outcome
            pending, outcome = _advanced(stack, outcome)
        except StatementError as problem:
            if not stack:
                raise
            outcome = problem


def _advanced(
    stack: list[tuple[ValueRequest, Steps]], outcome: Value | StatementError | None
) -> tuple[ValueRequest | None, Value | None]:
    """Resume the last rule: return its next request, or its value after removing the rule.""" ""
    current, steps = stack[-1]
    try:
        if isinstance(outcome, StatementError):
            return steps.throw(outcome), None
        return (next(steps) if outcome is None else steps.send(outcome)), None
    except StopIteration as stop:
        stack.pop()
        return None, _checked(current, stop.value)
    except StatementError:
        stack.pop()
        raise


def _checked(request: ValueRequest, value: Value) -> Value:
    """The value, checked against the request; the source span of its node is recorded."""
    if value.row is not None and not request.row:
        raise misplaced_row(value.row)
    if value.pattern is not None and not request.sparse:
        raise dense_needed(request.node.span)
    request.scope.note(value, request.node.span)
    return value


def _count(current: ValueRequest, whole: ValueRequest) -> None:
    """Count a node; an error about too many marks the whole expression, not a function's body."""
    model = current.scope.model
    model.steps += 1
    # Each node of the text occupies at least one character.
    if model.steps > len(model.source.text) + MOST_EXPANDED:
        raise error(
            "E223",
            "the model is too large once its functions are expanded",
            whole.node.span,
            "put numbers into data files, and repeated parts into `sum(… for i in n)`",
        )
