"""Laurent series with rational coefficients: arithmetic, and the elementary functions of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from slomodel.functions import sin
from slomodel.functions.removable import BERNOULLI, LOG_SINH_QUOTIENT, QUOTIENTS
from slomodel.ir.function import Family

_ZERO, _ONE = Fraction(0), Fraction(1)


class NoSeries(Exception):
    """A function has no Laurent series with rational coefficients there."""


@dataclass(frozen=True, slots=True)
class Laurent:
    """Σ c_k u^(order + k); the first coefficient is not 0, but for the series 0.

    It is known up to the last coefficient that is held; all series of one computation begin with as
    many.
    """

    order: int
    coefficients: tuple[Fraction, ...]

    @property
    def is_zero(self) -> bool:
        return not any(self.coefficients)

    @property
    def end(self) -> int:
        """The order of the first term that is not known."""
        return self.order + len(self.coefficients)

    def coefficient(self, k: int) -> Fraction:
        """The coefficient of u^k, which must be known."""
        return self.coefficients[k - self.order] if k >= self.order else _ZERO

    def __add__(self, other: Laurent) -> Laurent:
        start, end = min(self.order, other.order), min(self.end, other.end)
        return series(
            start, [self.coefficient(k) + other.coefficient(k) for k in range(start, end)]
        )

    def __mul__(self, other: Laurent) -> Laurent:
        count = min(len(self.coefficients), len(other.coefficients))
        a, b = self.coefficients, other.coefficients
        result = [_inner(a, b, k) for k in range(count)]
        return series(self.order + other.order, result)

    def scaled(self, factor: Fraction) -> Laurent:
        return series(self.order, [factor * c for c in self.coefficients])

    def reciprocal(self) -> Laurent:
        a = self.coefficients
        if self.is_zero:
            raise NoSeries
        result = [1 / a[0]]
        for k in range(1, len(a)):
            rest = sum((a[j] * result[k - j] for j in range(1, k + 1) if a[j]), _ZERO)
            result.append(-rest / a[0])
        return series(-self.order, result)

    def power(self, p: Fraction) -> Laurent:
        """The power p, by c_0^p (1 + s)^p with y = (1 + s)^p from (1 + s) y' = p s' y."""
        a = self.coefficients
        if self.is_zero:
            raise NoSeries
        order = p * self.order
        first = _rational_power(a[0], p)
        if order.denominator != 1 or first is None:
            raise NoSeries
        s = [c / a[0] for c in a]
        y = [_ONE]
        for n in range(1, len(a)):
            rest = sum(
                ((p * j - (n - j)) * s[j] * y[n - j] for j in range(1, n + 1) if s[j]), _ZERO
            )
            y.append(rest / n)
        return series(int(order), [first * c for c in y])

    def derivative(self) -> Laurent:
        result = [(self.order + k) * c for k, c in enumerate(self.coefficients)]
        return series(self.order - 1, result)

    def integral(self) -> Laurent:
        """The integral from 0 of a series without negative powers."""
        if self.order < 0:
            raise NoSeries
        result = [c / (self.order + k + 1) for k, c in enumerate(self.coefficients)]
        return series(self.order + 1, result)


def series(order: int, coefficients: Sequence[Fraction]) -> Laurent:
    """The series without its leading zeros."""
    zeros = next((k for k, c in enumerate(coefficients) if c), 0)
    return Laurent(order + zeros, tuple(coefficients[zeros:]))


def constant(value: Fraction, terms: int) -> Laurent:
    return Laurent(0, (value, *[_ZERO] * (terms - 1)))


def identity(terms: int) -> Laurent:
    """The series u."""
    return Laurent(1, (_ONE, *[_ZERO] * (terms - 1)))


def _inner(a: Sequence[Fraction], b: Sequence[Fraction], k: int) -> Fraction:
    return sum((a[j] * b[k - j] for j in range(k + 1) if a[j] and b[k - j]), _ZERO)


def _rational_power(base: Fraction, p: Fraction) -> Fraction | None:
    """base^p where that is rational: for whole p, and roots of squares."""
    if p.denominator == 1:
        return base**p.numerator
    if base == 1:
        return base
    if p.denominator != 2 or base <= 0:
        return None
    above, below = math.isqrt(base.numerator), math.isqrt(base.denominator)
    is_square = above * above == base.numerator and below * below == base.denominator
    return Fraction(above, below) ** p.numerator if is_square else None


def _one_like(s: Laurent) -> Laurent:
    return constant(_ONE, max(1, s.end))


def exponential(s: Laurent) -> Laurent:
    """exp(s), from y' = s' y; s is 0 at 0."""
    _require_zero(s)
    own = [s.coefficient(k) for k in range(s.end)]
    y = [_ONE]
    for n in range(1, s.end):
        rest = sum((j * own[j] * y[n - j] for j in range(1, n + 1) if own[j]), _ZERO)
        y.append(rest / n)
    return series(0, y)


def logarithm(a: Laurent) -> Laurent:
    """log(a) for a that is 1 at 0."""
    if a.order != 0 or a.coefficients[0] != 1:
        raise NoSeries
    return (a.derivative() * a.reciprocal()).integral()


def hyperbolic(s: Laurent) -> tuple[Laurent, Laurent]:
    """sinh(s) and cosh(s)."""
    up, down = exponential(s), exponential(s.scaled(-_ONE))
    half = Fraction(1, 2)
    return (up + down.scaled(-_ONE)).scaled(half), (up + down).scaled(half)


def circular(s: Laurent) -> tuple[Laurent, Laurent]:
    """sin(s) and cos(s), from y' = s' z and z' = -s' y."""
    _require_zero(s)
    own = [s.coefficient(k) for k in range(s.end)]
    y, z = [_ZERO], [_ONE]
    for n in range(1, s.end):
        indices = [j for j in range(1, n + 1) if own[j]]
        y.append(sum((j * own[j] * z[n - j] for j in indices), _ZERO) / n)
        z.append(-sum((j * own[j] * y[n - j] for j in indices), _ZERO) / n)
    return series(0, y), series(0, z)


def _require_zero(s: Laurent) -> None:
    if s.order < 1 and not s.is_zero:
        raise NoSeries


def _inverse(power: Fraction, sign: int) -> Callable[[Laurent], Laurent]:
    """The integral of s' (1 + sign s²)^power, s being 0 at 0."""

    def of(s: Laurent) -> Laurent:
        _require_zero(s)
        inner = _one_like(s) + (s * s).scaled(Fraction(sign))
        return (s.derivative() * inner.power(power)).integral()

    return of


