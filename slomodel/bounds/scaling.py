"""Rescaling of problems of extreme magnitude by powers of two, so that bounds stay tight.

With y = 2⁻ᵇx and g(y) = 2⁻ᵃf(2ᵇy), ∇²f = 2ᵃ⁻²ᵇ∇²g and D³f = 2ᵃ⁻³ᵇD³g: a bound for g over the ball
of radius 2⁻ᵇr gives one for f. Multiplication by powers of two is exact, so this adds no error. It
is needed because rules compute squares, fourth powers and products of those, and round up values
near underflow: bounds are loose where f is of magnitude 1e-120, or x of magnitude 1e-90.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from slomodel.bounds.arithmetic.rounding import up_ldexp
from slomodel.bounds.part import ObjectivePart
from slomodel.functions import mul
from slomodel.ir import build
from slomodel.ir.expr import Expr
from slomodel.ir.walk import substitute

_FAR = 60
"""Exponents of x up to this need no rescaling: sixth powers of 1e18 are far below 1e308."""
_FAR_VALUE = 190
"""The same for bounds, whose squares and fourth powers are formed: 2^190 is about 1e57."""
_LARGEST = 1000
"""Largest exponent of a unit, so that units and their inverses are doubles."""


@dataclass(frozen=True, slots=True)
class Units:
    """Binary exponents of the units: 2^f for the objective, 2^x for every variable."""

    f: int = 0
    x: int = 0

    def part(self, one: ObjectivePart) -> ObjectivePart:
        """The same problem in these units."""
        objective, values, limits = one.objective, dict(one.values), dict(one.limits)
        if self.x:
            unit = build.const(math.ldexp(1.0, self.x))
            scaled: dict[Expr, Expr] = {variable: mul(unit, variable) for variable in one.variables}
            (objective,) = substitute((objective,), scaled)
            for variable in one.variables:
                values[variable] = np.ldexp(values[variable], -self.x)
                limits.pop(variable, None)
        if self.f:
            objective = mul(build.const(math.ldexp(1.0, -self.f)), objective)
        return replace(one, objective=objective, values=values, limits=limits, product=None)

    def radius(self, radius: float) -> float:
        return math.ldexp(radius, -self.x)

    def derivative(self, bound: float, k: int) -> float:
        """Upper bound on the k-th derivative of the original problem, from one in these units."""
        return _scaled(bound, self.f - k * self.x)


def _scaled(bound: float, exponent: int) -> float:
    """Upper bound on 2^exponent times a bound >= 0."""
    return float(up_ldexp(bound, exponent))


def _clamped(exponent: int) -> int:
    return max(-_LARGEST, min(exponent, _LARGEST))


def units_of_variables(one: ObjectivePart, radius: float) -> Units:
    """A unit of about the largest magnitude in the ball, where that is extreme; else 1."""
    centre = [np.abs(one.values[variable]).max(initial=0.0) for variable in one.variables]
    exponent = _clamped(math.frexp(max(radius, *centre))[1])
    if abs(exponent) <= _FAR:
        return Units()
    units = Units(x=exponent)
    scaled = units.part(one)
    for variable in one.variables:
        if not np.array_equal(np.ldexp(scaled.values[variable], exponent), one.values[variable]):
            return Units()  # some element is so small that rescaling would round it
    return units if math.ldexp(units.radius(radius), exponent) == radius else Units()


def units_of_objective(units: Units, bounds: Sequence[float]) -> Units:
    """A unit near the least bound on L1, where that has an extreme magnitude in `units`.

    Exponents are added, as 2^(2x) times the bound may over- or underflow.
    """
    finite = [bound for bound in bounds if 0.0 < bound < math.inf]
    if not finite:
        return units
    exponent = _clamped(math.frexp(min(finite))[1] + 2 * units.x)
    return replace(units, f=exponent) if abs(exponent) > _FAR_VALUE else units
