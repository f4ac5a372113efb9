"""The logarithm of the modified Bessel function I_0, and its derivatives.

With t = x²/4 and c_k = (2k)!/k!^4 (DLMF 10.31.3), I_0² is Σ c_k t^k, and I_0² times the derivative
of I_1/I_0 is Σ c_k/(2 (k+1)²) t^k, a quotient of sums of positive terms; in the middle its digits
are lost, and a Chebyshev series in 1/x takes its place. The derivative A = I_1/I_0 is a continued
fraction; for large x it has an asymptotic series, whose coefficients follow from Riccati's equation
A' = 1 - A/x - A²; so do higher derivatives. Near 0 these are polynomials from the power series of
log I_0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, square, sub
from slomodel.functions.comparison import ge, lt, where
from slomodel.functions.derivatives import definition, meaning, next_member
from slomodel.functions.elementary import log, log1p
from slomodel.functions.piecewise import Reals, abs
from slomodel.ir.build import const
from slomodel.ir.expr import Expr
from slomodel.ir.function import Family, Monotonicity, RangeRule, ScalarFunction

_EVERYWHERE = (-math.inf, math.inf)
_FAR = 24.0
"""From here on 44 terms of the asymptotic series have full accuracy, in derivatives too."""
_TERMS = 72
"""Terms of the series in t for |x| < 24."""
_FRACTIONS = 48
"""Terms of the continued fraction for |x| < 24."""
_MIDDLE = 4.0
"""Up to here the second derivative of log I_0 is a quotient of two series in t."""
_MIDDLE_TERMS = 23
"""Terms of these series for |x| < 4."""
# fmt: off
_SECOND = (
    0.5487939087660489, 0.04961160622086041, 0.017688014877893714, 0.005757271163076528,
    -0.003802103265922536, -0.005152023607701727, 0.0008988762687553081, 0.002651715417951731,
    -0.0009912506649542904, -0.0010257931508745686, 0.0009667855449603113, 5.503194557407607e-06,
    -0.0004985239592124991, 0.0003338485742604556, 1.2014611646882831e-05, -0.00018047760888389555,
    0.000140912621110586, -2.657013762638112e-05, -4.7708659647826465e-05, 5.2973286886689795e-05,
    -2.8427188977146053e-05, 1.1654960690262238e-05, 1.1983198880098559e-05,
    -4.229471185500499e-05, 1.7320077054820204e-05, 4.4015705737926653e-05, -2.16476886504058e-05,
    -5.11145333943275e-05, 2.247651324945117e-05, 5.217895103559871e-05, -2.5524417506976662e-05,
    -3.534799109932772e-05, 2.0411346491540285e-05, 1.4677930117797478e-05, -9.788220740116747e-06,
    -3.431454803303742e-06, 2.5798126819382067e-06, 3.4921223852918596e-07, -2.911030555874878e-07,
)
# fmt: on
"""Coefficients of x^2 A'(x) for 4 <= x < 24 as a polynomial of 9.6/x - 1.4, in [-1, 1]: those of
its Chebyshev series, computed in 60 digits."""
_NEAR = 1.0
"""Up to here the power series of log I_0, which converges for |x| < 2.4, is used."""


@cache
def _squares() -> tuple[Fraction, ...]:
    """The coefficients c_k = (2k)!/k!^4 of the series in t, for k < 72."""
    return tuple(Fraction(math.factorial(2 * k), math.factorial(k) ** 4) for k in range(_TERMS))


@cache
def _asymptotic() -> tuple[Fraction, ...]:
    """a_k of A = Σ a_k x^-k: a_0 = 1, 2 a_(k+1) = (k - 1) a_k - Σ a_j a_(k+1-j), 1 <= j <= k."""
    a = [Fraction(1)]
    for k in range(44):
        inner = sum((a[j] * a[k + 1 - j] for j in range(1, k + 1)), Fraction(0))
        a.append(((k - 1) * a[k] - inner) / 2)
    return tuple(a)


@cache
def _power_series() -> tuple[Fraction, ...]:
    """b_k of log I_0 = Σ b_k x^(2k), from A = 2 Σ k b_k x^(2k-1) and x A' = x - A - x A²."""
    slopes = [Fraction(1, 2)]  # A = Σ s_k x^(2k+1)
    for k in range(1, 40):
        inner = sum((slopes[j] * slopes[k - 1 - j] for j in range(k)), Fraction(0))
        slopes.append(-inner / (2 * k + 2))
    return (Fraction(0), *(s / (2 * k + 2) for k, s in enumerate(slopes)))


