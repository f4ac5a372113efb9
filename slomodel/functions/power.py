"""`x ** p`: IEEE's pow, with `x ** 0` equal to 1 everywhere."""

from __future__ import annotations

import numpy as np

from slomodel.functions.arithmetic import div, mul, square, sub
from slomodel.functions.comparison import eq, land, where
from slomodel.functions.elementary import log, sqrt
from slomodel.ir.expr import Const, Expr
from slomodel.ir.function import ScalarFunction


def _simplify_pow(x: Expr, p: Expr) -> Expr | None:
    """Short products for small exponents: a rounding or two from the correctly rounded power.

    `x ** 0.5` becomes `sqrt(x)`, which differs at -0.0 (its sign) and -inf (NaN, not inf).
    """
    if not isinstance(p, Const):
        return None
    match p.value:
        case 0.0:
            return Const(1.0)
        case 1.0:
            return x
        case 2.0:
            return square(x)
        case 3.0:
            return mul(square(x), x)
        case 4.0:
            return square(square(x))
        case 0.5:
            return sqrt(x)
        case -0.5:
            return div(1.0, sqrt(x))
        case -1.0:
            return div(1.0, x)
        case -2.0:
            return square(div(1.0, x))
    return None


def _by_base(x: Expr, p: Expr) -> Expr:
    """p x^(p-1), 0 at (0, 0): only there would it be 0 * inf."""
    corner = land(eq(x, 0.0), eq(p, 0.0))
    return mul(p, pow(x, sub(where(corner, 1.0, p), 1.0)))


def _by_exponent(x: Expr, p: Expr) -> Expr:
    """x^p log x, its limit 0 where x = 0 < p."""
    return mul(pow(x, p), log(where(eq(x, 0.0), 1.0, x)))


# A whole exponent takes any base; another one needs x >= 0 (a NaN elsewhere).
pow = ScalarFunction(
    "pow",
    2,
    definition=lambda x, p: x**p,
    numpy=np.power,
    partials=(_by_base, _by_exponent),
    spelling={
        "numpy": "np.power({0}, {1}, out={out})",
        "scalar": "np.power({0}, {1})",
        "numexpr": "(({0}) ** {1})",
        "c": "pow({0}, {1})",
    },
    simplify=_simplify_pow,
    costly=True,
)
