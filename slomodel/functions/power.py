"""`x ** p`: IEEE's pow, with `x ** 0` equal to 1 everywhere.

At x = 0 a derivative is its limit from x > 0 for fixed p. Where a first derivative is not finite
(by x for p < 1 other than 0, by p for p <= 0), the second ones are not finite either.
"""

from __future__ import annotations

import math

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, square, sub
from slomodel.functions.comparison import eq, gt, land, where
from slomodel.functions.elementary import exp, log, sqrt
from slomodel.functions.piecewise import Reals
from slomodel.ir.expr import Const, Expr
from slomodel.ir.function import C, Cost, RangeRule, ScalarFunction


def _simplify_pow(x: Expr, p: Expr) -> Expr | None:
    """Short products for small exponents: within two rounding errors of the exact power.

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
    """p x^(p-1), and 0 at (0, 0), where that would be 0 * inf."""
    corner = land(eq(x, 0.0), eq(p, 0.0))
    return mul(p, pow(x, sub(where(corner, 1.0, p), 1.0)))


def _by_exponent(x: Expr, p: Expr) -> Expr:
    return powlog(x, p)


# Any base is allowed with an integer exponent; other exponents need x >= 0 (else NaN).
pow: ScalarFunction = ScalarFunction(
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
    cost=Cost(2.3, 10.5),
    simplify=_simplify_pow,
    costly=True,
    extended=True,
    meaning="x^p",
    ranges=RangeRule.OPERATION,
    signature="pow(x, p)",
    c=C({"pow": 1}),
)


def _log_above(least: float, x: Expr, p: Expr) -> Expr:
    """log x, but 0 where x = 0 and p > `least`: there its product with a power of x tends to 0."""
    return log(where(land(eq(x, 0.0), gt(p, least)), 1.0, x))


def _powlog_numpy(x: Reals, p: Reals) -> Reals:
    limit = (x == 0.0) & (np.real(p) > 0.0)
    return x**p * np.log(np.where(limit, 1.0, x))


def _least_term(x: Reals, _p: Reals) -> Reals:
    """The magnitude of log x times the least normal number, below which x^p has fewer digits."""
    with np.errstate(all="ignore"):
        size = np.abs(np.log(np.asarray(x, dtype=np.float64)))
    return np.where(np.isfinite(size), np.finfo(np.float64).tiny * np.maximum(size, 1.0), 0.0)


# x^p log x, the derivative of x^p by p: 0, its limit, where x = 0 < p. Its derivative by x is
# x^(p-1) (1 + p log x), which has a finite limit at x = 0 only for p > 1.
powlog: ScalarFunction = ScalarFunction(
    "powlog",
    2,
    definition=lambda x, p: x**p * sp.log(x),
    numpy=_powlog_numpy,
    partials=(
        lambda x, p: mul(pow(x, sub(p, 1.0)), add(1.0, mul(p, _log_above(1.0, x, p)))),
        lambda x, p: mul(powlog(x, p), _log_above(0.0, x, p)),
    ),
    stable=lambda x, p: mul(pow(x, p), _log_above(0.0, x, p)),
    domain=((0.0, math.inf), (-math.inf, math.inf)),
    error_scale=_least_term,
    costly=True,
    meaning="x^p log(x), its limit 0 at x = 0 for p > 0",
    unary_form=lambda x, p: mul(exp(mul(p, log(x))), log(x)),
)
