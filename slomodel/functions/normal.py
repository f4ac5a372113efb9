"""The complementary error function and the normal distribution function, accurate in the tails.

With erfcx(x) = exp(x^2) erfc(x) the tail of the distribution function is
Phi(-u) = exp(-u^2/2) erfcx(u/sqrt 2) / 2, and erfcx is insensitive to errors of its operand. In
exp(-u^2/2) the error of u^2 is computed and compensated. In C, (1 + 2x) erfcx(x) is a polynomial
of t = (x - 4)/(x + 4): its Chebyshev series on [-1, 1] up to t^24, as in M. M. Shepherd and
J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x" (1981).
"""

from __future__ import annotations

import math

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, neg, square, sub
from slomodel.functions.comparison import gt, lt, where
from slomodel.functions.elementary import (
    ERF_CRITICAL,
    erf,
    exp,
    log1p,
    root_of_pi,
    two_over_root_pi,
)
from slomodel.functions.piecewise import Reals, abs, complex_step
from slomodel.ir.expr import Expr
from slomodel.ir.function import C, Cost, Monotonicity, ScalarFunction

_EVERYWHERE = (-math.inf, math.inf)
_ROOT_2 = math.sqrt(2.0)
_TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
_DENSITY_AT_0 = 1.0 / math.sqrt(2.0 * math.pi)
_SPLIT = 134217729.0
"""Dekker's constant 2^27 + 1, by which a double is split into two halves of its digits."""
_UNDERFLOW = 40.0
"""From this x on, exp(-x^2/2) underflows to 0."""
_LEAST_HALF = 2.0**-40
"""Where erfcx(-x/sqrt 2)/2 is smaller, its logarithm is less than the rounding of x^2/2."""
_ERFC_UNDERFLOW, _ERFCX_OVERFLOW = 28.0, 27.0
"""erfc(x) is 0 for x from the first on; erfcx(-x) is infinite from the second on."""


def _tail_definition(x: sp.Expr) -> sp.Expr:
    """erfc(-x/sqrt 2), of which SymPy would make 2 - erfc(x/sqrt 2)."""
    return sp.erfc(-x / sp.sqrt(2), evaluate=False)


def _square_parts(x: Reals) -> tuple[Reals, Reals]:
    """x^2 rounded, and its error (Dekker's product)."""
    wide = _SPLIT * x
    high = wide - (wide - x)
    low = x - high
    y = x * x
    return y, ((high * high - y) + 2.0 * high * low) + low * low


def _exp_of_square(x: Reals, factor: float) -> Reals:
    """exp(factor x^2) for |x| <= 40."""
    y, error = _square_parts(x)
    values: Reals = np.exp(factor * y) * (1.0 + factor * error)
    return values


def _exp_of_square_graph(x: Expr, factor: float) -> Expr:
    wide = mul(_SPLIT, x)
    high = sub(wide, sub(wide, x))
    low = sub(x, high)
    y = square(x)
    error = add(add(sub(square(high), y), mul(2.0, mul(high, low))), square(low))
    return mul(exp(mul(factor, y)), add(1.0, mul(factor, error)))


def _at_most(x: Expr, limit: float) -> Expr:
    return where(gt(x, limit), limit, x)


_ERFCX_C = """\
static inline real slo_erfcx_tail(real x) {
    const real m = x < 1e30 ? x : 1e30, t = (m - 4) / (m + 4);
    real p = -2.659599690242689e-10;
    p = p * t + 9.311744978232572e-10; p = p * t + 3.1695881915648173e-09;
    p = p * t - 1.234686604382353e-08; p = p * t - 2.05606492756992e-08;
    p = p * t + 1.0633855618594884e-07; p = p * t + 7.746992727017941e-08;
    p = p * t - 8.210939042560568e-07; p = p * t + 2.919733377963012e-07;
    p = p * t + 5.706604414895734e-06; p = p * t - 1.1221287012353486e-05;
    p = p * t - 2.4397746422436416e-05; p = p * t + 0.0001506214900124047;
    p = p * t - 0.00019925714661091188; p = p * t - 0.0007577732613730956;
    p = p * t + 0.005031970067657489; p = p * t - 0.016197734059799265;
    p = p * t + 0.03716751552655567; p = p * t - 0.06633036581218697;
    p = p * t + 0.0937328349990944; p = p * t - 0.10103906603630056;
    p = p * t + 0.06809705425466908; p = p * t + 0.015379652102619604;
    p = p * t - 0.1396211168405623; p = p * t + 1.2329951186255526;
    return x >= 0 ? (real)0.5 * p / ((real)0.5 + x) : NAN;
}"""


