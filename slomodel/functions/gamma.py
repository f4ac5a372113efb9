"""The logarithm of the gamma function and its derivatives, the polygamma functions, for x > 0.

SciPy and the C library have the logarithm. In C the recurrence shifts the argument of a derivative
to where the asymptotic series (DLMF 5.11.2, 5.15.8) has full accuracy. All derivatives of the
polygamma functions are monotone, as these are completely monotone up to their sign.
"""

from __future__ import annotations

import math
from functools import cache
from threading import Lock

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, square, sub
from slomodel.functions.comparison import ge, where
from slomodel.functions.elementary import log, log1p
from slomodel.functions.piecewise import Reals, maximum, minimum
from slomodel.ir.build import const
from slomodel.ir.expr import Expr
from slomodel.ir.function import C, Cost, Family, Monotonicity, Partial, ScalarFunction

_POSITIVE = (0.0, math.inf)
_making = Lock()
"""Guards the construction of records: each is constructed once, by whichever thread is first."""
_SMALL = 1e-30
"""Below it lgamma(x) equals lgamma(1e-30) - log(x / 1e-30) to full accuracy."""
_FAR = 1e20
"""From here on psi_n(x) is ((n-1)!^(1/n) / x)^n to full accuracy; zeta(n+1, x) underflows."""


def _terms(x: Reals) -> Reals:
    """The magnitude of the terms of a value: about 2 near its zeros."""
    return np.full(np.shape(x), 2.0)


def _stepped(values: Reals, x: Reals, n: int) -> Reals:
    """`values` at the real parts; a complex step is propagated by the derivative polygamma(n)."""
    if not np.iscomplexobj(x):
        return values
    slope: Reals = np.asarray(polygamma(n).numpy(np.real(x)), dtype=np.float64)
    stepped: Reals = values + 1j * np.imag(x) * slope
    return stepped


def _positive(x: Reals) -> Reals:
    """The real parts; NaN for negative numbers, and 0 for -0."""
    real = np.real(x)
    return np.where(real < 0.0, np.nan, real + 0.0)


def _polygamma_as_partial(n: int) -> Partial:
    def partial(x: Expr) -> Expr:
        return polygamma(n)(x)

    return partial


_OPERAND = "np.where({0} < 0.0, np.nan, {0} + 0.0)"


def _spelling(call: str, c: str) -> dict[str, str]:
    return {"numpy": f"np.copyto({{out}}, {call})", "scalar": call, "c": c}


def _lgamma_numpy(x: Reals) -> Reals:
    """lgamma, also at subnormal numbers: there SciPy gives infinity, and the value is -log x."""
    from scipy import special

    real = _positive(x)
    with np.errstate(all="ignore"):
        small = np.log(np.minimum(real, _SMALL) / _SMALL)
    return _stepped(special.gammaln(np.maximum(real, _SMALL)) - small, x, 0)