def _polynomial(u: Expr, coefficients: Sequence[Fraction]) -> Expr:
    total: Expr = const(float(coefficients[-1]))
    for coefficient in coefficients[-2::-1]:
        total = add(mul(total, u), float(coefficient))
    return total


def _series(x: Expr, weight: Callable[[int], Fraction]) -> Expr:
    """Σ c_k w_k t^k for |x| < 24."""
    return _polynomial(_quarter(x), [c * weight(k) for k, c in enumerate(_squares())])


def _asymptotic_derivative(x: Expr, n: int) -> Expr:
    """The n-th derivative of log I_0 at x >= 24, for n >= 1."""
    r = div(1.0, x)
    terms = [Fraction(0)] * (n - 1)
    for k, a in enumerate(_asymptotic()):
        factor = Fraction(1)
        for j in range(n - 1):
            factor *= -(k + j)
        terms.append(factor * a)
    return _polynomial(r, terms)


def _taylor(x: Expr, n: int) -> Expr:
    """The n-th derivative of the power series at |x| <= 1."""
    terms = []
    for k, b in enumerate(_power_series()):
        if 2 * k >= n:
            terms.append(b * Fraction(math.factorial(2 * k), math.factorial(2 * k - n)))
    total = _polynomial(square(x), terms)
    return mul(x, total) if n % 2 else total


def _by_riccati(x: Expr, n: int) -> Expr:
    """The n-th derivative for n >= 3 from lower ones.

    The derivatives A_m of A satisfy x A_(m+1) = x S + (m + 1) (0 - A_m) - x S_m - m S_(m-1), where
    S_m = Σ binomial(m, j) A_j A_(m-j) are those of A².
    """
    m = n - 2
    slopes = [derivative(j + 1)(x) for j in range(n - 1)]

    def products(order: int) -> Expr:
        total: Expr | None = None
        for j in range(order + 1):
            one = mul(float(math.comb(order, j)), mul(slopes[j], slopes[order - j]))
            total = one if total is None else add(total, one)
        assert total is not None
        return total

    first = add(mul(float(m + 1), slopes[m]), mul(float(m), products(m - 1)))
    if m == 1:
        first = sub(first, 1.0)
    return sub(div(first, mul(-1.0, x)), products(m))


def _stable(x: Expr, n: int) -> Expr:
    """The n-th derivative of log I_0, from pieces for |x| < 1 (n >= 3), |x| < 24 and beyond."""
    size = abs(x)
    is_far = ge(size, _FAR)
    top = where(is_far, size, _FAR)
    if n == 0:
        logarithm = add(0.5 * math.log(2.0 * math.pi), mul(0.5, log(top)))
        # log(sqrt(2 pi x) exp(-x) I_0) is the integral of A - 1 + 1/(2x) = Σ a_k x^-k, k >= 2.
        terms = [Fraction(0), *(-a / (k + 1) for k, a in enumerate(_asymptotic()[2:]))]
        far = add(sub(top, logarithm), _polynomial(div(1.0, top), terms))
        above = mul(_quarter(x), _series(x, _next))
        return where(is_far, far, mul(0.5, log1p(above)))
    far = _asymptotic_derivative(top, n)
    if n % 2:
        far = where(lt(x, 0.0), mul(-1.0, far), far)
    if n == 1:
        near = _continued_fraction(where(is_far, 0.0, x))
    elif n == 2:
        near = _second(size, is_far)
    else:
        is_near = lt(size, _NEAR)
        middle = _by_riccati(where(is_near, _NEAR, where(is_far, _NEAR, x)), n)
        near = where(is_near, _taylor(where(is_near, x, 0.0), n), middle)
    return where(is_far, far, near)


