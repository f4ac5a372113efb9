"""Exponentials, logarithms, circular and hyperbolic functions, and the error function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import sympy as sp
from sympy.codegen import cfunctions

from slomodel.functions.arithmetic import add, div, mul, neg, square, sub
from slomodel.functions.comparison import eq, lt, where
from slomodel.functions.piecewise import Reals, abs, complex_step, step_abs
from slomodel.ir.expr import Expr
from slomodel.ir.function import Array, C, Cost, Decay, Kink, Monotonicity, Partial, ScalarFunction

_EVERYWHERE = (-math.inf, math.inf)
# From here on 1 + x^2 rounds to x^2, and x^2 does not overflow even in single precision.
_FAR = 1e15
_MONOTONE = Monotonicity()


def _elementary(
    name: str,
    definition: Callable[..., sp.Basic],
    ufunc: Callable[..., Array],
    numexpr: str,
    *,
    meaning: str,
    domain: tuple[float, float] = _EVERYWHERE,
    partial: Partial | None = None,
    ranges: Monotonicity = _MONOTONE,
    decay: Decay | None = None,
    cost: Cost,
    costly: bool = True,
    vectors: int = 2,
    ulps: Mapping[str, int] = MappingProxyType({}),
    sympy: type[sp.Basic] | None = None,
    latex: str = "",
    foreign_names: tuple[str, ...] = (),
) -> ScalarFunction:
    """A function of one number that NumPy, numexpr and C all have.

    `vectors` is the level of its vector form in C; `sympy` is given where it is not `definition`.
    """
    library = numexpr.replace("arc", "a")
    form = sympy or definition
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
            "c": f"{library}({{0}})",
        },
        domain=(domain,),
        cost=cost,
        ranges=ranges,
        decay=decay,
        extended=True,
        costly=costly,
        meaning=meaning,
        signature=f"{name}(x)",
        foreign_names=foreign_names,
        sympy=(form,) if isinstance(form, type) else (),
        latex=latex,
        c=C({library: vectors}),
        ulps=ulps,
    )


_POSITIVE = (0.0, math.inf)

_EXP = Monotonicity(image=_POSITIVE)
_EXPM1 = Monotonicity(image=(-1.0, math.inf))
_CIRCULAR = (-1.0, 1.0)
_SIN = Monotonicity(((math.pi / 2,),), period=math.pi, image=_CIRCULAR)
_COS = Monotonicity(((0.0,),), period=math.pi, image=_CIRCULAR)
_TAN = Monotonicity(((),), period=math.pi, poles=(math.pi / 2,))
# The n-th derivative of atan is (n-1)! cos(t)^n sin(n(t + pi/2)) with t = atan x.
_ATAN = Monotonicity(
    tuple(
        tuple(math.tan((2 * j - n) * math.pi / (2 * n)) for j in range(1, n)) for n in range(1, 7)
    ),
    image=(-1.5707963267948968, 1.5707963267948968),
)
_COSH = Monotonicity(((0.0,),), image=(1.0, math.inf))
# Roots of x, 2x^2 - 1, 2x^3 - 3x, 8x^4 - 24x^2 + 3 and 8x^5 - 40x^3 + 15x.
_ASINH = Monotonicity(
    (
        *((), (0.0,), (-math.sqrt(0.5), math.sqrt(0.5)), (-math.sqrt(1.5), 0.0, math.sqrt(1.5))),
        (-1.6939027108316804, -0.36151570676401423, 0.36151570676401423, 1.6939027108316804),
        (-2.142813586464112, -0.6390226393992713, 0.0, 0.6390226393992713, 2.142813586464112),
    )
)
# The derivatives of the logistic function s are polynomials in s; their critical points in x:
LOGISTIC_CRITICAL = (
    (),
    (0.0,),
    (-1.3169578969248167, 1.3169578969248167),
    (-2.2924316695611777, 0.0, 2.2924316695611777),
    (-3.1443184061549304, -0.84263294812937664, 0.84263294812937664, 3.1443184061549304),
    (-3.9360983706738154, -1.513351847292335, 0.0, 1.513351847292335, 3.9360983706738154),
)
TANH_CRITICAL = tuple(tuple(0.5 * point for point in points) for points in LOGISTIC_CRITICAL)
# The n-th derivative of erf is a Hermite polynomial of degree n - 1 times exp(-x^2).
ERF_CRITICAL = (
    *((), (0.0,), (-math.sqrt(0.5), math.sqrt(0.5)), (-math.sqrt(1.5), 0.0, math.sqrt(1.5))),
    (-1.6506801238857846, -0.52464762327529032, 0.52464762327529032, 1.6506801238857846),
    (-2.0201828704560856, -0.95857246461381851, 0.0, 0.95857246461381851, 2.0201828704560856),
)
_ERF = Monotonicity(ERF_CRITICAL, image=_CIRCULAR)
# The power series of asin and atanh have coefficients >= 0: a derivative of odd order is even and
# increases with |x|, one of even order is odd and increases.
_ODD_SERIES = ((), (0.0,), (), (0.0,), (), (0.0,))

exp = _elementary(
    *("exp", sp.exp, np.exp, "exp"),
    meaning="e^x",
    ranges=_EXP,
    cost=Cost(0.82, 4.2),
    vectors=1,
    latex=r"\exp",
    decay=Decay(0, 1.0, 1.0),
)
log = _elementary(
    *("log", sp.log, np.log, "log"),
    meaning="natural logarithm",
    domain=_POSITIVE,
    cost=Cost(0.82, 3.4),
    vectors=1,
    latex=r"\log",
)
log1p = _elementary(
    *("log1p", lambda x: sp.log(1 + x), np.log1p, "log1p"),
    meaning="log(1 + x), accurate near 0",
    domain=(-1.0, math.inf),
    cost=Cost(1.05, 6.5),
    sympy=cfunctions.log1p,
)
expm1 = _elementary(
    *("expm1", lambda x: sp.exp(x) - 1, np.expm1, "expm1"),
    meaning="exp(x) - 1, accurate near 0",
    partial=exp,
    ranges=_EXPM1,
    cost=Cost(1.2, 6.1),
    sympy=cfunctions.expm1,
)
# SymPy represents roots as powers, and `to_graph` reads them as powers.
sqrt = _elementary(
    *("sqrt", sp.sqrt, np.sqrt, "sqrt"),
    meaning="square root; sqrt(t^2) is abs(t), sqrt(sumsq(x)) is norm2(x)",
    domain=_POSITIVE,
    ranges=Monotonicity(image=_POSITIVE),
    ulps={"numpy": 1},
    cost=Cost(1.2, 2.4),
    costly=False,
    vectors=0,
    latex=r"\sqrt{{{0}}}",
)

sin = _elementary(
    *("sin", sp.sin, np.sin, "sin"),
    meaning="sine",
    ranges=_SIN,
    cost=Cost(8.1, 8.4),
    vectors=1,
    latex=r"\sin",
)
cos = _elementary(
    *("cos", sp.cos, np.cos, "cos"),
    meaning="cosine",
    ranges=_COS,
    cost=Cost(8.1, 8.3),
    vectors=1,
    latex=r"\cos",
)
tan = _elementary(
    *("tan", sp.tan, np.tan, "tan"),
    meaning="tangent",
    ranges=_TAN,
    cost=Cost(1.3, 8.9),
    latex=r"\tan",
)

sinh = _elementary(
    *("sinh", sp.sinh, np.sinh, "sinh"),
    meaning="hyperbolic sine",
    cost=Cost(1.2, 10.2),
    latex=r"\sinh",
)
cosh = _elementary(
    *("cosh", sp.cosh, np.cosh, "cosh"),
    meaning="hyperbolic cosine",
    ranges=_COSH,
    cost=Cost(1.1, 6.0),
    latex=r"\cosh",
)


def _sech2_numpy(x: Reals) -> Reals:
    t = np.exp(-2.0 * step_abs(x))
    return 4.0 * t / (1.0 + t * (2.0 + t))


def _sech2_stable(x: Expr) -> Expr:
    t = exp(mul(-2.0, abs(x)))
    return div(mul(4.0, t), add(1.0, mul(t, add(2.0, t))))  # (1 + t)^2 doubles a rounding


# The square of the hyperbolic secant: tanh' to full accuracy.
sech2: ScalarFunction = ScalarFunction(
    "sech2",
    1,
    definition=lambda x: 1 / sp.cosh(x) ** 2,
    numpy=_sech2_numpy,
    partials=(lambda x: mul(-2.0, mul(sech2(x), tanh(x))),),
    stable=_sech2_stable,
    domain=(_EVERYWHERE,),
    ranges=Monotonicity(TANH_CRITICAL[1:], image=(0.0, 1.0)),
    ulps={"numpy": 12, "numexpr": 8, "c": 8},
    costly=True,
    extended=True,
    meaning="1/cosh(x)^2",
)
# 1 - tanh(x)**2 loses every digit from x = 19 on.
tanh: ScalarFunction = _elementary(
    *("tanh", sp.tanh, np.tanh, "tanh"),
    meaning="hyperbolic tangent",
    partial=sech2,
    # With s = 1 - t² they are s, -2ts, .., 8ts(2 - 3t²).
    decay=Decay(1, 2.0, 8.0),
    ranges=Monotonicity(TANH_CRITICAL, image=_CIRCULAR),
    cost=Cost(1.7, 11.0),
    latex=r"\tanh",
)


def _sech_asinh_numpy(x: Reals) -> Reals:
    return 1.0 / (np.sqrt(1.0 + np.square(x)) if np.iscomplexobj(x) else np.hypot(1.0, x))


def _sech_asinh_stable(x: Expr) -> Expr:
    near = lt(abs(x), _FAR)
    return div(1.0, where(near, sqrt(add(1.0, square(where(near, x, 0.0)))), abs(x)))


# 1 / sqrt(1 + x^2), which is asinh', also where x^2 overflows.
sech_asinh: ScalarFunction = ScalarFunction(
    "sech_asinh",
    1,
    definition=lambda x: 1 / sp.sqrt(1 + x**2),
    numpy=_sech_asinh_numpy,
    partials=(lambda x: mul(-1.0, mul(square(sech_asinh(x)), mul(sech_asinh(x), x))),),
    stable=_sech_asinh_stable,
    domain=(_EVERYWHERE,),
    ranges=Monotonicity(_ASINH.critical_points[1:], image=(0.0, 1.0)),
    ulps={"numpy": 8, "numexpr": 8, "c": 8},
    costly=True,
    extended=True,
    meaning="1/sqrt(1 + x^2)",
)
asinh = _elementary(
    *("asinh", sp.asinh, np.arcsinh, "arcsinh"),
    meaning="inverse of sinh",
    partial=sech_asinh,
    # Over the first: -x/(1 + x²) and (9x - 6x³)/(1 + x²)³.
    decay=Decay(1, 0.5, 2.07),
    ranges=_ASINH,
    cost=Cost(2.0, 17.5),
    foreign_names=("arcsinh",),
)
atan = _elementary(
    *("atan", sp.atan, np.arctan, "arctan"),
    meaning="inverse of tan, in (-pi/2, pi/2)",
    # Over the first: -2x/(1 + x²) and 24x(1 - x²)/(1 + x²)³.
    decay=Decay(1, 1.0, 5.22),
    ranges=_ATAN,
    cost=Cost(1.25, 8.3),
    foreign_names=("arctan",),
)
# Each factor is exact next to the end of the domain that it vanishes at.
asin = _elementary(
    *("asin", sp.asin, np.arcsin, "arcsin"),
    meaning="inverse of sin, in [-pi/2, pi/2]",
    domain=_CIRCULAR,
    partial=lambda x: div(1.0, sqrt(mul(sub(1.0, x), add(1.0, x)))),
    ranges=Monotonicity(_ODD_SERIES, image=(-1.5707963267948968, 1.5707963267948968)),
    cost=Cost(1.4, 10.0),
    foreign_names=("arcsin",),
)
acos = _elementary(
    *("acos", sp.acos, np.arccos, "arccos"),
    meaning="inverse of cos, in [0, pi]",
    domain=_CIRCULAR,
    partial=lambda x: div(-1.0, sqrt(mul(sub(1.0, x), add(1.0, x)))),
    ranges=Monotonicity(_ODD_SERIES, image=(0.0, math.nextafter(math.pi, 4.0))),
    cost=Cost(1.5, 10.0),
    foreign_names=("arccos",),
)
# Its derivative is a product of completely monotone functions.
acosh = _elementary(
    *("acosh", sp.acosh, np.arccosh, "arccosh"),
    meaning="inverse of cosh, for x >= 1",
    domain=(1.0, math.inf),
    partial=lambda x: div(1.0, mul(sqrt(sub(x, 1.0)), sqrt(add(x, 1.0)))),
    ranges=Monotonicity(((),) * 6, image=_POSITIVE),
    cost=Cost(2.0, 16.0),
    foreign_names=("arccosh",),
)
atanh = _elementary(
    *("atanh", sp.atanh, np.arctanh, "arctanh"),
    meaning="inverse of tanh, for x in (-1, 1)",
    domain=_CIRCULAR,
    partial=lambda x: div(1.0, mul(sub(1.0, x), add(1.0, x))),
    ranges=Monotonicity(_ODD_SERIES),
    cost=Cost(1.8, 14.0),
    foreign_names=("arctanh",),
)


def _cbrt_numpy(x: Reals) -> Reals:
    root = np.cbrt(np.real(x))
    return complex_step(root, x, lambda: 1.0 / (3.0 * np.square(root)))


cbrt: ScalarFunction = ScalarFunction(
    "cbrt",
    1,
    definition=lambda x: sp.sign(x) * sp.Abs(x) ** sp.Rational(1, 3),
    numpy=_cbrt_numpy,
    partials=(lambda x: div(1.0, mul(3.0, square(cbrt(x)))),),
    spelling={
        "numpy": "np.cbrt({0}, out={out})",
        "scalar": "np.cbrt({0})",
        "c": "cbrt({0})",
    },
    cost=Cost(8.0),
    domain=(_EVERYWHERE,),
    kinks=(
        Kink(
            0,
            lambda x: eq(x, 0.0),
            "`cbrt` has an infinite slope at 0",
            "`asinh(x)` grows slower still and is smooth",
        ),
    ),
    costly=True,
    meaning="cube root, of negative numbers too",
    signature="cbrt(x)",
    ranges=Monotonicity(),
    c=C({"cbrt": 2}),
)


def root_of_pi(factor: float = 1.0) -> Expr:
    """The square root of a multiple of pi: a constant, but for bounds, which enclose its value."""
    return sqrt(mul(factor, acos(-1.0)))


def two_over_root_pi() -> Expr:
    return div(2.0, root_of_pi())


def _erf_numpy(x: Reals) -> Reals:
    from scipy import special  # takes 0.1 s to import, so only for models that need it

    result: Reals = special.erf(x)
    return result


# numexpr lacks the error function; such a target computes this step by NumPy.
erf = ScalarFunction(
    "erf",
    1,
    definition=sp.erf,
    numpy=_erf_numpy,
    partials=(lambda x: mul(two_over_root_pi(), exp(neg(square(x)))),),
    spelling={
        "numpy": "special.erf({0}, out={out})",
        "scalar": "special.erf({0})",
        "c": "erf({0})",
    },
    cost=Cost(2.7),
    domain=(_EVERYWHERE,),
    ranges=_ERF,
    ulps={"numpy": 8},
    costly=True,
    meaning="error function",
    signature="erf(x)",
    sympy=(sp.erf,),
    c=C({"erf": 2}),
)
