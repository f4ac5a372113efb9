"""Differences from 1 in closed forms that do not cancel: powers, tanh, erf, growth at small rates.

(1 + x)^y - 1 is expm1(y log(1 + x)) where that exponent is small, and its quotient with x, which
values payments at a rate x, has the limit y at x = 0. The law: each form has full accuracy where
the difference is small; elsewhere it is computed as it stands.
"""

from __future__ import annotations

from collections.abc import Collection

from slomodel.functions import (
    abs,
    add,
    div,
    erf,
    erfc,
    expm1,
    log,
    log1p,
    lt,
    mul,
    neg,
    pow,
    sigmoid,
    sub,
    tanh,
    where,
)
from slomodel.functions.removable import LOG_QUOTIENT, exp_quotient
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.ir.function import ScalarFunction
from slomodel.rewrite.elementwise.patterns import Match, StableForm, number, operand, rest

x, y, c, d = operand("x"), operand("y"), number("c"), number("d")


def small_difference(node: Map) -> Expr | None:
    """The node by the first form that matches; else None."""
    is_quotient = node.function is div
    if not is_quotient and not any(isinstance(one, Const) for one in node.operands):
        return None
    if not _has(node, {pow} if is_quotient else {pow, tanh, erf}):
        return None
    forms = _QUOTIENTS if is_quotient else _DIFFERENCES
    result = (form.applied(node) for form in forms)
    return next((one for one in result if one is not None), None)


def _has(node: Expr, functions: Collection[ScalarFunction], depth: int = 3) -> bool:
    """Whether one of the functions is among the terms and factors; without, no form matches."""
    if is_map(node, *functions):
        return True
    is_open = depth > 0 and is_map(node, add, sub, mul, div, neg)
    return is_open and any(_has(one, functions, depth - 1) for one in node.operands)


def _growth(x: Expr, y: Expr) -> Expr:
    """((1 + x)^y - 1)/x, y at x = 0."""
    is_near = lt(abs(mul(y, log1p(x))), 1.0)
    inner, exponent = where(is_near, x, 0.0), where(is_near, y, 0.0)
    logarithm = LOG_QUOTIENT.member(0)(inner)
    near = mul(mul(exponent, exp_quotient(mul(exponent, log1p(inner)))), logarithm)
    outer = where(is_near, 1.0, x)
    return where(is_near, near, div(sub(pow(add(1.0, outer), y), 1.0), outer))


def _power_less_one(base: Expr, logarithm: Expr, y: Expr) -> Expr:
    """base^y - 1."""
    t = mul(y, logarithm)
    is_near = lt(abs(t), 1.0)
    far = sub(pow(where(is_near, 2.0, base), y), 1.0)
    return where(is_near, expm1(where(is_near, t, 0.0)), far)


def _cancels(m: Match) -> bool:
    return m[d] == -m[c]


def _is_tail(m: Match) -> bool:
    return m[d] == m[c]


_LESS_ONE = add(mul(c, pow(add(1.0, x), y)), d)
_QUOTIENTS = (
    StableForm(div(mul(rest, _LESS_ONE), x), mul(rest, mul(c, _growth(x, y))), _cancels),
    StableForm(div(x, _LESS_ONE), div(1.0, mul(c, _growth(x, y))), _cancels),
    StableForm(div(mul(rest, x), _LESS_ONE), mul(rest, div(1.0, mul(c, _growth(x, y)))), _cancels),
)
_DIFFERENCES = (
    StableForm(_LESS_ONE, mul(c, _power_less_one(add(1.0, x), log1p(x), y)), _cancels),
    StableForm(add(mul(c, pow(x, y)), d), mul(c, _power_less_one(x, log(x), y)), _cancels),
    StableForm(
        add(mul(c, tanh(x)), d),
        mul(mul(2.0, d), sigmoid(mul(2.0, x))),
        _is_tail,
    ),
    StableForm(add(mul(c, erf(x)), d), mul(c, erfc(neg(x))), _is_tail),
    StableForm(
        add(mul(c, tanh(x)), d),
        mul(mul(2.0, d), sigmoid(mul(-2.0, x))),
        _cancels,
    ),
)
