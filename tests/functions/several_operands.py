"""Functions of several numbers as their definitions say, in many digits, with their differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product

import mpmath
import numpy as np

from slomodel import functions as fn
from slomodel.ir.expr import Expr
from slomodel.ir.function import ScalarFunction
from tests.functions.exact_values import definition, evaluate_at, operand_types

DIGITS = 120
STEP = mpmath.mpf(10) ** -30
LARGE = 1e6
"""A larger difference quotient is that of a jump or of an infinite slope."""
Point = tuple[float, ...]


@dataclass(frozen=True)
class Case:
    """A graph of `arity` real operands with what it means; both take the operands in order."""

    name: str
    arity: int
    build: Callable[..., Expr]
    value: Callable[..., object]
    function: ScalarFunction

    def __str__(self) -> str:
        return self.name


def _case(function: ScalarFunction) -> Case:
    if function is fn.where:  # the condition is a number's sign
        return Case(
            "where",
            3,
            lambda c, a, b: fn.where(fn.gt(c, 0.0), a, b),
            lambda c, a, b: a if c > 0 else b,
            function,
        )
    return Case(function.name, function.arity, function, definition(function), function)


CASES = [
    _case(function)
    for function in fn.TABLE.values()
    if function.result == "real" and operand_types(function).count("real") > 1
]


def at(case: Case, point: Sequence[object]) -> mpmath.mpf | None:
    """The definition's value, None where it is not a finite real number, or outside the domain."""
    if not is_inside(case, point):
        return None
    try:
        found = mpmath.mpmathify(case.value(*point))
    except (ZeroDivisionError, ValueError, OverflowError):
        return None
    return found if isinstance(found, mpmath.mpf) and mpmath.isfinite(found) else None


def is_inside(case: Case, point: Sequence[object]) -> bool:
    """Whether every operand is in its domain, and the value is defined there."""
    domain, function = case.function.domain, case.function
    inside = all(low <= x <= high for x, (low, high) in zip(point, domain, strict=False))
    if function.undefined is None or not inside or function.arity > len(point):
        return inside
    return not evaluate_at(function.undefined, function, tuple(map(float, point)))


def slopes(case: Case, point: Point, k: int) -> list[mpmath.mpf] | None:
    """The difference quotients by operand k to the left and to the right; None where one is not
    defined or jumps.
    """
    with mpmath.workdps(DIGITS):
        exact = [mpmath.mpf(float(x)) for x in point]
        moved = [[*exact[:k], exact[k] + s * STEP, *exact[k + 1 :]] for s in (-1, 0, 1)]
        values = [at(case, one) for one in moved]
        if any(value is None for value in values):
            return None
        found = [(b - a) / STEP for a, b in pairwise(values)]
        return found if max(map(abs, found)) < LARGE else None


def bends(case: Case, point: Point, j: int, k: int) -> list[mpmath.mpf] | None:
    """The second difference quotients by operands j and k on all four sides; None as above."""
    with mpmath.workdps(DIGITS):
        exact = [mpmath.mpf(float(x)) for x in point]
        found = []
        for one, other in product((-STEP, STEP), repeat=2):
            values = []
            for s, t in ((0, 0), (one, 0), (0, other), (one, other)):
                moved = list(exact)
                moved[j] += s
                moved[k] += t
                values.append(at(case, moved))
            if any(value is None for value in values):
                return None
            found.append((values[3] - values[1] - values[2] + values[0]) / (one * other))
        return found if max(map(abs, found)) < LARGE else None


GRID = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)


@cache
def points(arity: int, seed: int = 5) -> tuple[Point, ...]:
    """Operands of every sign, equal ones and in every order, with zeros; then random ones."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=(40, arity)) * rng.choice([0.1, 1.0, 5.0], (40, 1))
    return (*product(GRID, repeat=arity), *(tuple(map(float, row)) for row in drawn))