def _second(size: Expr, is_far: Expr) -> Expr:
    """The second derivative of log I_0 at |x| < 24."""
    is_near = lt(size, _MIDDLE)
    t = mul(0.25, square(where(is_near, size, 0.0)))
    squares = _squares()[:_MIDDLE_TERMS]
    below = div(
        _polynomial(t, [c * _variances(k) for k, c in enumerate(squares)]), _polynomial(t, squares)
    )
    r = div(1.0, where(is_near, _MIDDLE, where(is_far, _MIDDLE, size)))
    above = _polynomial(sub(mul(9.6, r), 1.4), [Fraction(c) for c in _SECOND])
    return where(is_near, below, mul(above, square(r)))


def _continued_fraction(x: Expr) -> Expr:
    """I_1/I_0 for |x| < 24 as x/(2 + x²/(4 + x²/(6 + …))) (DLMF 10.33.1), from the last term on.

    No term cancels, and a rounding error is damped by each of the terms before it.
    """
    ratio: Expr = div(x, 2.0 * _FRACTIONS)
    for k in range(_FRACTIONS - 1, 0, -1):
        ratio = div(x, add(2.0 * k, mul(x, ratio)))
    return ratio


def _quarter(x: Expr) -> Expr:
    """t for |x| < 24, and 0 beyond."""
    return mul(0.25, square(where(ge(abs(x), _FAR), 0.0, x)))


def _next(k: int) -> Fraction:
    """c_(k+1)/c_k."""
    return Fraction((2 * k + 1) * (2 * k + 2), (k + 1) ** 4)


def _variances(k: int) -> Fraction:
    return Fraction(1, 2 * (k + 1) ** 2)


# Zeros of the derivatives of orders 1 to 7, computed in 40 digits.
_CRITICAL = (
    *((0.0,), (), (0.0,)),
    (-1.0288854607651853, 1.0288854607651853),
    (-1.7776622065419109, 0.0, 1.7776622065419109),
    (-2.4258116717485273, -0.6472964986095688, 0.6472964986095688, 2.4258116717485273),
    (-3.0241347414473439, -1.1604363592420695, 0.0, 1.1604363592420695, 3.0241347414473439),
)
_IMAGES = ((0.0, math.inf), (-1.0, 1.0), (0.0, 0.5))


class LogBesselDerivative(sp.Function):  # type: ignore[misc]
    """SymPy's form of member n at x, of the family of derivatives of log I_0."""


def _largest(x: Reals) -> Reals:
    """The magnitude of the terms of a derivative of order 3 and more."""
    return np.ones(np.shape(x))


_S = sp.Symbol("s", real=True)


_LOG_I0 = sp.log(sp.besseli(0, _S))


@cache
def derivative(n: int) -> ScalarFunction:
    """The n-th derivative of log I_0."""

    names = ("log_bessel_i0", "bessel_ratio")
    return ScalarFunction(
        names[n] if n < len(names) else f"log_bessel_i0_{n}",
        1,
        definition=definition(_LOG_I0, _S, n),
        numpy=meaning(_stable, n),
        partials=(next_member(derivative, n),),
        stable=lambda z: _stable(z, n),
        domain=(_EVERYWHERE,),
        ranges=Monotonicity(_CRITICAL[n:], image=_IMAGES[n] if n < len(_IMAGES) else _EVERYWHERE)
        if n < len(_CRITICAL)
        else RangeRule.UNKNOWN,
        costly=True,
        meaning=(
            "log of the modified Bessel function I_0",
            "I_1(x)/I_0(x), the derivative of log_bessel_i0",
        )[n]
        if n < len(names)
        else f"derivative of log_bessel_i0 of order {n}",
        signature="" if n else "log_bessel_i0(x)",
        ulps=dict.fromkeys(("numpy", "numexpr", "c"), 5 if n < 4 else 16),
        error_scale=_largest if n > 2 else None,
    )


LOG_BESSEL = Family("log_bessel_i0_", LogBesselDerivative, derivative)
log_bessel_i0, bessel_ratio, bessel_variance, bessel_third = map(derivative, range(4))
