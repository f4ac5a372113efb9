"""Exponentials, logarithms, circular and hyperbolic functions, and the error function."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, neg, square
from slomodel.functions.piecewise import Reals, abs, step_abs
from slomodel.ir.expr import Expr
from slomodel.ir.function import Array, Monotony, Partial, ScalarFunction

_EVERYWHERE = (-math.inf, math.inf)


def _elementary(
    name: str,
    definition: Callable[..., sp.Basic],
    ufunc: Callable[..., Array],
    numexpr: str,
    *,
    domain: tuple[float, float] = _EVERYWHERE,
    partial: Partial | None = None,
    monotony: Monotony = Monotony(),
    costly: bool = True,
) -> ScalarFunction:
    """A function of one number that NumPy and numexpr both have."""
    return ScalarFunction(
        name,
        1,
        definition=definition,
        numpy=ufunc,
        partials=None if partial is None else (partial,),
        spelling={
            "numpy": f"np.{ufunc.__name__}({{0}}, out={{out}})",
            "scalar": f"np.{ufunc.__name__}({{0}})",
            "numexpr": f"{numexpr}({{0}})",
        },
        domain=(domain,),
        monotony=monotony,
        costly=costly,
    )


_POSITIVE = (0.0, math.inf)

_EXP = Monotony(image=_POSITIVE)
_EXPM1 = Monotony(image=(-1.0, math.inf))
_CIRCULAR = (-1.0, 1.0)
_SIN = Monotony(((math.pi / 2,),), period=math.pi, image=_CIRCULAR)
_COS = Monotony(((0.0,),), period=math.pi, image=_CIRCULAR)
_TAN = Monotony(((),), period=math.pi, poles=(math.pi / 2,))
# The n-th derivative of atan is (n-1)! cos(t)^n sin(n(t + pi/2)) with t = atan x.
_ATAN = Monotony(
    tuple(tuple(sorted(-1 / math.tan(j * math.pi / (k + 1)) for j in range(1, k + 1))) for k in range(6)),
    image=(-math.pi / 2 - 1e-15, math.pi / 2 + 1e-15),
)
_COSH = Monotony(((0.0,),), image=(1.0, math.inf))
# Roots of x, 2x^2 - 1, 2x^3 - 3x and 8x^4 - 24x^2 + 3.
_ASINH = Monotony(
    (
        *((), (0.0,), (-math.sqrt(0.5), math.sqrt(0.5)), (-math.sqrt(1.5), 0.0, math.sqrt(1.5))),
        tuple(s * math.sqrt(1.5 + t * math.sqrt(1.875)) for s, t in ((-1, 1), (-1, -1), (1, -1), (1, 1))),
    )
)

exp = _elementary("exp", sp.exp, np.exp, "exp", monotony=_EXP)
log = _elementary("log", sp.log, np.log, "log", domain=_POSITIVE)
log1p = _elementary("log1p", lambda x: sp.log(1 + x), np.log1p, "log1p", domain=(-1.0, math.inf))
expm1 = _elementary(
    "expm1", lambda x: sp.exp(x) - 1, np.expm1, "expm1", partial=exp, monotony=_EXPM1
)
sqrt = _elementary(
    *("sqrt", sp.sqrt, np.sqrt, "sqrt"),
    domain=_POSITIVE,
    monotony=Monotony(image=_POSITIVE, ulps=1),
    costly=False,
)

sin = _elementary("sin", sp.sin, np.sin, "sin", monotony=_SIN)
cos = _elementary("cos", sp.cos, np.cos, "cos", monotony=_COS)
tan = _elementary("tan", sp.tan, np.tan, "tan", monotony=_TAN)
atan = _elementary("atan", sp.atan, np.arctan, "arctan", monotony=_ATAN)

sinh = _elementary("sinh", sp.sinh, np.sinh, "sinh")
cosh = _elementary("cosh", sp.cosh, np.cosh, "cosh", monotony=_COSH)
asinh = _elementary("asinh", sp.asinh, np.arcsinh, "arcsinh", monotony=_ASINH)


def _sech2_numpy(x: Reals) -> Reals:
    t = np.exp(-2.0 * step_abs(x))
    return 4.0 * t / np.square(1.0 + t)


def _sech2_stable(x: Expr) -> Expr:
    t = exp(mul(-2.0, abs(x)))
    return div(mul(4.0, t), square(add(1.0, t)))


# The square of the hyperbolic secant, tanh' to full accuracy.
sech2: ScalarFunction = ScalarFunction(
    "sech2",
    1,
    definition=lambda x: 1 / sp.cosh(x) ** 2,
    numpy=_sech2_numpy,
    partials=(lambda x: mul(-2.0, mul(sech2(x), tanh(x))),),
    stable=_sech2_stable,
    domain=(_EVERYWHERE,),
    costly=True,
)
# 1 - tanh(x)**2 loses every digit from x = 19 on.
tanh: ScalarFunction = _elementary("tanh", sp.tanh, np.tanh, "tanh", partial=sech2)


def _erf_numpy(x: Reals) -> Reals:
    from scipy import special  # costs a tenth of a second, so only where a model has it

    result: Reals = special.erf(x)
    return result


# numexpr has no error function; a target without it runs this step by NumPy.
erf = ScalarFunction(
    "erf",
    1,
    definition=sp.erf,
    numpy=_erf_numpy,
    partials=(lambda x: mul(2.0 / math.sqrt(math.pi), exp(neg(square(x)))),),
    spelling={"numpy": "special.erf({0}, out={out})", "scalar": "special.erf({0})"},
    domain=(_EVERYWHERE,),
    costly=True,
)
