"""The logarithm of the gamma function and its derivatives, the polygamma functions, for x > 0.

SciPy and the C library have the logarithm. The recurrence shifts the argument of a derivative to
where the asymptotic series (DLMF 5.11.2, 5.15.8) has full accuracy. All derivatives of the
polygamma functions are monotone, as these are completely monotone up to their sign.
"""

from __future__ import annotations

import math
from functools import cache
from threading import Lock

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, square
from slomodel.functions.comparison import eq, ge, lt, where
from slomodel.functions.derivatives import meaning, next_member
from slomodel.functions.piecewise import Reals, complex_step
from slomodel.ir.build import const
from slomodel.ir.expr import Expr
from slomodel.ir.function import WORST_ULPS, C, Cost, Family, Monotonicity, ScalarFunction

_POSITIVE = (0.0, math.inf)
_making = Lock()
"""Guards the construction of records: each is constructed once, by whichever thread is first."""
_SMALL = 1e-30
"""Below it lgamma(x) equals lgamma(1e-30) - log(x / 1e-30) to full accuracy."""
_FEWEST_STEPS = 8
"""From x + 8 + n on the asymptotic series of psi_n has full accuracy."""
BERNOULLI_NUMBERS = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510),
    *(43867 / 798, -174611 / 330),
)
"""Bernoulli numbers of orders 2, 4, …, 20."""


def _terms(x: Reals) -> Reals:
    """The magnitude of the terms of a value: about 2 near its zeros."""
    return np.full(np.shape(x), 2.0)


def _stepped(values: Reals, x: Reals, n: int) -> Reals:
    """`values` at the real parts; a complex step is propagated by the derivative polygamma(n)."""
    return complex_step(values, x, lambda: polygamma(n).numpy(np.real(x)))


def _late(n: int) -> ScalarFunction:
    """The derivative of digamma of order n, looked up at the call: it is defined below."""
    return polygamma(n)


def nonnegative(x: Reals) -> Reals:
    """The real parts; NaN for negative numbers, and 0 for -0."""
    real = np.real(x)
    return np.where(real < 0.0, np.nan, real + 0.0)


_OPERAND = "np.where({0} < 0.0, np.nan, {0} + 0.0)"


def _spelling(call: str, c: str) -> dict[str, str]:
    return {"numpy": f"np.copyto({{out}}, {call})", "scalar": call, "c": c}


def lgamma_values(x: Reals) -> Reals:
    """lgamma, also at subnormal numbers: there SciPy gives infinity, and the value is -log x."""
    from scipy import special

    real = nonnegative(x)
    with np.errstate(all="ignore"):
        small = np.log(np.minimum(real, _SMALL) / _SMALL)
    return _stepped(special.gammaln(np.maximum(real, _SMALL)) - small, x, 0)


lgamma: ScalarFunction = ScalarFunction(
    "lgamma",
    1,
    definition=sp.loggamma,
    numpy=lgamma_values,
    partials=(next_member(_late, -1),),
    spelling=_spelling(
        f"(special.gammaln(np.maximum({_OPERAND}, {_SMALL}))"
        f" - np.log(np.minimum({_OPERAND}, {_SMALL}) / {_SMALL}))",
        "slo_lgamma({0})",
    ),
    cost=Cost(25.0),
    domain=(_POSITIVE,),
    ranges=Monotonicity(
        ((1.4616321449683623,), *((),) * 8),
        image=(-0.12148629053584963, math.inf),
    ),
    error_scale=_terms,
    costly=True,
    meaning="log of the gamma function, log((x - 1)!), for x > 0",
    signature="lgamma(x)",
    foreign_names=("loggamma", "gammaln"),
    sympy=(sp.loggamma,),
    c=C({"lgamma": 0}, "static inline real slo_lgamma(real x) { return x < 0 ? NAN : lgamma(x); }"),
)

# psi(x) = psi(x + m) - 1/x - ... - 1/(x + m - 1). The asymptotic series of psi(x) is
# log x - 1/(2x) - sum of B_2k / (2k x^2k).
_DIGAMMA_C = """\
static inline real slo_digamma(real x) {
    if (!(x > 0)) return x == 0 ? -INFINITY : NAN;
    const int steps = x < 10 ? (int)ceil(10 - x) : 0;
    real below = 0;
    for (int k = steps - 1; k >= 0; k--) below += 1 / (x + k);  /* small terms first */
    x += steps;
    const real q = 1 / x / x;
    const real c[] = {1.0 / 12, 1.0 / 120, 1.0 / 252, 1.0 / 240, 1.0 / 132, 691.0 / 32760};
    real series = q / 12;
    for (int k = 5; k >= 0; k--) series = q * (c[k] - series);
    return log(x) - 1 / (2 * x) - series - below;
}"""


