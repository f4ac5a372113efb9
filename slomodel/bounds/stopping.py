"""Interruption and monitoring of proofs.

Long loops call `pause`, which calls the check set by `stopped_by`; `current_work` names the rule at
work. An exception raised by the check ends the proof, so that a bound is returned whole or not at
all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Check = Callable[[], None]
"""A callback that returns, or raises the exception that ends the proof."""

_WORK: ContextVar[str] = ContextVar("work", default="")
_CHECK: ContextVar[Check | None] = ContextVar("check", default=None)


def pause() -> None:
    """Call the check in force, if any; it may raise between two units of work."""
    check = _CHECK.get()
    if check is not None:
        check()


@contextmanager
def stopped_by(check: Check | None) -> Iterator[None]:
    """Have proofs inside the block call `check` regularly; None for no check."""
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


@contextmanager
def working_on(what: str) -> Iterator[None]:
    """Name the work of the block, such as a rule, for a check that displays it."""
    token = _WORK.set(what)
    try:
        yield
    finally:
        _WORK.reset(token)


def current_work() -> str:
    """The name of the current work; empty if it has none."""
    return _WORK.get()
