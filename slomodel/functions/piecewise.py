"""Functions with kinks, and the conventions for their derivatives at kinks.

abs'(0) = sign(0) = 0, relu'(0) = 0, root'(0) = 0. At a tie of `maximum` or `minimum` the derivative
by each operand is 1/2, but 0 if the other operand is the constant 0, so that every spelling of relu
has derivative 0 at 0. A NaN operand gives a NaN value.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from slomodel.functions.arithmetic import argument, div, is_number, mul, neg, sub
from slomodel.functions.comparison import eq, ge, gt, land, le, lor, lt, where
from slomodel.ir.expr import Const, Expr
from slomodel.ir.function import (
    DISCONTINUOUS,
    Array,
    C,
    Cost,
    Kink,
    Monotonicity,
    Partial,
    RangeRule,
    ScalarFunction,
)

Reals = NDArray[np.float64]
"""Arguments and values; complex numbers for complex steps."""


def _zero(*operands: Expr) -> None:
    return None


def _at_zero(x: Expr) -> Expr:
    return eq(x, 0.0)


sign = ScalarFunction(
    "sign",
    1,
    definition=sp.sign,
    numpy=lambda x: np.sign(np.real(x)),
    partials=(_zero,),
    spelling={
        "numpy": "np.sign({0}, out={out})",
        "scalar": "np.sign({0})",
        "numexpr": "sign({0})",
        "c": "slo_sign({0})",
    },
    cost=Cost(0.6, 1.65),
    kinks=(
        Kink(
            DISCONTINUOUS,
            _at_zero,
            "`sign` jumps at 0; its derivative is taken as 0 everywhere",
            "`tanh` is smooth",
        ),
    ),
    c=C(
        source="static inline real slo_sign(real x)"
        " { return x != x ? x : (real)((x > 0) - (x < 0)); }"
    ),
    exact=True,
    meaning="-1, 0 or 1; its derivative is taken as 0",
    ranges=Monotonicity(image=(-1.0, 1.0)),
    ulps={"numpy": 0},
    signature="sign(x)",
    sympy=(sp.sign,),
)


floor = ScalarFunction(
    "floor",
    1,
    definition=sp.floor,
    numpy=lambda x: np.floor(np.real(x)),
    partials=(_zero,),
    spelling={
        "numpy": "np.floor({0}, out={out})",
        "scalar": "np.floor({0})",
        "numexpr": "floor({0})",
        "c": "floor({0})",
    },
    cost=Cost(0.3, 0.6),
    kinks=(
        Kink(
            DISCONTINUOUS,
            message="`floor` jumps at whole numbers; its derivative is taken as 0 everywhere",
        ),
    ),
    c=C(library={"floor": 0}),
    exact=True,
    meaning="the largest whole number that is not larger; its derivative is taken as 0",
    ranges=Monotonicity(),
    ulps={"numpy": 0},
)


def step_abs(x: Reals) -> Reals:
    """|x|; for a complex step x or -x, chosen by its real part, and not the modulus."""
    if np.iscomplexobj(x):
        return np.where(np.real(x) < 0, -x, x)
    return np.abs(x)


def complex_step(values: Reals, x: Reals, slopes: Callable[[], Array]) -> Reals:
    """`values` at the real parts of x, plus i Im x times the slopes there if x is complex.

    That is f(x) to first order in the step, for an f that NumPy knows at real numbers alone.
    """
    if not np.iscomplexobj(x):
        return values
    with np.errstate(all="ignore"):
        stepped: Reals = values + 1j * np.imag(x) * np.asarray(slopes(), dtype=np.float64)
    return stepped


def _simplify_abs(x: Expr) -> Expr | None:
    if argument(x, abs) is not None:
        return x
    inner = argument(x, neg)
    return None if inner is None else abs(inner)


abs = ScalarFunction(
    "abs",
    1,
    definition=sp.Abs,
    numpy=step_abs,
    partials=(sign,),
    spelling={
        "numpy": "np.abs({0}, out={out})",
        "scalar": "abs({0})",
        "numexpr": "abs({0})",
        "c": "fabs({0})",
    },
    cost=Cost(0.16, 1.7),
    kinks=(
        Kink(
            0,
            _at_zero,
            "`abs` has a kink at 0, where its derivative is taken as 0",
            "`sqrt(t^2 + eps)`, `huber(t)` and `logcosh(t)` are smooth",
        ),
    ),
    simplify=_simplify_abs,
    c=C({"fabs": 0}),
    exact=True,
    meaning="absolute value; its derivative at 0 is taken as 0",
    ranges=RangeRule.OPERATION,
    signature="abs(x)",
    sympy=(sp.Abs,),
    latex=r"\left|{0}\right|",
)

_LARGER = "static inline real slo_max(real a, real b) { return a > b || a != a ? a : b; }"
_SMALLER = "static inline real slo_min(real a, real b) { return a < b || a != a ? a : b; }"

relu = ScalarFunction(
    "relu",
    1,
    definition=lambda x: sp.Max(x, 0),
    numpy=lambda x: np.maximum(x, 0.0),
    partials=(lambda x: where(gt(x, 0.0), 1.0, 0.0),),
    spelling={
        "numpy": "np.maximum({0}, 0.0, out={out})",
        "scalar": "np.maximum({0}, 0.0)",
        "numexpr": "maximum({0}, 0.0)",
        "c": "slo_max({0}, 0.0)",
    },
    cost=Cost(0.5, 2.3),
    kinks=(
        Kink(
            0,
            _at_zero,
            "`relu` has a kink at 0, where its derivative is taken as 0",
            "`softplus` is smooth",
        ),
    ),
    c=C(source=_LARGER),
    exact=True,
    meaning="max(x, 0); its derivative at 0 is taken as 0",
    ranges=Monotonicity(image=(0.0, math.inf)),
    ulps={"numpy": 0},
    signature="relu(x)",
)


def _share(better: ScalarFunction, this: Expr, other: Expr) -> Expr:
    """The derivative by `this` of `maximum` (`better` is `gt`) or `minimum` (`lt`)."""
    tie = 0.0 if is_number(other, 0.0) else 0.5
    return where(better(this, other), 1.0, where(eq(this, other), tie, 0.0))


def _simplify_maximum(a: Expr, b: Expr) -> Expr | None:
    if is_number(b, 0.0):
        return relu(a)
    return relu(b) if is_number(a, 0.0) else None


maximum = ScalarFunction(
    "maximum",
    2,
    definition=sp.Max,
    numpy=np.maximum,
    partials=(lambda a, b: _share(gt, a, b), lambda a, b: _share(gt, b, a)),
    spelling={
        "numpy": "np.maximum({0}, {1}, out={out})",
        "scalar": "np.maximum({0}, {1})",
        "numexpr": "maximum({0}, {1})",
        "c": "slo_max({0}, {1})",
    },
    cost=Cost(0.28, 2.3),
    kinks=(Kink(0, eq, "`max` has a kink where its operands are equal"),),
    simplify=_simplify_maximum,
    c=C(source=_LARGER),
    exact=True,
    meaning="the larger of two, elementwise",
    ranges=RangeRule.OPERATION,
    signature="max(a, b)",
    foreign_names=("maximum",),
    sympy=(sp.Max,),
    latex=r"\max",
)

minimum = ScalarFunction(
    "minimum",
    2,
    definition=sp.Min,
    numpy=np.minimum,
    partials=(lambda a, b: _share(lt, a, b), lambda a, b: _share(lt, b, a)),
    spelling={
        "numpy": "np.minimum({0}, {1}, out={out})",
        "scalar": "np.minimum({0}, {1})",
        "numexpr": "minimum({0}, {1})",
        "c": "slo_min({0}, {1})",
    },
    cost=Cost(0.28, 2.3),
    kinks=(Kink(0, eq, "`min` has a kink where its operands are equal"),),
    c=C(source=_SMALLER),
    exact=True,
    meaning="the smaller of two, elementwise",
    ranges=RangeRule.OPERATION,
    signature="min(a, b)",
    foreign_names=("minimum",),
    sympy=(sp.Min,),
    latex=r"\min",
)


def _clip_partials() -> tuple[Partial, ...]:
    """The derivatives of clip, which sum to 1; the one by x is 0 at the limits, as for relu."""

    def by_x(x: Expr, low: Expr, high: Expr) -> Expr:
        return where(land(gt(x, low), lt(x, high)), 1.0, 0.0)

    def by_low(x: Expr, low: Expr, high: Expr) -> Expr:
        return where(land(le(x, low), lt(low, high)), 1.0, 0.0)

    def by_high(x: Expr, low: Expr, high: Expr) -> Expr:
        return where(ge(maximum(x, low), high), 1.0, 0.0)

    return by_x, by_low, by_high


def _at_a_limit(x: Expr, low: Expr, high: Expr) -> Expr:
    return lor(lor(eq(x, low), eq(x, high)), eq(low, high))


# min(max(x, low), high), also where low > high.
clip = ScalarFunction(
    "clip",
    3,
    definition=lambda x, low, high: sp.Min(sp.Max(x, low), high),
    numpy=lambda x, low, high: np.minimum(np.maximum(x, low), high),
    partials=_clip_partials(),
    spelling={
        "numpy": "np.clip({0}, {1}, {2}, out={out})",
        "scalar": "np.minimum(np.maximum({0}, {1}), {2})",
        "numexpr": "minimum(maximum({0}, {1}), {2})",
        "c": "slo_min(slo_max({0}, {1}), {2})",
    },
    cost=Cost(1.0, 5.6),
    kinks=(Kink(0, _at_a_limit, "`clip` has kinks at its two limits"),),
    c=C(source=f"{_LARGER}\n{_SMALLER}"),
    exact=True,
    meaning="min(max(x, lo), hi): the nearest number to x from lo to hi",
    unary_form=lambda x, low, high: minimum(maximum(x, low), high),
    signature="clip(x, lo, hi)",
)


def _huber_numpy(t: Reals, delta: Reals) -> Reals:
    size = step_abs(t)
    inside = np.real(size) <= np.real(delta)
    return np.where(inside, 0.5 * t * t, delta * (size - 0.5 * delta))


def _huber_stable(t: Expr, delta: Expr) -> Expr:
    size = abs(t)
    inside = mul(mul(0.5, t), t)  # t^2 may overflow where its half does not
    return where(le(size, delta), inside, mul(delta, sub(size, mul(0.5, delta))))


def _huber_by_t(t: Expr, delta: Expr) -> Expr:
    """The derivative by t: t clipped to ±delta, or delta sign(t) if delta <= 0.

    `clip` would be wrong at delta = 0: its limits coincide there, so that its derivatives by them
    do not add up to the one by delta.
    """
    clipped = clip(t, neg(delta), delta)
    if isinstance(delta, Const) and delta.value >= 0.0:
        return clipped
    return where(gt(delta, 0.0), clipped, mul(delta, sign(t)))


# The definition holds for every delta: for delta < 0 huber is delta |t| - delta^2 / 2.
huber = ScalarFunction(
    "huber",
    2,
    definition=lambda t, delta: sp.Piecewise(
        (t**2 / 2, sp.Abs(t) <= delta), (delta * (sp.Abs(t) - delta / 2), True)
    ),
    numpy=_huber_numpy,
    partials=(_huber_by_t, lambda t, delta: relu(sub(abs(t), delta))),
    stable=_huber_stable,
    kinks=(
        Kink(
            0,
            lambda t, delta: land(eq(t, 0.0), lt(delta, 0.0)),
            "`huber` has a kink at 0 for delta < 0",
            "`check delta >= 0` of data rules that out, and so does `exp(s)` of a variable `s`",
        ),
        Kink(1, lambda t, delta: lor(eq(t, delta), eq(t, neg(delta)))),
    ),
    smoothness_above=lambda t, delta: 1 if delta >= 0.0 else 0,
    meaning="t^2/2 where abs(t) <= delta, delta*(abs(t) - delta/2) elsewhere",
    ranges=Monotonicity(by_operand=((0.0,), ())),
    unary_form=_huber_stable,
    signature="huber(t, delta=1)",
)


def _root_partial(x: Expr) -> Expr:
    # The inner `where` makes every further derivative finite in the branch that is not taken.
    positive = gt(x, 0.0)
    return div(where(positive, 0.5, 0.0), root(where(positive, x, 1.0)))


# sqrt with derivative 0 at 0: root(sumsq(x)) is norm2(x), whose gradient is 0 at the origin.
root = ScalarFunction(
    "root",
    1,
    definition=sp.sqrt,
    numpy=np.sqrt,
    partials=(_root_partial,),
    spelling={
        "numpy": "np.sqrt({0}, out={out})",
        "scalar": "np.sqrt({0})",
        "numexpr": "sqrt({0})",
        "c": "sqrt({0})",
    },
    cost=Cost(1.2, 2.4),
    kinks=(
        Kink(
            0,
            _at_zero,
            "a norm has a kink at 0, where its gradient is taken as 0",
            "its square, `sumsq`, is smooth",
        ),
    ),
    domain=((0.0, math.inf),),
    c=C({"sqrt": 0}),
    extended=True,
    meaning="square root, with derivative 0 at 0",
    ranges=Monotonicity(image=(0.0, math.inf)),
    ulps={"numpy": 1},
)
