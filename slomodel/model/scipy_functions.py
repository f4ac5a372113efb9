"""The functions that SciPy's minimisers take, of anything with a value and two derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class TwiceDifferentiable(Protocol):
    """A function of x (n,) with gradient and Hessian-vector products."""

    def value(self, x: Vector) -> float: ...

    def gradient(self, x: Vector) -> Vector: ...

    def hvp(self, x: Vector, v: Vector) -> Vector: ...


def minimized(f: TwiceDifferentiable, sign: float) -> dict[str, Callable[..., object]]:
    """`fun`, `jac` and `hessp` of sign·f."""
    return {
        "fun": lambda x: sign * f.value(x),
        "jac": lambda x: sign * f.gradient(x),
        "hessp": lambda x, v: sign * f.hvp(x, v),
    }
