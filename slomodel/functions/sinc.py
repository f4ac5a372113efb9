"""sin(x)/x and sin(pi x)/(pi x), continued to 0, with derivatives that do not cancel there.

The n-th derivative f_n of sin(x)/x satisfies x f_n + n f_(n-1) = sin(x + n pi/2), and its magnitude
is at most 1/(n + 1), as it is the integral of t^n cos(x t + n pi/2) over [0, 1]. Near 0 it is the
derivative of the power series.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, neg, square, sub
from slomodel.functions.comparison import eq, le, where
from slomodel.functions.derivatives import definition, meaning, next_member
from slomodel.functions.elementary import cos, sin
from slomodel.functions.piecewise import Reals, abs, clip, complex_step
from slomodel.ir.build import const
from slomodel.ir.expr import Expr
from slomodel.ir.function import C, Cost, Family, ScalarFunction

_EVERYWHERE = (-math.inf, math.inf)
_TERMS = 18


class SincDerivative(sp.Function):  # type: ignore[misc]
    """SymPy's form of member n at x, of the family of derivatives of sin(x)/x."""


def _shifted_sine(x: Expr, n: int) -> Expr:
    """sin(x + n pi/2)."""
    value = cos(x) if n % 2 else sin(x)
    return neg(value) if n % 4 in (2, 3) else value


def _power_series(x: Expr, n: int) -> Expr:
    """The n-th derivative of Σ (-1)^k x^(2k)/(2k + 1)!."""
    first = (n + 1) // 2
    terms = [
        (-1.0) ** k / ((2 * k + 1) * math.factorial(2 * k - n))
        for k in range(first, first + _TERMS)
    ]
    u, total = square(x), const(terms[-1])
    result: Expr = total
    for term in terms[-2::-1]:
        result = add(mul(result, u), term)
    return mul(x, result) if n % 2 else result


def _stable(x: Expr, n: int) -> Expr:
    """sin(x)/x for n = 0; else the power series for |x| <= n + 1, and the recurrence beyond."""
    if n == 0:
        is_zero = eq(x, 0.0)
        value = where(is_zero, 1.0, div(sin(x), where(is_zero, 1.0, x)))
    else:
        edge = n + 1.0
        is_near = le(abs(x), edge)
        far = where(is_near, edge, x)
        value = div(sin(far), far)
        for k in range(1, n + 1):
            value = div(sub(_shifted_sine(far, k), mul(float(k), value)), far)
        value = where(is_near, _power_series(where(is_near, x, 0.0), n), value)
    return clip(value, -1.0 / (n + 1), 1.0 / (n + 1))


_S = sp.Symbol("s", real=True)
_QUOTIENT = sp.sin(_S) / _S


@cache
def derivative(n: int) -> ScalarFunction:
    """The n-th derivative of sin(x)/x."""

    def terms(x: Reals) -> Reals:
        """The magnitude of the terms: those of the recurrence, of the series near 0."""
        with np.errstate(all="ignore"):
            size = np.abs(np.asarray(x, dtype=np.float64))
            return np.minimum(1.0 / (n + 1.0), 2.0 / size)

    return ScalarFunction(
        f"sinc_{n}",
        1,
        definition=definition(_QUOTIENT, _S, n) if n else sp.sinc,
        numpy=meaning(_stable, n),
        partials=(next_member(derivative, n),),
        stable=lambda x: _stable(x, n),
        domain=(_EVERYWHERE,),
        costly=True,
        meaning=f"derivative of sin(x)/x of order {n}" if n else "sin(x)/x, 1 at 0",
        sympy=() if n else (sp.sinc,),
        ulps={} if n == 0 else {"numpy": 16, "numexpr": 16, "c": 16},
        error_scale=terms if n else None,
    )


SINC = Family("sinc_", SincDerivative, derivative)
sin_quotient, sin_quotient_1, sin_quotient_2 = map(derivative, range(3))

_C = """\
static inline real slo_sinc(real x) {
    const real r = x - 2 * floor(x / 2 + (real)0.5), t = r > 0.5 ? 1 - r : r < -0.5 ? -1 - r : r;
    if (x == 0) return 1;
    const real pi = 3.14159265358979323846;
    return sin(pi * t) / (pi * x);
}"""
_REST = "({0} - 2.0 * np.floor({0} * 0.5 + 0.5))"
_REDUCED = f"np.where(np.abs{_REST} > 0.5, np.copysign(1.0, {_REST}) - {_REST}, {_REST})"
_SINC = (
    f"np.where({{0}} == 0.0, 1.0,"
    f" np.sin(np.pi * {_REDUCED}) / np.where({{0}} == 0.0, 1.0, np.pi * {{0}}))"
)


def _sinc_numpy(x: Reals) -> Reals:
    real = np.asarray(np.real(x), dtype=np.float64)
    with np.errstate(all="ignore"):
        rest = real - 2.0 * np.floor(real * 0.5 + 0.5)
        reduced = np.where(np.abs(rest) > 0.5, np.copysign(1.0, rest) - rest, rest)
        is_zero = real == 0.0
        quotient = np.sin(np.pi * reduced) / np.where(is_zero, 1.0, np.pi * real)
        values = np.where(is_zero, 1.0, quotient)
    return complex_step(values, x, lambda: np.multiply(np.pi, sin_quotient_1.numpy(np.pi * real)))


def _largest(x: Reals) -> Reals:
    """The magnitude of the largest values near x."""
    with np.errstate(all="ignore"):
        return np.minimum(1.0, 1.0 / (np.pi * np.abs(np.asarray(x, dtype=np.float64))))


# The argument of the sine is reduced exactly: at a whole number the value is 0.
sinc = ScalarFunction(
    "sinc",
    1,
    definition=lambda x: sp.sinc(sp.pi * x),
    numpy=_sinc_numpy,
    partials=(lambda x: mul(math.pi, sin_quotient_1(mul(math.pi, x))),),
    spelling={"numpy": f"np.copyto({{out}}, {_SINC})", "scalar": _SINC, "c": "slo_sinc({0})"},
    cost=Cost(20.0),
    domain=(_EVERYWHERE,),
    costly=True,
    meaning="sin(pi x)/(pi x), 1 at 0",
    signature="sinc(x)",
    c=C({"sin": 1, "floor": 2}, _C),
    error_scale=_largest,
)
