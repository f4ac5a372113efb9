"""exp(x) - 1 - x and x - log(1 + x), which do not cancel near 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, sub
from slomodel.functions.comparison import le, where
from slomodel.functions.compound import graph_values
from slomodel.functions.elementary import expm1, log1p
from slomodel.functions.piecewise import Reals, abs, complex_step
from slomodel.functions.power_series import exponential_remainder, logarithmic_remainder, polynomial
from slomodel.ir.build import variable
from slomodel.ir.expr import Expr
from slomodel.ir.function import Monotonicity, ScalarFunction

_EVERYWHERE = (-math.inf, math.inf)
_POSITIVE = (0.0, math.inf)
_EDGE = 0.5
_X = variable("x", ())


def _remainder(x: Expr, coefficients: Sequence[Fraction], beyond: Callable[[Expr], Expr]) -> Expr:
    """x² times a power series for |x| <= 1/2, and the formula for larger |x|."""
    is_near = le(abs(x), _EDGE)
    inner = where(is_near, x, 0.0)
    near = mul(mul(inner, inner), polynomial(coefficients, 0, _EDGE, inner))
    return where(is_near, near, beyond(where(is_near, _EDGE, x)))


def _exp_remainder_stable(x: Expr) -> Expr:
    return _remainder(x, exponential_remainder(), lambda far: sub(expm1(far), far))


def _log_remainder_stable(x: Expr) -> Expr:
    return _remainder(x, logarithmic_remainder(), lambda far: sub(far, log1p(far)))


def _exp_remainder_numpy(x: Reals) -> Reals:
    real = np.real(x)
    return complex_step(
        graph_values(_exp_remainder_stable(_X), {_X: real}), x, lambda: np.expm1(real)
    )


def _log_remainder_numpy(x: Reals) -> Reals:
    real = np.real(x)
    return complex_step(
        graph_values(_log_remainder_stable(_X), {_X: real}), x, lambda: real / (1.0 + real)
    )


exp_remainder = ScalarFunction(
    "exp_remainder",
    1,
    definition=lambda x: sp.exp(x) - 1 - x,
    numpy=_exp_remainder_numpy,
    partials=(expm1,),
    stable=_exp_remainder_stable,
    domain=(_EVERYWHERE,),
    ranges=Monotonicity(((0.0,), (), (), (), (), ()), image=_POSITIVE),
    costly=True,
    meaning="exp(x) - 1 - x",
)
log_remainder = ScalarFunction(
    "log_remainder",
    1,
    definition=lambda x: x - sp.log(1 + x),
    numpy=_log_remainder_numpy,
    partials=(lambda x: div(x, add(1.0, x)),),
    stable=_log_remainder_stable,
    domain=((-1.0, math.inf),),
    ranges=Monotonicity(((0.0,), (), (), (), (), ()), image=_POSITIVE),
    costly=True,
    meaning="x - log(1 + x)",
)
