"""Runtime support of kernels: loading generated source, threads, arrays on host and device."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numexpr
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from slomodel.errors import Diagnostic, DomainError


def load(text: str, name: str) -> dict[str, Callable[..., object]]:
    """The functions that a generated module defines. `name` labels it in tracebacks.

    The only place where generated source is executed; all names in it are chosen by slomodel.
    """
    filename = f"<slomodel {name}>"
    lines = text.splitlines(keepends=True)
    linecache.cache[filename] = (len(text), None, lines, filename)
    space: dict[str, object] = {"__name__": f"slomodel.generated.{name}"}
    exec(compile(text, filename, "exec"), space)
    return {key: value for key, value in space.items() if callable(value)}


@contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Use `number` threads inside the block; None changes nothing.

    The setting is global: simultaneous blocks in two threads would undo each other's. Raises
    DomainError for less than one, or for more than numexpr reserved at its start (the environment
    variable NUMEXPR_MAX_THREADS).
    """
    if number is None:
        yield
        return
    most = numexpr.MAX_THREADS
    if type(number) is not int or not 1 <= number <= most:
        message = f"threads must be a whole number from 1 to {most}, not {number!r}"
        remedy = (
            "leave it out for all cores; NUMEXPR_MAX_THREADS, set before the start, is the limit"
        )
        raise DomainError(Diagnostic("E602", message, help=remedy))
    before = numexpr.set_num_threads(number)
    try:
        with threadpool_limits(limits=number, user_api="blas"):
            yield
    finally:
        numexpr.set_num_threads(before)


_LINE = 64
"""Bytes of a cache line."""


def aligned_empty(shape: tuple[int, ...], kind: np.dtype[np.float64]) -> NDArray[np.float64]:
    """An uninitialised array in C order, aligned to a cache line."""
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    raw = np.empty(size + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + size].view(kind).reshape(shape)


def is_on_device(value: object) -> bool:
    """Whether a value is an array of CuPy; not if CuPy has not been imported."""
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(value, cupy.ndarray)


def empty_on_device(size: int, kind: str) -> NDArray[np.float64]:
    """An uninitialised array (size,) of CuPy."""
    import cupy

    result: NDArray[np.float64] = cupy.empty(size, kind)
    return result


def on_host(value: object) -> object:
    """An array of CuPy copied to one of NumPy; any other value unchanged."""
    return value.get() if is_on_device(value) else value  # type: ignore[attr-defined]
