"""Values of functions of numbers with small radii, by one evaluation at the midpoint.

|φ(m + d) - φ(m)| <= r sup |φ'| for |d| <= r. An interval between both ends takes two evaluations.
"""

from __future__ import annotations

from slomodel.calculus.rays.derivatives import (
    PartialFunction,
    derivative_graph,
    largest_coefficient,
    largest_derivative,
)
from slomodel.calculus.rays.functions import applied, as_midrad
from slomodel.calculus.rays.jets import ORDERS
from slomodel.calculus.rays.numbers import MidRad, raised
from slomodel.functions import abs, add, div, lt, mul, neg, same, square, stop_gradient, sub, where
from slomodel.ir.expr import Expr, Map
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import postorder

_ARITHMETIC = (abs, add, sub, mul, div, neg, square, same)


def perturbed(function: ScalarFunction, operand: MidRad) -> MidRad | None:
    """A smooth function of a number with a radius; None where sup |φ'| costs a function as well.

    The supremum is that over the line or, for a derivative of arithmetic alone, over the range. Of
    φ with |φ'| <= a|φ|, |φ(m + d) - φ(m)| <= (e^(ar) - 1)|φ(m)| by Gronwall, and that is at most
    ar(1 + ar)|φ(m)| for ar <= 1.79.
    """
    own = (*_ARITHMETIC, stop_gradient)
    if operand.rad is None or function.arity != 1 or function.kinks or function in own:
        return None
    start = as_midrad(applied(function, [MidRad(operand.mid)]))
    change = _change(function, operand, operand.rad, start)
    if change is None:
        return None
    return MidRad(start.mid, raised([change] if start.rad is None else [start.rad, change]))


def _change(function: ScalarFunction, operand: MidRad, rad: Expr, start: MidRad) -> Expr | None:
    """Upper bound on |φ(m + d) - φ(m)| for |d| <= rad, where `start` is φ(m); None if none."""
    # That these are bounds at infinity too is tested where the fourth derivative is bounded.
    bounded = largest_derivative(function, ORDERS) is not None
    everywhere = largest_derivative(function, 1) if bounded else None
    if everywhere is not None:
        return mul(everywhere, rad)
    decay = function.decay
    if decay is not None and decay.order == 0:
        x = mul(decay.rate, rad)
        return where(lt(x, 1.75), mul(start.size, mul(x, add(1.0, x))), float("inf"))
    one = PartialFunction(function, 0, (None,))
    _, derivative = derivative_graph(one, 1)
    if all(n.function in _ARITHMETIC for n in postorder(derivative) if isinstance(n, Map)):
        slope = largest_coefficient(one, 1, [operand.range])
        return None if slope is None else mul(slope, rad)
    return None
