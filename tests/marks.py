"""Parameters of which a default run takes a part, and `pytest -m slow` the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

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


def _slow(value: Any) -> Any:
    each = value if isinstance(value, tuple) else (value,)
    return pytest.param(*each, marks=pytest.mark.slow)
