"""Open boxes: u = log(x − a), log(b − x), or the logit of (x − a)/(b − a), elementwise.

Ends that are data may be infinite in some elements, which then have the form of a half-line.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from slomodel.functions import abs, add, exp, land, lt, mul, sub, where
from slomodel.functions.activations import sigmoid
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Expr
from slomodel.model.open_sets.open_set_map import (
    EDGE_OF_HALF_LINE,
    EDGE_OF_INTERVAL,
    Array,
    BoxEnds,
    FreeShape,
    first_element,
)
from slomodel.problem import DeclaredSet

# Ends of at least this magnitude count as infinite; graphs compare with it, since their data are
# finite.
INFINITE = 1e300


def is_end(values: Array) -> NDArray[np.bool_]:
    """Which elements of an end are finite."""
    return np.asarray(np.abs(values) < INFINITE)


class OpenBox:
    """x = a + e^u above a, b − e^u below b, a + (b − a) σ(u) between them.

    Without a finite end, `(-inf, inf)`, x is u itself.
    """

    def free_shape(self, name: str, shape: Shape, declared: DeclaredSet) -> FreeShape:
        return FreeShape(shape)

    def user(self, u: Expr, shape: Shape, declared: DeclaredSet) -> Expr:
        low, high = declared.low, declared.high
        if declared.unbounded:
            return _elementwise(u, _or(low, -math.inf), _or(high, math.inf))
        if low is None and high is None:
            return u
        if high is None:
            assert low is not None
            return _sum(low, build.apply(exp, u))
        if low is None:
            return build.apply(sub, high, build.apply(exp, u))
        width = high if _is_zero(low) else build.apply(sub, high, low)
        inside = build.apply(sigmoid, u)
        return _sum(low, inside if width is Const(1.0) else build.apply(mul, width, inside))

    def outside(self, x: Array, declared: DeclaredSet, ends: BoxEnds) -> str:
        inside = np.isfinite(x)
        if ends.low is not None:
            inside &= x > ends.low
        if ends.high is not None:
            inside &= x < ends.high
        return "" if inside.all() else first_element(x, ~inside)

    def free(self, x: Array, declared: DeclaredSet, ends: BoxEnds) -> Array:
        low = np.asarray(-math.inf if ends.low is None else ends.low)
        high = np.asarray(math.inf if ends.high is None else ends.high)
        above = np.where(is_end(low), np.log(x - low), 0.0)
        below = np.where(is_end(high), np.log(high - x), 0.0)
        # With an upper end alone, too, u grows with the distance from the end.
        sign = np.where(is_end(low), -1.0, 1.0)
        is_free = ~is_end(low) & ~is_end(high)
        return np.where(is_free, x, above + sign * below)

    def logarithmic(self, u: Array, declared: DeclaredSet) -> NDArray[np.bool_]:
        some = declared.low is not None or declared.high is not None
        return np.full(u.shape, some and not declared.unbounded)

    def near_edge(self, u: Array, declared: DeclaredSet) -> bool:
        if declared.unbounded or (declared.low is None and declared.high is None):
            return False
        if None in (declared.low, declared.high):
            return bool((u < math.log(EDGE_OF_HALF_LINE)).any())
        return bool((np.abs(u) > -math.log(EDGE_OF_INTERVAL)).any())

    def at_number(self, number: float, shape: tuple[int, ...], declared: DeclaredSet) -> Array:
        return np.full(shape, number)


def _is_zero(node: Expr) -> bool:
    return isinstance(node, Const) and node.value == 0.0


def _sum(low: Expr, positive: Expr) -> Expr:
    return positive if _is_zero(low) else build.apply(add, low, positive)


def _or(end: Expr | None, infinite: float) -> Expr:
    return Const(infinite) if end is None else end


def _elementwise(u: Expr, low: Expr, high: Expr) -> Expr:
    """x(u) between ends of which some elements are infinite."""
    is_low, is_high = (
        build.apply(lt, build.apply(abs, end), Const(INFINITE)) for end in (low, high)
    )
    a = build.apply(where, is_low, low, Const(0.0))
    b = build.apply(where, is_high, high, Const(0.0))
    power = build.apply(exp, u)
    between = build.apply(mul, build.apply(sub, b, a), build.apply(sigmoid, u))
    half = build.apply(
        where,
        is_low,
        build.apply(add, a, power),
        build.apply(where, is_high, build.apply(sub, b, power), u),
    )
    both = build.apply(land, is_low, is_high)
    return build.apply(where, both, build.apply(add, a, between), half)
