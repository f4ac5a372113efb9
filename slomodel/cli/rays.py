"""`slomodel bounds --along`: bounds on the objective along a ray from one point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from slomodel.bounds.result import shown
from slomodel.calculus.rays.bounds import RayBounds
from slomodel.cli.inputs import start_from
from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.points import Point
from slomodel.model import Model
from slomodel.solve.norms import Vector

GRADIENT = "gradient"
_NUMBERS = (
    *("T", "value", "slope", "curvature", "lower", "upper", "third_lower", "third_upper"),
    *("remainder_lower", "remainder_upper", "third_remainder_lower", "third_remainder_upper"),
    *("value_error", "slope_error", "curvature_error"),
)


def bounds_along(
    model: Model, center: Point, along: str, lengths: Sequence[float]
) -> list[RayBounds]:
    """The bounds from the centre along `--along`, for each length of the ray."""
    v = start_from(Path(along)) if along != GRADIENT else _downhill(model, center)
    return [model.ray_bounds(center, v, length) for length in lengths]


def _downhill(model: Model, center: Point) -> Vector:
    """-∇f/‖∇f‖ (n,) at the centre."""
    gradient = model.gradient(center)
    norm = float(np.linalg.norm(gradient))
    if not 0.0 < norm < math.inf:
        message = f"the gradient at the centre has the norm {norm:g}, which gives no direction"
        remedy = "give a direction as a file, or another centre with --at"
        raise DomainError(Diagnostic("E704", message, help=remedy))
    return -gradient / norm


def ray_document(bounds: RayBounds) -> dict[str, object]:
    """The bounds as data for JSON; numbers that are not finite are null, `reason` says why."""
    numbers = {name: float(getattr(bounds, name)) for name in _NUMBERS}
    finite = {name: x if math.isfinite(x) else None for name, x in numbers.items()}
    return {**finite, "reason": bounds.reason}


def ray_table(every: Sequence[RayBounds]) -> str:
    """The derivatives at the centre, one line for each length, and the reasons for inf."""
    start = every[0]
    rows = [
        ("f", start.value, start.value_error),
        ("f'", start.slope, start.slope_error),
        ("f''", start.curvature, start.curvature_error),
    ]
    lines = [f"{name:<4} {value:.10g} ± {error:.2g}" for name, value, error in rows]
    heads = ("lower f''", "upper f''", "lower f'''", "upper f'''")
    lines.append("  ".join([f"{'T':>10}", *(f"{head:>12}" for head in heads)]))
    for one in every:
        ends = (one.lower, one.upper, one.third_lower, one.third_upper)
        lines.append("  ".join([f"{one.T:>10g}", *(f"{shown(end):>12}" for end in ends)]))
    return "\n".join([*lines, *dict.fromkeys(one.reason for one in every if one.reason)])
