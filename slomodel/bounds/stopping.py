"""Stopping a proof that has begun: whoever asks for it may have a say while it goes on.

The long loops of the rules call `pause`, which calls whatever `stopped_by` was given; an exception
raised there ends the proof. A bound is returned whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Check = Callable[[], None]
"""Returns, or raises what ends the proof."""

_CHECK: ContextVar[Check | None] = ContextVar("check", default=None)


def pause() -> None:
    """Let whoever asked for the proof end it here, between two parts of the work."""
    check = _CHECK.get()
    if check is not None:
        check()


@contextmanager
def stopped_by(check: Check | None) -> Iterator[None]:
    """While the block runs, its proofs call `check` now and then; None for none."""
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)
