"""Python's search for cycles, put off while millions of nodes are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_gc() -> Iterator[None]:
    """No search for cycles meanwhile: over a long text it takes nearly half of the time.

    Of threads that are here at once, the first one turns the search on again.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
