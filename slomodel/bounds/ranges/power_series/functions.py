"""Scalar functions of power series, by the coefficients of each function at the constant term.

Upper bounds on S, the sum of the coefficients above the degree (`composed`), are

    exp:    |φ_k| = e^u_0/k!,                          sin, cos: |φ_k| <= 1/k!,
    u^c:    |φ_(k+1)/φ_k| = |c - k|/((k + 1)|u_0|),    log u: |φ_k| = 1/(k u_0^k),
    erf:    |φ_k| <= (2/√π) 1.09 √(2^(k-1)(k-1)!)/k!   (Cramér's bound of Hermite functions),
    log Γ:  |φ_k| = ζ(k, u_0)/k <= (1 + u_0/(k - 1))/(k u_0^k).

Where a function is monotone or has branches, these are chosen by the values over the region.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial, pi, prod, sqrt

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import point
from slomodel.bounds.arithmetic.power_series import PowerSeries, TaylorCoefficients, exactly
from slomodel.bounds.arithmetic.rounding import LARGEST, SMALLEST_NORMAL, Array, Truths
from slomodel.bounds.ranges.derivatives import derivative_range
from slomodel.bounds.ranges.power_series.composed import composed, everywhere, geometric, scaled
from slomodel.bounds.ranges.power_series.sigmoid_series import sigmoid, softplus
from slomodel.bounds.ranges.values import value_range
from slomodel.ir.function import ScalarFunction

_ROUNDINGS = 64
"""Roundings of a coefficient: a degree adds a power, a quotient, a product and its factors."""


def _column(numbers: Sequence[float], at: Array) -> Array:
    """Numbers along an axis before those of `at`."""
    return np.reshape(np.asarray(numbers, dtype=np.float64), (-1, *(1,) * at.ndim))


def _is_normal(x: Array) -> Truths:
    size = np.abs(x)
    return np.asarray((size >= SMALLEST_NORMAL) & (size <= LARGEST))


def exponential(u: PowerSeries, function: ScalarFunction = table.exp) -> PowerSeries:
    """exp u, or exp u - 1."""
    p, at = u.table.degree, u.c[0]
    size = np.maximum(np.exp(at), SMALLEST_NORMAL)  # an upper bound where it underflows
    first = value_range(function, point(at))
    rest = TaylorCoefficients.nearly(
        size / _column(list(map(factorial, range(1, p + 1))), at), _ROUNDINGS
    )

    def beyond(w: Array) -> Array:
        sums = geometric(size * w ** (p + 1) / factorial(p + 1), w / (p + 2))
        return np.asarray(np.minimum(sums, size * np.exp(w)))

    return composed(u, rest.after(first), beyond)


def power(u: PowerSeries, c: float) -> PowerSeries:
    """u^c for u > 0, and for u < 0 where c is whole."""
    if c.is_integer() and 0.0 <= c <= 64.0:
        return _whole_power(u, int(c))
    p, at = u.table.degree, u.c[0]
    if not c.is_integer():
        at = np.where(at > 0.0, at, np.nan)
    size = np.power(at, c)
    # From a number that is not a normal double, no coefficient has its digits.
    at = np.where(_is_normal(size), at, np.nan)
    ratios = [(c - k) / (k + 1) for k in range(p + 1)]
    binomial = prod(ratios)
    steps = np.concatenate([size[np.newaxis], _column(ratios[:-1], at) / at])
    coefficients = TaylorCoefficients.nearly(np.cumprod(steps, axis=0), _ROUNDINGS)
    ratio = max(1.0, abs(c - p - 1.0) / (p + 2.0))

    def beyond(w: Array) -> Array:
        q = w / np.abs(at)
        first = abs(binomial) * np.abs(size) * q ** (p + 1)
        return geometric(first, ratio * q)

    return composed(u, coefficients, beyond)


def _whole_power(u: PowerSeries, k: int) -> PowerSeries:
    result = PowerSeries.constant(u.table, exactly(np.ones(u.shape)))
    square = u
    while k:
        if k & 1:
            result = result * square
        k >>= 1
        square = square * square if k else square
    return result


def logarithm(u: PowerSeries, function: ScalarFunction = table.log) -> PowerSeries:
    """log u, or log(1 + u)."""
    p, at = u.table.degree, u.c[0]
    first = value_range(function, point(at))
    from_pole = at if function is table.log else 1.0 + at
    from_pole = np.where(from_pole > 0.0, from_pole, np.nan)
    powers = np.cumprod(np.broadcast_to(from_pole, (p, *at.shape)), axis=0)
    signs = [(-1.0) ** (k + 1) / k for k in range(1, p + 1)]
    rest = TaylorCoefficients.nearly(_column(signs, at) / powers, _ROUNDINGS)

    def beyond(w: Array) -> Array:
        q = w / from_pole
        return geometric(q ** (p + 1) / (p + 1), q)

    return composed(u, rest.after(first), beyond)


def circular(u: PowerSeries, function: ScalarFunction) -> PowerSeries:
    """sin u or cos u."""
    p, at = u.table.degree, u.c[0]
    turn = [table.sin, table.cos] if function is table.sin else [table.cos, table.sin]
    signs = (1.0, 1.0, -1.0, -1.0) if function is table.sin else (1.0, -1.0, -1.0, 1.0)
    pair = [value_range(one, point(at)) for one in turn]
    coefficients = []
    for k in range(p + 1):
        factor = point(np.asarray(signs[k % 4]))
        scale = point(np.asarray(float(factorial(k))))
        coefficients.append(pair[k % 2] * factor / scale)

    def beyond(w: Array) -> Array:
        return geometric(w ** (p + 1) / factorial(p + 1), w / (p + 2))

    return composed(u, TaylorCoefficients.within(coefficients), beyond)


def error_function(u: PowerSeries) -> PowerSeries:
    """erf u."""
    p = u.table.degree
    scale = 2.0 / sqrt(pi) * 1.09

    def beyond(w: Array) -> Array:
        k = p + 1
        first = scale * np.sqrt(2.0 ** (k - 1) * factorial(k - 1)) / factorial(k) * w**k
        # √(2k) k!/((k + 1) k!) <= √(2/k) from one coefficient to the next.
        return geometric(first, w * sqrt(2.0 / k))

    return composed(u, _by_derivatives(table.erf, u.c[0], p), beyond)


def log_gamma(u: PowerSeries, function: ScalarFunction) -> PowerSeries:
    """log Γ(u) or its derivative, u > 0."""
    order = int(function is table.digamma)
    p = u.table.degree
    at = np.where(u.c[0] > 0.0, u.c[0], np.nan)

    def beyond(w: Array) -> Array:
        # Of log Γ: (1 + u_0/(k - 1))/k q^k, and of its derivative (1 + u_0/k) q^k/u_0.
        k, q = p + 1, w / at
        if order:
            return geometric((1.0 + at / k) * q**k / at, q)
        return geometric((1.0 + at / (k - 1)) / k * q**k, q)

    return composed(u, _by_derivatives(function, at, p), beyond)


def _by_derivatives(function: ScalarFunction, at: Array, p: int) -> TaylorCoefficients:
    """The coefficients from the function's own derivatives."""
    result = []
    for k in range(p + 1):
        scale = point(np.asarray(float(factorial(k))))
        result.append(derivative_range(function, k, point(at)) / scale)
    return TaylorCoefficients.within(result)


