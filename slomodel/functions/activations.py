"""Smooth functions of machine learning, accurate to a few units in the last place everywhere."""

from __future__ import annotations

import math

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, neg, square, sub
from slomodel.functions.comparison import ge, lt, where
from slomodel.functions.elementary import LOGISTIC_CRITICAL, TANH_CRITICAL, exp, log1p, tanh
from slomodel.functions.piecewise import Reals, abs, relu, step_abs
from slomodel.ir.expr import Expr
from slomodel.ir.function import Decay, Monotonicity, ScalarFunction

_EVERYWHERE = (-math.inf, math.inf)


def _sigmoid_numpy(x: Reals) -> Reals:
    t = np.exp(-step_abs(x))
    return np.where(np.real(x) >= 0, 1.0, t) / (1.0 + t)


def _sigmoid_stable(x: Expr) -> Expr:
    t = exp(neg(abs(x)))
    return div(where(ge(x, 0.0), 1.0, t), add(1.0, t))


# SciPy's expit is slower than this form, and 0 below -710, where the value is still nonzero.
sigmoid: ScalarFunction = ScalarFunction(
    "sigmoid",
    1,
    definition=lambda x: 1 / (1 + sp.exp(-x)),
    numpy=_sigmoid_numpy,
    partials=(lambda x: mul(sigmoid(x), sigmoid(neg(x))),),
    stable=_sigmoid_stable,
    # With p = 1 - 2σ in [-1, 1]: σ" = σ'p and the fourth derivative is σ'p(3p² - 2).
    decay=Decay(1, 1.0, 1.0),
    ranges=Monotonicity(LOGISTIC_CRITICAL, image=(0.0, 1.0)),
    ulps={"numpy": 12, "numexpr": 8, "c": 8},
    domain=(_EVERYWHERE,),
    costly=True,
    extended=True,
    meaning="1/(1 + exp(-x))",
    signature="sigmoid(x)",
    foreign_names=("expit",),
)


def _softplus_numpy(x: Reals) -> Reals:
    # For a complex step at 0 both terms choose their branch by the real part, hence the same one.
    return np.where(np.real(x) < 0, 0.0, x) + np.log1p(np.exp(-step_abs(x)))


# np.logaddexp(0, x) is the same function, several times slower.
softplus = ScalarFunction(
    "softplus",
    1,
    definition=lambda x: sp.log(1 + sp.exp(x)),
    numpy=_softplus_numpy,
    partials=(sigmoid,),
    stable=lambda x: add(relu(x), log1p(exp(neg(abs(x))))),
    # The derivatives of orders 2 to 4 are σ', σ'(1 - 2σ) and σ'(1 - 6σ').
    decay=Decay(2, 1.0, 1.0),
    ranges=Monotonicity(((), *LOGISTIC_CRITICAL), image=(0.0, math.inf)),
    ulps={"numpy": 12, "numexpr": 8, "c": 8},
    domain=(_EVERYWHERE,),
    costly=True,
    extended=True,
    meaning="log(1 + exp(x))",
    signature="softplus(x)",
)

_LOGCOSH_SWITCH = 2.0


def _logcosh_numpy(x: Reals) -> Reals:
    size = step_abs(x)
    small = np.real(size) < _LOGCOSH_SWITCH
    above_one = np.where(small, 2.0 * np.square(np.sinh(0.5 * size)), np.exp(-2.0 * size))
    return np.where(small, 0.0, size - math.log(2.0)) + np.log1p(above_one)


def _logcosh_stable(x: Expr) -> Expr:
    """cosh x = 1 + 2 t^2/(1 - t^2) with t = tanh(|x|/2); far from 0, |x| - log 2 is split off.

    The error of t is doubled; that of exp(-|x|) - 1 would be enlarged by 1 + exp|x|.
    """
    size = abs(x)
    small = lt(size, _LOGCOSH_SWITCH)
    t = tanh(mul(0.5, size))
    t2 = square(t)
    above = where(small, mul(2.0, t2), square(sub(1.0, t)))
    above_one = div(above, where(small, sub(1.0, t2), square(add(1.0, t))))
    return add(where(small, 0.0, sub(size, math.log(2.0))), log1p(above_one))


logcosh = ScalarFunction(
    "logcosh",
    1,
    definition=lambda x: sp.log(sp.cosh(x)),
    numpy=_logcosh_numpy,
    partials=(tanh,),
    stable=_logcosh_stable,
    # The derivatives of orders 2 to 4 are s = 1 - t², -2ts and s(6t² - 2), t = tanh.
    decay=Decay(2, 2.0, 4.0),
    ranges=Monotonicity(((0.0,), *TANH_CRITICAL), image=(0.0, math.inf)),
    ulps={"numpy": 8, "numexpr": 5, "c": 5},
    domain=(_EVERYWHERE,),
    costly=True,
    meaning="log(cosh(x))",
    signature="logcosh(x)",
)
