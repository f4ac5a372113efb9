"""Logarithms to other bases and of differences from 1, in forms that do not cancel.

Accuracy: each form computes its small quantity by expm1, log1p or atanh, which are accurate there.
"""

from __future__ import annotations

import math

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, neg, sub
from slomodel.functions.comparison import eq, ge, gt, land, lt, where
from slomodel.functions.elementary import atanh, exp, expm1, log, log1p
from slomodel.functions.piecewise import Reals, abs, step_abs
from slomodel.ir.expr import Expr
from slomodel.ir.function import Array, C, Cost, Monotonicity, ScalarFunction

_EVERYWHERE = (-math.inf, math.inf)
_POSITIVE = (0.0, math.inf)
_NEGATIVE = (-math.inf, 0.0)
_MONOTONE = Monotonicity(((),) * 6)
"""For functions all of whose derivatives are monotone."""
_FAR = 50.0
"""From here on log(exp(x) - 1) is x to full accuracy."""


def _of_base(base: int, ufunc: np.ufunc, cost: Cost, numexpr: bool) -> ScalarFunction:
    """The logarithm to a base for which the C library has a function."""
    name = f"log{base}"
    return ScalarFunction(
        name,
        1,
        definition=lambda x: sp.log(x) / sp.log(base),
        numpy=ufunc,
        partials=(lambda x: div(1.0, mul(log(float(base)), x)),),
        spelling={
            "numpy": f"np.{name}({{0}}, out={{out}})",
            "scalar": f"np.{name}({{0}})",
            "c": f"{name}({{0}})",
        }
        | ({"numexpr": f"{name}({{0}})"} if numexpr else {}),
        cost=cost,
        domain=(_POSITIVE,),
        ranges=_MONOTONE,
        costly=True,
        meaning=f"logarithm to base {base}",
        signature=f"{name}(x)",
        latex=rf"\log_{{{base}}}",
        c=C({name: 2}),
    )


log2 = _of_base(2, np.log2, Cost(1.3), numexpr=False)
log10 = _of_base(10, np.log10, Cost(4.6, 8.0), numexpr=True)


def _bose_numpy(x: Reals) -> Array:
    positive = np.real(x) > 0.0
    below = np.expm1(np.where(positive, -x, x))
    with np.errstate(all="ignore"):
        return np.where(positive, -np.exp(-x) / below, 1.0 / below)


def _bose_stable(x: Expr) -> Expr:
    positive = gt(x, 0.0)
    below = expm1(where(positive, neg(x), x))
    return where(positive, neg(div(exp(neg(x)), below)), div(1.0, below))


# The derivative is -b(x) (1 + b(x)), and 1 + b(x) is -b(-x), which does not cancel.
bose: ScalarFunction = ScalarFunction(
    "bose",
    1,
    definition=lambda x: 1 / (sp.exp(x) - 1),
    numpy=_bose_numpy,
    partials=(lambda x: mul(bose(x), bose(neg(x))),),
    stable=_bose_stable,
    domain=(_EVERYWHERE,),
    ranges=Monotonicity(((),) * 6, poles=(0.0,)),
    ulps={"numexpr": 6, "c": 6},
    costly=True,
    meaning="1/(exp(x) - 1)",
)


def _log1mexp_numpy(x: Reals) -> Reals:
    near = np.real(x) > -math.log(2.0)
    return np.where(
        near,
        np.log(-np.expm1(np.where(near, x, -1.0))),
        np.log1p(-np.exp(np.where(near, -1.0, x))),
    )


def _log1mexp_stable(x: Expr) -> Expr:
    near = gt(x, -math.log(2.0))
    close, far = where(near, x, -1.0), where(near, -1.0, x)
    return where(near, log(neg(expm1(close))), log1p(neg(exp(far))))


# Mächler (2012), "Accurately computing log(1 - exp(-|a|))".
log1mexp = ScalarFunction(
    "log1mexp",
    1,
    definition=lambda x: sp.log(1 - sp.exp(x)),
    numpy=_log1mexp_numpy,
    partials=(lambda x: neg(bose(neg(x))),),
    stable=_log1mexp_stable,
    domain=(_NEGATIVE,),
    ranges=Monotonicity(((),) * 6, image=_NEGATIVE),
    ulps={"numexpr": 6, "c": 8},
    costly=True,
    meaning="log(1 - exp(x)) for x < 0",
    signature="log1mexp(x)",
    foreign_names=("log1m_exp",),
)


def _logexpm1_numpy(x: Reals) -> Reals:
    far = np.real(x) > _FAR
    return np.where(far, x, np.log(np.expm1(np.where(far, 1.0, x))))