def _softplus(s: Laurent) -> Laurent:
    """log(1 + exp(s)); log(2) is the double that a model writes."""
    inner = (_one_like(s) + exponential(s)).scaled(Fraction(1, 2))
    return logarithm(inner) + _one_like(s).scaled(Fraction(math.log(2.0)))


def _integral_of_gauss(s: Laurent, power: Fraction, scale: float) -> Laurent:
    """The integral of scale s' exp(power s²), the scale being a double."""
    _require_zero(s)
    slope = exponential((s * s).scaled(power)) * s.derivative()
    return slope.scaled(Fraction(scale)).integral()


def _error_function(s: Laurent) -> Laurent:
    return _integral_of_gauss(s, -_ONE, 2.0 / math.sqrt(math.pi))


def _normal(s: Laurent) -> Laurent:
    half = Fraction(1, 2)
    return _one_like(s).scaled(half) + _integral_of_gauss(s, -half, 1.0 / math.sqrt(2.0 * math.pi))


_HALF = Fraction(-1, 2)
SERIES: dict[str, Callable[[Laurent], Laurent]] = {
    "exp": exponential,
    "expm1": lambda s: exponential(s) + _one_like(s).scaled(-_ONE),
    "log": logarithm,
    "log1p": lambda s: logarithm(_one_like(s) + s),
    "sin": lambda s: circular(s)[0],
    "cos": lambda s: circular(s)[1],
    "tan": lambda s: circular(s)[0] * circular(s)[1].reciprocal(),
    "sinh": lambda s: hyperbolic(s)[0],
    "cosh": lambda s: hyperbolic(s)[1],
    "tanh": lambda s: hyperbolic(s)[0] * hyperbolic(s)[1].reciprocal(),
    "logcosh": lambda s: logarithm(hyperbolic(s)[1]),
    "sech2": lambda s: hyperbolic(s)[1].power(Fraction(-2)),
    "sigmoid": lambda s: (_one_like(s) + exponential(s.scaled(-_ONE))).reciprocal(),
    "bose": lambda s: (exponential(s) + _one_like(s).scaled(-_ONE)).reciprocal(),
    "exp_remainder": lambda s: exponential(s) + _one_like(s).scaled(-_ONE) + s.scaled(-_ONE),
    "log_remainder": lambda s: s + logarithm(_one_like(s) + s).scaled(-_ONE),
    "atan": _inverse(Fraction(-1), 1),
    "atanh": _inverse(Fraction(-1), -1),
    "asin": _inverse(_HALF, -1),
    "asinh": _inverse(_HALF, 1),
    "sech_asinh": lambda s: (_one_like(s) + s * s).power(_HALF),
    "softplus": _softplus,
    "erf": _error_function,
    "normcdf": _normal,
    "erfc": lambda s: _one_like(s) + _error_function(s).scaled(-_ONE),
    "sqrt": lambda a: a.power(Fraction(1, 2)),
    "square": lambda a: a * a,
    "neg": lambda a: a.scaled(-_ONE),
}
"""The series of functions of a series, by the names of their records."""


def _quotient(name: str, n: int) -> Callable[[Laurent], Laurent]:
    """The n-th derivative of h(x)/x at a series, by (f(s))' = f'(s) s'."""

    def of(s: Laurent) -> Laurent:
        result = SERIES[name](s) * s.reciprocal()
        for _ in range(n):
            result = result.derivative() * s.derivative().reciprocal()
        return result

    return of


def _name(family: Family, n: int) -> str:
    """The name of member n of a family of quotients, which need not have been made."""
    return f"{family.name}{n}" if n or family is QUOTIENTS[sin] else family.name[:-1]


SERIES |= {
    _name(family, n): _quotient(function.name, n)
    for function, family in QUOTIENTS.items()
    if function.name in SERIES
    for n in range(3)
}
SERIES[_name(LOG_SINH_QUOTIENT, 1)] = lambda s: (
    hyperbolic(s)[1] * hyperbolic(s)[0].reciprocal() + s.reciprocal().scaled(-_ONE)
)
SERIES[_name(BERNOULLI, 0)] = lambda s: s * SERIES["bose"](s)


@lru_cache(maxsize=10_000)
def series_of(name: str, s: Laurent) -> Laurent:
    """The series of a function of a series; cached, since long chains repeat the same few.

    Raises NoSeries where there is none.
    """
    return SERIES[name](s)
