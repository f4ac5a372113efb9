"""The gradient that kernels give, against a derivative that shares nothing with them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from slomodel.ir.expr import Expr, Input
from slomodel.reference import Array, evaluate

Vector = NDArray[np.float64]

# A complex step loses nothing to cancellation, so it can be far below any rounding.
STEP = 1e-100
# Beyond this many elements a variable is probed along random directions.
MOST_ELEMENTS = 200
DIRECTIONS = 50


def gradient_deviation(
    objective: Expr,
    values: Mapping[Input, Array],
    sizes: Mapping[str, int],
    gradient: Mapping[Input, Vector],
    rng: np.random.Generator,
) -> dict[str, float]:
    """For each variable the worst |g·v − d| / ‖g‖‖v‖ over directions v; d is by complex step.

    `gradient` holds the gradient's part of each variable. d is taken through the reference
    interpreter, along every unit vector or, for more than 200 elements, along random ones.
    Where g is zero the deviation is absolute.
    """
    return {
        variable.name: max(
            (
                _deviation(objective, values, sizes, variable, g, v)
                for v in _directions(np.shape(g), rng)
            ),
            default=0.0,
        )
        for variable, g in gradient.items()
    }


def _directions(shape: tuple[int, ...], rng: np.random.Generator) -> list[Vector]:
    size = int(np.prod(shape, dtype=int))
    if size <= MOST_ELEMENTS:
        return [unit.reshape(shape) for unit in np.eye(size)]
    return [rng.standard_normal(shape) for _ in range(DIRECTIONS)]


def _deviation(
    objective: Expr,
    values: Mapping[Input, Array],
    sizes: Mapping[str, int],
    variable: Input,
    g: Vector,
    v: Vector,
) -> float:
    moved = {**values, variable: np.asarray(values[variable], complex) + 1j * STEP * v}
    derivative = float(np.imag(evaluate([objective], moved, sizes)[0])) / STEP
    scale = float(np.linalg.norm(g) * np.linalg.norm(v))
    found = float(np.vdot(g, v))
    if not np.isfinite(found) or not np.isfinite(derivative):
        same = found == derivative or (np.isnan(found) and np.isnan(derivative))
        return 0.0 if same else float("inf")
    return abs(found - derivative) / (scale or 1.0)
