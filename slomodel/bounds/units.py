"""Questions of extreme scale, asked again in units in which their numbers are of ordinary size.

With y = 2⁻ᵇx and g(y) = 2⁻ᵃf(2ᵇy), ∇²f = 2ᵃ⁻²ᵇ∇²g and D³f = 2ᵃ⁻³ᵇD³g: a bound of g over the ball
of radius 2⁻ᵇr is one of f. Products by powers of two are exact, so this adds no error. What it
gains: rules compute with squares, fourth powers and products of those, and enlarge what comes near
underflow, which costs tightness where f is of size 1e-120, or x of size 1e-90.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from slomodel.bounds.intervals.rounding import up
from slomodel.bounds.setting import Setting
from slomodel.functions import mul
from slomodel.ir import build
from slomodel.ir.expr import Expr
from slomodel.ir.walk import substitute

_FAR = 60
"""Binary exponents of x up to this are ordinary: sixth powers of 1e18 are far from 1e308."""
_FAR_VALUE = 190
"""The same of bounds, of which squares and fourth powers are taken: 1e57."""
_LARGEST = 1000
"""Units are no further from 1 than this power of 2, so that they and their inverses are doubles."""


@dataclass(frozen=True, slots=True)
class Units:
    """2^f is the unit of the objective, 2^x that of every variable."""

    f: int = 0
    x: int = 0

    def setting(self, one: Setting) -> Setting:
        """The same question in these units."""
        objective, values = one.objective, dict(one.values)
        if self.x:
            unit = build.const(math.ldexp(1.0, self.x))
            scaled: dict[Expr, Expr] = {variable: mul(unit, variable) for variable in one.variables}
            (objective,) = substitute((objective,), scaled)
            for variable in one.variables:
                values[variable] = np.ldexp(values[variable], -self.x)
        if self.f:
            objective = mul(build.const(math.ldexp(1.0, -self.f)), objective)
        return replace(one, objective=objective, values=values, kept={})

    def radius(self, radius: float) -> float:
        return math.ldexp(radius, -self.x)

    def derivative(self, bound: float, k: int) -> float:
        """A bound of a k-th derivative in these units as one of the objective's own."""
        return _scaled(bound, self.f - k * self.x)


def _scaled(bound: float, exponent: int) -> float:
    """At least 2^exponent times a bound >= 0."""
    try:
        result = math.ldexp(bound, exponent)
    except OverflowError:
        return math.inf
    is_exact = result >= np.finfo(np.float64).tiny or bound == 0.0
    return result if is_exact else float(up(result))


def _within(exponent: int) -> int:
    return max(-_LARGEST, min(exponent, _LARGEST))


def units_of_variables(one: Setting, radius: float) -> Units:
    """A unit of about the largest number of the ball, where that is of extreme scale."""
    centre = [np.abs(one.values[variable]).max(initial=0.0) for variable in one.variables]
    exponent = _within(math.frexp(max(radius, *centre))[1])
    if abs(exponent) <= _FAR:
        return Units()
    units = Units(x=exponent)
    moved = units.setting(one)
    for variable in one.variables:
        if not np.array_equal(np.ldexp(moved.values[variable], exponent), one.values[variable]):
            return Units()  # an element is so small that it would be rounded
    return units if math.ldexp(units.radius(radius), exponent) == radius else Units()


def units_of_objective(units: Units, bounds: Sequence[float]) -> Units:
    """A unit of about the least of the objective's bounds of L1, where that is extreme in `units`.

    Its binary exponent is not computed from 2^(2x) times it, which may be beyond all doubles.
    """
    finite = [bound for bound in bounds if 0.0 < bound < math.inf]
    if not finite:
        return units
    exponent = _within(math.frexp(min(finite))[1] + 2 * units.x)
    return replace(units, f=exponent) if abs(exponent) > _FAR_VALUE else units
