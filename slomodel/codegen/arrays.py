"""Arrays that start at a cache line, and on which side of the bus an array lies."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

_LINE = 64


def aligned_empty(shape: tuple[int, ...], kind: np.dtype[np.float64]) -> NDArray[np.float64]:
    """An array in C order with anything in it."""
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    raw = np.empty(size + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + size].view(kind).reshape(shape)


def is_on_device(value: object) -> bool:
    """True for an array of CuPy. Where CuPy has not been imported there are none."""
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(value, cupy.ndarray)


def empty_on_device(size: int, kind: str) -> NDArray[np.float64]:
    """An array (size,) of CuPy without values."""
    import cupy

    made: NDArray[np.float64] = cupy.empty(size, kind)
    return made


def on_host(value: object) -> object:
    """The array of NumPy with the numbers of one of CuPy; anything else as it is."""
    return value.get() if is_on_device(value) else value  # type: ignore[attr-defined]
