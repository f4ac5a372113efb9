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

from slomodel.functions.derivatives import next_member
from slomodel.functions.piecewise import Reals, complex_step
from slomodel.ir.function import C, Cost, Family, Monotonicity, ScalarFunction

_POSITIVE = (0.0, math.inf)
_making = Lock()
"""Guards the construction of records: each is constructed once, by whichever thread is first."""
_SMALL = 1e-30
"""Below it lgamma(x) equals lgamma(1e-30) - log(x / 1e-30) to full accuracy."""
_LEAST_OF_ZETA = 3.0
"""Below it SciPy's zeta loses digits, and is used from the next number on."""
_FAR = 1e20
"""From here on psi_n(x) is ((n-1)!^(1/n) / x)^n to full accuracy; zeta(n+1, x) underflows."""


def _terms(x: Reals) -> Reals:
    """The magnitude of the terms of a value: about 2 near its zeros."""
    return np.full(np.shape(x), 2.0)


def _stepped(values: Reals, x: Reals, n: int) -> Reals:
    """`values` at the real parts; a complex step is propagated by the derivative polygamma(n)."""
    return complex_step(values, x, lambda: polygamma(n).numpy(np.real(x)))


def _late(n: int) -> ScalarFunction:
    """The derivative of digamma of order n; a name for what is defined further below."""
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

# psi_n(x) / (-1)^(n+1) n! is the sum of (x + k)^-(n+1) over k >= 0. Its asymptotic series in
# r = 1 / x is r^n (1/n + r/2 + sum of B_2k (2k+n-1)! / ((2k)! n!) r^2k).
_POLYGAMMA_C = """\
static inline real slo_polygamma(int n, real x) {
    real factorial = n % 2 ? 1 : -1, below = 0;
    for (int k = 2; k <= n; k++) factorial *= k;
    if (!(x > 0)) return x == 0 ? factorial * INFINITY : NAN;
    const int steps = x < 10 + n ? (int)ceil(10 + n - x) : 0;
    real lost = 0;  /* the rounding errors of the sum */
    real first = steps ? 1 / x : 0;  /* the largest term, which may be infinite */
    for (int k = 0; k < n; k++) first /= x;
    for (int j = steps - 1; j > 0; j--) {
        real power = x + j;
        for (int k = 0; k < n; k++) power *= x + j;
        const real term = 1 / power, sum = below + term, own = sum - below;
        lost += (below - (sum - own)) + (term - own);
        below = sum;
    }
    x += steps;
    const real r = 1 / x;
    real series = 0, ratio = r * r * (n + 1) / 2;
    for (int k = 1; k <= 9; k++) {
        const real bernoulli = k == 1 ? 1.0 / 6 : k == 2 ? -1.0 / 30 : k == 3 ? 1.0 / 42
            : k == 4 ? -1.0 / 30 : k == 5 ? 5.0 / 66 : k == 6 ? -691.0 / 2730 : k == 7 ? 7.0 / 6
            : k == 8 ? -3617.0 / 510 : 43867.0 / 798;
        series += bernoulli * ratio;
        ratio *= r * r * (2 * k + n) * (2 * k + n + 1) / ((2 * k + 1) * (2 * k + 2));
    }
    series = 1 / (real)n + (r / 2 + series);
    for (int k = 0; k < n; k++) series /= x;
    return factorial * (first + (below + (series + lost)));
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


def _derivative(n: int) -> ScalarFunction:
    sign = 1.0 if n % 2 else -1.0
    factor = sign * math.factorial(n)
    root = math.factorial(n - 1) ** (1.0 / n)

    def value(x: Reals) -> Reals:
        from scipy import special

        real = nonnegative(x)
        with np.errstate(all="ignore"):
            far = sign * np.power(root / real, n)
            is_least = real < _LEAST_OF_ZETA
            first = np.where(is_least, np.power(real, -(n + 1.0)), 0.0)
            near = factor * (first + special.zeta(n + 1, real + is_least))
        return _stepped(np.where(real > _FAR, far, near), x, n + 1)

    name = "trigamma" if n == 1 else f"polygamma_{n}"
    return ScalarFunction(
        name,
        1,
        definition=lambda x: sp.polygamma(n, x),
        numpy=value,
        partials=(next_member(polygamma, n),),
        spelling=_spelling(
            f"np.where({{0}} > {_FAR}, {sign} * np.power({root!r} / {{0}}, {n}),"
            f" {factor} * (np.where({_OPERAND} < {_LEAST_OF_ZETA},"
            f" np.power({_OPERAND}, {-(n + 1.0)}), 0.0)"
            f" + special.zeta({n + 1}, {_OPERAND} + ({_OPERAND} < {_LEAST_OF_ZETA}))))",
            f"slo_polygamma({n}, {{0}})",
        ),
        cost=Cost(250.0),
        domain=(_POSITIVE,),
        ranges=Monotonicity(
            ((),) * 8,
            image=_POSITIVE if n % 2 else (-math.inf, 0.0),
        ),
        ulps={"numpy": 5 + n, "numexpr": 5 + n, "c": 3 + n},
        costly=True,
        meaning=f"derivative of digamma of order {n}" if n > 1 else "derivative of digamma",
        signature="trigamma(x)" if n == 1 else "",
        c=C({"ceil": 2}, _POLYGAMMA_C),
    )


POLYGAMMAS = Family("polygamma_", sp.polygamma, polygamma)
trigamma = polygamma(1)
# Members that tables of functions show; the others are constructed as derivatives on demand.
tetragamma, pentagamma = polygamma(2), polygamma(3)
