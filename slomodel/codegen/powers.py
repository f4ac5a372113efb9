"""Powers with a whole or half-integer exponent as products, one or two divisions, and a root.

A call of pow takes 5 to 50 times as long. Relative errors of factors add up, and each operation
contributes u = 2^-53: x^n by repeated squaring is accurate to (n - 1) u, x^-n to (n + 3) u, and a
root contributes at most 2 u more.
"""

from __future__ import annotations

import math

from slomodel.functions import div, mul, sqrt, square
from slomodel.ir.expr import Expr

LARGEST_EXPONENT = 32.0
"""Errors grow with the exponent, to 34 u here; larger powers are left to pow."""


def power_by_products(x: Expr, exponent: float) -> Expr | None:
    """x^p for whole and half-integer p up to `LARGEST_EXPONENT` in magnitude; else None.

    Special values are those of pow, except for the sign of a zero and, with half-integer exponents,
    at -inf (NaN).
    """
    if not 1.0 < abs(exponent) <= LARGEST_EXPONENT or (2.0 * exponent) % 1.0:
        return None
    return _positive(x, exponent) if exponent > 0.0 else _negative(x, -exponent)


def _positive(x: Expr, exponent: float) -> Expr:
    """x^p for p > 0; intermediate magnitudes lie between those of x and of the result."""
    whole = math.floor(exponent)
    if whole == exponent:
        return _whole(x, whole)
    return mul(_whole(x, whole), sqrt(x)) if whole else sqrt(x)


def _whole(x: Expr, n: int) -> Expr:
    """x^n for n >= 1 by repeated squaring."""
    if n == 1:
        return x
    half = square(_whole(x, n // 2))
    return mul(half, x) if n % 2 else half


def _negative(x: Expr, exponent: float) -> Expr:
    """x^-q as r (r / z) with r = x^-m, m = floor(q / 2), and z = x^(q - 2m).

    1 / x^q would be 0 wherever x^q overflows, although x^-q may be a subnormal number. Here an
    intermediate value overflows only where the result is 0 in double precision.
    """
    if exponent in (5.0, 6.0, 7.0, 8.0):
        return _by_two_inverses(x, int(exponent))
    m = math.floor(exponent / 2.0)
    if not m:  # q is 3/2
        return div(div(1.0, x), sqrt(x))
    inverse = div(1.0, _whole(x, m))
    rest = exponent - 2.0 * m
    if not rest:
        return square(inverse)
    # A product takes a fifth of the time of a division.
    other = square(inverse) if (m, rest) == (1, 1.0) else div(inverse, _positive(x, rest))
    return mul(inverse, other)


def _by_two_inverses(x: Expr, n: int) -> Expr:
    """x^-n from 1 / x and 1 / x^2, which potentials and their derivatives then share.

    The inverse of the square contributes 2 u: (1 / x^2)^k is accurate to (3 k - 1) u, so x^-n to
    (n + 3) u up to n = 8.
    """
    inverse = div(1.0, square(x))
    power = _whole(inverse, n // 2)
    return mul(power, div(1.0, x)) if n % 2 else power
