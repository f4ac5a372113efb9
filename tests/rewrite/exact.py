"""Scalar functions to any accuracy, and test points over the whole range of doubles."""

from collections.abc import Callable, Sequence

import mpmath
import numpy as np

DIGITS = 1100
"""Enough for 40 correct digits of cosh(1e-323) - 1, of log(1 + exp(-700)), and of differences."""
Exact = Callable[..., mpmath.mpf]

SIZES = (5e-324, 1e-308, 1e-300, 1e-160, 1e-20, 1e-9, 1e-3, 0.1, 0.5, 0.7, 1.0, 1.5, 3.0, 19.0)
BEYOND = (36.0, 40.0, 350.0, 400.0, 709.5, 720.0, 745.5, 1000.0, 1e10, 1e155, 1e300, 1e308)
POSITIVE = (*SIZES, *BEYOND)
EVERYWHERE = (0.0, *POSITIVE, *(-x for x in POSITIVE))
EPS = float(np.finfo(float).eps)
TINY = 1e-305
"""Below this, products on the way underflow; errors are then counted absolutely."""


def derivatives(exact: Exact, point: Sequence[float], order: int) -> list[mpmath.mpf]:
    """Value and derivatives up to `order` <= 3 along the direction of ones."""
    with mpmath.workdps(DIGITS):
        numbers = [mpmath.mpf(value) for value in point]
        step = max([abs(x) for x in numbers if x] or [mpmath.mpf(1)])
        step = min([abs(x) for x in numbers if x] or [step]) * mpmath.mpf(10) ** -120
        at = [exact(*(x + k * step for x in numbers)) for k in (-2, -1, 0, 1, 2)]
        first = (at[3] - at[1]) / (2 * step)
        second = (at[3] - 2 * at[2] + at[1]) / step**2
        third = (at[4] - 2 * at[3] + 2 * at[1] - at[0]) / (2 * step**3)
        return [at[2], first, second, third][: order + 1]


def as_double(value: mpmath.mpf) -> float:
    return float(value)


def allowed(exact: Sequence[mpmath.mpf], order: int, point: Sequence[float]) -> float:
    """The error of a few roundings of the derivative of this order, and of the point itself."""
    size = max(abs(x) for x in point)
    own = abs(as_double(exact[order]))
    if not np.isfinite(own):
        return np.inf
    moved = abs(as_double(mpmath.mpf(size) * exact[order + 1]))
    # A second derivative is a difference of numbers of the size of the first.
    lower = abs(as_double(exact[1])) / max(1.0, size) if order == 2 else 0.0
    return (6 + 10 * order) * EPS * (own + moved + lower) + (4 * 5e-324 if order == 0 else TINY)


def as_written(text: str, point: Sequence[float]) -> float:
    """What the text gives by plain NumPy, step by step."""
    names = {name: getattr(np, name) for name in ("exp", "log", "sqrt")}
    numbers = {name: np.float64(value) for name, value in zip("xy", point, strict=False)}
    with np.errstate(all="ignore"):
        return float(eval(text.replace("^", "**"), {**names, **numbers}))
