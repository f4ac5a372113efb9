"""Factors without their zero or pole: quotients that are continued where a factor vanishes."""

from __future__ import annotations

from slomodel.functions import abs, div, exp, gt, land, le, log, mul, pow, sub, where
from slomodel.functions.box_cox import box_cox
from slomodel.functions.logarithms import bose
from slomodel.functions.removable import (
    LOG_QUOTIENT,
    LOG_SINH_QUOTIENT,
    QUOTIENTS,
    exp_quotient,
)
from slomodel.ir.expr import Expr
from slomodel.ir.function import ScalarFunction

_NEAR_1 = 0.5
"""Logarithm of powers whose differences from 1 have no larger rounding errors than they have."""


def power(base: Expr, p: int) -> Expr:
    """base^p for p >= 1."""
    return base if p == 1 else pow(base, float(p))


def power_of(regular: Expr, p: int) -> Expr:
    """regular^p for p != 0."""
    return power(regular, p) if p > 0 else div(1.0, power(regular, -p))


def or_reciprocal(regular: Expr, reciprocal: Expr, p: int) -> Expr:
    """regular^p for p != 0, where its reciprocal has a formula of its own."""
    return power(regular, p) if p > 0 else power(reciprocal, -p)


def reciprocal(function: ScalarFunction, u: Expr) -> Expr:
    """u/h(u), far from 0 as it stands: there the quotient h(u)/u may be beyond doubles."""
    is_near = le(abs(u), 1.0)
    far = where(is_near, 1.0, u)
    near = div(1.0, QUOTIENTS[function].member(0)(where(is_near, u, 0.0)))
    return where(is_near, near, div(far, function(far)))


def langevin(u: Expr) -> Expr:
    """1/tanh(u) - 1/u."""
    return LOG_SINH_QUOTIENT.member(1)(u)


def bose_less_pole(u: Expr) -> Expr:
    """1/(exp(u) - 1) - 1/u."""
    is_near = le(abs(u), 2.0)
    near = sub(mul(0.5, langevin(mul(0.5, where(is_near, u, 0.0)))), 0.5)
    far = where(is_near, 2.0, u)
    return where(is_near, near, sub(bose(far), div(1.0, far)))


def divided_exponential(a: Expr, b: Expr, p: int) -> Expr:
    """(exp(a) - exp(b))/(a - b), by the larger exponential."""
    is_above = gt(a, b)
    above = mul(exp(where(is_above, a, 0.0)), exp_quotient(where(is_above, sub(b, a), 0.0)))
    below = mul(exp(where(is_above, 0.0, b)), exp_quotient(where(is_above, 0.0, sub(a, b))))
    return power_of(where(is_above, above, below), p)


def divided_logarithm(a: Expr, b: Expr, p: int) -> Expr:
    """(log(a) - log(b))/(a - b), or the logarithmic mean of a and b, which is its reciprocal."""
    is_above = gt(a, b)
    low, high = where(is_above, b, 1.0), where(is_above, 1.0, a)
    above = LOG_QUOTIENT.member(0)(where(is_above, div(sub(a, b), low), 0.0))
    below = LOG_QUOTIENT.member(0)(where(is_above, 0.0, div(sub(b, a), high)))
    if p > 0:
        return power(where(is_above, div(above, low), div(below, high)), p)
    return power(where(is_above, div(low, above), div(high, below)), -p)


def divided_powers(x: Expr, y: Expr, p: Expr) -> Expr:
    """(x^p - y^p)/p; near p = 0 the difference of (x^p - 1)/p and (y^p - 1)/p."""
    is_near = land(*(le(abs(mul(p, log(base))), _NEAR_1) for base in (x, y)))
    one, other = (box_cox(where(is_near, base, 1.0), where(is_near, p, 0.0)) for base in (x, y))
    exponent = where(is_near, 1.0, p)
    above, below = (pow(where(is_near, 1.0, base), exponent) for base in (x, y))
    return where(is_near, sub(one, other), div(sub(above, below), exponent))
