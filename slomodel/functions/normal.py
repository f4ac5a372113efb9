"""The complementary error function and the normal distribution function, accurate in the tails.

With erfcx(x) = exp(x^2) erfc(x) the tail of the distribution function is
Phi(-u) = exp(-u^2/2) erfcx(u/sqrt 2) / 2, and erfcx is insensitive to errors of its operand. In
exp(-u^2/2) the error of u^2 is computed and compensated.
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
    expm1,
    log1p,
    root_of_pi,
    two_over_root_pi,
)
from slomodel.functions.piecewise import Reals, abs, complex_step
from slomodel.functions.scaled_tails import ScaledTail
from slomodel.ir.expr import Expr
from slomodel.ir.function import C, Cost, Monotonicity, ScalarFunction

_EVERYWHERE = (-math.inf, math.inf)
_ROOT_2 = math.sqrt(2.0)
_TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
_DENSITY_AT_0 = 1.0 / math.sqrt(2.0 * math.pi)
_DENSITY_REST = -2.49232720227773e-17
"""1/sqrt(2 pi) minus its double."""
_SPLIT = 134217729.0
"""Dekker's constant 2^27 + 1, by which a double is split into two halves of its digits."""
UNDERFLOW = 40.0
"""From this x on, exp(-x^2/2) underflows to 0."""
_LOG_HALF = -math.log(2.0)
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


def _square_parts_graph(x: Expr) -> tuple[Expr, Expr]:
    """x^2 rounded, and its error."""
    wide = mul(_SPLIT, x)
    high = sub(wide, sub(wide, x))
    low = sub(x, high)
    y = square(x)
    return y, add(add(sub(square(high), y), mul(2.0, mul(high, low))), square(low))


def _exponential_and_correction(x: Expr, factor: float) -> tuple[Expr, Expr]:
    """e and a small d with exp(factor x^2) = e (1 + d), for |x| <= 40."""
    y, error = _square_parts_graph(x)
    return exp(mul(factor, y)), mul(factor, error)


def _exponential_near_one(x: Expr) -> tuple[Expr, Expr]:
    """As above for factor -1/2, with less than a rounding of error where e is near 1.

    In 1 - e Phi(-x) exp(x^2/2) an error of e is enlarged for small x > 0, where the divisor is 1/2.
    """
    y, error = _square_parts_graph(x)
    power = mul(-0.5, y)
    is_near = gt(power, _LOG_HALF)
    near = add(1.0, expm1(where(is_near, power, 0.0)))
    return where(is_near, near, exp(power)), mul(-0.5, error)


def _exp_of_square_graph(x: Expr, factor: float) -> Expr:
    value, correction = _exponential_and_correction(x, factor)
    return mul(value, add(1.0, correction))


def times_exp_of_square(
    value: Expr, x: Expr, factor: float, rest: Expr | None = None, rounding: Expr | None = None
) -> Expr:
    """value (1 + rest) exp(factor (x + rounding)^2), with fewer roundings than the product."""
    power, correction = _exponential_and_correction(x, factor)
    if rounding is not None:
        correction = add(correction, mul(2.0 * factor, mul(x, rounding)))
    if rest is not None:
        correction = add(rest, mul(add(1.0, rest), correction))
    return mul(power, add(value, mul(value, correction)))


def _at_most(x: Expr, limit: float) -> Expr:
    return where(gt(x, limit), limit, x)


# SciPy's erfcx loses many digits for x < 0, and some elsewhere.
_ERFCX = ScaledTail("erfcx_tail", 1.0, 1.0, -4.857319116503606e-17, 0.0)
erfcx_tail: ScalarFunction = _ERFCX.record(
    lambda x: sub(mul(mul(2.0, x), erfcx_tail(x)), two_over_root_pi()),
    "exp(x^2) erfc(x) for x >= 0",
)
# As erfcx_tail(x/sqrt 2)/2, without the rounding of x/sqrt 2.
_NORMAL = ScaledTail("normal_tail", _ROOT_2, 0.5, -7.170580344078963e-17, -1.9444119274487275e-16)
normal_tail: ScalarFunction = _NORMAL.record(
    lambda x: sub(mul(x, normal_tail(x)), div(1.0, root_of_pi(2.0))),
    "exp(x^2/2) Phi(-x) for x >= 0",
)


def _erfcx_numpy(x: Reals) -> Reals:
    real = np.real(x)
    with np.errstate(all="ignore"):
        y, error = _square_parts(np.maximum(real, -_ERFCX_OVERFLOW))
        above_one = np.expm1(y)
        tail = _ERFCX.numpy(np.abs(real))
        grown = 2.0 * (above_one + error * (1.0 + above_one)) + (2.0 - tail)
        values = np.where(real < 0.0, grown, tail)
        return complex_step(values, x, lambda: 2.0 * real * values - _TWO_OVER_ROOT_PI)


def _erfcx_stable(x: Expr) -> Expr:
    below = lt(x, 0.0)
    inner = where(below, where(lt(x, -_ERFCX_OVERFLOW), -_ERFCX_OVERFLOW, x), 0.0)
    tail = erfcx_tail(abs(x))
    # An error of exp(x^2) itself would be enlarged: near 0 the difference is half of its terms.
    y, error = _square_parts_graph(inner)
    above_one = expm1(y)
    grown = mul(2.0, add(above_one, mul(error, add(1.0, above_one))))
    return where(below, add(grown, sub(2.0, tail)), tail)


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
    costly=True,
    meaning="exp(x^2) erfc(x), without overflow of its factors",
    signature="erfcx(x)",
)


