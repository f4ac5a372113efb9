"""Slopes along rays in extended precision, where rounding in doubles hides their signs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slomodel.calculus.rays.bounds import RayBounds
from slomodel.calculus.rays.extended import extended_slope
from slomodel.calculus.rays.numbers import MidRad
from slomodel.errors import MissingRule
from slomodel.ir import build
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Const, Einsum, Expr, Input
from slomodel.ir.walk import postorder
from slomodel.reference.extended import ExtendedValues, has_extended_precision
from slomodel.reference.values import Sizes

Vector = NDArray[np.float64]
Number = np.longdouble
MOST_OPERATIONS = 100_000_000
"""Multiplications and values of functions in extended precision that take about a second."""


class ExtendedSlopes:
    """φ'(0) with a bound on its error, about a thousandth of that of a sum in doubles."""

    def __init__(
        self,
        slope: MidRad,
        directions: Mapping[Input, Input],
        data: Mapping[Input, Vector],
        sizes: Sizes,
    ) -> None:
        self._inputs = (*directions, *directions.values())
        roots = (slope.mid, Const(0.0) if slope.rad is None else slope.rad)
        self._values = ExtendedValues(roots, data, self._inputs, sizes)

    def enclosure(self, x: Sequence[Vector], v: Sequence[Vector]) -> tuple[Number, Number]:
        """φ'(0) of f(x + t v), x and v by variables, and a bound on its error."""
        values = dict(zip(self._inputs, (*x, *v), strict=True))
        middle, radius = self._values(values)
        return np.longdouble(middle), np.longdouble(radius)

    def of(self, bounds: RayBounds, x: Sequence[Vector], v: Sequence[Vector]) -> RayBounds:
        """The bounds along x + t v, both by variables, with this slope if it is more precise."""
        middle, radius = self.enclosure(x, v)
        slope = float(middle)
        # The slope is rounded to a double, and the sum of both errors up.
        error = float(abs(np.longdouble(slope) - middle)) + float(radius)
        error *= 1.0 + 4.0 * float(np.finfo(float).eps)
        if not (math.isfinite(slope) and error < bounds.slope_error):
            return bounds
        return bounds._replace(slope=slope, slope_error=error)


def operations(roots: Sequence[Expr], sizes: Sizes) -> int:
    """The number of elements of all nodes under the roots, of sums before they are summed."""
    shapes = (one.dims if isinstance(one, Einsum) else one.shape for one in postorder(*roots))
    return sum(math.prod(concrete(shape, sizes)) for shape in shapes)


def extended_slopes(
    objectives: Sequence[Expr],
    variables: Sequence[Input],
    data: Mapping[Input, Vector],
    sizes: Sizes,
) -> ExtendedSlopes | None:
    """The slopes of the first of several equivalent objectives that has them; None for none.

    None too where they would take longer than about a second.
    """
    if not has_extended_precision():
        return None
    directions = {one: build.variable(f"v[{one.name}]", one.shape) for one in variables}
    for objective in objectives:
        try:
            slope = extended_slope(objective, directions)
        except MissingRule:
            continue
        if operations([one for one in (slope.mid, slope.rad) if one], sizes) <= MOST_OPERATIONS:
            return ExtendedSlopes(slope, directions, data, sizes)
    return None