def _logexpm1_stable(x: Expr) -> Expr:
    far = gt(x, _FAR)
    return where(far, x, log(expm1(where(far, 1.0, x))))


def _one(x: Reals) -> Reals:
    """The magnitude 1 of a logarithm's argument, which is near 1 where the value is small."""
    return np.ones(np.shape(x))


# The inverse of softplus.
logexpm1 = ScalarFunction(
    "logexpm1",
    1,
    definition=lambda x: sp.log(sp.exp(x) - 1),
    numpy=_logexpm1_numpy,
    partials=(lambda x: neg(bose(neg(x))),),
    stable=_logexpm1_stable,
    domain=(_POSITIVE,),
    ranges=Monotonicity(((),) * 6),
    error_scale=_one,
    costly=True,
    meaning="log(exp(x) - 1) for x > 0, the inverse of softplus",
    signature="logexpm1(x)",
    foreign_names=("log_expm1", "softplus_inv", "inv_softplus"),
)


def _logit_numpy(x: Reals) -> Reals:
    middle = step_abs(x - 0.5) < 0.25
    inner = np.where(middle, x, 0.5)
    return np.where(middle, 2.0 * np.arctanh(2.0 * inner - 1.0), np.log(x) - np.log1p(-x))


def _logit_stable(x: Expr) -> Expr:
    """In the middle the two logarithms would cancel, and 2x - 1, which is exact, is used."""
    middle = lt(abs(sub(x, 0.5)), 0.25)
    inner = where(middle, x, 0.5)
    return where(middle, mul(2.0, atanh(sub(mul(2.0, inner), 1.0))), sub(log(x), log1p(neg(x))))


logit = ScalarFunction(
    "logit",
    1,
    definition=lambda x: sp.log(x / (1 - x)),
    numpy=_logit_numpy,
    partials=(lambda x: div(1.0, mul(x, sub(1.0, x))),),
    stable=_logit_stable,
    domain=((0.0, 1.0),),
    ranges=Monotonicity(((), (0.5,), (), (0.5,), (), (0.5,))),
    costly=True,
    extended=True,
    meaning="log(x/(1 - x)) for x in (0, 1), the inverse of sigmoid",
    signature="logit(x)",
)


def _times_log(x: Expr, inner: Expr, lowest: float, logarithm: ScalarFunction) -> Expr:
    """x times a logarithm, 0 where x is 0 and the logarithm is defined or -inf."""
    absent = land(eq(x, 0.0), ge(inner, lowest))
    return mul(x, logarithm(where(absent, lowest + 1.0 if lowest == 0.0 else 0.0, inner)))


def _quotient(x: Expr, y: Expr) -> Expr:
    """x/y, and 0 where both are 0."""
    return div(x, where(land(eq(x, 0.0), eq(y, 0.0)), 1.0, y))


def _xlogy_numpy(x: Reals, y: Reals) -> Reals:
    return x * np.log(np.where((x == 0.0) & (np.real(y) >= 0.0), 1.0, y))


# Both are monotone in each operand when the other is fixed. Where x and the argument of the
# logarithm are 0, the derivative by y is that along x = 0, which is 0.
xlogy = ScalarFunction(
    "xlogy",
    2,
    definition=lambda x, y: x * sp.log(y),
    numpy=_xlogy_numpy,
    partials=(lambda x, y: log(y), _quotient),
    stable=lambda x, y: _times_log(x, y, 0.0, log),
    domain=(_EVERYWHERE, _POSITIVE),
    ranges=Monotonicity(by_operand=((), ())),
    unary_form=lambda x, y: mul(x, log(y)),
    costly=True,
    extended=True,
    meaning="x log(y), 0 where x is 0",
    signature="xlogy(x, y)",
    foreign_names=("lmultiply", "multiply_log"),
)


def _xlog1py_numpy(x: Reals, y: Reals) -> Reals:
    return x * np.log1p(np.where((x == 0.0) & (np.real(y) >= -1.0), 0.0, y))


xlog1py = ScalarFunction(
    "xlog1py",
    2,
    definition=lambda x, y: x * sp.log(1 + y),
    numpy=_xlog1py_numpy,
    partials=(lambda x, y: log1p(y), lambda x, y: _quotient(x, add(1.0, y))),
    stable=lambda x, y: _times_log(x, y, -1.0, log1p),
    domain=(_EVERYWHERE, (-1.0, math.inf)),
    ranges=Monotonicity(by_operand=((), ())),
    unary_form=lambda x, y: mul(x, log1p(y)),
    costly=True,
    extended=True,
    meaning="x log(1 + y), 0 where x is 0",
    signature="xlog1py(x, y)",
)
