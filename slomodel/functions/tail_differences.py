"""Differences f(a) - f(b) of distribution functions, for arguments that are near or far in a tail.

With h = (a - b)/2, m = (a + b)/2, h' = h sqrt(2 s) and m' = m sqrt(2 s), the integral of exp(-s t²)
from b to a is 2 h exp(-s m²) Σ He_2k(m') h'^(2k)/(2k + 1)!, which is used where h' is at most 1/2
and m' h' at most 3/4. Beyond, a tail is at most a quarter of the other where these are small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from slomodel.functions.activations import sigmoid
from slomodel.functions.arithmetic import add, div, mul, neg, square, sub
from slomodel.functions.comparison import ge, land, le, lt, where
from slomodel.functions.compound import graph_values
from slomodel.functions.elementary import erf, exp, tanh
from slomodel.functions.normal import (
    UNDERFLOW,
    erfc,
    normcdf,
    tail_of_normal,
    times_exp_of_square,
)
from slomodel.functions.piecewise import Reals, abs
from slomodel.functions.translate import partial
from slomodel.ir.build import const, variable
from slomodel.ir.expr import Expr
from slomodel.ir.function import Array, Monotonicity, ScalarFunction

_EVERYWHERE = (-math.inf, math.inf)
_NEAR = 0.25
"""Limit on h'²."""
_NEAR_SLOPE = 0.5625
"""Limit on (m' h')²."""
_TERMS = 12
"""As |He_n(x)| <= sqrt(n!) exp(x²/4), the first term that is left out is at most 5e-21."""
_DENSITY_AT_0 = (1.0 / math.sqrt(2.0 * math.pi), -6.247337834861335e-17)
_TWO_OVER_ROOT_PI = (2.0 / math.sqrt(math.pi), 1.3590697223380941e-17)
"""1/sqrt(2 pi) and 2/sqrt(pi), with what they have beyond a double, relative to it."""
_A, _B = variable("a", ()), variable("b", ())


def _halved_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """(a + b)/2 rounded, and its error (Knuth's sum)."""
    a, b = mul(0.5, a), mul(0.5, b)  # the sum of halves does not overflow
    total = add(a, b)
    own = sub(total, a)
    return total, add(sub(a, sub(total, own)), sub(b, own))


def _hermite_sum(p: Expr, q: Expr) -> Expr:
    """Σ E_k/(2k + 1)!, k >= 1, with E_k = He_2k(m') h'^(2k), p = (m' h')² and q = h'²."""
    last: Expr = const(1.0)
    own = sub(p, q)
    terms = [last, own]
    for k in range(1, _TERMS - 1):
        following = sub(
            mul(sub(p, mul(4.0 * k + 1.0, q)), own),
            mul(mul(2.0 * k * (2.0 * k - 1.0), square(q)), last),
        )
        last, own = own, following
        terms.append(own)
    total = mul(terms[-1], 1.0 / math.factorial(2 * _TERMS - 1))
    for k in reversed(range(1, _TERMS - 1)):
        total = add(total, mul(terms[k], 1.0 / math.factorial(2 * k + 1)))
    return total


def _integral(
    a: Expr, b: Expr, s: float, scale: float, scale_rest: float, tail: Callable[[Expr], Expr]
) -> Expr:
    """The integral of scale exp(-s t²) from b to a; `tail(x)` is that beyond |x|.

    `scale` is less than exact by the factor 1 + scale_rest.
    """
    h = mul(0.5, sub(a, b))

    def squares(h: Expr, m: Expr) -> tuple[Expr, Expr]:
        return square(mul(mul(2.0 * s, m), h)), mul(2.0 * s, square(h))

    m = add(b, h)
    p, q = squares(h, m)
    is_below = lt(a, 0.0)
    on_one_side = ge(mul(where(is_below, -1.0, 1.0), b), 0.0)
    is_near = land(land(le(p, _NEAR_SLOPE), le(q, _NEAR)), le(abs(m), UNDERFLOW))
    is_near = land(is_near, on_one_side)
    first, last = where(is_near, b, 0.0), where(is_near, a, 0.0)
    inner = mul(0.5, sub(last, first))
    middle, rounding = _halved_sum(first, last)
    series = _hermite_sum(*squares(inner, middle))
    rest = add(series, scale_rest)
    near = times_exp_of_square(mul(2.0 * scale, inner), middle, -s, rest, rounding)
    of_a, of_b, whole = tail(a), tail(b), 0.5 * scale * math.sqrt(math.pi / s)
    beyond = where(is_below, sub(of_a, of_b), sub(of_b, of_a))
    # The terms of 2 - erfc(a) - erfc(-b) would cancel: those of erf have one sign.
    of_a, of_b = (erf(abs(mul(math.sqrt(s), x))) for x in (a, b))
    across = mul(where(is_below, -whole, whole), add(of_a, of_b))
    return where(is_near, near, where(on_one_side, beyond, across))


