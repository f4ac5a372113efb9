"""Interrupting and watching a proof: long loops call `pause`, which calls the check set by
`stopped_by`; `current_work` says what the proof does.

An exception raised by the check ends the proof, so that a bound is returned whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Check = Callable[[], None]
"""Returns, or raises the exception that ends the proof."""

_WORK: ContextVar[str] = ContextVar("work", default="")
_CHECK: ContextVar[Check | None] = ContextVar("check", default=None)


def pause() -> None:
    """Call the check in force, if any; it may raise, between two parts of the work."""
    check = _CHECK.get()
    if check is not None:
        check()


@contextmanager
def stopped_by(check: Check | None) -> Iterator[None]:
    """Have proofs inside the block call `check` every so often; None for no check."""
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


@contextmanager
def working_on(what: str) -> Iterator[None]:
    """Name the work of the block, a rule for instance, for a check that shows it."""
    token = _WORK.set(what)
    try:
        yield
    finally:
        _WORK.reset(token)


def current_work() -> str:
    """What the proof works on; empty where that is not named."""
    return _WORK.get()
