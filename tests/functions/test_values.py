"""Every entry of the table: NumPy meaning, stable form and spellings against the definition."""

import pickle

import numexpr
import numpy as np
import pytest
from numexpr.necompiler import double
from numpy.typing import NDArray
from scipy import special

from slomodel.calculus import gradient
from slomodel.functions import FUNCTIONS, TABLE, add, square, stop_gradient
from slomodel.ir.build import const, variable
from slomodel.ir.function import ScalarFunction
from slomodel.reference import evaluate
from tests.functions.exact_values import (
    Point,
    columns,
    evaluate_at,
    exact,
    operand_types,
    points,
    scale,
    ulps,
)

EVERY = pytest.mark.parametrize("function", TABLE.values(), ids=str)
TARGETS = ("numpy", "scalar", "numexpr")
MEANING_ULPS = 5
SPELLING_ULPS = 6
NAN_STAYS_OUT = {("pow", 1), ("powlog", 1), ("where", 2)}
"""Operands at whose NaN, the others 1, the value is a number: 1 ** NaN, a branch not taken."""


def numpy_value(function: ScalarFunction, point: Point) -> float:
    with np.errstate(all="ignore"):
        return function.numpy(*columns(function, [point]))[0].item()


@pytest.mark.sampled(40)
@EVERY
def test_meaning_is_the_definition(function: ScalarFunction) -> None:
    compared = 0
    for point in points(function):
        want = exact(function, point)
        if want is not None:
            compared += 1
            error = ulps(numpy_value(function, point), want, scale(function, point))
            assert error <= MEANING_ULPS, (point, want)
    assert compared >= 2**function.arity


@EVERY
def test_domain_is_where_the_value_is_finite(function: ScalarFunction) -> None:
    assert len(function.domain) in (0, function.arity)
    for k, (low, high) in enumerate(function.domain):
        assert low < high
        for edge, beyond in ((low, -1.0), (high, 1.0)):
            if np.isfinite(edge):
                point = [1.0] * function.arity
                point[k] = edge + beyond * 1e-9
                assert not np.isfinite(numpy_value(function, tuple(point)))
                point[k] = edge - beyond * 1e-9
                assert np.isfinite(numpy_value(function, tuple(point)))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("function", [f for f in TABLE.values() if f.stable], ids=str)
def test_stable_form_is_the_meaning(function: ScalarFunction) -> None:
    assert function.stable is not None
    for point in points(function):
        got = evaluate_at(function.stable, function, point)
        assert got is not None
        assert ulps(got, numpy_value(function, point)) <= SPELLING_ULPS, point


def spelled(function: ScalarFunction, target: str, rows: list[Point]) -> NDArray[np.generic]:
    """The values that the spelling of a target gives."""
    operands = columns(function, rows)
    names = [f"v{k}" for k in range(function.arity)]
    template = function.spelling[target]
    if target == "numexpr":
        kinds = [bool if kind == "bool" else double for kind in operand_types(function)]
        signature = list(zip(names, kinds, strict=True))
        return numexpr.NumExpr(template.format(*names), signature)(*operands)
    space = {"np": np, "special": special, **dict(zip(names, operands, strict=True))}
    with np.errstate(all="ignore"):
        if target == "numpy":
            space["out"] = np.empty(len(rows), bool if function.result == "bool" else float)
            exec(template.format(*names, out="out"), space)
            return space["out"]
        values = []
        for row in zip(*operands, strict=True):
            values.append(
                eval(template.format(*names), {**space, **dict(zip(names, row, strict=True))})
            )
        return np.array(values)


SPELLED = [(f, target) for f in TABLE.values() for target in TARGETS if target in f.spelling]


@pytest.mark.parametrize(("function", "target"), SPELLED, ids=str)
def test_spelling_is_the_meaning(function: ScalarFunction, target: str) -> None:
    rows = points(function) + not_numbers(function)
    got = spelled(function, target, rows)
    assert got.dtype == (bool if function.result == "bool" else float)
    for point, value in zip(rows, got, strict=True):
        error = ulps(value.item(), numpy_value(function, point), scale(function, point))
        assert error <= SPELLING_ULPS, point