def hyperbolic_tangent(u: PowerSeries) -> PowerSeries:
    """2/(1 + e^-2u) - 1."""
    return scaled(sigmoid(scaled(u, 2.0)), 2.0) - everywhere(u, 1.0)


def log_cosh(u: PowerSeries) -> PowerSeries:
    """log(1 + e^2u) - u - log 2."""
    two = PowerSeries.constant(u.table, value_range(table.log, point(np.full(u.shape, 2.0))))
    return softplus(scaled(u, 2.0)) - u - two


def quotient(a: PowerSeries, b: PowerSeries) -> PowerSeries:
    """a/b."""
    return a * power(b, -1.0)


def arc_tangent(u: PowerSeries) -> PowerSeries:
    """atan u, whose coefficients are at most 1/(k (1 + u_0²)^(k/2))."""
    p, at = u.table.degree, u.c[0]
    distance = np.sqrt(1.0 + at * at) * (1.0 - 2.0**-50)

    def beyond(w: Array) -> Array:
        q = w / distance
        return geometric(q ** (p + 1) / (p + 1), q)

    return composed(u, _by_derivatives(table.atan, at, p), beyond)


UNARY: dict[ScalarFunction, Callable[[PowerSeries], PowerSeries]] = {
    table.neg: lambda u: -u,
    table.square: lambda u: u * u,
    table.same: lambda u: u,
    table.exp: exponential,
    table.expm1: lambda u: exponential(u, table.expm1),
    table.log: logarithm,
    table.log1p: lambda u: logarithm(u, table.log1p),
    table.sqrt: lambda u: power(u, 0.5),
    table.sin: lambda u: circular(u, table.sin),
    table.cos: lambda u: circular(u, table.cos),
    table.tan: lambda u: quotient(circular(u, table.sin), circular(u, table.cos)),
    table.sigmoid: sigmoid,
    table.softplus: softplus,
    table.tanh: hyperbolic_tangent,
    table.logcosh: log_cosh,
    table.erf: error_function,
    table.atan: arc_tangent,
    table.lgamma: lambda u: log_gamma(u, table.lgamma),
    table.digamma: lambda u: log_gamma(u, table.digamma),
}
"""Functions of one number by their series."""
BINARY: dict[ScalarFunction, Callable[[PowerSeries, PowerSeries], PowerSeries]] = {
    table.add: lambda a, b: a + b,
    table.sub: lambda a, b: a - b,
    table.mul: lambda a, b: a * b,
    table.div: quotient,
}
"""Functions of two numbers."""
