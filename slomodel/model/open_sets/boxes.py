"""Open boxes: u = log(x − a), log(b − x), or the logit of (x − a)/(b − a), elementwise."""

from __future__ import annotations

import numpy as np

from slomodel.functions import add, exp, mul, sub
from slomodel.functions.activations import sigmoid
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Expr
from slomodel.model.open_sets.open_set_map import EDGE, Array, BoxEnds, FreeShape, first_element
from slomodel.problem import DeclaredSet


class OpenBox:
    """x = a + e^u above a, b − e^u below b, a + (b − a) σ(u) between them.

    Without a finite end, `(-inf, inf)`, x is u itself.
    """

    def free_shape(self, name: str, shape: Shape, declared: DeclaredSet) -> FreeShape:
        return FreeShape(shape)

    def user(self, u: Expr, shape: Shape, declared: DeclaredSet) -> Expr:
        low, high = declared.low, declared.high
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
        above = None if ends.low is None else np.log(x - ends.low)
        below = None if ends.high is None else np.log(ends.high - x)
        if above is None:
            return x.copy() if below is None else np.asarray(below)
        return np.asarray(above if below is None else above - below)

    def near_edge(self, u: Array, declared: DeclaredSet) -> bool:
        bounded = declared.low is not None and declared.high is not None
        return bounded and bool((np.abs(u) > -np.log(EDGE)).any())

    def at_number(self, number: float, shape: tuple[int, ...], declared: DeclaredSet) -> Array:
        return np.full(shape, number)


def _is_zero(node: Expr) -> bool:
    return isinstance(node, Const) and node.value == 0.0


def _sum(low: Expr, positive: Expr) -> Expr:
    return positive if _is_zero(low) else build.apply(add, low, positive)