def _normal(a: Expr, b: Expr) -> Expr:
    return _integral(a, b, 0.5, *_DENSITY_AT_0, tail_of_normal)


def _error_function(a: Expr, b: Expr) -> Expr:
    return _integral(a, b, 1.0, *_TWO_OVER_ROOT_PI, lambda x: erfc(abs(x)))


def _sigmoid(a: Expr, b: Expr) -> Expr:
    """tanh((a - b)/2) times σ(a) σ(-b) + σ(b) σ(-a), whose quotient is exp(a - b)."""
    sides, below = [], []
    for x in (a, b):
        e = exp(neg(abs(x)))
        is_positive = ge(x, 0.0)
        sides.append((where(is_positive, 1.0, e), where(is_positive, e, 1.0)))
        below.append(add(1.0, e))
    (up, down), (other_up, other_down) = sides
    both = div(add(mul(up, other_down), mul(other_up, down)), mul(*below))
    return mul(tanh(mul(0.5, sub(a, b))), both)


def _tanh(a: Expr, b: Expr) -> Expr:
    return mul(2.0, sigmoid_difference(mul(2.0, a), mul(2.0, b)))


def divided_near(function: ScalarFunction, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Where the series of erf or normcdf is used, and (f(a) - f(b))/(a - b) there."""
    s, (scale, _) = (1.0, _TWO_OVER_ROOT_PI) if function is erf else (0.5, _DENSITY_AT_0)
    h, m = mul(0.5, sub(a, b)), mul(0.5, add(a, b))
    p, q = square(mul(mul(2.0 * s, m), h)), mul(2.0 * s, square(h))
    is_near = land(land(le(p, _NEAR_SLOPE), le(q, _NEAR)), le(abs(m), UNDERFLOW))
    h, m = where(is_near, h, 0.0), where(is_near, m, 0.0)
    p, q = square(mul(mul(2.0 * s, m), h)), mul(2.0 * s, square(h))
    density = mul(scale, exp(mul(-s, square(m))))
    return is_near, mul(density, add(1.0, _hermite_sum(p, q)))


def _difference(
    function: ScalarFunction, stable: Callable[[Expr, Expr], Expr], ulps: int, in_c: int = 0
) -> ScalarFunction:
    """f(a) - f(b) for a monotone function f."""

    def slope(x: Expr) -> Expr:
        result = partial(function, 0, (x,))
        assert result is not None
        return result

    graph, slopes = stable(_A, _B), [slope(_A), slope(_B)]

    def numpy(a: Reals, b: Reals) -> Array:
        at = {_A: np.real(a), _B: np.real(b)}
        with np.errstate(all="ignore"):
            values: Reals = graph_values(graph, at)
            if not np.iscomplexobj(a) and not np.iscomplexobj(b):
                return values
            by_a, by_b = (graph_values(one, at) for one in slopes)
            step: Reals = np.imag(a) * by_a - np.imag(b) * by_b
            stepped: Array = values + 1j * step
            return stepped

    return ScalarFunction(
        f"{function.name}_difference",
        2,
        definition=lambda a, b: function.definition(a) - function.definition(b),
        numpy=numpy,
        partials=(lambda a, _b: slope(a), lambda _a, b: neg(slope(b))),
        stable=stable,
        domain=(_EVERYWHERE, _EVERYWHERE),
        ranges=Monotonicity(by_operand=((), ())),
        unary_form=lambda a, b: sub(function(a), function(b)),
        costly=True,
        meaning=f"{function.name}(a) - {function.name}(b), accurate where these are nearly equal",
        ulps={"numpy": ulps, "numexpr": ulps, "c": in_c or ulps},
    )


normcdf_difference = _difference(normcdf, _normal, 4, 5)
erf_difference = _difference(erf, _error_function, 4)
sigmoid_difference = _difference(sigmoid, _sigmoid, 6)
tanh_difference = _difference(tanh, _tanh, 6)

DIFFERENCES: Mapping[ScalarFunction, ScalarFunction] = {
    normcdf: normcdf_difference,
    erf: erf_difference,
    sigmoid: sigmoid_difference,
    tanh: tanh_difference,
}
"""The function of (a, b) that is f(a) - f(b), for each f."""
