"""Sums, products and quotients.

The identities applied on construction are exact except for the sign of a zero: `x + 0` is `x`, also
where x is -0.0 and IEEE gives +0.0. `0 * x` is never replaced by 0, which would hide a NaN.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from slomodel.functions.comparison import eq
from slomodel.ir.expr import Const, Expr, Map
from slomodel.ir.function import C, Cost, RangeRule, ScalarFunction


def is_number(node: Expr, value: float) -> bool:
    """True for the constant of this value; both zeros are 0."""
    return isinstance(node, Const) and node.value == value


def argument(node: Expr, function: ScalarFunction) -> Expr | None:
    """`x` if the node is `function(x)`, without broadcasts; else None."""
    if isinstance(node, Map) and node.function is function and node.shape == node.operands[0].shape:
        return node.operands[0]
    return None


def _simplify_add(a: Expr, b: Expr) -> Expr | None:
    if is_number(b, 0.0):
        return a
    return b if is_number(a, 0.0) else None


def _simplify_sub(a: Expr, b: Expr) -> Expr | None:
    if is_number(b, 0.0):
        return a
    return neg(b) if is_number(a, 0.0) else None


def _simplify_mul(a: Expr, b: Expr) -> Expr | None:
    for number, other in ((a, b), (b, a)):
        if is_number(number, 1.0):
            return other
        if is_number(number, -1.0):
            return neg(other)
    return _one_scale(a, b)


def _one_scale(scale: Expr, node: Expr) -> Expr | None:
    """`s * (t * x)` as `(s * t) * x` for scalars of which one is a power of two.

    This is exact, as multiplying by a power of two does not round, unless an intermediate value
    over- or underflows; two constants whose product would do so are not merged. If x is a scalar
    too, only constants are merged: merging other factors would not save a pass over an array, and
    in a product of many scalars each constant would reconstruct all of their products.
    """
    if scale.rank or not isinstance(node, Map) or node.function is not mul:
        return None
    inner, rest = node.operands
    if inner.rank or rest.shape != node.shape:
        return None
    if isinstance(scale, Const) and isinstance(inner, Const):
        product = abs(scale.value * inner.value)
        if not sys.float_info.min <= product <= sys.float_info.max:
            return None
    elif not rest.rank:
        return None
    if _is_power_of_two(scale) or _is_power_of_two(inner):
        return mul(mul(scale, inner), rest)
    return None


def _is_power_of_two(node: Expr) -> bool:
    return isinstance(node, Const) and abs(math.frexp(node.value)[0]) == 0.5


def _simplify_div(a: Expr, b: Expr) -> Expr | None:
    if not isinstance(b, Const):
        return None
    if abs(b.value) == 1.0:
        return a if b.value == 1.0 else neg(a)
    mantissa, exponent = math.frexp(b.value)
    if abs(mantissa) == 0.5 and abs(exponent) < 1000:
        return mul(a, 1.0 / b.value)  # the reciprocal of a power of two is exact
    return None


def _simplify_neg(x: Expr) -> Expr | None:
    if isinstance(x, Map) and x.function is mul:
        scale, other = x.operands
        if other.shape == x.shape and (isinstance(scale, Const) or (x.rank and not scale.rank)):
            return mul(neg(scale), other)
    return argument(x, neg)


add = ScalarFunction(
    "add",
    2,
    definition=lambda a, b: a + b,
    numpy=np.add,
    spelling={
        "numpy": "np.add({0}, {1}, out={out})",
        "scalar": "({0} + {1})",
        "numexpr": "({0} + {1})",
        "c": "({0} + {1})",
    },
    cost=Cost(0.25, 0.35),
    simplify=_simplify_add,
    meaning="sum of two",
    ranges=RangeRule.OPERATION,
)

sub = ScalarFunction(
    "sub",
    2,
    definition=lambda a, b: a - b,
    numpy=np.subtract,
    spelling={
        "numpy": "np.subtract({0}, {1}, out={out})",
        "scalar": "({0} - {1})",
        "numexpr": "({0} - {1})",
        "c": "({0} - {1})",
    },
    cost=Cost(0.25, 0.35),
    simplify=_simplify_sub,
    meaning="difference of two",
    ranges=RangeRule.OPERATION,
)

mul = ScalarFunction(
    "mul",
    2,
    definition=lambda a, b: a * b,
    numpy=np.multiply,
    spelling={
        "numpy": "np.multiply({0}, {1}, out={out})",
        "scalar": "({0} * {1})",
        "numexpr": "({0} * {1})",
        "c": "({0} * {1})",
    },
    cost=Cost(0.25, 0.35),
    simplify=_simplify_mul,
    meaning="product of two",
    ranges=RangeRule.OPERATION,
)

div: ScalarFunction = ScalarFunction(
    "div",
    2,
    definition=lambda a, b: a / b,
    numpy=np.divide,
    # a / b**2 would overflow where (a / b) / b does not.
    partials=(lambda a, b: div(1.0, b), lambda a, b: neg(div(div(a, b), b))),
    spelling={
        "numpy": "np.divide({0}, {1}, out={out})",
        "scalar": "({0} / {1})",
        "numexpr": "({0} / {1})",
        "c": "({0} / {1})",
    },
    cost=Cost(0.35, 0.67),
    simplify=_simplify_div,
    meaning="quotient of two",
    ranges=RangeRule.OPERATION,
    undefined=lambda a, b: eq(b, 0.0),
)

neg: ScalarFunction = ScalarFunction(
    "neg",
    1,
    definition=lambda x: -x,
    numpy=np.negative,
    spelling={
        "numpy": "np.negative({0}, out={out})",
        "scalar": "(-{0})",
        "numexpr": "(-{0})",
        "c": "(-{0})",
    },
    cost=Cost(0.16, 0.17),
    simplify=_simplify_neg,
    exact=True,
    meaning="the number with the other sign",
    ranges=RangeRule.OPERATION,
)

square: ScalarFunction = ScalarFunction(
    "square",
    1,
    definition=lambda x: x**2,
    numpy=np.square,
    spelling={
        "numpy": "np.square({0}, out={out})",
        "scalar": "({0} * {0})",
        "numexpr": "({0} * {0})",
        "c": "slo_square({0})",
    },
    cost=Cost(0.18, 0.35),
    simplify=lambda x: None if (inner := argument(x, neg)) is None else square(inner),
    c=C(source="static inline real slo_square(real x) { return x * x; }"),
    meaning="x^2",
    ranges=RangeRule.OPERATION,
    signature="square(x)",
)
