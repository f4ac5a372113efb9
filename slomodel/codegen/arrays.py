"""Arrays aligned to cache lines, and transfers between host and device."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

_LINE = 64


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

    made: NDArray[np.float64] = cupy.empty(size, kind)
    return made


def on_host(value: object) -> object:
    """An array of CuPy copied to one of NumPy; any other value unchanged."""
    return value.get() if is_on_device(value) else value  # type: ignore[attr-defined]
