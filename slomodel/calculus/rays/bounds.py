"""Proved bounds on the objective along one ray."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

UNKNOWN = (
    "along the ray a function has a kink, a pole or the edge of its domain, or numbers overflow"
)


@dataclass(frozen=True, slots=True)
class RayBounds:
    """Bounds on φ(t) = f(x + t v) for 0 <= t <= T, proved in floating point.

    - `value`, `slope`, `curvature`: φ, φ' and φ'' at 0 as computed, with errors of at most the
      corresponding `..._error`.
    - `lower`, `upper`: bounds on φ'' over [0, T].
    - `third_lower`, `third_upper`: bounds on φ''' over [0, T].
    - `reason`: why a bound is infinite; empty if none is.

    Conditions on positions and data alone, such as those of `where(k < K - 1, ..)`, choose the
    branch that they choose as computed.
    """

    T: float
    value: float
    slope: float
    curvature: float
    lower: float = -math.inf
    upper: float = math.inf
    third_lower: float = -math.inf
    third_upper: float = math.inf
    value_error: float = math.inf
    slope_error: float = math.inf
    curvature_error: float = math.inf
    reason: str = ""

    @classmethod
    def of(cls, T: float, numbers: Sequence[float]) -> RayBounds:  # noqa: N803
        """The bounds from the computed values of `RayGraph.numbers`."""
        f, f_error, slope, s_error, curvature, c_error, *ends = numbers
        if math.isfinite(sum(ends) + f_error + s_error + c_error):
            lo, hi, third_lo, third_hi = ends
            near = (f_error, s_error, c_error)
            return cls(T, f, slope, curvature, lo, hi, third_lo, third_hi, *near)
        known = [_number(one, side) for one, side in zip(ends, _SIDES, strict=True)]
        errors = [_number(one, math.inf) for one in (f_error, s_error, c_error)]
        return cls(
            *(T, f, slope, curvature),
            *(known[0], known[1], known[2], known[3]),
            *(errors[0], errors[1], errors[2]),
            reason="" if all(map(math.isfinite, (*known, *errors))) else UNKNOWN,
        )

    @property
    def negated(self) -> RayBounds:
        """The bounds of -f along the same ray."""
        return replace(
            self,
            value=-self.value,
            slope=-self.slope,
            curvature=-self.curvature,
            lower=-self.upper,
            upper=-self.lower,
            third_lower=-self.third_upper,
            third_upper=-self.third_lower,
        )


_SIDES = (-math.inf, math.inf, -math.inf, math.inf)


def _number(x: float, unknown: float) -> float:
    return unknown if math.isnan(x) else x
