"""The complementary error function and the normal distribution function, accurate in the tails.

With erfcx(x) = exp(x^2) erfc(x) the tail of the distribution function is
Phi(-u) = exp(-u^2/2) erfcx(u/sqrt 2) / 2, and erfcx is insensitive to errors of its operand. In
exp(-u^2/2) the error of u^2 is computed and compensated. (b + x) erfcx(x) with b = sqrt(pi)/2 is a
polynomial of t = (x - 4)/(x + 4), its Chebyshev series on [-1, 1] up to t^24. With this b its slope
is 0 at x = 0, where the rounding of t then costs nothing; M. M. Shepherd and J. G. Laframboise,
"Chebyshev approximation of (1 + 2x) exp(x^2) erfc x" (1981), have 1/2 in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

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
from slomodel.ir.build import const
from slomodel.ir.expr import Expr
from slomodel.ir.function import C, Cost, Monotonicity, ScalarFunction

_EVERYWHERE = (-math.inf, math.inf)
_ROOT_2 = math.sqrt(2.0)
_HALF_ROOT_PI = 0.5 * math.sqrt(math.pi)
_TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
_DENSITY_AT_0 = 1.0 / math.sqrt(2.0 * math.pi)
_DENSITY_REST = -2.49232720227773e-17
"""What 1/sqrt(2 pi) has beyond its double."""
_SPLIT = 134217729.0
"""Dekker's constant 2^27 + 1, by which a double is split into two halves of its digits."""
UNDERFLOW = 40.0
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


def _exp_of_square_graph(x: Expr, factor: float) -> Expr:
    value, correction = _exponential_and_correction(x, factor)
    return mul(value, add(1.0, correction))


def halved_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """(a + b)/2 rounded, and its error (Knuth's sum)."""
    a, b = mul(0.5, a), mul(0.5, b)  # the sum of halves does not overflow
    total = add(a, b)
    own = sub(total, a)
    return total, add(sub(a, sub(total, own)), sub(b, own))


def times_exp_of_square(value: Expr, x: Expr, factor: float, rounding: Expr | None = None) -> Expr:
    """value exp(factor (x + rounding)^2), with one rounding less than the product."""
    power, correction = _exponential_and_correction(x, factor)
    if rounding is not None:
        correction = add(correction, mul(2.0 * factor, mul(x, rounding)))
    return mul(power, add(value, mul(value, correction)))


def _at_most(x: Expr, limit: float) -> Expr:
    return where(gt(x, limit), limit, x)


_TAIL = (
    0.6694104386199992,
    -0.16986961437596743,
    0.09216525517592564,
    -0.029392264397248426,
    -0.008435020023807156,
    0.022492479892927988,
    -0.021076644537322976,
    0.01362307997754223,
    -0.006530683893707418,
    0.0022073407365603456,
    -0.0003872915951848947,
    -6.912311923452442e-05,
    6.65990070084024e-05,
    -1.2934004515696106e-05,
    -4.473415196041792e-06,
    2.6955275785249954e-06,
    3.633056011532375e-08,
    -3.734530989936555e-07,
    4.8451183481753804e-08,
    4.727153103240446e-08,
    -1.1142888662010725e-08,
    -5.414340274593395e-09,
    1.6617624143613975e-09,
    4.057644023593291e-10,
    -1.3807490149148117e-10,
)
"""The coefficients of t^0, t^1, … in (b + x) erfcx(x)."""


