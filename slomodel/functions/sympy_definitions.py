"""SymPy's functions that are read as formulas of functions with records.

Each row holds wherever SymPy's function is real and the formula is defined; where the formula is
not (such as `gamma` below 0), values are NaN as outside any domain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, neg, sub
from slomodel.functions.bessel import derivative as derivative_of_log_bessel
from slomodel.functions.beta import lbeta
from slomodel.functions.elementary import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    cos,
    cosh,
    erf,
    exp,
    log1p,
    sin,
    sinh,
    tan,
    tanh,
)
from slomodel.functions.gamma import digamma, lgamma
from slomodel.ir.expr import Const, Expr

Formula = Callable[..., Expr | None]
_ONE = Const(1.0)


def _reciprocal(function: Callable[[Expr], Expr]) -> Formula:
    return lambda x: div(1.0, function(x))


def _of_reciprocal(function: Callable[[Expr], Expr]) -> Formula:
    return lambda x: function(div(1.0, x))


def _binomial(n: Expr, k: Expr) -> Expr:
    """1 / ((n + 1) B(n - k + 1, k + 1)), DLMF 1.2.6 and 5.12.1."""
    log_beta = lbeta(add(sub(n, k), 1.0), add(k, 1.0))
    return exp(neg(add(log1p(n), log_beta)))


def _harmonic(n: Expr, order: Expr = _ONE) -> Expr | None:
    """The sum of 1/k up to n, DLMF 5.4.14; None for powers of k."""
    if order is not _ONE:
        return None
    return add(digamma(add(n, 1.0)), Const(float(sp.EulerGamma)))


DEFINITIONS: Mapping[type[sp.Basic], Formula] = {
    sp.cot: _reciprocal(tan),
    sp.sec: _reciprocal(cos),
    sp.csc: _reciprocal(sin),
    sp.coth: _reciprocal(tanh),
    sp.sech: _reciprocal(cosh),
    sp.csch: _reciprocal(sinh),
    sp.acot: _of_reciprocal(atan),
    sp.asec: _of_reciprocal(acos),
    sp.acsc: _of_reciprocal(asin),
    sp.acoth: _of_reciprocal(atanh),
    sp.asech: _of_reciprocal(acosh),
    sp.acsch: _of_reciprocal(asinh),
    sp.gamma: lambda x: exp(lgamma(x)),
    sp.factorial: lambda n: exp(lgamma(add(n, 1.0))),
    sp.beta: lambda a, b: exp(lbeta(a, b)),
    sp.binomial: _binomial,
    sp.harmonic: _harmonic,
    sp.erf2: lambda a, b: sub(erf(b), erf(a)),
}
"""For each kind of node, the graph from those of its arguments; None where there is none."""


def bessel_i(order: sp.Basic, x: Expr) -> Expr | None:
    """I_0 or I_1; None for other orders.

    As an exponential of the logarithm of I_0, which the quotient of two of them, and the logarithm
    of one, cancel.
    """
    own = exp(derivative_of_log_bessel(0)(x))
    if order == 0:
        return own
    return mul(own, derivative_of_log_bessel(1)(x)) if order == 1 else None
