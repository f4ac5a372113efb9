"""Power series of functions with a removable singularity at 0: their coefficients, and graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

from slomodel.functions.arithmetic import add, mul, square
from slomodel.ir.build import const
from slomodel.ir.expr import Expr

_TERMS = 80
_NEGLIGIBLE = 1e-19
"""Terms of a series below this, relative to the first, are left out."""


def polynomial(coefficients: Sequence[Fraction], n: int, edge: float, x: Expr) -> Expr:
    """The n-th derivative of a power series for |x| <= edge."""
    terms = [float(c * math.perm(k, n)) for k, c in enumerate(coefficients[n:], n)]
    lowest = next(k for k, c in enumerate(terms) if c)
    least = _NEGLIGIBLE * math.fabs(terms[lowest]) * edge**lowest
    highest = max(k for k, c in enumerate(terms) if math.fabs(c) * edge**k > least)
    step = 1 if any(terms[lowest + 1 : highest + 1 : 2]) else 2
    u = square(x) if step == 2 else x
    total: Expr = const(terms[highest])
    for k in range(highest - step, lowest - 1, -step):
        total = add(mul(total, u), terms[k])
    for _ in range(lowest):
        total = mul(x, total)
    return total


def recentred(coefficients: Sequence[Fraction], centre: Fraction) -> Sequence[Fraction]:
    """The coefficients of the same polynomial in powers of x - centre."""
    shifted = list(coefficients)
    for lowest in range(len(shifted)):  # Horner's divisions by x - centre
        for k in range(len(shifted) - 2, lowest - 1, -1):
            shifted[k] += centre * shifted[k + 1]
    return shifted


def even(coefficient: Callable[[int], Fraction]) -> Sequence[Fraction]:
    """The coefficients of a power series in x²."""
    return [coefficient(k // 2) if k % 2 == 0 else Fraction(0) for k in range(_TERMS)]


@cache
def exponential() -> Sequence[Fraction]:
    return [Fraction(1, math.factorial(k + 1)) for k in range(_TERMS)]


@cache
def exponential_remainder() -> Sequence[Fraction]:
    return [Fraction(1, math.factorial(k + 2)) for k in range(_TERMS)]


@cache
def logarithm() -> Sequence[Fraction]:
    return [Fraction((-1) ** k, k + 1) for k in range(_TERMS)]


@cache
def logarithmic_remainder() -> Sequence[Fraction]:
    return [Fraction((-1) ** k, k + 2) for k in range(_TERMS)]


@cache
def sine_remainder() -> Sequence[Fraction]:
    return even(lambda k: Fraction((-1) ** k, math.factorial(2 * k + 3)))


@cache
def hyperbolic_sine() -> Sequence[Fraction]:
    return even(lambda k: Fraction(1, math.factorial(2 * k + 1)))


@cache
def tangent() -> Sequence[Fraction]:
    """The coefficients of tan(x)/x, from y' = 1 + y²."""
    odd = [Fraction(1)]
    for k in range(1, _TERMS // 2):
        inner = sum((odd[j] * odd[k - 1 - j] for j in range(k)), Fraction(0))
        odd.append(inner / (2 * k + 1))
    return even(lambda k: odd[k])


@cache
def hyperbolic_tangent() -> Sequence[Fraction]:
    return [(-1) ** (k // 2) * c for k, c in enumerate(tangent())]


@cache
def inverse_tangent() -> Sequence[Fraction]:
    return even(lambda k: Fraction((-1) ** k, 2 * k + 1))


@cache
def inverse_hyperbolic_tangent() -> Sequence[Fraction]:
    return even(lambda k: Fraction(1, 2 * k + 1))


@cache
def inverse_sine() -> Sequence[Fraction]:
    return even(lambda k: Fraction(math.comb(2 * k, k), 4**k * (2 * k + 1)))


@cache
def inverse_hyperbolic_sine() -> Sequence[Fraction]:
    return [(-1) ** (k // 2) * c for k, c in enumerate(inverse_sine())]


@cache
def error_function() -> Sequence[Fraction]:
    return even(lambda k: Fraction((-1) ** k, math.factorial(k) * (2 * k + 1)))


@cache
def bernoulli_numbers() -> Sequence[Fraction]:
    """B_0, B_1 = -1/2, B_2, …"""
    numbers = [Fraction(1)]
    for m in range(1, _TERMS):
        inner = sum((math.comb(m + 1, j) * numbers[j] for j in range(m)), Fraction(0))
        numbers.append(-inner / (m + 1))
    return numbers


@cache
def bernoulli() -> Sequence[Fraction]:
    return [b / math.factorial(k) for k, b in enumerate(bernoulli_numbers())]


@cache
def log_sinh() -> Sequence[Fraction]:
    numbers = bernoulli_numbers()
    return [
        Fraction(2**k) * b / (k * math.factorial(k)) if k and k % 2 == 0 else Fraction(0)
        for k, b in enumerate(numbers)
    ]


@cache
def log_exponential() -> Sequence[Fraction]:
    numbers = bernoulli_numbers()
    rest = [b / (k * math.factorial(k)) for k, b in enumerate(numbers) if k > 1]
    return [Fraction(0), Fraction(1, 2), *rest]


@cache
def squared_arc() -> Sequence[Fraction]:
    """The coefficients of acos(1 - x)^2 = 4 asin(sqrt(x/2))^2, from the squared arcsine."""
    rest = [Fraction(2 * 2**n, n * n * math.comb(2 * n, n)) for n in range(1, _TERMS)]
    return [Fraction(0), *rest]
