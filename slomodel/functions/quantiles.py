"""The inverse of the normal distribution function, and that of the error function.

Rational functions of p - 1/2 in the middle, and of r = sqrt(-log(min(p, 1 - p))) in the tails, over
the intervals of M. J. Wichura, "Algorithm AS 241: The percentage points of the normal distribution"
(1988). They are fitted to what is left of a value beyond its first term, known to full accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, square, sub
from slomodel.functions.comparison import eq, le, lt, where
from slomodel.functions.compound import graph_values
from slomodel.functions.elementary import log, sqrt
from slomodel.functions.normal import normratio
from slomodel.functions.piecewise import Reals, abs, complex_step
from slomodel.ir.build import const, variable
from slomodel.ir.expr import Expr
from slomodel.ir.function import Monotonicity, ScalarFunction

_MIDDLE = (
    (
        *(0.43087250673264127, 4.195168146344848, 15.339997870096486),
        *(26.23082038426667, 21.28155279333337, 7.343907444585199),
        *(0.777943377163374, 0.003008052641808382),
    ),
    (
        *(1.0, 11.242528360617394, 49.3155499370266),
        *(107.02918427697183, 120.46427832043669, 67.42774187914294),
        *(16.334376196472906, 1.1943667350595488),
    ),
)
"""Numerator and denominator, coefficients of low powers first, of (erfinv(x)/x - sqrt(pi)/2)/x²
by 0.85² - x², for |x| <= 0.85."""
_TAIL = (
    (
        *(-0.5934779663963121, -1.007222439821234, -0.6560228727518456),
        *(-0.20672679577781772, -0.03227161045759364, -0.0022110356724149753),
        *(-4.6744106107092485e-05, -4.944190547564801e-08),
    ),
    (
        *(1.0, 2.046888321698086, 1.6746287563965494),
        *(0.7004106040351362, 0.15821488296340536, 0.018528011058974312),
        *(0.0009616040424788979, 1.4734269016324755e-05),
    ),
)
"""Coefficients of erfinv(x) - r by r - 1.6, r = sqrt(-log((1 - |x|)/2)), for r from 1.6 to 5."""
_FAR_TAIL = (
    (
        *(-0.2921504780869665, -0.13904169778930087, -0.023901309092148545),
        *(-0.0018351930186268392, -6.344450357088003e-05, -8.78953178626394e-07),
        *(-3.4885450067794143e-09, -5.620747418424837e-13),
    ),
    (
        *(1.0, 0.6113332202141718, 0.14356215820726917),
        *(0.016313692016003533, 0.0009325762048354053, 2.5442770879432745e-05),
        *(2.837307690086026e-07, 8.743000578796862e-10),
    ),
)
"""Coefficients of erfinv(x) - r by r - 5, from r = 5 on."""
_ERFINV = (1.0, 0.0, 0.886226925452758, -3.8332932499128994e-17)
_NORMPPF = (math.sqrt(2.0), -9.667293313452913e-17, 1.2533141373155003, -9.164289990229583e-17)
"""A factor of erfinv and its product with sqrt(pi)/2, each with what it has beyond its double."""
_EDGE = 0.85
_X = variable("x", ())


def _polynomial(r: Expr, coefficients: Sequence[float]) -> Expr:
    total: Expr = const(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = add(mul(total, r), coefficient)
    return total


def _rational(r: Expr, parts: tuple[Sequence[float], Sequence[float]]) -> Expr:
    above, below = parts
    return div(_polynomial(r, above), _polynomial(r, below))


def _quantile(x: Expr, tail: Expr, factors: tuple[float, float, float, float]) -> Expr:
    """A factor times the inverse of erf at x, from x and tail = (1 - |x|)/2."""
    scale, scale_rest, first, first_rest = factors
    is_middle = le(abs(x), _EDGE)
    inner = where(is_middle, x, 0.0)
    u = square(inner)
    correction = mul(mul(scale, u), _rational(sub(_EDGE**2, u), _MIDDLE))
    middle = add(mul(first, inner), mul(inner, add(first_rest, correction)))
    is_end = eq(tail, 0.0)
    r = sqrt(mul(-1.0, log(where(is_middle, 0.25, where(is_end, 0.25, tail)))))
    is_near = le(r, 5.0)
    near = _rational(sub(where(is_near, r, 5.0), 1.6), _TAIL)
    far = _rational(sub(where(is_near, 5.0, r), 5.0), _FAR_TAIL)
    rest = add(mul(scale, where(is_near, near, far)), mul(scale_rest, r))
    size = where(is_end, math.inf, add(mul(scale, r), rest))
    return where(is_middle, middle, where(lt(x, 0.0), mul(-1.0, size), size))


def _normppf_stable(p: Expr) -> Expr:
    q = sub(p, 0.5)
    return _quantile(mul(2.0, q), where(lt(q, 0.0), p, sub(1.0, p)), _NORMPPF)


def _erfinv_stable(x: Expr) -> Expr:
    return _quantile(x, mul(0.5, sub(1.0, abs(x))), _ERFINV)


def _numpy(
    stable: Callable[[Expr], Expr], slope: Callable[[Reals, Reals], Reals]
) -> Callable[[Reals], Reals]:
    """The values of a graph; a complex step by the slope as a function of x and these values."""

    @cache
    def graph() -> Expr:
        return stable(_X)

    def numpy(x: Reals) -> Reals:
        with np.errstate(all="ignore"):
            values = graph_values(graph(), {_X: np.real(x)})
            return complex_step(values, x, lambda: slope(np.real(x), values))

    return numpy


def _density(x: Expr, product: Expr) -> Expr:
    """The normal density at x from Phi(x) Phi(-x), as an error of x would be enlarged by x^2.

    It is that product times the sum of the density over Phi(x) and over Phi(-x).
    """
    is_end = eq(product, 0.0)
    inner = where(is_end, 0.0, x)
    return mul(product, add(normratio(inner), normratio(mul(-1.0, inner))))


def _density_stable(p: Expr) -> Expr:
    return _density(normppf(p), mul(p, sub(1.0, p)))


def _erf_density_stable(x: Expr) -> Expr:
    return mul(
        math.sqrt(0.5),
        _density(mul(math.sqrt(2.0), erfinv(x)), mul(sub(1.0, x), add(1.0, x))),
    )


def _density_record(
    quantile: ScalarFunction,
    name: str,
    definition: Callable[[sp.Expr], sp.Expr],
    stable: Callable[[Expr], Expr],
    factor: float,
    meaning: str,
) -> ScalarFunction:
    """A function g with g' = -factor q, for a quantile function q."""

    def partial(x: Expr) -> Expr:
        return mul(-factor, quantile(x))

    ((low, high),) = quantile.domain
    assert quantile.monotonicity is not None
    return ScalarFunction(
        name,
        1,
        definition=definition,
        numpy=_numpy(stable, lambda x, _values: -factor * np.real(quantile.numpy(x))),
        partials=(partial,),
        stable=stable,
        domain=((low, high),),
        ranges=Monotonicity(
            ((0.5 * (low + high),), *quantile.monotonicity.critical_points[:-1]),
        ),
        costly=True,
        meaning=meaning,
        ulps={"numpy": 6, "numexpr": 6, "c": 6},
    )


