"""The logarithm of the beta function, where its three terms would cancel."""

from __future__ import annotations

import math

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, neg, sub
from slomodel.functions.comparison import lt, where
from slomodel.functions.compound import graph_values
from slomodel.functions.elementary import log, log1p
from slomodel.functions.gamma import digamma_values, lgamma, nonnegative
from slomodel.functions.piecewise import Reals, maximum, minimum
from slomodel.functions.rising import digamma_difference
from slomodel.ir.build import const, variable
from slomodel.ir.expr import Expr
from slomodel.ir.function import Monotonicity, ScalarFunction

_POSITIVE = (0.0, math.inf)


_REST = (
    0.08303377705499501,
    0.0007762599042828212,
    -0.000720059519230438,
    0.0003282542827593914,
    -0.00010823033780833388,
    2.9211355695291314e-05,
    -7.470266687118203e-06,
    2.039198447875588e-06,
    -5.691459656542244e-07,
    1.5464984925030227e-07,
    -4.380993634193963e-08,
    1.2721964140224956e-08,
    -3.564074196087588e-09,
    1.0648893185695023e-09,
    -3.1894802647506756e-10,
    7.802056904168652e-11,
    -2.4217221376818735e-11,
    1.3094374999911581e-11,
    -3.797391357413838e-12,
)
"""Coefficients of t^0, t^1, … in x c(x) with t = (x - 3)/(x + 1), its Chebyshev series on [-1, 1].
The error of c is at most 1.2e-17."""
_FAR = 1e30
"""From here on t is 1 to full accuracy."""
_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
_A, _B = variable("a", ()), variable("b", ())


def _stirling_rest(x: Expr) -> Expr:
    """c(x) = lgamma(x) - (x - 1/2) log x + x - log(2 pi)/2 for x >= 1, at most 0.0811."""
    near = where(lt(x, _FAR), x, _FAR)
    t = div(sub(near, 3.0), add(near, 1.0))
    total: Expr = const(_REST[-1])
    for coefficient in _REST[-2::-1]:
        total = add(mul(total, t), coefficient)
    return div(total, near)


def _lbeta_stable(a: Expr, b: Expr) -> Expr:
    """Stirling's formula with its rest c, whose terms have one sign up to bounded ones.

    For 1 <= a0 <= a1 and s = a0 + a1 it is log(2 pi)/2 - log(a1)/2 - (a0 - 1/2) log1p(a1/a0)
    - a1 log1p(a0/a1) + c(a0) + c(a1) - c(s). For a0 < 1 <= a1 it is lgamma(a0) + lgamma(a1)
    - lgamma(s), where lgamma(a1) - lgamma(s) is -(s - 1/2) log1p(a0/a1) - a0 log(a1) + a0 + c(a1)
    - c(s), and lgamma(a0) is that of 1 + a0 less log(a0). For a1 < 1 it is that of (a0, 1 + a1)
    plus log1p(a0/a1).
    """
    low, high = minimum(a, b), maximum(a, b)
    is_low, are_low = lt(low, 1.0), lt(high, 1.0)
    top = where(are_low, add(high, 1.0), high)
    bottom = where(is_low, add(low, 1.0), low)
    ratio, total = div(low, top), add(low, top)
    inner = mul(sub(bottom, 0.5), log1p(where(is_low, low, div(top, bottom))))
    outer = mul(where(is_low, sub(total, 0.5), top), log1p(ratio))
    logs = add(outer, mul(where(is_low, low, 0.5), log(top)))
    rest = sub(add(_stirling_rest(bottom), _stirling_rest(top)), _stirling_rest(total))
    rest = add(where(is_low, _HALF_LOG_2_PI - 1.0, _HALF_LOG_2_PI), rest)
    value = sub(add(rest, where(is_low, inner, neg(inner))), logs)
    step = log1p(where(are_low, div(low, where(are_low, high, 1.0)), 0.0))
    own = sub(step, log(where(is_low, low, 1.0)))
    return where(is_low, add(value, own), value)


_GRAPH = _lbeta_stable(_A, _B)


def _lbeta_numpy(a: Reals, b: Reals) -> Reals:
    x, y = np.broadcast_arrays(nonnegative(a), nonnegative(b))
    with np.errstate(all="ignore"):
        values: Reals = graph_values(_GRAPH, {_A: x, _B: y})
        if not np.iscomplexobj(a) and not np.iscomplexobj(b):
            return values
        shared = digamma_values(x + y)
        slope_a, slope_b = digamma_values(x) - shared, digamma_values(y) - shared
        stepped: Reals = values + 1j * (np.imag(a) * slope_a + np.imag(b) * slope_b)
        return stepped


def _terms_of_beta(a: Reals, b: Reals) -> Reals:
    """The magnitude of the terms of a value: about 2 near its zeros."""
    low, high = np.minimum(a, b), np.maximum(a, b)
    with np.errstate(all="ignore"):
        return np.where((low < 1.0) & (high > 1.0), np.maximum(low * np.log(high), 2.0), 2.0)


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
