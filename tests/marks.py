"""Parameters of which a default run takes a part, and `pytest -m slow` the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from math import ceil
from typing import Any
from zlib import crc32

import pytest


def slow_unless(quick: Callable[[Any], bool], values: Iterable[Any]) -> list[Any]:
    """The values, those that are not quick marked as slow; a tuple is one value for each name."""
    return [one if quick(one) else _slow(one) for one in values]


def only(value: Any, values: Iterable[Any]) -> list[Any]:
    """The values, all but one marked as slow."""
    return slow_unless(lambda one: one == value, values)


def every(step: int, values: Iterable[Any]) -> list[Any]:
    """The values, all but the first of each `step` in turn marked as slow."""
    return [one if k % step == 0 else _slow(one) for k, one in enumerate(values)]


def leave_to_slow_runs(items: Iterable[pytest.Item]) -> None:
    """Of a test marked `sampled(step)`, mark all but one in `step` of its parameters as slow.

    The choice depends on the names of the parameters alone, and is spread over every axis of a
    grid, as a stride is not.
    """
    grids = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        grids[item.nodeid.partition("[")[0]].append(item)
    for grid in grids.values():
        mark = grid[0].get_closest_marker("sampled")
        if mark is not None:
            (step,) = mark.args
            grid.sort(key=lambda item: crc32(item.nodeid.encode()))
            for item in grid[ceil(len(grid) / step) :]:
                item.add_marker(pytest.mark.slow)


def _slow(value: Any) -> Any:
    each = value if isinstance(value, tuple) else (value,)
    return pytest.param(*each, marks=pytest.mark.slow)
