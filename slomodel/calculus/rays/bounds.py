"""Proved bounds on the objective along one ray."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

UNKNOWN = (
    "along the ray a function has a kink, a pole or the edge of its domain, or numbers overflow"
)


class RayBounds(NamedTuple):
    """Bounds on φ(t) = f(x + t v) for 0 <= t <= T, proved in floating point.

    - `value`, `slope`, `curvature`: φ, φ' and φ'' at 0 as computed, with errors of at most the
      corresponding `..._error`.
    - `lower`, `upper`: bounds on φ'' over [0, T].
    - `third_lower`, `third_upper`: bounds on φ''' over [0, T].
    - `remainder_lower`, `remainder_upper`: φ(t) is at least, and at most,
      φ(0) + φ'(0)t + M t²/2 with M one of these.
    - `third_remainder_lower`, `third_remainder_upper`: the same for
      φ(0) + φ'(0)t + φ''(0)t²/2 + M t³/6.
    - `reason`: why a bound is infinite; empty if none is.

    Conditions on positions and data alone, such as those of `where(k < K - 1, ..)`, choose the
    branch that they choose as computed. Where they compare sums or functions of data that agree up
    to rounding, neither branch is certain.
    """

    T: float
    value: float
    slope: float
    curvature: float
    lower: float = -math.inf
    upper: float = math.inf
    third_lower: float = -math.inf
    third_upper: float = math.inf
    remainder_lower: float = -math.inf
    remainder_upper: float = math.inf
    third_remainder_lower: float = -math.inf
    third_remainder_upper: float = math.inf
    value_error: float = math.inf
    slope_error: float = math.inf
    curvature_error: float = math.inf
    reason: str = ""

    @classmethod
    def of(cls, T: float, numbers: Sequence[float]) -> RayBounds:  # noqa: N803
        """The bounds from the computed values of `RayGraph.numbers`."""
        # One expression of names takes a third of the time of parts of lists.
        f, f_error, slope, s_error, curvature, c_error, a, b, c, d, e, g, h, i = numbers
        known = (T, f, slope, curvature, a, b, c, d, e, g, h, i, f_error, s_error, c_error, "")
        if math.isfinite(sum(numbers)):
            return tuple.__new__(cls, known)
        pairs = zip(known[4:-1], _SIDES, strict=True)
        ends = [_number(one, side) for one, side in pairs]
        reason = "" if all(map(math.isfinite, ends)) else UNKNOWN
        return cls._make((*known[:4], *ends, reason))

    @property
    def negated(self) -> RayBounds:
        """The bounds of -f along the same ray."""
        return self._replace(
            value=-self.value,
            slope=-self.slope,
            curvature=-self.curvature,
            lower=-self.upper,
            upper=-self.lower,
            third_lower=-self.third_upper,
            third_upper=-self.third_lower,
            remainder_lower=-self.remainder_upper,
            remainder_upper=-self.remainder_lower,
            third_remainder_lower=-self.third_remainder_upper,
            third_remainder_upper=-self.third_remainder_lower,
        )


_SIDES = (*(4 * (-math.inf, math.inf)), *(3 * (math.inf,)))


def _number(x: float, unknown: float) -> float:
    return unknown if math.isnan(x) else x
