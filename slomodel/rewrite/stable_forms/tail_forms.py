"""Stable forms of logarithms of tails: differences of exponentials, the error function, odds.

Each computes the logarithm of a small difference or tail by a function of full accuracy there.
Factors are taken out of a logarithm only between 1/16 and 16: the sum of their logarithm and the
rest is then accurate to a few rounding errors of the larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

from slomodel.functions import (
    DIFFERENCES,
    abs,
    acosh,
    add,
    asinh,
    atanh,
    cos,
    cosh,
    div,
    erf,
    erfc,
    erfcx,
    exp,
    expm1,
    gt,
    land,
    log,
    log1mexp,
    log1p,
    logaddexp,
    logcosh,
    logexpm1,
    logit,
    lognormcdf,
    lt,
    mul,
    neg,
    normcdf,
    sech2,
    sigmoid,
    sin_quotient,
    sinh,
    softplus,
    sqrt,
    square,
    sub,
    tanh,
    where,
)
from slomodel.functions.logarithms import bose
from slomodel.functions.normal import normratio
from slomodel.functions.quantiles import erfinv, normppf
from slomodel.functions.remainders import exp_remainder, log_remainder
from slomodel.functions.removable import (
    BERNOULLI,
    LOG_QUOTIENT,
    exp_quotient,
    exp_quotient_1,
    log_exp_quotient,
    log_sinh_quotient,
    sinh_quotient,
)
from slomodel.functions.sinc import sin_quotient_1
from slomodel.ir.expr import Const, Expr, Input, Map, is_map
from slomodel.ir.function import ScalarFunction
from slomodel.rewrite.elementwise.matching import scaled
from slomodel.rewrite.elementwise.patterns import Match, StableForm, number, operand, rest

bernoulli = BERNOULLI.member(0)
_ROOT_2, _ROOT_2_PI = math.sqrt(2.0), math.sqrt(2.0 * math.pi)
_LARGEST = 16.0
_FARTHEST = 37.0
_MOST_NODES = 30
_SMALL_EXPONENT = -15.0
_WITH_TAILS = (erf, erfc, normcdf, exp, sigmoid, tanh, bose)

x, y = operand("x"), operand("y")
c, d, e, f, g = (number(one) for one in "cdefg")


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


def _log_of_softplus(x: Expr) -> Expr:
    """log(softplus(x)), which is x to full accuracy far below 0, where softplus underflows."""
    is_far = lt(x, -_FARTHEST)
    return where(is_far, x, log(softplus(where(is_far, 0.0, x))))


def _relative_softplus(x: Expr) -> Expr:
    """softplus(x) exp(-x), which is log(1 + t)/t with t = exp(x)."""
    is_low = lt(x, 0.0)
    high = where(is_low, 0.0, x)
    low = LOG_QUOTIENT.member(0)(exp(where(is_low, x, 0.0)))
    return where(is_low, low, mul(exp(neg(high)), softplus(high)))


def _log_of_double_sinh(x: Expr) -> Expr:
    """log(2 sinh(|x|)), which does not overflow."""
    # Choices that stable forms add are known to be smooth here; `abs` would count as a kink.
    size = where(lt(x, 0.0), neg(x), x)
    return add(size, log1mexp(mul(-2.0, size)))


def log_between(a: Expr, b: Expr, function: ScalarFunction = normcdf) -> Expr:
    """log(F(a) - F(b)) for a > b, F = Phi or erf.

    Where the difference may be 0 or is most of the whole, from logarithms of Phi in the tails.
    """
    scale, most = (1.0, 1.0) if function is normcdf else (_ROOT_2, 2.0)
    is_near = land(lt(abs(a), _FARTHEST / scale), lt(abs(b), _FARTHEST / scale))
    difference = DIFFERENCES[function](where(is_near, a, 1.0), where(is_near, b, 0.0))
    is_near = land(is_near, lt(difference, 0.5 * most))
    near = log(where(is_near, difference, 1.0))
    are_above = gt(add(a, b), 0.0)
    high, low = where(are_above, neg(b), a), where(are_above, neg(a), b)
    least, other = (lognormcdf(mul(scale, one)) for one in (high, low))
    far = add(least, log1mexp(sub(other, least)))
    return where(is_near, near, far if function is normcdf else add(math.log(most), far))


def is_multiple(m: Match) -> bool:
    """Whether d y is -c x."""
    inside = scaled(m.parts[x])
    return inside.core == m.parts[y] and m[d] == -m[c] * inside.coefficient


def _is_negative(m: Match) -> bool:
    """Whether x is -y."""
    one, other = scaled(m.parts[x]), scaled(m.parts[y])
    return one.core is not None and one.core == other.core and one.coefficient == -other.coefficient


def _log_of_hazard(t: Expr) -> Expr:
    """log(1 - exp(-exp(t))), which for u = exp(t) < 3e-7 is t - u/2 + u^2/24 to all digits."""
    is_small = lt(t, _SMALL_EXPONENT)
    u = exp(where(is_small, t, _SMALL_EXPONENT))
    small = add(sub(t, mul(0.5, u)), div(square(u), 24.0))
    return where(is_small, small, log1mexp(neg(exp(where(is_small, 0.0, t)))))


def _heat_capacity(x: Expr) -> Expr:
    """x^2 exp(x)/(exp(x) - 1)^2, whose slope cancels in the product of its factors near 0."""
    is_near = lt(square(x), 4.0)
    near = square(div(1.0, sinh_quotient(where(is_near, mul(0.5, x), 0.0))))
    size = where(is_near, 2.0, where(lt(x, 0.0), neg(x), x))
    return where(is_near, near, square(mul(exp(mul(-0.5, size)), bernoulli(neg(size)))))


def _log_of_change(difference: Expr, one: Expr, other: Expr) -> Expr:
    """log(1 + F(a) - F(b)) from the difference and the logarithms of F(a) and 1 - F(b), which are
    its parts where it is near -1.
    """
    is_far = lt(difference, -0.5)
    near = log1p(where(is_far, 0.0, difference))
    return where(is_far, logaddexp(one, other), near)


def _has_factor(value: float) -> Callable[[Match], bool]:
    return lambda m: m[c] == value


def _change(function: ScalarFunction, logarithm: Callable[[Expr], Expr]) -> Iterator[StableForm]:
    """The forms of log(1 + F(a) - F(b)) for a distribution function F with 1 - F(b) = F(-b)."""
    difference = DIFFERENCES[function](x, y)
    for sign, one, other in ((1.0, x, y), (-1.0, y, x)):
        changed = difference if sign > 0 else neg(difference)
        yield StableForm(
            log1p(mul(c, difference)),
            _log_of_change(changed, logarithm(one), logarithm(neg(other))),
            _has_factor(sign),
        )


def _constant(factor: Expr, inside: Expr, outside: Expr) -> Expr:
    return add(mul(factor, inside), outside)


def _combines(m: Match) -> bool:
    """Whether the constants combine exactly, and x is a function with a tail."""
    if not is_map(m.parts[x].node, *_WITH_TAILS):
        return False
    factor, inner, inside, outside = (Fraction(m[one]) for one in (c, d, e, f))
    exact = (factor * inner, factor * inside, factor * inside + outside)
    return all(Fraction(float(one)) == one for one in exact)


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


TAIL_FORMS: tuple[StableForm, ...] = (
    # Differences of exponentials.
    StableForm(log(mul(c, expm1(x))), add(log(c), logexpm1(x)), _near(c)),
    StableForm(log(mul(c, expm1(x))), add(log(neg(c)), log1mexp(x)), _near(c, -1.0)),
    StableForm(log1p(mul(c, exp(x))), log1mexp(x), lambda m: m[c] == -1.0),
    StableForm(
        log(mul(c, sinh(x))), add(log(mul(0.5, c)), add(x, log1mexp(mul(-2.0, x)))), _near(c)
    ),
    StableForm(
        log(mul(c, square(sinh(x)))),
        add(log(mul(0.25, c)), mul(2.0, _log_of_double_sinh(x))),
        _near(c),
    ),
    StableForm(
        log(add(mul(c, exp(x)), mul(d, exp(y)))),
        add(add(log(c), x), log1mexp(add(sub(y, x), log(div(neg(d), c))))),
        lambda m: _is_near(m[c]) and _is_near(-m[d] / m[c]),
    ),
    StableForm(
        log(add(mul(c, expm1(x)), mul(d, expm1(y)))),
        add(add(log(c), x), log1mexp(sub(y, x))),
        lambda m: _is_near(m[c]) and m[d] == -m[c],
    ),
    StableForm(
        log(add(mul(c, sigmoid(x)), mul(d, sigmoid(y)))),
        add(log(c), sub(log1mexp(sub(y, x)), add(softplus(neg(x)), softplus(y)))),
        lambda m: _is_near(m[c]) and m[d] == -m[c],
    ),
    StableForm(mul(exp(x), sigmoid(y)), sigmoid(x), _is_negative),
    StableForm(mul(exp(y), softplus(x)), _relative_softplus(x), _is_negative),
    StableForm(mul(expm1(x), sigmoid(y)), tanh(mul(0.5, x)), _is_negative),
    StableForm(mul(exp(x), expm1(y)), neg(expm1(x)), _is_negative),
    StableForm(
        div(mul(rest, exp(x)), mul(c, sigmoid(y))),
        mul(div(rest, c), add(exp(x), exp(sub(x, y)))),
    ),
    StableForm(exp(mul(c, softplus(x))), sigmoid(neg(x)), _has_factor(-1.0)),
    StableForm(exp(mul(c, softplus(x))), add(1.0, exp(x)), _has_factor(1.0)),
    StableForm(exp(lognormcdf(x)), normcdf(x)),
    StableForm(exp(logcosh(x)), cosh(x)),
    StableForm(add(mul(c, expm1(x)), d), mul(c, exp(x)), lambda m: m[d] == m[c]),
    StableForm(add(mul(c, sinh(x)), mul(d, cosh(x))), mul(c, exp(x)), lambda m: m[d] == m[c]),
    StableForm(add(mul(c, sinh(x)), mul(d, cosh(x))), mul(d, exp(neg(x))), lambda m: m[d] == -m[c]),
    StableForm(log1mexp(mul(c, exp(x))), _log_of_hazard(add(x, log(neg(c)))), _near(c, -1.0)),
    # Logarithms, differences and squares of functions with a removable singularity.
    StableForm(log(exp_quotient(x)), log_exp_quotient(x)),
    StableForm(log(sinh_quotient(x)), log_sinh_quotient(x)),
    StableForm(
        add(mul(c, log1mexp(x)), mul(d, log(y))),
        mul(c, log_exp_quotient(x)),
        lambda m: m[d] == -m[c] and _is_negative(m),
    ),
    *(
        StableForm(
            add(mul(c, logaddexp(*pair)), mul(d, x)),
            mul(c, softplus(sub(y, x))),
            lambda m: m[d] == -m[c],
        )
        for pair in ((x, y), (y, x))
    ),
    StableForm(
        add(mul(c, logexpm1(x)), mul(d, log(x))),
        mul(c, log_exp_quotient(x)),
        lambda m: m[d] == -m[c],
    ),
    *(
        StableForm(
            add(mul(c, quotient(x)), mul(d, derivative(x))),
            mul(d, mul(x, slope(x))),
            lambda m: m[d] == -m[c],
        )
        for quotient, derivative, slope in (
            (exp_quotient, exp, exp_quotient_1),
            (sin_quotient, cos, sin_quotient_1),
        )
    ),
    StableForm(
        div(mul(rest, exp(x)), square(expm1(x))),
        mul(rest, neg(mul(bose(x), bose(neg(x))))),
    ),
    StableForm(mul(bernoulli(x), bernoulli(neg(x))), _heat_capacity(x)),
    StableForm(mul(exp(x), square(bernoulli(x))), _heat_capacity(x)),
    StableForm(
        mul(add(mul(c, exp(x)), d), bernoulli(x)),
        add(mul(c, bernoulli(neg(x))), mul(d, bernoulli(x))),
    ),
    StableForm(div(cosh(x), mul(c, sinh(x))), div(div(1.0, c), tanh(x))),
    # Remainders: exp(x) - 1 - x, also as (exp(x) - x) - 1, and x - log(1 + x).
    StableForm(
        add(mul(c, exp(x)), add(mul(d, y), e)),
        add(mul(c, expm1(x)), mul(d, y)),
        lambda m: m[e] == -m[c],
    ),
    StableForm(
        add(add(mul(c, exp(x)), mul(d, y)), e),
        add(mul(c, expm1(x)), mul(d, y)),
        lambda m: m[e] == -m[c],
    ),
    StableForm(add(mul(c, expm1(x)), mul(d, y)), mul(c, exp_remainder(x)), is_multiple),
    StableForm(add(mul(c, log1p(x)), mul(d, y)), mul(neg(c), log_remainder(x)), is_multiple),
    # Quotients by differences of exponentials, and what is above 1 in them.
    StableForm(div(mul(c, add(1.0, exp(x))), mul(d, expm1(x))), div(div(c, d), tanh(mul(0.5, x)))),
    StableForm(div(mul(rest, exp(x)), mul(c, expm1(x))), mul(rest, div(neg(bose(neg(x))), c))),
    StableForm(div(y, mul(c, expm1(x))), div(mul(y, bose(x)), c)),
    StableForm(add(mul(c, bose(x)), d), mul(neg(c), bose(neg(x))), lambda m: m[d] == m[c]),
    StableForm(log(mul(c, bose(x))), sub(log(c), logexpm1(x)), _near(c)),
    StableForm(log(mul(c, bose(x))), sub(log(neg(c)), log1mexp(x)), _near(c, -1.0)),
    # Tails of the normal distribution.
    StableForm(
        div(mul(rest, exp(mul(c, square(x)))), mul(d, normcdf(mul(e, x)))),
        mul(rest, div(mul(_ROOT_2_PI, normratio(mul(e, x))), d)),
        lambda m: m[c] == -0.5 and m[e] in (1.0, -1.0),
    ),
    StableForm(
        div(mul(rest, exp(mul(c, square(x)))), mul(d, erfc(mul(e, x)))),
        mul(rest, div(1.0, mul(d, erfcx(mul(e, x))))),
        lambda m: math.isclose(m[c], -m[e] * m[e], rel_tol=1e-15),
    ),
    StableForm(
        div(mul(rest, exp(mul(c, square(x)))), mul(d, erfc(mul(f, div(mul(g, x), e))))),
        mul(rest, div(1.0, mul(d, erfcx(mul(f, div(mul(g, x), e)))))),
        lambda m: math.isclose(-m[c] * (m[e] / (m[f] * m[g])) ** 2, 1.0, rel_tol=1e-15),
    ),
    StableForm(add(mul(c, normcdf(x)), d), mul(d, normcdf(neg(x))), lambda m: m[d] == -m[c]),
    # A constant in a factor may cancel the one outside: 1 - (1 + erf(x))/2.
    StableForm(
        add(mul(c, add(mul(d, x), e)), f), add(mul(mul(c, d), x), _constant(c, e, f)), _combines
    ),
    StableForm(
        log(mul(e, add(mul(c, erf(x)), d))),
        _below(mul(2.0, mul(e, d)), mul(_ROOT_2, x)),
        lambda m: m[c] == m[d] and _is_near(m[e] * m[d]),
    ),
    StableForm(
        log(mul(e, add(mul(c, erf(x)), d))),
        _below(mul(2.0, mul(e, d)), mul(-_ROOT_2, x)),
        lambda m: m[c] == -m[d] and _is_near(m[e] * m[d]),
    ),
    StableForm(
        log1p(mul(c, erf(x))), _below(2.0, mul(mul(c, _ROOT_2), x)), lambda m: m[c] in (1.0, -1.0)
    ),
    StableForm(log(mul(c, erfc(x))), _below(mul(2.0, c), mul(-_ROOT_2, x)), _near(c)),
    StableForm(log1p(mul(c, erfc(x))), lognormcdf(mul(_ROOT_2, x)), lambda m: m[c] == -0.5),
    StableForm(
        log(add(mul(c, erfc(x)), d)),
        _below(d, mul(_ROOT_2, x)),
        lambda m: m[d] == -2.0 * m[c] and _is_near(m[d]),
    ),
    StableForm(log(mul(c, normcdf(x))), _below(c, x), _near(c)),
    StableForm(
        log(add(mul(c, normcdf(x)), d)),
        _below(d, neg(x)),
        lambda m: m[c] == -m[d] and _is_near(m[d]),
    ),
    StableForm(log1p(mul(c, normcdf(x))), lognormcdf(neg(x)), lambda m: m[c] == -1.0),
    # Not 1 + erf(x), a factor in networks whose bounds are known: `small_differences` replaces it.
    StableForm(add(mul(c, erf(x)), d), mul(d, erfc(x)), lambda m: m[d] == -m[c] and m[d] > 0.0),
    StableForm(add(mul(c, erfc(x)), d), mul(neg(c), erfc(neg(x))), lambda m: m[d] == -2.0 * m[c]),
    StableForm(mul(exp(square(x)), erfc(x)), erfcx(x)),
    *_change(normcdf, lognormcdf),
    *_change(sigmoid, lambda one: neg(softplus(neg(one)))),
    # Odds and other ratios.
    StableForm(log(div(x, sub(1.0, x))), logit(x)),
    StableForm(log(div(c, add(d, x))), neg(log1p(div(x, c))), lambda m: m[c] == m[d]),
    StableForm(log(div(c, sub(d, x))), neg(log1p(div(neg(x), c))), lambda m: m[c] == m[d]),
    StableForm(log(div(x, add(x, y))), _log_ratio(x, y), _is_plain),
    StableForm(
        add(mul(c, log(x)), mul(d, log(add(x, y)))),
        mul(c, _log_ratio(x, y)),
        lambda m: m[c] == -m[d] and _is_plain(m),
    ),
    StableForm(log(div(add(1.0, x), sub(1.0, x))), mul(2.0, atanh(x))),
    StableForm(log(div(sub(1.0, x), add(1.0, x))), mul(-2.0, atanh(x))),
    StableForm(
        add(mul(c, log1p(x)), mul(d, log1p(mul(e, x)))),
        mul(mul(2.0, c), atanh(x)),
        lambda m: m[d] == -m[c] and m[e] == -1.0,
    ),
    # Inverses of hyperbolic functions.
    StableForm(log(add(x, sqrt(add(square(x), 1.0)))), asinh(x)),
    StableForm(log(add(x, sqrt(sub(square(x), 1.0)))), acosh(x)),
    StableForm(log(sub(sqrt(add(square(x), 1.0)), x)), neg(asinh(x))),
    StableForm(log(sub(x, sqrt(sub(square(x), 1.0)))), neg(acosh(x))),
    StableForm(
        add(mul(c, log(x)), mul(d, log1p(mul(e, x)))),
        mul(c, logit(x)),
        lambda m: m[d] == -m[c] and m[e] == -1.0,
    ),
    *(
        StableForm(inverse(function(x)), x)
        for inverse, function in (
            *((logit, sigmoid), (asinh, sinh), (atanh, tanh)),
            *((normppf, normcdf), (erfinv, erf)),
        )
    ),
    StableForm(
        log(mul(c, tanh(x))),
        add(log(c), sub(log1mexp(mul(-2.0, x)), softplus(mul(-2.0, x)))),
        _near(c),
    ),
    StableForm(sqrt(sech2(x)), div(1.0, cosh(x))),
    StableForm(log(mul(c, softplus(x))), add(log(c), _log_of_softplus(x)), _near(c)),
    StableForm(log(mul(c, sigmoid(x))), sub(log(c), softplus(neg(x))), _near(c)),
    StableForm(log1p(mul(c, square(tanh(x)))), mul(-2.0, logcosh(x)), lambda m: m[c] == -1.0),
)
"""Forms of logarithms that are tried before those of `stable_forms`."""