def _tail_numpy(x: Reals) -> Reals:
    from scipy import special

    real = np.real(x)
    near = np.clip(real, 0.0, 0.5)
    tail = np.where(real < 0.5, np.exp(near * near) * special.erfc(near), special.erfcx(real))
    values = np.where(real < 0.0, np.nan, tail)
    return complex_step(values, x, lambda: 2.0 * real * values - _TWO_OVER_ROOT_PI)


_NEAR = "np.clip({0}, 0.0, 0.5)"
_TAIL = (
    f"np.where({{0}} < 0.5, np.where({{0}} < 0.0, np.nan, np.exp({_NEAR} * {_NEAR})"
    f" * special.erfc({_NEAR})), special.erfcx({{0}}))"
)

# SciPy's erfcx loses many digits for x < 0, and some below 1/2.
erfcx_tail: ScalarFunction = ScalarFunction(
    "erfcx_tail",
    1,
    definition=lambda x: sp.exp(x**2) * sp.erfc(x),
    numpy=_tail_numpy,
    partials=(lambda x: sub(mul(mul(2.0, x), erfcx_tail(x)), two_over_root_pi()),),
    spelling={
        "numpy": f"np.copyto({{out}}, {_TAIL})",
        "scalar": _TAIL,
        "c": "slo_erfcx_tail({0})",
    },
    cost=Cost(40.0),
    domain=((0.0, math.inf),),
    ranges=Monotonicity(((),) * 6, image=(0.0, 1.0)),
    ulps={"numpy": 8, "numexpr": 8, "c": 6},
    costly=True,
    meaning="exp(x^2) erfc(x) for x >= 0",
    c=C({}, _ERFCX_C),
)


def _erfcx_numpy(x: Reals) -> Reals:
    real = np.real(x)
    with np.errstate(all="ignore"):
        grown = 2.0 * _exp_of_square(np.maximum(real, -_ERFCX_OVERFLOW), 1.0)
        tail = _tail_numpy(np.abs(real))
        values = np.where(real < 0.0, grown - tail, tail)
        return complex_step(values, x, lambda: 2.0 * real * values - _TWO_OVER_ROOT_PI)


def _erfcx_stable(x: Expr) -> Expr:
    below = lt(x, 0.0)
    inner = where(below, where(lt(x, -_ERFCX_OVERFLOW), -_ERFCX_OVERFLOW, x), 0.0)
    tail = erfcx_tail(abs(x))
    return where(below, sub(mul(2.0, _exp_of_square_graph(inner, 1.0)), tail), tail)


# A completely monotone function: all derivatives are monotone.
erfcx: ScalarFunction = ScalarFunction(
    "erfcx",
    1,
    definition=lambda x: sp.exp(x**2) * sp.erfc(x),
    numpy=_erfcx_numpy,
    partials=(lambda x: sub(mul(mul(2.0, x), erfcx(x)), two_over_root_pi()),),
    stable=_erfcx_stable,
    domain=(_EVERYWHERE,),
    ranges=Monotonicity(((),) * 6, image=(0.0, math.inf)),
    ulps={"numpy": 8, "numexpr": 8, "c": 6},
    costly=True,
    meaning="exp(x^2) erfc(x), without overflow of its factors",
    signature="erfcx(x)",
)


