"""Functions that stand for compounds whose parts overflow, cancel, or meet as 0 times infinity."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import sympy as sp

from slomodel.functions.activations import sigmoid, softplus
from slomodel.functions.arithmetic import add, div, mul, square, sub
from slomodel.functions.comparison import eq, gt, land, le, where
from slomodel.functions.elementary import atan, exp, log, log1p, sqrt
from slomodel.functions.piecewise import Reals, abs, maximum, minimum, root, step_abs
from slomodel.ir.build import const
from slomodel.ir.expr import Const, Expr, Input, Map
from slomodel.ir.function import (
    ANALYTIC,
    DISCONTINUOUS,
    Array,
    C,
    Cost,
    Kink,
    Monotonicity,
    RangeRule,
    ScalarFunction,
)
from slomodel.ir.walk import postorder

_EVERYWHERE = (-math.inf, math.inf)


def _logaddexp_numpy(a: Reals, b: Reals) -> Reals:
    if not np.iscomplexobj(a) and not np.iscomplexobj(b):
        result: Reals = np.logaddexp(a, b)
        return result
    larger = np.where(np.real(a) >= np.real(b), a, b)
    return larger + np.log1p(np.exp(-step_abs(a - b)))


def _logaddexp_stable(a: Expr, b: Expr) -> Expr:
    apart = where(eq(a, b), 0.0, sub(a, b))  # the difference of equal infinities is NaN
    return add(maximum(a, b), log1p(exp(mul(-1.0, abs(apart)))))


def _larger_magnitude(a: Reals, b: Reals) -> Reals:
    """The magnitude of the larger term: where the terms cancel, the value is smaller."""
    return np.maximum(np.abs(np.maximum(a, b)), 1.0)


logaddexp: ScalarFunction = ScalarFunction(
    "logaddexp",
    2,
    definition=lambda a, b: sp.log(sp.exp(a) + sp.exp(b)),
    numpy=_logaddexp_numpy,
    partials=(lambda a, b: sigmoid(sub(a, b)), lambda a, b: sigmoid(sub(b, a))),
    stable=_logaddexp_stable,
    domain=(_EVERYWHERE, _EVERYWHERE),
    costly=True,
    meaning="log(exp(a) + exp(b)), without overflow",
    signature="logaddexp(a, b)",
    foreign_names=("log_add_exp",),
    ranges=Monotonicity(by_operand=((), ())),
    error_scale=_larger_magnitude,
    ulps={"numpy": 8},
    unary_form=lambda a, b: add(b, softplus(sub(a, b))),
)


def _hypot_numpy(a: Reals, b: Reals) -> Reals:
    if not np.iscomplexobj(a) and not np.iscomplexobj(b):
        # In C hypot(inf, NaN) is inf, which would hide the NaN.
        length: Reals = np.where(np.isnan(a) | np.isnan(b), np.nan, np.hypot(a, b))
        return length
    size = np.maximum(np.abs(np.real(a)), np.abs(np.real(b)))
    scale: Reals = np.where(size == 0.0, 1.0, size)
    stepped: Reals = scale * np.sqrt(np.square(a / scale) + np.square(b / scale))
    return stepped


def _hypot_stable(a: Expr, b: Expr) -> Expr:
    larger, smaller = maximum(abs(a), abs(b)), minimum(abs(a), abs(b))
    # Equal sides may both be 0 or infinite.
    equal = eq(larger, smaller)
    ratio = where(equal, 1.0, div(smaller, where(equal, 1.0, larger)))
    return mul(larger, sqrt(add(1.0, square(ratio))))


def _hypot_partial(a: Expr, b: Expr) -> Expr:
    size = hypot(a, b)
    positive = gt(size, 0.0)
    return div(where(positive, a, 0.0), where(positive, size, 1.0))


# The length of (a, b), with gradient 0 at the origin like that of `norm2`.
hypot: ScalarFunction = ScalarFunction(
    "hypot",
    2,
    definition=lambda a, b: sp.sqrt(a**2 + b**2),
    numpy=_hypot_numpy,
    partials=(_hypot_partial, lambda a, b: _hypot_partial(b, a)),
    stable=_hypot_stable,
    kinks=(
        Kink(
            0,
            lambda a, b: land(eq(a, 0.0), eq(b, 0.0)),
            "a norm has a kink at 0, where its gradient is taken as 0",
            "its square, the sum of squares, is smooth",
        ),
    ),
    extended=True,
    meaning="sqrt(a^2 + b^2), the length of (a, b); its gradient at (0, 0) is taken as 0",
    signature="hypot(a, b)",
    ranges=Monotonicity(by_operand=((0.0,), (0.0,)), image=(0.0, math.inf)),
    unary_form=lambda a, b: root(add(square(a), square(b))),
)


def _atan2_numpy(y: Reals, x: Reals) -> Reals:
    angle: Reals = np.arctan2(np.real(y), np.real(x))
    if not np.iscomplexobj(y) and not np.iscomplexobj(x):
        return angle
    # The angle by which the complex step rotates the point.
    across = y * np.real(x) - x * np.real(y)
    along = x * np.real(x) + y * np.real(y)
    turned: Reals = angle + np.arctan(across / along)
    return turned


def _atan2_by_y(y: Expr, x: Expr) -> Expr:
    """x / (x^2 + y^2), whose denominator neither overflows nor underflows."""
    length = hypot(x, y)
    return div(div(x, length), length)


# C's atan2: at y = 0 > x the value is pi or -pi by the sign of the zero. It is monotone in each
# operand, as its derivative by y has the sign of x and the one by x that of -y.
atan2 = ScalarFunction(
    "atan2",
    2,
    definition=sp.atan2,
    numpy=_atan2_numpy,
    partials=(_atan2_by_y, lambda y, x: mul(-1.0, _atan2_by_y(x, y))),
    spelling={
        "numpy": "np.arctan2({0}, {1}, out={out})",
        "scalar": "np.arctan2({0}, {1})",
        "numexpr": "arctan2({0}, {1})",
        "c": "atan2({0}, {1})",
    },
    cost=Cost(2.6, 15.0),
    kinks=(
        Kink(
            DISCONTINUOUS,
            lambda y, x: land(eq(y, 0.0), le(x, 0.0)),
            "`atan2` jumps from pi to -pi where y = 0 and x < 0",
            "where x > 0 it is `atan(y / x)`, which is smooth",
        ),
    ),
    smoothness_above=lambda y, x: ANALYTIC if y > 0.0 or x > 0.0 else DISCONTINUOUS,
    costly=True,
    meaning="angle from the positive x axis to the point (x, y), in [-pi, pi]",
    ranges=Monotonicity(
        by_operand=((), ()), image=(-math.nextafter(math.pi, 4.0), math.nextafter(math.pi, 4.0))
    ),
    unary_form=lambda y, x: mul(2.0, atan(div(y, add(x, root(add(square(x), square(y))))))),
    signature="atan2(y, x)",
    foreign_names=("arctan2",),
    sympy=(sp.atan2,),
    c=C({"atan2": 2}),
)


def _xlogx_numpy(x: Reals) -> Reals:
    return x * np.log(np.where(x == 0.0, 1.0, x))


# Continuous at 0, where its slope is infinite.
xlogx = ScalarFunction(
    "xlogx",
    1,
    definition=lambda x: x * sp.log(x),
    numpy=_xlogx_numpy,
    partials=(lambda x: add(log(x), 1.0),),
    stable=lambda x: mul(x, log(where(eq(x, 0.0), 1.0, x))),
    domain=((0.0, math.inf),),
    ranges=Monotonicity(((math.exp(-1.0),), (), (), (), ())),
    ulps={"numpy": 8, "numexpr": 8, "c": 8},
    costly=True,
    extended=True,
    meaning="x log(x), 0 at 0",
)


def _xlogx1p_numpy(x: Reals) -> Reals:
    return (1.0 + x) * np.log1p(np.where(x == -1.0, 0.0, x))


# (1 + x) log(1 + x), to full accuracy where x is small.
xlogx1p = ScalarFunction(
    "xlogx1p",
    1,
    definition=lambda x: (1 + x) * sp.log(1 + x),
    numpy=_xlogx1p_numpy,
    partials=(lambda x: add(log1p(x), 1.0),),
    stable=lambda x: mul(add(1.0, x), log1p(where(eq(x, -1.0), 0.0, x))),
    domain=((-1.0, math.inf),),
    ranges=Monotonicity(((math.expm1(-1.0),), (), (), (), ())),
    ulps={"numpy": 8, "numexpr": 8, "c": 8},
    costly=True,
    extended=True,
    meaning="(1 + x) log(1 + x), 0 at -1",
)

# The number itself, with derivative 0: it marks a quantity on whose value the objective does not
# depend, such as the shift m in m + log(sum(exp(x - m))). The contributions of such a quantity to
# any derivative cancel exactly, so omitting them is exact, and finite where they are not. For the
# same reason a bound may replace it by any constant. It is not in the table of functions: its
# derivative deliberately differs from that of its value.
stop_gradient = ScalarFunction(
    "stop_gradient",
    1,
    definition=lambda x: x,
    numpy=np.real,
    partials=(lambda x: None,),
    stable=lambda x: x,
    domain=(_EVERYWHERE,),
    exact=True,
    meaning="the number, with derivative 0",
    ranges=RangeRule.OPERATION,
)

# The first of two operands that are equal for all values of the variables. Derivatives are those
# of the first; a bound may use that the value lies in the ranges of both. Like `stop_gradient`, it
# is not in the table of functions.
same = ScalarFunction(
    "same",
    2,
    definition=lambda x, y: x,
    numpy=lambda x, y: x,
    partials=(lambda x, y: const(1.0), lambda x, y: None),
    stable=lambda x, y: x,
    domain=(_EVERYWHERE, _EVERYWHERE),
    exact=True,
    meaning="the first of two equal numbers",
    ranges=RangeRule.OPERATION,
)


def _between(x: Expr, low: Expr, high: Expr) -> Expr:
    above = x if isinstance(low, Const) and low.value == -math.inf else maximum(x, low)
    return minimum(above, high)


def _unlimited(x: Expr, low: Expr, high: Expr) -> Expr | None:
    return x if low is Const(-math.inf) and high is Const(math.inf) else None


# The number between two limits, with derivative 1: an exponent beyond them is moved to the nearer
# limit where this changes no value by more than rounding, so that no product of derivatives is 0
# times infinity. Like `stop_gradient`, it is not in the table of functions.
limited = ScalarFunction(
    "limited",
    3,
    definition=lambda x, low, high: sp.Max(sp.Min(x, high), low),
    numpy=lambda x, low, high: np.minimum(np.maximum(x, low), high),
    partials=(lambda x, low, high: const(1.0), lambda *_: None, lambda *_: None),
    stable=_between,
    simplify=_unlimited,
    domain=(_EVERYWHERE, _EVERYWHERE, _EVERYWHERE),
    exact=True,
    meaning="the number between two limits, with derivative 1",
    ranges=RangeRule.UNKNOWN,
)


def differentiated(*roots: Expr) -> list[Expr]:
    """The nodes under the roots in postorder, without those that only `stop_gradient` uses."""
    order = postorder(*roots)
    live = set(roots)
    for node in reversed(order):
        if node in live and not (isinstance(node, Map) and node.function is stop_gradient):
            live.update(node.operands)
    return [node for node in order if node in live]


def graph_values(graph: Expr, at: Mapping[Input, Reals]) -> Reals:
    """The values of a graph of scalars at arrays, by the meanings of its functions."""
    known: dict[Expr, Array] = {node: np.asarray(values) for node, values in at.items()}
    with np.errstate(all="ignore"):
        for node in postorder(graph):
            if isinstance(node, Const):
                known[node] = np.asarray(node.value)
            elif isinstance(node, Map):
                known[node] = node.function.numpy(*(known[operand] for operand in node.operands))
    return np.asarray(known[graph], dtype=np.float64)
