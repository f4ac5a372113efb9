"""The function factor·erfcx(x/scale) for x >= 0, whose product with exp(-x^2/scale^2) is a tail.

(b + x) erfcx(x) with b = sqrt(pi)/2 is a polynomial of t = (x - 4)/(x + 4), its Chebyshev series on
[-1, 1] up to t^24. With this b its slope is 0 at x = 0, where the rounding of t then costs nothing;
M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x" (1981),
have 1/2 in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, sub
from slomodel.functions.comparison import gt, lt, where
from slomodel.functions.piecewise import Reals, complex_step
from slomodel.ir.build import const
from slomodel.ir.expr import Expr
from slomodel.ir.function import C, Cost, Monotonicity, ScalarFunction

_HALF_ROOT_PI = 0.5 * math.sqrt(math.pi)
_TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
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
_TAIL_MOST = 1e30
"""From here on t is 1 to full accuracy."""


@dataclass(frozen=True, slots=True)
class ScaledTail:
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