def _erfc_numpy(x: Reals) -> Reals:
    from scipy import special

    real = np.real(x)
    far = np.where(real > _ERFC_UNDERFLOW, _ERFC_UNDERFLOW, np.maximum(real, 0.5))
    tail = _tail_numpy(far) * _exp_of_square(far, -1.0)
    values = np.where(real < 0.5, 1.0 - special.erf(real), np.where(np.isnan(real), real, tail))
    return complex_step(values, x, lambda: -_TWO_OVER_ROOT_PI * np.exp(-np.square(real)))


def _erfc_stable(x: Expr) -> Expr:
    near = lt(x, 0.5)
    far = where(near, 0.5, _at_most(x, _ERFC_UNDERFLOW))
    tail = mul(erfcx_tail(far), _exp_of_square_graph(far, -1.0))
    return where(near, sub(1.0, erf(x)), tail)


# SciPy's erfc is 0 where the value is subnormal.
erfc = ScalarFunction(
    "erfc",
    1,
    definition=sp.erfc,
    numpy=_erfc_numpy,
    partials=(lambda x: neg(mul(two_over_root_pi(), exp(neg(square(x))))),),
    stable=_erfc_stable,
    spelling={"c": "erfc({0})"},
    cost=Cost(60.0),
    domain=(_EVERYWHERE,),
    ranges=Monotonicity(ERF_CRITICAL, image=(0.0, 2.0)),
    ulps={"numpy": 8, "numexpr": 8},
    costly=True,
    meaning="1 - erf(x), accurate for large x",
    signature="erfc(x)",
    sympy=(sp.erfc,),
    c=C({"erfc": 2}),
)

_HERMITE_CRITICAL = tuple(tuple(_ROOT_2 * at for at in points) for points in ERF_CRITICAL)


def _gauss_numpy(x: Reals) -> Reals:
    real = np.where(np.abs(np.real(x)) > _UNDERFLOW, _UNDERFLOW, np.real(x))
    values = _exp_of_square(real, -0.5)
    return complex_step(values, x, lambda: -np.real(x) * values)


def _gauss_stable(x: Expr) -> Expr:
    return _exp_of_square_graph(where(gt(abs(x), _UNDERFLOW), _UNDERFLOW, x), -0.5)


# In exp(-(x * x) / 2) the rounding of x^2 costs x^2/4 units in the last place.
gauss: ScalarFunction = ScalarFunction(
    "gauss",
    1,
    definition=lambda x: sp.exp(-(x**2) / 2),
    numpy=_gauss_numpy,
    partials=(lambda x: neg(mul(x, gauss(x))),),
    stable=_gauss_stable,
    domain=(_EVERYWHERE,),
    ranges=Monotonicity(_HERMITE_CRITICAL[1:], image=(0.0, 1.0)),
    costly=True,
    meaning="exp(-x^2/2)",
)


def _normcdf_numpy(x: Reals) -> Reals:
    real = np.real(x)
    tail = 0.5 * _gauss_numpy(real) * _tail_numpy(np.abs(real) / _ROOT_2)
    values = np.where(real < 0.0, tail, 1.0 - tail)
    return complex_step(values, x, lambda: _DENSITY_AT_0 * _gauss_numpy(real))


def _half_tail(x: Expr) -> Expr:
    """erfcx(|x|/sqrt 2)/2: with exp(-x^2/2) the tail beyond |x|, shared by all functions here."""
    return mul(0.5, erfcx_tail(div(abs(x), _ROOT_2)))


def _normcdf_stable(x: Expr) -> Expr:
    tail = mul(gauss(x), _half_tail(x))
    return where(lt(x, 0.0), tail, sub(1.0, tail))


