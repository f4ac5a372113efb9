"""Differences lgamma(x + k) - lgamma(x), and of derivatives of lgamma, without cancellation.

For large x such a difference is far smaller than its terms: at x = 1e10 and k = 7 it is 161, and
lgamma is 2e11. From 10 on Stirling's series of both terms are subtracted term by term (DLMF 5.11.1,
5.11.2, 5.15.8). With y = x + k, r = 1/x and s = 1/y, every difference s^m - r^m has the factor
s - r = -k r s. The recurrences of digamma and trigamma shift their arguments to 10 and more; the
differences of what they add have the factor k, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, neg, square, sub
from slomodel.functions.comparison import eq, ge, gt, land, lt, where
from slomodel.functions.compound import graph_values
from slomodel.functions.elementary import log, log1p
from slomodel.functions.gamma import BERNOULLI_NUMBERS, digamma, lgamma, polygamma, trigamma
from slomodel.functions.piecewise import Reals, abs
from slomodel.ir.build import const, variable
from slomodel.ir.expr import Expr
from slomodel.ir.function import Array, C, Cost, Monotonicity, ScalarFunction

_EVERYWHERE = (-math.inf, math.inf)
_POSITIVE = (0.0, math.inf)
LARGE = 10.0
"""From here on the series below have full accuracy."""
_TINY = 1e-18
"""Below it log1p(u) is u to full accuracy."""
_UNDERFLOW, _UNDERFLOW_ROOT, _SCALE = 1e-280, 1e-60, 2.0**200
"""An |k| below the first is scaled for x above the second, with which nothing overflows."""
_SHIFT = 10
"""The number of steps by which the recurrences shift an argument."""
LGAMMA_SERIES = tuple(b / (2 * j * (2 * j - 1)) for j, b in enumerate(BERNOULLI_NUMBERS, 1))
_DIGAMMA = tuple(b / (2 * j) for j, b in enumerate(BERNOULLI_NUMBERS, 1))


def _odd_sum(r: Expr, s: Expr, coefficients: Sequence[float]) -> Expr:
    """The sum of c_j (s^(2j-1) - r^(2j-1)) / (s - r), j from 1 on.

    The quotient D_j satisfies D_(j+1) = r² D_j + s^(2j-1) (r + s).
    """
    r2, s2, both = square(r), square(s), add(r, s)
    quotient: Expr = const(1.0)
    total: Expr = const(coefficients[0])
    power = s
    for c in coefficients[1:]:
        quotient = add(mul(r2, quotient), mul(power, both))
        power = mul(power, s2)
        total = add(total, mul(c, quotient))
    return total


def _even_sum(r: Expr, s: Expr, coefficients: Sequence[float]) -> Expr:
    """The sum of c_j (s^(2j) - r^(2j)) / (s² - r²): the quotient is E_(j+1) = r² E_j + s^(2j)."""
    r2, s2 = square(r), square(s)
    quotient: Expr = const(1.0)
    total: Expr = const(coefficients[0])
    power = s2
    for c in coefficients[1:]:
        quotient = add(mul(r2, quotient), power)
        power = mul(power, s2)
        total = add(total, mul(c, quotient))
    return total


def _lgamma_stable(x: Expr, k: Expr) -> Expr:
    """With lgamma(x) = (x - 1/2) log x - x + log(2 pi)/2 + c(x) for both arguments >= 10 it is
    (y - 1/2) log1p(k/x) + k (log x - 1) + c(y) - c(x); else the difference as it stands.
    """
    y = add(x, k)
    is_large = land(ge(x, LARGE), ge(y, LARGE))
    top, bottom = where(is_large, y, LARGE), where(is_large, x, LARGE)
    r, s, step = div(1.0, bottom), div(1.0, top), where(is_large, k, 0.0)
    series = mul(mul(mul(step, r), s), _odd_sum(r, s, LGAMMA_SERIES))
    # A ratio k/x of less than a rounding may underflow.
    ratio = mul(step, r)
    is_tiny = lt(abs(ratio), _TINY)
    near = mul(step, mul(sub(top, 0.5), r))
    grown = where(is_tiny, near, mul(sub(top, 0.5), log1p(ratio)))
    logs = add(grown, mul(step, sub(log(bottom), 1.0)))
    plain = sub(lgamma(where(is_large, 1.0, y)), lgamma(where(is_large, 1.0, x)))
    return where(is_large, sub(logs, series), plain)


def _steps(x: Expr, y: Expr, term: Callable[[Expr, Expr], Expr]) -> tuple[Expr, Expr, Expr]:
    """The sum of the differences of ten terms of the recurrence, and both arguments after them.

    Where both are at least 10, no term is added.
    """
    x, y = (where(eq(one, 0.0), 0.0, one) for one in (x, y))  # -0 would change signs
    lowest = where(lt(x, y), x, y)
    is_small = lt(lowest, LARGE)
    total: Expr | None = None
    for j in reversed(range(_SHIFT)):  # small terms first
        one = term(add(x, float(j)), add(y, float(j)))
        total = one if total is None else add(total, one)
    assert total is not None
    shift = where(is_small, where(lt(lowest, 0.0), math.nan, float(_SHIFT)), 0.0)
    return where(is_small, total, 0.0), add(x, shift), add(y, shift)


def _over_both(k: Expr, a: Expr, b: Expr) -> Expr:
    """k/(a b) for k = b - a, whose quotient by the larger is at most 1."""
    is_below = lt(a, b)
    return div(div(k, where(is_below, b, a)), where(is_below, a, b))


def _digamma_stable(x: Expr, k: Expr) -> Expr:
    """psi(y) - psi(x) is log1p(k/x) + k r s (1/2 + (r + s) Σ …), and Σ k/((x + j)(y + j))."""
    total, low, high = _steps(x, add(x, k), lambda a, b: _over_both(k, a, b))
    r, s = div(1.0, low), div(1.0, high)
    rest = add(0.5, mul(add(r, s), _even_sum(r, s, _DIGAMMA)))
    return add(total, add(log1p(mul(k, r)), mul(mul(mul(k, r), s), rest)))


def _trigamma_stable(x: Expr, k: Expr) -> Expr:
    """psi'(y) - psi'(x) is -k r s (1 + (r + s)/2 + Σ …), and -Σ k (a + b)/(a² b²)."""
    # The quotients of the smallest k by plain numbers would lose digits.
    is_tiny = land(lt(abs(k), _UNDERFLOW), gt(x, _UNDERFLOW_ROOT))
    y, factor = add(x, k), where(is_tiny, _SCALE, 1.0)
    k = mul(factor, k)

    def term(a: Expr, b: Expr) -> Expr:
        return mul(_over_both(k, a, b), add(div(1.0, a), div(1.0, b)))

    total, low, high = _steps(x, y, term)
    r, s = div(1.0, low), div(1.0, high)
    # z^-1 + z^-2/2 + Σ B_2j z^-(2j+1); what is added to the first term is rounded by itself.
    rest = add(mul(0.5, add(r, s)), _odd_sum(r, s, (0.0, *BERNOULLI_NUMBERS)))
    first = _over_both(k, low, high)
    return neg(div(add(total, add(first, mul(first, rest))), factor))


def _polygamma_values(n: int, x: Reals) -> Reals:
    return np.asarray(polygamma(n).numpy(x), dtype=np.float64)


def _meaning(
    stable: Callable[[Expr, Expr], Expr], by_x: Callable[[Reals, Reals], Array], order: int
) -> Callable[[Reals, Reals], Array]:
    """The NumPy meaning: the graph at real numbers; a complex step along the derivatives."""
    x, k = variable("x", ()), variable("k", ())
    graph = stable(x, k)

    def numpy(a: Reals, b: Reals) -> Array:
        start, step = np.real(a), np.real(b)
        with np.errstate(all="ignore"):
            undefined = (start < 0.0) | (start + step < 0.0)
            values = np.where(undefined, np.nan, graph_values(graph, {x: start + 0.0, k: step}))
            if not np.iscomplexobj(a) and not np.iscomplexobj(b):
                return values
            slope_x = np.asarray(by_x(start, step), dtype=np.float64)
            slope_k = _polygamma_values(order, start + step)
            stepped: Array = values + 1j * (np.imag(a) * slope_x + np.imag(b) * slope_k)
            return stepped

    return numpy


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(map(repr, values))


_LGAMMA_C = f"""\
static inline real slo_log_rising(real x, real k) {{
    const real y = x + k;
    if (!(x >= 0 && y >= 0)) return NAN;
    if (!(x >= 10 && y >= 10)) return lgamma(y) - lgamma(x);
    const real c[] = {{{_numbers(LGAMMA_SERIES)}}}, r = 1 / x, s = 1 / y;
    real quotient = 1, power = s, series = c[0];
    for (int j = 1; j < {len(LGAMMA_SERIES)}; j++) {{
        quotient = r * r * quotient + power * (r + s);
        power *= s * s;
        series += c[j] * quotient;
    }}
    const real u = k * r, near = k * ((y - (real)0.5) * r);
    const real grown = fabs(u) < (real)1e-18 ? near : (y - (real)0.5) * log1p(u);
    return grown + k * (log(x) - 1) - k * r * s * series;
}}"""

_DIGAMMA_C = f"""\
static inline real slo_digamma_difference(real x, real k) {{
    real y = x + k, below = 0;
    if (!(x >= 0 && y >= 0)) return NAN;
    if (!(x >= 10 && y >= 10)) {{
        for (int j = {_SHIFT} - 1; j >= 0; j--)  /* small terms first */
            below += k / (x < y ? y + j : x + j) / (x < y ? x + j : y + j);
        x += {_SHIFT};
        y += {_SHIFT};
    }}
    const real c[] = {{{_numbers(_DIGAMMA)}}}, r = 1 / x, s = 1 / y;
    real quotient = 1, power = s * s, series = c[0];
    for (int j = 1; j < {len(_DIGAMMA)}; j++) {{
        quotient = r * r * quotient + power;
        power *= s * s;
        series += c[j] * quotient;
    }}
    return below + (log1p(k * r) + k * r * s * ((real)0.5 + (r + s) * series));
}}"""

_TRIGAMMA_C = f"""\
static inline real slo_trigamma_difference(real x, real k) {{
    real y = x + k, below = 0;
    if (!(x >= 0 && y >= 0)) return NAN;
    const real factor = fabs(k) < {_UNDERFLOW} && x > {_UNDERFLOW_ROOT} ? {_SCALE} : 1;
    k *= factor;
    if (!(x >= 10 && y >= 10)) {{
        for (int j = {_SHIFT} - 1; j >= 0; j--)  /* small terms first */
            below += k / (x < y ? y + j : x + j) / (x < y ? x + j : y + j)
                * (1 / (x + j) + 1 / (y + j));
        x += {_SHIFT};
        y += {_SHIFT};
    }}
    const real c[] = {{0, {_numbers(BERNOULLI_NUMBERS)}}}, r = 1 / x, s = 1 / y;
    real quotient = 1, power = s, series = 0;
    for (int j = 1; j < {len(BERNOULLI_NUMBERS) + 1}; j++) {{
        quotient = r * r * quotient + power * (r + s);
        power *= s * s;
        series += c[j] * quotient;
    }}
    const real both = k / (x < y ? y : x) / (x < y ? x : y);
    return -(below + (both + both * ((r + s) / 2 + series))) / factor;
}}"""


def _third(x: Reals, k: Reals) -> Array:
    """The derivative of the difference of trigamma by x."""
    return _polygamma_values(2, x + k) - _polygamma_values(2, x)


def _is_outside(x: Expr, k: Expr) -> Expr:
    return lt(add(x, k), 0.0)


def _terms(x: Reals, k: Reals) -> Reals:
    """The magnitude of the terms of a difference of lgamma."""
    y = x + k
    with np.errstate(all="ignore"):
        is_large = (x >= LARGE) & (y >= LARGE)
        series = np.abs(k) * np.maximum(np.log(x), 1.0) + np.abs(y * np.log1p(k / x))
        plain = np.maximum(np.abs(lgamma.numpy(x)), np.abs(lgamma.numpy(y)))
        return np.where(is_large, series, np.maximum(plain, 2.0))


trigamma_difference: ScalarFunction = ScalarFunction(
    "trigamma_difference",
    2,
    definition=lambda x, k: sp.polygamma(1, x + k) - sp.polygamma(1, x),
    numpy=_meaning(_trigamma_stable, _third, 2),
    partials=(
        lambda x, k: sub(polygamma(2)(add(x, k)), polygamma(2)(x)),
        lambda x, k: polygamma(2)(add(x, k)),
    ),
    stable=_trigamma_stable,
    spelling={"c": "slo_trigamma_difference({0}, {1})"},
    cost=Cost(40.0),
    domain=(_POSITIVE, _EVERYWHERE),
    undefined=_is_outside,
    ranges=Monotonicity(by_operand=((), ())),
    unary_form=lambda x, k: sub(trigamma(add(x, k)), trigamma(x)),
    costly=True,
    meaning="trigamma(x + k) - trigamma(x)",
    ulps={"numpy": 5, "numexpr": 5, "c": 5},
    c=C({"fabs": 2}, _TRIGAMMA_C),
)

digamma_difference: ScalarFunction = ScalarFunction(
    "digamma_difference",
    2,
    definition=lambda x, k: sp.polygamma(0, x + k) - sp.polygamma(0, x),
    numpy=_meaning(_digamma_stable, trigamma_difference.numpy, 1),
    partials=(trigamma_difference, lambda x, k: trigamma(add(x, k))),
    stable=_digamma_stable,
    spelling={"c": "slo_digamma_difference({0}, {1})"},
    cost=Cost(40.0),
    domain=(_POSITIVE, _EVERYWHERE),
    undefined=_is_outside,
    ranges=Monotonicity(by_operand=((), ())),
    unary_form=lambda x, k: sub(digamma(add(x, k)), digamma(x)),
    costly=True,
    meaning="digamma(x + k) - digamma(x)",
    ulps={"numpy": 6, "numexpr": 6, "c": 6},
    c=C({"log1p": 2}, _DIGAMMA_C),
)

log_rising_factorial: ScalarFunction = ScalarFunction(
    "log_rising_factorial",
    2,
    definition=lambda x, k: sp.loggamma(x + k) - sp.loggamma(x),
    numpy=_meaning(_lgamma_stable, digamma_difference.numpy, 0),
    partials=(digamma_difference, lambda x, k: digamma(add(x, k))),
    stable=_lgamma_stable,
    spelling={"c": "slo_log_rising({0}, {1})"},
    cost=Cost(60.0),
    domain=(_POSITIVE, _EVERYWHERE),
    undefined=_is_outside,
    unary_form=lambda x, k: sub(lgamma(add(x, k)), lgamma(x)),
    costly=True,
    meaning="lgamma(x + k) - lgamma(x) for x, x + k > 0, the log of x (x + 1) ... (x + k - 1)",
    signature="log_rising_factorial(x, k)",
    ulps={"numpy": 6, "numexpr": 6, "c": 6},
    foreign_names=("log_pochhammer", "log_rf"),
    c=C({"fabs": 2, "lgamma": 0, "log": 1, "log1p": 2}, _LGAMMA_C),
    error_scale=_terms,
)
