"""The logarithm of the beta function, where its three terms would cancel."""

from __future__ import annotations

import math

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, neg, square, sub
from slomodel.functions.comparison import ge, where
from slomodel.functions.elementary import log, log1p
from slomodel.functions.gamma import digamma_values, lgamma, lgamma_values, nonnegative
from slomodel.functions.piecewise import Reals, maximum, minimum
from slomodel.functions.rising import LARGE, LGAMMA_SERIES, digamma_difference
from slomodel.ir.build import const
from slomodel.ir.expr import Expr
from slomodel.ir.function import Monotonicity, ScalarFunction

_POSITIVE = (0.0, math.inf)


def _stirling_rest(x: Expr) -> Expr:
    """lgamma(x) - (x - 1/2) log x + x - log(2 pi)/2 for x >= 10, by the asymptotic series."""
    r = div(1.0, x)
    q = square(r)
    total: Expr = const(LGAMMA_SERIES[-1])
    for coefficient in LGAMMA_SERIES[-2::-1]:
        total = add(mul(total, q), coefficient)
    return mul(r, total)


def _lbeta_stable(a: Expr, b: Expr) -> Expr:
    """Stirling's formula for the larger or both operands, where the three terms would cancel.

    With s = a0 + a1, a0 <= a1 and c the rest of the formula, for a0 >= 10 it is
    log(2 pi)/2 - log(a1)/2 - (a0 - 1/2) log1p(a1/a0) - a1 log1p(a0/a1) + c(a0) + c(a1) - c(s), and
    lgamma(a1) - lgamma(s) is -(s - 1/2) log1p(a0/a1) - a0 log(a1) + a0 + c(a1) - c(s).
    """
    low, high = minimum(a, b), maximum(a, b)
    is_large, are_large = ge(high, LARGE), ge(low, LARGE)
    top, bottom = where(is_large, high, LARGE), where(are_large, low, LARGE)
    ratio = div(low, top)
    total = add(low, top)
    c = sub(_stirling_rest(top), _stirling_rest(add(top, where(is_large, low, 0.0))))
    both = add(
        sub(0.5 * math.log(2.0 * math.pi), mul(0.5, log(top))),
        sub(
            add(_stirling_rest(bottom), c),
            add(mul(sub(bottom, 0.5), log1p(div(top, bottom))), mul(top, log1p(ratio))),
        ),
    )
    step = sub(sub(low, mul(low, log(top))), sub(mul(sub(total, 0.5), log1p(ratio)), c))
    small = where(is_large, LARGE, high)
    plain = sub(add(lgamma(low), lgamma(small)), lgamma(add(low, small)))
    return where(are_large, both, where(is_large, add(lgamma(low), step), plain))


def _stirling_rest_numpy(x: Reals) -> Reals:
    return np.polyval(LGAMMA_SERIES[::-1], 1.0 / np.square(x)) / x


def _lbeta_numpy(a: Reals, b: Reals) -> Reals:
    x, y = np.broadcast_arrays(nonnegative(a), nonnegative(b))
    low, high = np.minimum(x, y), np.maximum(x, y)
    is_large, are_large = high >= LARGE, low >= LARGE
    top, bottom = np.where(is_large, high, LARGE), np.where(are_large, low, LARGE)
    with np.errstate(all="ignore"):
        ratio, total = low / top, low + top
        c = _stirling_rest_numpy(top) - _stirling_rest_numpy(top + np.where(is_large, low, 0.0))
        both = 0.5 * math.log(2.0 * math.pi) - 0.5 * np.log(top)
        both -= (bottom - 0.5) * np.log1p(top / bottom)
        both -= top * np.log1p(ratio) - (_stirling_rest_numpy(bottom) + c)
        step = (low - low * np.log(top)) - ((total - 0.5) * np.log1p(ratio) - c)
        small = np.where(is_large, LARGE, high)
        plain = lgamma_values(low) + lgamma_values(small) - lgamma_values(low + small)
        large = np.where(are_large, both, lgamma_values(low) + step)
        values = np.where(is_large, large, plain)
        if not np.iscomplexobj(a) and not np.iscomplexobj(b):
            return values
        shared = digamma_values(x + y)
        slope_a, slope_b = digamma_values(x) - shared, digamma_values(y) - shared
        stepped: Reals = values + 1j * (np.imag(a) * slope_a + np.imag(b) * slope_b)
        return stepped


def _terms_of_beta(a: Reals, b: Reals) -> Reals:
    """The magnitude of the terms of a value, which cancel where an operand is below 10."""
    low = np.abs(lgamma_values(np.minimum(np.minimum(a, b), LARGE)))
    return np.maximum(low, np.where(np.maximum(a, b) < LARGE, 40.0, 2.0))


lbeta = ScalarFunction(
    "lbeta",
    2,
    definition=lambda a, b: sp.loggamma(a) + sp.loggamma(b) - sp.loggamma(a + b),
    numpy=_lbeta_numpy,
    partials=(
        lambda a, b: neg(digamma_difference(a, b)),
        lambda a, b: neg(digamma_difference(b, a)),
    ),
    stable=_lbeta_stable,
    domain=(_POSITIVE, _POSITIVE),
    ranges=Monotonicity(by_operand=((), ())),
    error_scale=_terms_of_beta,
    unary_form=lambda a, b: sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b))),
    costly=True,
    meaning="log of the beta function, lgamma(a) + lgamma(b) - lgamma(a + b), for a, b > 0",
    signature="lbeta(a, b)",
    foreign_names=("betaln",),
)