normcdf = ScalarFunction(
    "normcdf",
    1,
    definition=lambda x: _tail_definition(x) / 2,
    numpy=_normcdf_numpy,
    partials=(lambda x: div(gauss(x), root_of_pi(2.0)),),
    stable=_normcdf_stable,
    domain=(_EVERYWHERE,),
    ranges=Monotonicity(_HERMITE_CRITICAL, image=(0.0, 1.0)),
    ulps={"numpy": 12, "numexpr": 12, "c": 8},
    costly=True,
    meaning="distribution function of the standard normal distribution",
    signature="normcdf(x)",
    foreign_names=("Phi", "ndtr", "pnorm", "norm_cdf"),
    latex=r"\Phi",
)


def _ratio_numpy(x: Reals) -> Reals:
    real = np.real(x)
    with np.errstate(all="ignore"):
        below = math.sqrt(2.0 / math.pi) / _tail_numpy(-np.minimum(real, 0.0) / _ROOT_2)
        above = _DENSITY_AT_0 * _gauss_numpy(real) / _normcdf_numpy(np.maximum(real, 0.0))
        values = np.where(real < 0.0, below, np.where(np.isnan(real), real, above))
        return complex_step(values, x, lambda: -values * (real + values))


def _ratio_stable(x: Expr) -> Expr:
    half, below = _half_tail(x), lt(x, 0.0)
    density = mul(_DENSITY_AT_0, where(below, 1.0, gauss(x)))
    return div(density, where(below, half, sub(1.0, mul(gauss(x), half))))


# The derivative of lognormcdf, the inverse Mills ratio of -x. Its derivatives at 0 <= k <= 4 have
# the critical points below, computed in 60 digits.
normratio: ScalarFunction = ScalarFunction(
    "normratio",
    1,
    definition=lambda x: sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi) / (_tail_definition(x) / 2),
    numpy=_ratio_numpy,
    partials=(lambda x: neg(mul(normratio(x), add(x, normratio(x)))),),
    stable=_ratio_stable,
    domain=(_EVERYWHERE,),
    ranges=Monotonicity(
        (
            (),
            (),
            (1.0023693422683706,),
            (-0.029833620926059145, 2.0712889388088739),
            (-0.87113217498915869, 1.2313322903511885, 2.7456390097167839),
        ),
        image=(0.0, math.inf),
    ),
    ulps={"numpy": 16, "numexpr": 16, "c": 12},
    costly=True,
    meaning="derivative of lognormcdf",
)


def _lognormcdf_numpy(x: Reals) -> Reals:
    real = np.real(x)
    with np.errstate(all="ignore"):
        below = np.log(0.5 * _tail_numpy(-np.minimum(real, 0.0) / _ROOT_2)) - 0.5 * real * real
        values = np.where(real < 0.0, below, np.log1p(-_normcdf_numpy(-np.maximum(real, 0.0))))
        values = np.where(np.isnan(real), real, values)
        return complex_step(values, x, lambda: _ratio_numpy(real))


def _lognormcdf_stable(x: Expr) -> Expr:
    half, below = _half_tail(x), lt(x, 0.0)
    # For x < 0 this is log(half): half - 1 costs an error of u/half, far less than x^2/2 needs,
    # which hides a logarithm of less than 28 altogether.
    shifted = sub(where(lt(half, _LEAST_HALF), _LEAST_HALF, half), 1.0)
    logarithm = log1p(where(below, shifted, neg(mul(gauss(x), half))))
    return where(below, sub(logarithm, mul(0.5, square(x))), logarithm)


lognormcdf = ScalarFunction(
    "lognormcdf",
    1,
    definition=lambda x: sp.log(_tail_definition(x) / 2),
    numpy=_lognormcdf_numpy,
    partials=(normratio,),
    stable=_lognormcdf_stable,
    domain=(_EVERYWHERE,),
    ranges=Monotonicity(
        ((), *normratio.monotonicity.critical_points) if normratio.monotonicity else ((),),
        image=(-math.inf, 0.0),
    ),
    ulps={"numpy": 12, "numexpr": 12, "c": 8},
    costly=True,
    meaning="log of the standard normal distribution function",
    signature="lognormcdf(x)",
    foreign_names=("log_ndtr", "std_normal_lcdf", "log_Phi"),
)
