"""(x^p - 1)/p, the transformation of Box and Cox, which is log x at p = 0.

With u = p log x it is log(x) (exp(u) - 1)/u, which is accurate near u = 0; far from it, the formula
as it stands.
"""

from __future__ import annotations

import math

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, square, sub
from slomodel.functions.comparison import eq, gt, land, lt, where
from slomodel.functions.compound import graph_values
from slomodel.functions.elementary import log
from slomodel.functions.piecewise import Reals, abs
from slomodel.functions.power import pow, powlog
from slomodel.functions.removable import EXP_QUOTIENT
from slomodel.ir.build import variable
from slomodel.ir.expr import Expr
from slomodel.ir.function import Array, Monotonicity, ScalarFunction

_EVERYWHERE = (-math.inf, math.inf)
_X, _P = variable("x", ()), variable("p", ())


def _stable(x: Expr, p: Expr) -> Expr:
    is_near = lt(abs(mul(p, log(x))), 1.0)
    logarithm = log(where(is_near, x, 1.0))
    near = mul(logarithm, EXP_QUOTIENT.member(0)(mul(where(is_near, p, 0.0), logarithm)))
    base, far = where(is_near, 1.0, x), where(is_near, 1.0, p)
    power = where(lt(base, 0.0), math.nan, pow(base, far))
    return where(is_near, near, div(sub(power, 1.0), far))


def _by_power(x: Expr, p: Expr) -> Expr:
    """x^p (log x - 1/p)/p + 1/p²."""
    is_near = lt(abs(mul(p, log(x))), 1.0)
    logarithm = log(where(is_near, x, 1.0))
    u = mul(where(is_near, p, 0.0), logarithm)
    near = mul(square(logarithm), EXP_QUOTIENT.member(1)(u))
    base, far = where(is_near, 1.0, x), where(is_near, 1.0, p)
    is_limit = land(eq(base, 0.0), gt(far, 0.0))
    difference = sub(log(where(is_limit, 1.0, base)), div(1.0, far))
    power = div(mul(pow(base, far), difference), far)
    return where(is_near, near, add(power, div(div(1.0, far), far)))


def _second_by_power(x: Expr, p: Expr) -> Expr:
    logarithm = log(x)
    cubed = mul(square(logarithm), logarithm)
    return mul(cubed, EXP_QUOTIENT.member(2)(mul(p, logarithm)))


def _stepped(values: Reals, x: Reals, p: Reals, by_x: Expr, by_p: Expr) -> Array:
    """The values, with a complex step along the derivatives."""
    if not np.iscomplexobj(x) and not np.iscomplexobj(p):
        return values
    at = {_X: np.real(x), _P: np.real(p)}
    step: Reals = np.imag(x) * graph_values(by_x, at) + np.imag(p) * graph_values(by_p, at)
    stepped: Array = values + 1j * step
    return stepped


def _numpy(x: Reals, p: Reals) -> Array:
    values: Reals = graph_values(_stable(_X, _P), {_X: np.real(x), _P: np.real(p)})
    return _stepped(values, x, p, pow(_X, sub(_P, 1.0)), _by_power(_X, _P))


def _by_power_numpy(x: Reals, p: Reals) -> Array:
    values: Reals = graph_values(_by_power(_X, _P), {_X: np.real(x), _P: np.real(p)})
    return _stepped(values, x, p, powlog(_X, sub(_P, 1.0)), _second_by_power(_X, _P))


def _definition(x: sp.Expr, p: sp.Expr) -> sp.Expr:
    return (x**p - 1) / p


def _definition_by_power(x: sp.Expr, p: sp.Expr) -> sp.Expr:
    return (x**p * sp.log(x) - _definition(x, p)) / p


box_cox_by_power = ScalarFunction(
    "box_cox_by_power",
    2,
    definition=_definition_by_power,
    numpy=_by_power_numpy,
    partials=(lambda x, p: powlog(x, sub(p, 1.0)), _second_by_power),
    stable=_by_power,
    domain=((0.0, math.inf), _EVERYWHERE),
    costly=True,
    meaning="derivative of box_cox(x, p) by p",
    unary_form=lambda x, p: mul(square(log(x)), EXP_QUOTIENT.member(1)(mul(p, log(x)))),
    ulps={"numpy": 64, "numexpr": 64, "c": 64},
)
box_cox = ScalarFunction(
    "box_cox",
    2,
    definition=_definition,
    numpy=_numpy,
    partials=(lambda x, p: pow(x, sub(p, 1.0)), box_cox_by_power),
    stable=_stable,
    domain=((0.0, math.inf), _EVERYWHERE),
    ranges=Monotonicity(by_operand=((), ())),
    costly=True,
    meaning="(x^p - 1)/p, log x at p = 0",
    unary_form=lambda x, p: mul(log(x), EXP_QUOTIENT.member(0)(mul(p, log(x)))),
    ulps={"numpy": 12, "numexpr": 12, "c": 12},
)