lgamma: ScalarFunction = ScalarFunction(
    "lgamma",
    1,
    definition=sp.loggamma,
    numpy=_lgamma_numpy,
    partials=(_polygamma_as_partial(0),),
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
        error_scale=_terms,
    ),
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
    real below = 0;
    for (; x < 10; x += 1) below += 1 / x;
    const real q = 1 / x / x;
    const real c[] = {1.0 / 12, 1.0 / 120, 1.0 / 252, 1.0 / 240, 1.0 / 132, 691.0 / 32760};
    real series = q / 12;
    for (int k = 5; k >= 0; k--) series = q * (c[k] - series);
    return log(x) - 1 / (2 * x) - series - below;
}"""

# psi_n(x) / (-1)^(n+1) n! is the sum of (x + k)^-(n+1) over k >= 0. Its asymptotic series in
# r = 1 / x is r^n (1/n + r/2 + sum of B_2k (2k+n-1)! / ((2k)! n!) r^2k).
_POLYGAMMA_C = """\
static inline real slo_polygamma(int n, real x) {
    real factorial = n % 2 ? 1 : -1, below = 0;
    for (int k = 2; k <= n; k++) factorial *= k;
    if (!(x > 0)) return x == 0 ? factorial * INFINITY : NAN;
    for (; x < 12 + n; x += 1) {
        real power = x;
        for (int k = 0; k < n; k++) power *= x;
        below += 1 / power;
    }
    const real r = 1 / x;
    real power = factorial, series = 1 / (real)n + r / 2, ratio = r * r * (n + 1) / 2;
    for (int k = 0; k < n; k++) power *= r;
    for (int k = 1; k <= 9; k++) {
        const real bernoulli = k == 1 ? 1.0 / 6 : k == 2 ? -1.0 / 30 : k == 3 ? 1.0 / 42
            : k == 4 ? -1.0 / 30 : k == 5 ? 5.0 / 66 : k == 6 ? -691.0 / 2730 : k == 7 ? 7.0 / 6
            : k == 8 ? -3617.0 / 510 : 43867.0 / 798;
        series += bernoulli * ratio;
        ratio *= r * r * (2 * k + n) * (2 * k + n + 1) / ((2 * k + 1) * (2 * k + 2));
    }
    return power * series + factorial * below;
}"""


def _digamma_numpy(x: Reals) -> Reals:
    from scipy import special

    return _stepped(special.psi(_positive(x)), x, 1)


digamma: ScalarFunction = ScalarFunction(
    "digamma",
    1,
    definition=lambda x: sp.polygamma(0, x),
    numpy=_digamma_numpy,
    partials=(_polygamma_as_partial(1),),
    spelling=_spelling(f"special.psi({_OPERAND})", "slo_digamma({0})"),
    cost=Cost(18.0),
    domain=(_POSITIVE,),
    ranges=Monotonicity(((),) * 8, error_scale=_terms),
    ulps={"c": 6},
    costly=True,
    meaning="derivative of lgamma",
    signature="digamma(x)",
    foreign_names=("psi",),
    c=C({"log": 1}, _DIGAMMA_C),
)


def polygamma(n: int) -> ScalarFunction:
    """The derivative of digamma of order n."""
    with _making:
        return _member(n)


@cache
def _member(n: int) -> ScalarFunction:
    return _derivative(n) if n else digamma


def _derivative(n: int) -> ScalarFunction:
    sign = 1.0 if n % 2 else -1.0
    factor = sign * math.factorial(n)
    root = math.factorial(n - 1) ** (1.0 / n)

    def value(x: Reals) -> Reals:
        from scipy import special

        real = _positive(x)
        with np.errstate(all="ignore"):
            far = sign * np.power(root / real, n)
            near = factor * special.zeta(n + 1, real)
        return _stepped(np.where(real > _FAR, far, near), x, n + 1)

    name = "trigamma" if n == 1 else f"polygamma_{n}"
    return ScalarFunction(
        name,
        1,
        definition=lambda x: sp.polygamma(n, x),
        numpy=value,
        partials=(_polygamma_as_partial(n + 1),),
        spelling=_spelling(
            f"np.where({{0}} > {_FAR}, {sign} * np.power({root!r} / {{0}}, {n}),"
            f" {factor} * special.zeta({n + 1}, {_OPERAND}))",
            f"slo_polygamma({n}, {{0}})",
        ),
        cost=Cost(250.0),
        domain=(_POSITIVE,),
        ranges=Monotonicity(
            ((),) * 8,
            image=_POSITIVE if n % 2 else (-math.inf, 0.0),
        ),
        ulps={"numpy": 8 + n, "numexpr": 8 + n, "c": 4 + n},
        costly=True,
        meaning=f"derivative of digamma of order {n}" if n > 1 else "derivative of digamma",
        signature="trigamma(x)" if n == 1 else "",
        c=C(source=_POLYGAMMA_C),
    )


POLYGAMMAS = Family("polygamma_", sp.polygamma, polygamma)
trigamma = polygamma(1)
# Members that tables of functions show; the others are constructed as derivatives on demand.
tetragamma, pentagamma = polygamma(2), polygamma(3)

_LARGE = 10.0
_STIRLING = (
    *(1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400),
    *(43867 / 244188, -174611 / 125400),
)


def _stirling_rest(x: Expr) -> Expr:
    """lgamma(x) - (x - 1/2) log x + x - log(2 pi)/2 for x >= 10, by the asymptotic series."""
    r = div(1.0, x)
    q = square(r)
    total: Expr = const(_STIRLING[-1])
    for coefficient in _STIRLING[-2::-1]:
        total = add(mul(total, q), coefficient)
    return mul(r, total)


def _lbeta_stable(a: Expr, b: Expr) -> Expr:
    """Stirling's formula for the larger or both operands, where the three terms would cancel.

    With s = a0 + a1, a0 <= a1 and c the rest of the formula, for a0 >= 10 it is
    log(2 pi)/2 - log(a1)/2 - (a0 - 1/2) log1p(a1/a0) - a1 log1p(a0/a1) + c(a0) + c(a1) - c(s), and
    lgamma(a1) - lgamma(s) is -(s - 1/2) log1p(a0/a1) - a0 log(a1) + a0 + c(a1) - c(s).
    """
    low, high = minimum(a, b), maximum(a, b)
    is_large, are_large = ge(high, _LARGE), ge(low, _LARGE)
    top, bottom = where(is_large, high, _LARGE), where(are_large, low, _LARGE)
    ratio = div(low, top)
    total = add(low, top)
    c = sub(_stirling_rest(top), _stirling_rest(add(top, where(is_large, low, 0.0))))
    both = add(
        sub(0.5 * math.log(2.0 * math.pi), mul(0.5, log(top))),
        sub(
            add(_stirling_rest(bottom), c),
            add(mul(sub(bottom, 0.5), log1p(div(top, bottom))), mul(top, log1p(ratio))),
        ),
    )
    step = sub(sub(low, mul(low, log(top))), sub(mul(sub(total, 0.5), log1p(ratio)), c))
    small = where(is_large, _LARGE, high)
    plain = sub(add(lgamma(low), lgamma(small)), lgamma(add(low, small)))
    return where(are_large, both, where(is_large, add(lgamma(low), step), plain))


def _stirling_rest_numpy(x: Reals) -> Reals:
    return np.polyval(_STIRLING[::-1], 1.0 / np.square(x)) / x


def _lbeta_numpy(a: Reals, b: Reals) -> Reals:
    x, y = np.broadcast_arrays(_positive(a), _positive(b))
    low, high = np.minimum(x, y), np.maximum(x, y)
    is_large, are_large = high >= _LARGE, low >= _LARGE
    top, bottom = np.where(is_large, high, _LARGE), np.where(are_large, low, _LARGE)
    with np.errstate(all="ignore"):
        ratio, total = low / top, low + top
        c = _stirling_rest_numpy(top) - _stirling_rest_numpy(top + np.where(is_large, low, 0.0))
        both = 0.5 * math.log(2.0 * math.pi) - 0.5 * np.log(top)
        both -= (bottom - 0.5) * np.log1p(top / bottom)
        both -= top * np.log1p(ratio) - (_stirling_rest_numpy(bottom) + c)
        step = (low - low * np.log(top)) - ((total - 0.5) * np.log1p(ratio) - c)
        small = np.where(is_large, _LARGE, high)
        plain = _lgamma_numpy(low) + _lgamma_numpy(small) - _lgamma_numpy(low + small)
        large = np.where(are_large, both, _lgamma_numpy(low) + step)
        values = np.where(is_large, large, plain)
        if not np.iscomplexobj(a) and not np.iscomplexobj(b):
            return values
        shared = _digamma_numpy(x + y)
        slope_a, slope_b = _digamma_numpy(x) - shared, _digamma_numpy(y) - shared
        stepped: Reals = values + 1j * (np.imag(a) * slope_a + np.imag(b) * slope_b)
        return stepped


def _terms_of_beta(a: Reals, b: Reals) -> Reals:
    """The magnitude of the terms of a value, which cancel where an operand is below 10."""
    low = np.abs(_lgamma_numpy(np.minimum(np.minimum(a, b), _LARGE)))
    return np.maximum(low, np.where(np.maximum(a, b) < _LARGE, 40.0, 2.0))


lbeta = ScalarFunction(
    "lbeta",
    2,
    definition=lambda a, b: sp.loggamma(a) + sp.loggamma(b) - sp.loggamma(a + b),
    numpy=_lbeta_numpy,
    partials=(
        lambda a, b: sub(digamma(a), digamma(add(a, b))),
        lambda a, b: sub(digamma(b), digamma(add(a, b))),
    ),
    stable=_lbeta_stable,
    domain=(_POSITIVE, _POSITIVE),
    ranges=Monotonicity(by_operand=((), ()), error_scale=_terms_of_beta),
    unary_form=lambda a, b: sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b))),
    costly=True,
    meaning="log of the beta function, lgamma(a) + lgamma(b) - lgamma(a + b), for a, b > 0",
    signature="lbeta(a, b)",
    foreign_names=("betaln",),
)
