"""Stable forms of logarithms of tails: differences of exponentials, the error function, odds.

Each computes the logarithm of a small difference or tail by a function of full accuracy there.
Factors are taken out of a logarithm only between 1/16 and 16: the sum of their logarithm and the
rest is then accurate to a few roundings of the larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from slomodel.functions import (
    abs,
    acosh,
    add,
    asinh,
    atanh,
    div,
    erf,
    erfc,
    erfcx,
    exp,
    expm1,
    log,
    log1mexp,
    log1p,
    logcosh,
    logexpm1,
    logit,
    lognormcdf,
    lt,
    mul,
    neg,
    normcdf,
    sigmoid,
    sinh,
    softplus,
    sqrt,
    square,
    sub,
    tanh,
    where,
)
from slomodel.ir.expr import Const, Expr, Input, Map
from slomodel.rewrite.matching import is_map
from slomodel.rewrite.patterns import Form, Match, number, operand

_ROOT_2 = math.sqrt(2.0)
_LARGEST = 16.0
_MOST_NODES = 30

x, y = operand("x"), operand("y")
c, d, e = number("c"), number("d"), number("e")


def _is_near(value: float) -> bool:
    return 1.0 / _LARGEST <= value <= _LARGEST


def _near(placeholder: Input, sign: float = 1.0) -> Callable[[Match], bool]:
    return lambda m: _is_near(sign * m[placeholder])


def _below(scale: Expr | float, u: Expr) -> Expr:
    """log(scale * Phi(u)), with 2 Phi(sqrt(2) x) = erfc(-x)."""
    return add(log(scale), lognormcdf(u))


def _log_ratio(x: Expr, y: Expr) -> Expr:
    """log(x/(x + y)), which is small where y is much smaller than x."""
    is_near = lt(abs(y), abs(x))
    near = log1p(div(where(is_near, y, 0.0), where(is_near, x, 1.0)))
    far = log(div(where(is_near, 1.0, x), where(is_near, 1.0, add(x, y))))
    return where(is_near, neg(near), far)


def _is_plain(m: Match) -> bool:
    """Whether x and y are sums of products without exponentials, whose scales have rules of their
    own.
    """
    stack = [m.parts[x].node, m.parts[y].node]
    for _ in range(_MOST_NODES):
        if not stack:
            return True
        node = stack.pop()
        if is_map(node, exp) or not isinstance(node, Map | Input | Const):
            return False
        if is_map(node, add, sub, mul, div, neg):
            stack += node.operands
    return False


TAIL_FORMS: tuple[Form, ...] = (
    # Differences of exponentials.
    Form(log(mul(c, expm1(x))), add(log(c), logexpm1(x)), _near(c)),
    Form(log(mul(c, expm1(x))), add(log(neg(c)), log1mexp(x)), _near(c, -1.0)),
    Form(log1p(mul(c, exp(x))), log1mexp(x), lambda m: m[c] == -1.0),
    Form(log(mul(c, sinh(x))), add(log(mul(0.5, c)), add(x, log1mexp(mul(-2.0, x)))), _near(c)),
    Form(
        log(add(mul(c, exp(x)), mul(d, exp(y)))),
        add(add(log(c), x), log1mexp(add(sub(y, x), log(div(neg(d), c))))),
        lambda m: _is_near(m[c]) and _is_near(-m[d] / m[c]),
    ),
    Form(
        log(add(mul(c, sigmoid(x)), mul(d, sigmoid(y)))),
        add(log(c), sub(log1mexp(sub(y, x)), add(softplus(neg(x)), softplus(y)))),
        lambda m: _is_near(m[c]) and m[d] == -m[c],
    ),
    # Tails of the normal distribution.
    Form(
        log(mul(e, add(mul(c, erf(x)), d))),
        _below(mul(2.0, mul(e, d)), mul(_ROOT_2, x)),
        lambda m: m[c] == m[d] and _is_near(m[e] * m[d]),
    ),
    Form(
        log(mul(e, add(mul(c, erf(x)), d))),
        _below(mul(2.0, mul(e, d)), mul(-_ROOT_2, x)),
        lambda m: m[c] == -m[d] and _is_near(m[e] * m[d]),
    ),
    Form(
        log1p(mul(c, erf(x))), _below(2.0, mul(mul(c, _ROOT_2), x)), lambda m: m[c] in (1.0, -1.0)
    ),
    Form(log(mul(c, erfc(x))), _below(mul(2.0, c), mul(-_ROOT_2, x)), _near(c)),
    Form(log1p(mul(c, erfc(x))), lognormcdf(mul(_ROOT_2, x)), lambda m: m[c] == -0.5),
    Form(
        log(add(mul(c, erfc(x)), d)),
        _below(d, mul(_ROOT_2, x)),
        lambda m: m[d] == -2.0 * m[c] and _is_near(m[d]),
    ),
    Form(log(mul(c, normcdf(x))), _below(c, x), _near(c)),
    Form(
        log(add(mul(c, normcdf(x)), d)),
        _below(d, neg(x)),
        lambda m: m[c] == -m[d] and _is_near(m[d]),
    ),
    Form(log1p(mul(c, normcdf(x))), lognormcdf(neg(x)), lambda m: m[c] == -1.0),
    # Not 1 + erf(x) by itself, a cheap factor in networks: its tail matters in logarithms only.
    Form(add(mul(c, erf(x)), d), mul(d, erfc(x)), lambda m: m[d] == -m[c] and m[d] > 0.0),
    Form(mul(exp(square(x)), erfc(x)), erfcx(x)),
    # Odds and other ratios.
    Form(log(div(x, sub(1.0, x))), logit(x)),
    Form(log(div(x, add(x, y))), _log_ratio(x, y), _is_plain),
    Form(
        add(mul(c, log(x)), mul(d, log(add(x, y)))),
        mul(c, _log_ratio(x, y)),
        lambda m: m[c] == -m[d] and _is_plain(m),
    ),
    Form(log(div(add(1.0, x), sub(1.0, x))), mul(2.0, atanh(x))),
    Form(log(div(sub(1.0, x), add(1.0, x))), mul(-2.0, atanh(x))),
    Form(
        add(mul(c, log1p(x)), mul(d, log1p(mul(e, x)))),
        mul(mul(2.0, c), atanh(x)),
        lambda m: m[d] == -m[c] and m[e] == -1.0,
    ),
    # Inverses of hyperbolic functions.
    Form(log(add(x, sqrt(add(square(x), 1.0)))), asinh(x)),
    Form(log(add(x, sqrt(sub(square(x), 1.0)))), acosh(x)),
    Form(
        add(mul(c, log(x)), mul(d, log1p(mul(e, x)))),
        mul(c, logit(x)),
        lambda m: m[d] == -m[c] and m[e] == -1.0,
    ),
    Form(logit(sigmoid(x)), x),
    Form(log(mul(c, sigmoid(x))), sub(log(c), softplus(neg(x))), _near(c)),
    Form(log1p(mul(c, square(tanh(x)))), mul(-2.0, logcosh(x)), lambda m: m[c] == -1.0),
)
"""Forms of logarithms that are tried before those of `stable_forms`."""