@dataclass(frozen=True, slots=True)
class _ScaledTail:
    """factor·erfcx(x/scale) for x >= 0: a polynomial in t, divided by b + x.

    The quotient of both sums as rounded is corrected by their rounding errors and by what the first
    coefficient and b have beyond a double, `first_rest` and `shift_rest`.
    """

    name: str
    scale: float
    factor: float
    first_rest: float
    shift_rest: float

    @property
    def turn(self) -> float:
        """The x at which t is 0."""
        return 4.0 * self.scale

    @property
    def shift(self) -> float:
        return _HALF_ROOT_PI * self.scale

    @property
    def coefficients(self) -> tuple[float, ...]:
        return tuple(self.factor * self.scale * c for c in _TAIL)

    def c(self) -> str:
        """The definition of a C function of this name."""
        first, *below, last = self.coefficients
        steps = " ".join(f"p = p * t + {c!r};" for c in below[::-1])
        return f"""\
static inline real slo_{self.name}(real x) {{
    const real m = x < {_TAIL_MOST} ? x : {_TAIL_MOST};
    const real t = (m - (real){self.turn!r}) / (m + (real){self.turn!r});
    const real first = {first!r}, shift = {self.shift!r};
    real p = {last!r};
    {steps}
    p *= t;
    const real above = p + first, below = m + shift, own = below - shift;
    const real lost = p - (above - first) + (real){self.first_rest!r};
    const real missing = (shift - (below - own)) + (m - own) + (real){self.shift_rest!r};
    const real divisor = shift + x, quotient = above / divisor;
    return x >= 0 ? quotient + (lost - quotient * missing) / divisor : NAN;
}}"""

    def numpy(self, x: Reals) -> Reals:
        real = np.real(x)
        with np.errstate(invalid="ignore"):
            at = np.where(real < 0.0, np.nan, real)
            most = np.minimum(at, _TAIL_MOST)
            t = (most - self.turn) / (most + self.turn)
            first, *others = self.coefficients
            p = t * np.polyval(others[::-1], t)
            above, below = p + first, most + self.shift
            own = below - self.shift
            lost = p - (above - first) + self.first_rest
            missing = (self.shift - (below - own)) + (most - own) + self.shift_rest
            divisor = self.shift + at
            quotient = above / divisor
            values: Reals = quotient + (lost - quotient * missing) / divisor
        return complex_step(values, x, lambda: self._slope(real, values))

    def _slope(self, x: Reals, values: Reals) -> Reals:
        return (2.0 / self.scale**2) * x * values - self.factor / self.scale * _TWO_OVER_ROOT_PI

    def stable(self, x: Expr) -> Expr:
        most = where(gt(x, _TAIL_MOST), _TAIL_MOST, x)
        t = div(sub(most, self.turn), add(most, self.turn))
        first, *others, last = self.coefficients
        total: Expr = const(last)
        for coefficient in others[::-1]:
            total = add(mul(total, t), coefficient)
        total = mul(total, t)
        above, below = add(total, first), add(most, self.shift)
        own = sub(below, self.shift)
        lost = add(sub(total, sub(above, first)), self.first_rest)
        rounding = add(sub(self.shift, sub(below, own)), sub(most, own))
        missing = add(rounding, self.shift_rest)
        divisor = add(self.shift, x)
        quotient = div(above, divisor)
        correction = div(sub(lost, mul(quotient, missing)), divisor)
        return where(lt(x, 0.0), math.nan, add(quotient, correction))

    def record(self, partial: Callable[[Expr], Expr], meaning: str) -> ScalarFunction:
        """All derivatives of this completely monotone function are monotone."""
        factor, scale = self._exactly()
        return ScalarFunction(
            self.name,
            1,
            definition=lambda x: factor * sp.exp((x / scale) ** 2) * sp.erfc(x / scale),
            numpy=self.numpy,
            partials=(partial,),
            stable=self.stable,
            spelling={"c": f"slo_{self.name}({{0}})"},
            cost=Cost(40.0),
            domain=((0.0, math.inf),),
            ranges=Monotonicity(((),) * 6, image=(0.0, self.factor)),
            costly=True,
            meaning=meaning,
            c=C({}, self.c()),
        )

    def _exactly(self) -> tuple[sp.Expr, sp.Expr]:
        return sp.Rational(self.factor), sp.sqrt(sp.Rational(round(self.scale**2)))


_TAIL_MOST = 1e30
"""From here on t is 1 to full accuracy."""


# SciPy's erfcx loses many digits for x < 0, and some elsewhere.
_ERFCX = _ScaledTail("erfcx_tail", 1.0, 1.0, -4.857319116503606e-17, 0.0)
erfcx_tail: ScalarFunction = _ERFCX.record(
    lambda x: sub(mul(mul(2.0, x), erfcx_tail(x)), two_over_root_pi()),
    "exp(x^2) erfc(x) for x >= 0",
)
# As erfcx_tail(x/sqrt 2)/2, without the rounding of x/sqrt 2.
_NORMAL = _ScaledTail("normal_tail", _ROOT_2, 0.5, -7.170580344078963e-17, -1.9444119274487275e-16)
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
    power, correction = _exponential_and_correction(_at_most_underflow(x), -0.5)
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
    ulps={"numpy": 5, "numexpr": 5, "c": 6},
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
    logarithm = log1p(where(below, shifted, neg(tail_of_normal(x))))
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
    ulps={"numpy": 5, "numexpr": 5, "c": 6},
    costly=True,
    meaning="log of the standard normal distribution function",
    signature="lognormcdf(x)",
    foreign_names=("log_ndtr", "std_normal_lcdf", "log_Phi"),
)
