"""Functions of constants without rounding."""

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
"""Sums, products and quotients of whole numbers below this that are whole are exact doubles."""
_ARITHMETIC = ("add", "sub", "mul", "div", "neg", "square")
_CHOOSING = ("abs", "sign", "relu", "maximum", "minimum", "clip", "where")
"""Their values are one of the operands, up to its sign, or -1, 0 or 1. Of a root of whole numbers,
or Huber's function of them, the double may be whole though the number is not.
"""
_MOST_BITS = 2200
"""A quotient of longer numbers is not carried along; those of doubles have up to 1,074 bits."""
_MOST_PARTS = 20
"""The same for numbers such as sqrt(2 + pi), in SymPy's nodes."""
_HIGHEST_POWER = 64
"""SymPy writes whole powers out, 10 to the 1,000,000th too."""

_ROUNDING: ContextVar[bool] = ContextVar("constants are folded with rounding", default=True)


@contextmanager
def without_rounding() -> Iterator[None]:
    """Graphs built meanwhile keep a function of constants as a node where its double is rounded.

    What bounds are of: 3·0.58 in a derivative is off by 1e-16 of it, which a term -1.74 under a
    factor of 1e16 makes all there is, and 1e-150·2^-823 is not 0. Intervals enclose such nodes.
    """
    token = _ROUNDING.set(False)
    try:
        yield
    finally:
        _ROUNDING.reset(token)


def may_fold(function: ScalarFunction, numbers: Sequence[Const], value: float) -> bool:
    """Whether the double may stand for the function of the numbers' doubles in a graph."""
    return _ROUNDING.get() or is_exact(function, numbers, value)


def is_exact(function: ScalarFunction, numbers: Sequence[Const], value: float) -> bool:
    """True where the double is shown to be the function of the numbers' doubles."""
    own = [number.value for number in numbers]
    if function.result == "bool" or not all(map(math.isfinite, own)):
        return True  # no rounding, or of an infinity or NaN, on which doubles calculate exactly
    if not math.isfinite(value):
        return False
    if function.name in _CHOOSING:
        return True
    if function.name in _ARITHMETIC and all(map(_is_whole, (value, *own))):
        return True
    if function.costly and not (function.name == "pow" and abs(own[1]) <= _HIGHEST_POWER):
        return False
    try:
        found = function.definition(*map(Fraction, own))
    except (ArithmeticError, TypeError, ValueError):
        return False
    if isinstance(found, sp.Rational):
        found = Fraction(found.p, found.q)
    return isinstance(found, (int, Fraction)) and found == Fraction(value)


def exact_value(function: ScalarFunction, numbers: Sequence[Const], value: float) -> Exact | None:
    """The function of the numbers as they were written, which its double `value` is rounded from.

    A Fraction or SymPy's number, such as sqrt(2); None where the double is to stand for itself:
    it is exact, or the number is too long to carry along.
    """
    if not math.isfinite(value) or not all(math.isfinite(number.value) for number in numbers):
        return None
    is_plain = function.name in (*_ARITHMETIC, *_CHOOSING)
    if is_plain and all(map(_is_whole, (value, *(float(n.value) for n in numbers)))):
        return None
    if function.name == "pow" and abs(numbers[1].value) > _HIGHEST_POWER:
        return None
    try:
        found = function.definition(*map(_operand, numbers))
        if isinstance(found, float):  # Python's root of a Fraction is rounded
            found = function.definition(*(sp.sympify(_operand(number)) for number in numbers))
    except (ArithmeticError, TypeError):
        return None
    return carried(found)


def carried(number: Exact) -> Exact | None:
    """A real number as a `Const` keeps it; None where it is too long, or is no number."""
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
    return sp.sympify(bool(number.value)) if number.dtype == "bool" else number.exact


def _is_whole(value: float) -> bool:
    return float(value).is_integer() and abs(value) < _WHOLE