def _erfc_numpy(x: Reals) -> Reals:
    from scipy import special

    real = np.real(x)
    far = np.where(real > _ERFC_UNDERFLOW, _ERFC_UNDERFLOW, np.maximum(real, 0.5))
    tail = _ERFCX.numpy(far) * _exp_of_square(far, -1.0)
    values = np.where(real < 0.5, 1.0 - special.erf(real), np.where(np.isnan(real), real, tail))
    return complex_step(values, x, lambda: -_TWO_OVER_ROOT_PI * np.exp(-np.square(real)))


def _erfc_stable(x: Expr) -> Expr:
    near = lt(x, 0.5)
    far = where(near, 0.5, _at_most(x, _ERFC_UNDERFLOW))
    tail = times_exp_of_square(erfcx_tail(far), far, -1.0)
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
    costly=True,
    meaning="1 - erf(x), accurate for large x",
    signature="erfc(x)",
    sympy=(sp.erfc,),
    c=C({"erfc": 2}),
)

_HERMITE_CRITICAL = tuple(tuple(_ROOT_2 * at for at in points) for points in ERF_CRITICAL)


def _gauss_numpy(x: Reals) -> Reals:
    real = np.where(np.abs(np.real(x)) > UNDERFLOW, UNDERFLOW, np.real(x))
    values = _exp_of_square(real, -0.5)
    return complex_step(values, x, lambda: -np.real(x) * values)


def _at_most_underflow(x: Expr) -> Expr:
    return where(gt(abs(x), UNDERFLOW), UNDERFLOW, x)


def exp_of_square(x: Expr, factor: float) -> Expr:
    """exp(factor x^2) for a factor of -1/2 or less."""
    return _exp_of_square_graph(_at_most_underflow(x), factor)


def _gauss_stable(x: Expr) -> Expr:
    return exp_of_square(x, -0.5)


def tail_of_normal(x: Expr) -> Expr:
    """Phi(-|x|)."""
    return times_exp_of_square(_half_tail(x), _at_most_underflow(x), -0.5)


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
    tail = _gauss_numpy(real) * _NORMAL.numpy(np.abs(real))
    values = np.where(real < 0.0, tail, 1.0 - tail)
    return complex_step(values, x, lambda: _DENSITY_AT_0 * _gauss_numpy(real))


def _half_tail(x: Expr) -> Expr:
    """With exp(-x^2/2) the tail beyond |x|, shared by all functions here."""
    return normal_tail(abs(x))


def _normcdf_stable(x: Expr) -> Expr:
    tail = tail_of_normal(x)
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
    costly=True,
    meaning="distribution function of the standard normal distribution",
    signature="normcdf(x)",
    foreign_names=("Phi", "ndtr", "pnorm", "norm_cdf"),
    latex=r"\Phi",
)


def _ratio_numpy(x: Reals) -> Reals:
    real = np.real(x)
    with np.errstate(all="ignore"):
        below = _DENSITY_AT_0 / _NORMAL.numpy(-np.minimum(real, 0.0))
        y, error = _square_parts(np.minimum(np.maximum(real, 0.0), UNDERFLOW))
        factor = _DENSITY_AT_0 + (_DENSITY_REST - 0.5 * _DENSITY_AT_0 * error)
        above = np.exp(-0.5 * y) * factor / _normcdf_numpy(np.maximum(real, 0.0))
        values = np.where(real < 0.0, below, np.where(np.isnan(real), real, above))
        return complex_step(values, x, lambda: -values * (real + values))


def _ratio_stable(x: Expr) -> Expr:
    half, below = _half_tail(x), lt(x, 0.0)
    power, correction = _exponential_near_one(_at_most_underflow(x))
    factor = add(_DENSITY_AT_0, add(mul(_DENSITY_AT_0, correction), _DENSITY_REST))
    density = where(below, _DENSITY_AT_0, mul(power, factor))
    tail = mul(power, add(half, mul(half, correction)))
    return div(density, where(below, half, sub(1.0, tail)))


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
    costly=True,
    meaning="derivative of lognormcdf",
)


def _lognormcdf_numpy(x: Reals) -> Reals:
    real = np.real(x)
    with np.errstate(all="ignore"):
        below = np.log(_NORMAL.numpy(-np.minimum(real, 0.0))) - 0.5 * real * real
        values = np.where(real < 0.0, below, np.log1p(-_normcdf_numpy(-np.maximum(real, 0.0))))
        values = np.where(np.isnan(real), real, values)
        return complex_step(values, x, lambda: _ratio_numpy(real))


def _lognormcdf_stable(x: Expr) -> Expr:
    half, below = _half_tail(x), lt(x, 0.0)
    # For x < 0 this is log(half): half - 1 costs an error of u/half, far less than x^2/2 needs,
    # which hides a logarithm of less than 28 altogether.
    shifted = sub(where(lt(half, _LEAST_HALF), _LEAST_HALF, half), 1.0)
    power, correction = _exponential_near_one(_at_most_underflow(x))
    tail = mul(power, add(half, mul(half, correction)))
    logarithm = log1p(where(below, shifted, neg(tail)))
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
    costly=True,
    meaning="log of the standard normal distribution function",
    signature="lognormcdf(x)",
    foreign_names=("log_ndtr", "std_normal_lcdf", "log_Phi"),
)
