"""The inverse of the normal distribution function, and that of the error function.

Rational functions by M. J. Wichura, "Algorithm AS 241: The percentage points of the normal
distribution" (1988): of p - 1/2 in the middle, and of sqrt(-log(min(p, 1 - p))) in the tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, square, sub
from slomodel.functions.comparison import eq, le, lt, where
from slomodel.functions.compound import graph_values
from slomodel.functions.elementary import exp, log, root_of_pi, sqrt
from slomodel.functions.normal import gauss
from slomodel.functions.piecewise import Reals, abs, complex_step
from slomodel.ir.build import const, variable
from slomodel.ir.expr import Expr
from slomodel.ir.function import Monotonicity, ScalarFunction

_MIDDLE = (
    (
        *(3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3),
        *(1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4),
        *(3.3430575583588128105e4, 2.5090809287301226727e3),
    ),
    (
        *(1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3),
        *(2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4),
        *(5.2264952788528545610e3,),
    ),
)
"""Numerator and denominator, coefficients of low powers first, for |p - 1/2| <= 0.425."""
_TAIL = (
    (
        *(1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0),
        *(3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1),
        *(2.27238449892691845833e-2, 7.74545014278341407640e-4),
    ),
    (
        *(1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1),
        *(1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4),
        *(1.05075007164441684324e-9,),
    ),
)
_FAR_TAIL = (
    (
        *(6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0),
        *(2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3),
        *(2.71155556874348757815e-5, 2.01033439929228813265e-7),
    ),
    (
        *(1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2),
        *(7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7),
        *(2.04426310338993978564e-15,),
    ),
)
"""From sqrt(-log(tail)) = 5 on."""
_EDGE = 0.425
_X = variable("x", ())


def _polynomial(r: Expr, coefficients: Sequence[float]) -> Expr:
    total: Expr = const(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = add(mul(total, r), coefficient)
    return total


def _rational(r: Expr, parts: tuple[Sequence[float], Sequence[float]]) -> Expr:
    above, below = parts
    return div(_polynomial(r, above), _polynomial(r, below))


def _quantile(q: Expr, tail: Expr) -> Expr:
    """The x with Phi(x) = 1/2 + q, from q and min(1/2 + q, 1/2 - q)."""
    is_middle = le(abs(q), _EDGE)
    inner = where(is_middle, q, 0.0)
    middle = mul(inner, _rational(sub(_EDGE**2, square(inner)), _MIDDLE))
    is_end = eq(tail, 0.0)
    r = sqrt(mul(-1.0, log(where(is_middle, 0.25, where(is_end, 0.25, tail)))))
    is_near = le(r, 5.0)
    near = _rational(sub(where(is_near, r, 5.0), 1.6), _TAIL)
    far = _rational(sub(where(is_near, 5.0, r), 5.0), _FAR_TAIL)
    size = where(is_end, math.inf, where(is_near, near, far))
    return where(is_middle, middle, where(lt(q, 0.0), mul(-1.0, size), size))


def _normppf_stable(p: Expr) -> Expr:
    q = sub(p, 0.5)
    return _quantile(q, where(lt(q, 0.0), p, sub(1.0, p)))


def _erfinv_stable(x: Expr) -> Expr:
    return mul(math.sqrt(0.5), _quantile(mul(0.5, x), mul(0.5, sub(1.0, abs(x)))))


def _numpy(
    stable: Callable[[Expr], Expr], slope: Callable[[Reals], Reals]
) -> Callable[[Reals], Reals]:
    """The values of a graph; a complex step by the slope as a function of these values."""
    graph = stable(_X)

    def numpy(x: Reals) -> Reals:
        with np.errstate(all="ignore"):
            values = graph_values(graph, {_X: np.real(x)})
            return complex_step(values, x, lambda: slope(values))

    return numpy


# The derivative of order n is a polynomial of x with coefficients >= 0, even or odd, times a power
# of sqrt(2 pi) exp(x^2/2).
normppf: ScalarFunction = ScalarFunction(
    "normppf",
    1,
    definition=lambda p: sp.sqrt(2) * sp.erfinv(2 * p - 1),
    numpy=_numpy(_normppf_stable, lambda x: math.sqrt(2.0 * math.pi) * np.exp(0.5 * x * x)),
    partials=(lambda p: div(root_of_pi(2.0), gauss(normppf(p))),),
    stable=_normppf_stable,
    domain=((0.0, 1.0),),
    ranges=Monotonicity(((), (0.5,), (), (0.5,), (), (0.5,))),
    costly=True,
    meaning="inverse of normcdf for p in (0, 1), the quantiles of the normal distribution",
    signature="normppf(p)",
    foreign_names=("inv_Phi", "ndtri", "qnorm", "probit", "norm_ppf", "norminv", "Phi_inv"),
    latex=r"\Phi^{-1}",
    ulps={"numpy": 6, "numexpr": 6, "c": 6},
)
erfinv: ScalarFunction = ScalarFunction(
    "erfinv",
    1,
    definition=sp.erfinv,
    numpy=_numpy(_erfinv_stable, lambda x: math.sqrt(math.pi) / 2.0 * np.exp(x * x)),
    partials=(lambda x: mul(mul(0.5, root_of_pi()), exp(square(erfinv(x)))),),
    stable=_erfinv_stable,
    domain=((-1.0, 1.0),),
    ranges=Monotonicity(((), (0.0,), (), (0.0,), (), (0.0,))),
    costly=True,
    meaning="inverse of erf, for x in (-1, 1)",
    signature="erfinv(x)",
    foreign_names=("erf_inv", "inv_erf"),
    sympy=(sp.erfinv,),
    ulps={"numpy": 7, "numexpr": 7, "c": 7},
)