# The derivative of order n is a polynomial of x with coefficients >= 0, even or odd, times a power
# of sqrt(2 pi) exp(x^2/2).
normppf: ScalarFunction = ScalarFunction(
    "normppf",
    1,
    definition=lambda p: sp.sqrt(2) * sp.erfinv(2 * p - 1),
    numpy=_numpy(_normppf_stable, lambda _p, x: math.sqrt(2.0 * math.pi) * np.exp(0.5 * x * x)),
    partials=(lambda p: div(1.0, normppf_density(p)),),
    stable=_normppf_stable,
    domain=((0.0, 1.0),),
    ranges=Monotonicity(((), (0.5,), (), (0.5,), (), (0.5,))),
    costly=True,
    meaning="inverse of normcdf for p in (0, 1), the quantiles of the normal distribution",
    signature="normppf(p)",
    foreign_names=("inv_Phi", "ndtri", "qnorm", "probit", "norm_ppf", "norminv", "Phi_inv"),
    latex=r"\Phi^{-1}",
)
erfinv: ScalarFunction = ScalarFunction(
    "erfinv",
    1,
    definition=sp.erfinv,
    numpy=_numpy(_erfinv_stable, lambda _x, y: math.sqrt(math.pi) / 2.0 * np.exp(y * y)),
    partials=(lambda x: div(1.0, erfinv_density(x)),),
    stable=_erfinv_stable,
    domain=((-1.0, 1.0),),
    ranges=Monotonicity(((), (0.0,), (), (0.0,), (), (0.0,))),
    costly=True,
    meaning="inverse of erf, for x in (-1, 1)",
    signature="erfinv(x)",
    foreign_names=("erf_inv", "inv_erf"),
    sympy=(sp.erfinv,),
)
normppf_density: ScalarFunction = _density_record(
    normppf,
    "normppf_density",
    lambda p: sp.exp(-(sp.erfinv(2 * p - 1) ** 2)) / sp.sqrt(2 * sp.pi),
    _density_stable,
    1.0,
    "normal density at normppf(p), the inverse of its derivative",
)
erfinv_density: ScalarFunction = _density_record(
    erfinv,
    "erfinv_density",
    lambda x: 2 * sp.exp(-(sp.erfinv(x) ** 2)) / sp.sqrt(sp.pi),
    _erf_density_stable,
    2.0,
    "slope of erf at erfinv(x), the inverse of its derivative",
)
