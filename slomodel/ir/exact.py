"""Exact arithmetic on constants: whether a double is exact, and the number that it rounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction

import sympy as sp

from slomodel.ir.expr import Const, Exact
from slomodel.ir.function import ScalarFunction

_WHOLE = 2.0**53
"""Sums, products and quotients of integers below this are exact if they are such integers too."""
_ARITHMETIC = ("add", "sub", "mul", "div", "neg", "square")
_MOST_BITS = 2200
"""Limit on the bits of numerator and denominator together, beyond which a Fraction is dropped; a
double has at most 1,128."""
_MOST_PARTS = 20
"""The same limit for numbers such as sqrt(2 + pi), in nodes of the SymPy expression."""
_HIGHEST_POWER = 64
"""Integer powers up to this are computed exactly; 10^1,000,000 would be expanded in full."""

_ROUNDING: ContextVar[bool] = ContextVar("constants are folded with rounding", default=True)

_CARRIED: ContextVar[bool] = ContextVar("constants carry the number they round", default=True)


@contextmanager
def without_rounding() -> Iterator[None]:
    """Fold constants only where that is exact, in graphs that are built inside the block.

    Bounds need it: 1e16·(3·0.58 - 1.74) consists only of the rounding error of 3·0.58, and
    1e-150·2^-823 is not 0. Intervals enclose the nodes that are not folded.
    """
    token = _ROUNDING.set(False)
    try:
        yield
    finally:
        _ROUNDING.reset(token)


@contextmanager
def as_doubles() -> Iterator[None]:
    """Fold constants to doubles alone in graphs that are built inside the block.

    For numbers that are read once and enclosed by radii of their own: to carry the number that a
    double rounds costs a hundred times as much as the double.
    """
    token = _CARRIED.set(False)
    try:
        yield
    finally:
        _CARRIED.reset(token)


def may_fold(function: ScalarFunction, numbers: Sequence[Const], value: float) -> bool:
    """Whether `value` may replace the function of the numbers in the graph under construction."""
    return _ROUNDING.get() or is_exact(function, numbers, value)


def is_exact(function: ScalarFunction, numbers: Sequence[Const], value: float) -> bool:
    """Whether `value` is proved to be the exact value at the doubles of the numbers."""
    own = [number.value for number in numbers]
    if function.result == "bool" or not all(map(math.isfinite, own)):
        return True  # truth values, infinities and NaN are not rounded
    if not math.isfinite(value):
        return False
    if function.exact:
        return True
    if function.name in _ARITHMETIC and all(map(_is_whole, (value, *own))):
        return True
    if function.costly and not (function.name == "pow" and abs(own[1]) <= _HIGHEST_POWER):
        return False
    try:
        exact = function.definition(*map(Fraction, own))
    except (ArithmeticError, TypeError, ValueError):
        return False
    if isinstance(exact, sp.Rational):
        exact = Fraction(exact.p, exact.q)
    return isinstance(exact, (int, Fraction)) and exact == Fraction(value)


def exact_value(function: ScalarFunction, numbers: Sequence[Const], value: float) -> Exact | None:
    """The exact value at the numbers as they were written, of which `value` is the double.

    A Fraction or a SymPy number such as sqrt(2); None where the double is exact, where the number
    that it rounds is too long to be stored, and inside `as_doubles`.
    """
    if not _CARRIED.get():
        return None
    if not math.isfinite(value) or not all(math.isfinite(number.value) for number in numbers):
        return None
    # Others may round to an integer without being one, such as the square root of an integer.
    is_plain = function.exact or function.name in _ARITHMETIC
    if is_plain and all(map(_is_whole, (value, *(float(n.value) for n in numbers)))):
        return None
    if function.name == "pow" and abs(numbers[1].value) > _HIGHEST_POWER:
        return None
    try:
        exact = function.definition(*map(_operand, numbers))
        if isinstance(exact, float):  # Python's root of a Fraction is rounded
            exact = function.definition(*(symbolic(_operand(number)) for number in numbers))
    except (ArithmeticError, TypeError):
        return None
    return carried(exact)


def carried(number: Exact) -> Exact | None:
    """A real number as `Const.written` holds it; None if it is too long or not a number."""
    if isinstance(number, sp.Rational):
        number = Fraction(number.p, number.q)
    if isinstance(number, Fraction):
        bits = number.numerator.bit_length() + number.denominator.bit_length()
        return number if bits <= _MOST_BITS else None
    if not isinstance(number, sp.Expr) or not number.is_real or number.has(sp.Float):
        return None
    parts = sum(1 for _ in sp.preorder_traversal(number))
    return number if parts <= _MOST_PARTS else None


def _operand(number: Const) -> Exact | sp.Basic:
    if number.dtype == "bool":
        return sp.true if number.value else sp.false
    return number.exact


def symbolic(number: Exact | sp.Basic) -> sp.Basic:
    """A number as an object of SymPy."""
    if isinstance(number, Fraction):
        return sp.Rational(number.numerator, number.denominator)
    return number


def _is_whole(value: float) -> bool:
    return float(value).is_integer() and abs(value) < _WHOLE
