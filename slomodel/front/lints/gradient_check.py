"""Check of the kernels' gradient against an independently computed derivative."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from slomodel.ir.expr import Expr, Input
from slomodel.reference import Array, evaluate

Vector = NDArray[np.float64]

# A complex step causes no cancellation, so that it can be far below the unit roundoff.
STEP = 1e-100
# Variables with more elements than this are tested along random directions.
MOST_ELEMENTS = 200
DIRECTIONS = 50


def gradient_deviation(
    objective: Expr,
    values: Mapping[Input, Array],
    sizes: Mapping[str, int],
    gradient: Mapping[Input, Vector],
    rng: np.random.Generator,
) -> dict[str, float]:
    """Largest |g·v − d| / ‖g‖‖v‖ over directions v, for each variable.

    g is the whole gradient, of which `gradient` holds the part for each variable: a part that is
    zero up to rounding is accepted beside others of magnitude 1. d is the derivative along v by a
    complex step through the reference interpreter; v runs over all unit vectors or, beyond 200
    elements, over random directions. If g is zero the deviation is absolute.
    """
    norm = _norm(gradient.values())
    return {
        variable.name: max(
            (
                _deviation(objective, values, sizes, variable, g, v) / (norm or 1.0)
                for v in _directions(np.shape(g), rng)
            ),
            default=0.0,
        )
        for variable, g in gradient.items()
    }


def _norm(parts: Iterable[Vector]) -> float:
    """Norm of the finite entries of all parts, without overflow."""
    numbers = np.concatenate([np.ravel(part) for part in parts] or [np.zeros(0)])
    numbers = numbers[np.isfinite(numbers)]
    largest = float(np.max(np.abs(numbers), initial=0.0))
    return largest * float(np.linalg.norm(numbers / largest)) if largest else 0.0


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
    result = float(np.vdot(g, v))
    if not np.isfinite(result) or not np.isfinite(derivative):
        same = result == derivative or (np.isnan(result) and np.isnan(derivative))
        return 0.0 if same else float("inf")
    return abs(result - derivative) / float(np.linalg.norm(v))