@EVERY
def test_every_target_can_print_it(function: ScalarFunction) -> None:
    assert set(function.spelling) <= {*TARGETS, "c"}
    if function.stable is None:
        # What numexpr lacks runs as a step of NumPy.
        assert {"numpy", "scalar", "c"} <= set(function.spelling)


def not_numbers(function: ScalarFunction) -> list[Point]:
    """Points with one NaN, the others 1 or true."""
    kinds = operand_types(function)
    ones = [kind == "bool" or 1.0 for kind in kinds]
    real = [k for k, kind in enumerate(kinds) if kind == "real"]
    return [(*ones[:k], np.nan, *ones[k + 1 :]) for k in real]


@pytest.mark.parametrize("function", [f for f in TABLE.values() if f.result == "real"], ids=str)
def test_a_nan_stays_a_nan(function: ScalarFunction) -> None:
    for point in not_numbers(function):
        k = next(k for k, value in enumerate(point) if np.isnan(value))
        values = [numpy_value(function, point)]
        if function.stable is not None:
            values.append(evaluate_at(function.stable, function, point))
        for value in values:
            assert np.isnan(value) == ((function.name, k) not in NAN_STAYS_OUT)


@EVERY
def test_record_survives_pickling(function: ScalarFunction) -> None:
    assert pickle.loads(pickle.dumps(function)) is function


def test_names_of_the_language_stay() -> None:
    listed = (
        "exp log log1p expm1 sqrt sin cos tan sinh cosh tanh asinh atan sigmoid softplus logcosh "
        "erf square pow huber abs sign max min relu where clip"
    )
    assert set(FUNCTIONS) >= set(listed.split())
    assert set(FUNCTIONS.values()) <= set(TABLE.values())


@pytest.mark.parametrize(
    ("name", "x", "value"),
    [
        ("logcosh", 1e-9, 5e-19),
        ("sech2", 20.0, 1.699341702116636e-17),
        ("sech2", 1000.0, 0.0),
        ("sigmoid", -720.0, 2.0322308e-313),
        ("softplus", 1000.0, 1000.0),
        ("softplus", -np.inf, 0.0),
        ("logcosh", np.inf, np.inf),
        ("sigmoid", np.inf, 1.0),
        ("huber", np.inf, np.inf),
        ("hypot", 1e200, 1e200),
        ("hypot", np.inf, np.inf),
        ("logaddexp", 1000.0, 1000.0),
        ("logaddexp", -np.inf, 1.0),
        ("xlogx", 0.0, 0.0),
        ("xlogx", np.inf, np.inf),
    ],
)
def test_extremes(name: str, x: float, value: float) -> None:
    function = TABLE[name]
    point = (x, 1.0)[: function.arity]
    assert numpy_value(function, point) == pytest.approx(value, rel=1e-8, abs=0)


@pytest.mark.parametrize(
    ("name", "point", "value"),
    [
        ("hypot", (3e200, -4e200), 5e200),
        ("hypot", (3e-200, 4e-200), 5e-200),
        ("hypot", (0.0, 0.0), 0.0),
        ("hypot", (np.inf, np.inf), np.inf),
        ("hypot", (np.inf, np.nan), np.nan),
        ("logaddexp", (1000.0, 1000.0), 1000.6931471805599),
        ("logaddexp", (-1000.0, -1000.0), -999.3068528194401),
        ("logaddexp", (np.inf, np.inf), np.inf),
        ("logaddexp", (-np.inf, -np.inf), -np.inf),
    ],
)
def test_extremes_of_two_operands(name: str, point: Point, value: float) -> None:
    """Both the NumPy meaning and the form for targets without a spelling."""
    function = TABLE[name]
    assert function.stable is not None
    stable = evaluate_at(function.stable, function, point)
    for got in (numpy_value(function, point), stable):
        assert got == pytest.approx(value, rel=1e-15, abs=0, nan_ok=True)


def test_still_is_the_number_without_derivative() -> None:
    x = variable("x", ())
    (by_x,) = gradient(add(square(stop_gradient(x)), x), [x])
    assert by_x is const(1.0)
    assert evaluate([stop_gradient(x)], {x: np.asarray(3.0)})[0] == 3.0
    assert stop_gradient.name not in TABLE