def digamma_values(x: Reals) -> Reals:
    from scipy import special

    return _stepped(special.psi(nonnegative(x)), x, 1)


digamma: ScalarFunction = ScalarFunction(
    "digamma",
    1,
    definition=lambda x: sp.polygamma(0, x),
    numpy=digamma_values,
    partials=(next_member(_late, 0),),
    spelling=_spelling(f"special.psi({_OPERAND})", "slo_digamma({0})"),
    cost=Cost(18.0),
    domain=(_POSITIVE,),
    ranges=Monotonicity(((),) * 8),
    error_scale=_terms,
    costly=True,
    meaning="derivative of lgamma",
    signature="digamma(x)",
    foreign_names=("psi",),
    c=C({"ceil": 2, "log": 1}, _DIGAMMA_C),
)


def polygamma(n: int) -> ScalarFunction:
    """The derivative of digamma of order n."""
    with _making:
        return _member(n)


@cache
def _member(n: int) -> ScalarFunction:
    return _derivative(n) if n else digamma


def _power(x: Expr, n: int) -> Expr:
    """x^n for n >= 1, by repeated squaring."""
    half = square(_power(x, n // 2)) if n > 1 else x
    return mul(half, x) if n > 1 and n % 2 else half


def _polygamma_stable(x: Expr, n: int) -> Expr:
    """The asymptotic series from x = 8 + n on; below it the recurrence first, small terms first.

    psi_n(x) / (-1)^(n+1) n! is the sum of (x + k)^-(n+1) over k >= 0. Its asymptotic series in
    r = 1/x is r^n (1/n + r/2 + sum of B_2k (2k+n-1)! / ((2k)! n!) r^2k).
    """
    steps = float(_FEWEST_STEPS + n)
    is_far = ge(x, steps)
    start = where(is_far, 1.0, where(eq(x, 0.0), 0.0, x))  # -0 would change the sign
    factor = math.factorial(n) * (1.0 if n % 2 else -1.0)
    below: Expr = const(0.0)
    for j in reversed(range(1, int(steps))):
        below = add(below, div(factor, _power(add(start, float(j)), n + 1)))
    # The power of the smallest x underflows before the quotient overflows for n = 1 alone.
    first = div(factor, _power(start, n + 1)) if n > 1 else div(div(factor, start), start)
    at = where(is_far, x, add(start, steps))
    r = div(1.0, at)
    r2 = square(r)
    coefficients, ratio = [], (n + 1) / 2.0
    for k, number in enumerate(BERNOULLI_NUMBERS, 1):
        coefficients.append(number * ratio)
        ratio *= (2 * k + n) * (2 * k + n + 1) / ((2 * k + 1) * (2 * k + 2))
    rest: Expr = const(factor * coefficients[-1])
    for c in coefficients[-2::-1]:
        rest = add(mul(rest, r2), factor * c)
    series = add(factor / n, mul(r, add(0.5 * factor, mul(r, rest))))
    for _ in range(n):
        series = div(series, at)  # a product with r would have the error of r as well
    total = add(where(is_far, 0.0, add(first, below)), series)
    return where(lt(x, 0.0), math.nan, total)


def _derivative(n: int) -> ScalarFunction:
    name = "trigamma" if n == 1 else f"polygamma_{n}"
    return ScalarFunction(
        name,
        1,
        definition=lambda x: sp.polygamma(n, x),
        numpy=meaning(_polygamma_stable, n),
        partials=(next_member(polygamma, n),),
        stable=lambda x: _polygamma_stable(x, n),
        domain=(_POSITIVE,),
        ranges=Monotonicity(
            ((),) * 8,
            image=_POSITIVE if n % 2 else (-math.inf, 0.0),
        ),
        ulps=dict.fromkeys(("numpy", "numexpr", "c"), max(WORST_ULPS, n)),
        costly=True,
        meaning=f"derivative of digamma of order {n}" if n > 1 else "derivative of digamma",
        signature="trigamma(x)" if n == 1 else "",
    )


POLYGAMMAS = Family("polygamma_", sp.polygamma, polygamma)
trigamma = polygamma(1)
# Members that tables of functions show; the others are constructed as derivatives on demand.
tetragamma, pentagamma = polygamma(2), polygamma(3)
