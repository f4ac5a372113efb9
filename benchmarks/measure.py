"""Clocks, alternating runs, and the memory that a computation takes."""

from __future__ import annotations

import resource
import time
import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from benchmarks.by_hand import Array, Arrays, Evaluate

Call = Callable[[int], object]
"""A computation at the point of this number."""


def cpu_seconds() -> float:
    """CPU seconds of this process and of the child processes that it waited for."""
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + others.ru_utime + others.ru_stime


def seconds(calls: Sequence[Call], points: int, block: float, clock: Callable[[], float]) -> Array:
    """Seconds per call: one row per pair of runs, one column per computation.

    The runs alternate in changing order, so that a busy period of the machine affects all alike.
    Each run lasts about `block` seconds, and uses the next point in every call.
    """
    for call in calls:
        call(0)
    numbers = [_number(call, block) for call in calls]
    table = np.empty((points, len(calls)))
    for pair in range(points):
        for turn in range(len(calls)):
            k = (pair + turn) % len(calls)
            start = clock()
            for step in range(numbers[k]):
                calls[k]((pair + step) % points)
            table[pair, k] = (clock() - start) / numbers[k]
    return table


def _number(call: Call, block: float) -> int:
    start = time.perf_counter()
    for point in range(1, 4):
        call(point)
    return max(1, int(block / max((time.perf_counter() - start) / 3, 1e-7)))


class _Watched(np.ndarray):
    """An array that records the size of every array computed from it, except views."""

    largest: ClassVar[int] = 0

    def __array_finalize__(self, source: object) -> None:
        if self.base is None:
            _Watched.largest = max(_Watched.largest, self.size)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **options: object
    ) -> object:
        result = getattr(ufunc, method)(*map(_plain, inputs), **_all_plain(options))
        out = options.get("out")
        return out[0] if isinstance(out, tuple) else _noted(result)

    def __array_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: Iterable[object],
        kwargs: Mapping[str, object],
    ) -> object:
        return _noted(func(*map(_plain, args), **_all_plain(kwargs)))


def _plain(value: object) -> object:
    """The value with plain arrays in it."""
    if isinstance(value, _Watched):
        return value.view(np.ndarray)
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(item) for item in value)
    return value


def _all_plain(options: Mapping[str, object]) -> dict[str, object]:
    return {key: _plain(value) for key, value in options.items()}


def _noted(result: object) -> object:
    if not isinstance(result, np.ndarray):
        return result
    if result.base is None:
        _Watched.largest = max(_Watched.largest, result.size)
    return result.view(_Watched)


def largest_by_hand(hand: Evaluate, variables: Arrays, data: Arrays) -> int:
    """Elements of the largest array of the hand-written version, its gradient included."""
    _Watched.largest = 0
    hand(_watched(variables), _watched(data))
    return _Watched.largest


def _watched(arrays: Arrays) -> Arrays:
    return {name: np.asarray(array).view(_Watched) for name, array in arrays.items()}


def memory(call: Call, n: int) -> int:
    """Elements of all arrays that a model allocates in its first call and holds, and later.

    One point and one result (n,) belong to the caller and are not counted. Cache-sized blocks are
    on the stack and not included.
    """
    tracemalloc.start()
    try:
        call(0)
        held = tracemalloc.take_snapshot().traces
        arrays = [trace.size for trace in held if trace.domain == np.lib.tracemalloc_domain]
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call(1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Every call creates a few Python objects that are not arrays.
    objects = 4096
    later = max(0, peak - before - 8 * n - objects)
    return max(0, sum(arrays) + later - 16 * n) // 8
