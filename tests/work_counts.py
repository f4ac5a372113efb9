"""Work counted in calls, which no other process and no slower machine changes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Calls:
    """How many calls of Python functions were counted; built-in ones are left out."""

    count: int = 0


@contextmanager
def counting() -> Iterator[Calls]:
    """Count the calls made inside; a slow laptop makes about a million a second."""
    calls = Calls()

    def counted(_frame: FrameType, _event: str, _argument: object) -> None:
        calls.count += 1

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        yield calls
    finally:
        sys.settrace(before)
