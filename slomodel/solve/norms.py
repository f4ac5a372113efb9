"""Norms and inner products that neither overflow at 1e200 nor vanish at 1e-200."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
LARGEST = float(np.finfo(np.float64).max)

# Sums of squares in this range did not overflow, and lost no significant term to underflow: a lost
# square is below 1e-307, and 1e-280 is 1e27 times that.
_SMALL = 1e-280
_LARGE = 1e280


def norm(v: Vector) -> float:
    """Euclidean norm of v (n,); NaN or inf if an element is."""
    square = float(v.dot(v))
    if _SMALL < square < _LARGE:
        return math.sqrt(square)
    if square == 0.0 and not v.any():
        return 0.0
    largest = float(np.abs(v).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    scaled = v / largest
    return largest * math.sqrt(float(scaled.dot(scaled)))


def slope_along(g: Vector, gnorm: float, v: Vector, vnorm: float) -> float:
    """⟨g, v⟩/‖v‖ for vectors (n,) given with their norms, both positive and finite."""
    product = float(g.dot(v))
    if _SMALL < abs(product) < _LARGE:
        return product / vnorm
    return float((g / gnorm).dot(v / vnorm)) * gnorm


def ratio(numerator: float, *denominators: float) -> float:
    """The numerator divided by each denominator in turn; 0 if that is not finite."""
    for d in denominators:
        if d == 0.0:
            return 0.0
        numerator /= d
    return numerator if math.isfinite(numerator) else 0.0


def power(base: float, exponent: float) -> float:
    """base^exponent for a base ≥ 0; inf on overflow."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
