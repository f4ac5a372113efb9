"""Scalar functions to full accuracy: their SymPy definition evaluated by mpmath."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product

import mpmath
import numpy as np
import sympy as sp
from numpy.typing import NDArray

from slomodel.functions import TABLE, symbols
from slomodel.ir.build import const, variable
from slomodel.ir.expr import Expr
from slomodel.ir.function import DISCONTINUOUS, ScalarFunction
from slomodel.reference import evaluate

# cosh(1e-300) differs from 1 in digit 600; a difference quotient loses a few hundred more.
DIGITS = 1500
# Of these a value takes seconds in so many digits, and their terms are of one size.
SLOW = ("gamma", "rising", "bessel", "beta", "norm", "erfc", "gauss")
FEW_DIGITS = {record: 400 for record in TABLE.values() if any(word in record.name for word in SLOW)}
Point = tuple[float, ...]

EXTREME = (0.0, -0.0, 5e-324, 1e-308, -1e-300, 1e-160, -1e-160, 1e-20, 1e155, -1e155, 1e308, -1e308)
TURNING = (1.0, -1.0, 2.0, -2.0, np.nextafter(2.0, 0.0), 0.5, 3.0, 19.0, 20.0, -37.0, 372.0, 709.0)
BEYOND = (710.0, -710.0, -720.0, 745.0, -745.0, 800.0, -800.0)


def operand_types(function: ScalarFunction) -> tuple[str, ...]:
    return function.operand_types or ("real",) * function.arity


@cache
def definition(function: ScalarFunction) -> Callable[..., object]:
    own = symbols(function)
    return sp.lambdify(own, function.definition(*own), "mpmath")


def exact(function: ScalarFunction, point: Point) -> float | None:
    """The double nearest to the definition's value; NaN where it is not real, None undefined.

    Outside the domain two complex parts may give a real product: i times i pi. At a jump the sign
    of a zero may decide the side: there is no value at -0.
    """
    if any(value == 0.0 and np.signbit(value) for value in point) and jumps(function, point):
        return None
    for value, (low, high) in zip(point, function.domain, strict=False):
        if not low <= value <= high:
            return float("nan")
    if function.undefined is not None and evaluate_at(function.undefined, function, point):
        return None if function.name == "div" else float("nan")
    with mpmath.workdps(FEW_DIGITS.get(function, DIGITS)):
        return as_double(_at(function, [_exact_number(value) for value in point]))


def jumps(function: ScalarFunction, point: Point) -> bool:
    """Whether the function is not continuous at the point."""
    at = [kink.at for kink in function.kinks if kink.order == DISCONTINUOUS]
    return any(one is not None and evaluate_at(one, function, point) for one in at)


def exact_partial(function: ScalarFunction, k: int, point: Point) -> float | None:
    """The derivative by operand k as a central difference of a step 1e-200 times its size."""
    with mpmath.workdps(FEW_DIGITS.get(function, DIGITS)):
        numbers = [_exact_number(value) for value in point]
        step = abs(numbers[k] or mpmath.mpf(1)) * mpmath.mpf(10) ** -200
        ends = []
        for end in (numbers[k] + step, numbers[k] - step):
            ends.append(_at(function, [*numbers[:k], end, *numbers[k + 1 :]]))
        if None in ends:
            return None
        return as_double((ends[0] - ends[1]) / (2 * step))


def _exact_number(value: float) -> object:
    return value if isinstance(value, bool | np.bool_) else mpmath.mpf(float(value))


def _at(function: ScalarFunction, numbers: Sequence[object]) -> object:
    try:
        return definition(function)(*numbers)
    except (ZeroDivisionError, ValueError, OverflowError):
        return None


def as_double(value: object) -> float | None:
    if value is None or (isinstance(value, mpmath.mpf) and mpmath.isnan(value)):
        return None  # a definition says nothing where it is 0 times infinity
    if isinstance(value, mpmath.mpc):
        return float(value.real) if value.imag == 0 else float("nan")
    return float(value)


def points(function: ScalarFunction, seed: int = 7) -> list[Point]:
    """Operands over the whole range of doubles, with zeros, ties and random ones."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-300, 308, 20) * rng.choice([-1.0, 1.0], 20)
    plain = rng.normal(size=20) * 5
    if function.arity == 1 and operand_types(function) == ("real",):
        return [(float(x),) for x in (*EXTREME, *TURNING, *BEYOND, *sizes, *plain)]
    few = (0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, 1e-300, 1e150, -1e308, *plain[:4])
    if function.arity > 2:
        few = (0.0, 1.0, -1.0, 1e300, *plain[:2])
    choices = [(True, False) if kind == "bool" else few for kind in operand_types(function)]
    return [tuple(one) for one in product(*choices)]


def regular_points(function: ScalarFunction, count: int = 12, seed: int = 3) -> list[Point]:
    """Operands inside the domain and off every kink, of sizes 1e-6 to 30."""
    rng = np.random.default_rng(seed)
    domain = function.domain or ((-np.inf, np.inf),) * function.arity
    result = []
    for _ in range(count):
        point: list[float] = []
        for kind, (low, high) in zip(operand_types(function), domain, strict=True):
            size = float(10.0 ** rng.uniform(-6, 1.5))
            both = low == -np.inf and rng.random() < 0.5
            one = -size if both else size
            if not low < one < high:
                one = low + size if high == np.inf else high - size
            if not low < one < high:
                one = low + (high - low) * size / (1.0 + size)
            point.append(bool(rng.random() < 0.5) if kind == "bool" else one)
        result.append(tuple(point))
    return result


def columns(function: ScalarFunction, rows: Sequence[Point]) -> list[NDArray[np.generic]]:
    """One array an operand, of its type."""
    dtype = {"bool": np.bool_, "real": np.float64}
    return [
        np.array([row[k] for row in rows], dtype=dtype[kind])
        for k, kind in enumerate(operand_types(function))
    ]


def evaluate_at(
    build: Callable[..., Expr | None], function: ScalarFunction, point: Point
) -> float | None:
    """`build(*inputs)` at a point; truth values are constants. None if `build` returns None."""
    kinds = operand_types(function)
    inputs = [
        const(bool(value)) if kind == "bool" else variable(f"v{k}", ())
        for k, (kind, value) in enumerate(zip(kinds, point, strict=True))
    ]
    graph = build(*inputs)
    if graph is None:
        return None
    known = {
        node: np.asarray(value)
        for node, value, kind in zip(inputs, point, kinds, strict=True)
        if kind == "real"
    }
    return evaluate([graph], known)[0].item()


def scale(function: ScalarFunction, point: Point) -> float:
    """The magnitude of the terms of a value, 0 where it is no smaller than they are."""
    if function.error_scale is None:
        return 0.0
    return float(function.error_scale(*columns(function, [point]))[0])


def ulps(got: float, want: float, least: float = 0.0) -> float:
    """Distance in units of the last place of `want`, or of `least` where that is larger; equal
    values and two NaNs have none.
    """
    if got == want or (np.isnan(got) and np.isnan(want)):
        return 0.0
    if not np.isfinite(got) or not np.isfinite(want):
        return np.inf
    return abs(got - want) / float(np.spacing(max(abs(want), least)))
