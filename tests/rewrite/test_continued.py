"""Formulas whose terms or poles cancel at a point: values and derivatives near it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import slomodel
from slomodel.functions.removable import BERNOULLI, LOG_SINH_QUOTIENT, QUOTIENTS
from slomodel.ir.function import defined
from slomodel.rewrite.series.continued import continued
from slomodel.rewrite.series.laurent import SERIES, identity
from tests.rewrite.test_removable import exact
from tests.rewrite.texts import problem_of

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")

E, L, S = mp.exp, mp.log, mp.sqrt
NEAR = (1e-100, -1e-12, 1e-6, -0.01, 0.4, 1.9)
SMALL = (1e-100, -1e-12, 1e-6, -0.01, 0.4)
POINT = (0.0, *NEAR)
ONE: dict[str, tuple[Callable[..., object], tuple[float, ...]]] = {
    "x - sin(x)": (lambda x: x - mp.sin(x), NEAR),
    "1 - cos(x)": (lambda x: 2 * mp.sin(x / 2) ** 2, NEAR),
    "2 * (sqrt(1 + x^2) - 1)": (lambda x: 2 * (S(1 + x * x) - 1), NEAR),
    "sqrt(4 + x^2) - 2": (lambda x: S(4 + x * x) - 2, NEAR),
    "1 - sqrt(1 - x)": (lambda x: 1 - S(1 - x), SMALL),
    "(1 + x)^0.3 - 1": (lambda x: (1 + x) ** mp.mpf(0.3) - 1, SMALL),
    "1 / sqrt(1 - x^2) - 1": (lambda x: 1 / S(1 - x * x) - 1, SMALL),
    "tan(x) - x": (lambda x: mp.tan(x) - x, SMALL),
    "x - tanh(x)": (lambda x: x - mp.tanh(x), NEAR),
    "asinh(x) - x": (lambda x: mp.asinh(x) - x, NEAR),
    "exp(x) - 1 - x - x^2 / 2": (lambda x: E(x) - 1 - x - x * x / 2, NEAR),
    "log(1 + exp(x)) - log(2)": (lambda x: L((1 + E(x)) / 2), (1e-12, -1e-6, 0.4, 30.0)),
    "1 + tanh(x)": (lambda x: 2 / (1 + E(-2 * x)), (0.3, -30.0, 2.0)),
    "(exp(2 * x) - exp(-x)) / x": (lambda x: (E(2 * x) - E(-x)) / x, POINT),
    "log(cosh(x)) / x^2": (lambda x: L(mp.cosh(x)) / x**2, (*POINT, 800.0)),
    "3 * (sin(x) - x * cos(x)) / x^3": (
        lambda x: 3 * (mp.sin(x) - x * mp.cos(x)) / x**3,
        (0.0, -1e-12, 1e-6, -0.01, 0.4, 1.9),
    ),
    "sin(x) / x^2 - cos(x) / x": (lambda x: mp.sin(x) / x**2 - mp.cos(x) / x, POINT),
    "2 / tanh(2 * x) - 1 / tanh(x)": (mp.tanh, POINT),
    "(exp(x) + exp(-x)) / (exp(x) - exp(-x)) - 1 / x": (
        lambda x: mp.coth(x) - 1 / x,
        (*POINT, 800.0),
    ),
    "1 / x^2 - 1 / sin(x)^2": (lambda x: 1 / x**2 - mp.csc(x) ** 2, POINT),
    "1 / log(1 + x) - 1 / x": (lambda x: 1 / mp.log1p(x) - 1 / x, (0.0, *SMALL)),
    "(sqrt(1 + 2 * x) - 1) / x": (lambda x: (S(1 + 2 * x) - 1) / x, (0.0, *SMALL)),
    "(sin(x) / x - cos(x)) / x^2": (
        lambda x: (mp.sin(x) - x * mp.cos(x)) / x**3,
        (-1e-12, 1e-6, -0.01, 0.4, 1.9),
    ),
    "2 * (1 - (1 - exp(-x)) / x) / x": (lambda x: 2 * (1 + mp.expm1(-x) / x) / x, (1e-9, 0.3, 9.0)),
    "(x / tanh(x) - 1) / x^2": (lambda x: (x * mp.coth(x) - 1) / x**2, (1e-9, 0.3, 9.0)),
    "log(1 - cos(x))": (lambda x: L(2 * mp.sin(x / 2) ** 2), (1e-50, 1e-6, 0.4, 1.9)),
}
RATES = [(1e-100, 2.0), (1e-9, 2.5), (1e-3, 20.0), (0.05, 360.0)]
CLOSE = [(a, a * (1.0 + q)) for a in (1e-5, 300.0) for q in (1e-12, -1e-6, 1e-3, 0.2, 1.5)]
TWO: dict[str, tuple[Callable[..., object], list[tuple[float, float]]]] = {
    "y * x / (1 - (1 + x)^(-30))": (lambda x, y: y * x / (1 - (1 + x) ** -30), RATES),
    "(1 - (1 + x)^(-y)) / x": (lambda x, y: (1 - (1 + x) ** -y) / x, RATES),
    "y * (sin(x) - x * cos(x)) / x^3": (
        lambda x, y: y * (mp.sin(x) - x * mp.cos(x)) / x**3,
        [(1e-50, 2.0), (1e-6, 0.5), (0.4, 3.0)],
    ),
    "2 * (y * log(y / x) - (y - x))": (lambda x, y: 2 * (y * L(y / x) - y + x), CLOSE),
    "x - y * log(x) + y * log(y) - y": (lambda x, y: y * L(y / x) - y + x, CLOSE),
    "-2 * (y * log(x / y) + y - x)": (lambda x, y: 2 * (y * L(y / x) - y + x), CLOSE),
    "2 * y * (log(y) - log(x)) + 2 * (x - y)": (
        lambda x, y: 2 * (y * L(y / x) - y + x),
        CLOSE,
    ),
    "x / y - log(x / y) - 1": (lambda x, y: x / y - L(x / y) - 1, CLOSE),
    "log(x / y) + (y - x) / x": (lambda x, y: y / x - L(y / x) - 1, CLOSE),
    "x * log(x / y) + (1 - x) * log((1 - x) / (1 - y))": (
        lambda x, y: x * L(x / y) + (1 - x) * L((1 - x) / (1 - y)),
        [(0.3, 0.3000001), (0.3, 0.9), (1e-5, 1.00001e-5)],
    ),
}
CASES: list[tuple[str, Callable[..., object], list[tuple[float, ...]]]] = [
    *((text, f, [(x,) for x in points]) for text, (f, points) in ONE.items()),
    *((text, f, list(points)) for text, (f, points) in TWO.items()),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("backend", ["numpy", "numexpr"])
@pytest.mark.parametrize(("text", "formula", "points"), CASES, ids=[one[0] for one in CASES])
def test_values_and_derivatives(
    text: str, formula: Callable[..., object], points: list[tuple[float, ...]], backend: str
) -> None:
    """To a few roundings of the value, and of the numbers at which it is taken."""
    compare(text, formula, points, backend)


def test_another_target() -> None:
    text = "3 * (sin(x) - x * cos(x)) / x^3"
    compare(text, *next(one[1:] for one in CASES if one[0] == text), "c")


def compare(
    text: str, formula: Callable[..., object], points: list[tuple[float, ...]], backend: str
) -> None:
    names = ("x", "y")[: len(points[0])]
    model = slomodel.compile(f"var {', '.join(names)}\nminimize {text}", backend=backend)
    v = (1.0,) if len(names) == 1 else (0.6, -0.8)
    for point in points:
        value, slope, second = exact(formula, point, v)
        along = [abs(exact(formula, point, e)[1]) for e in np.eye(len(point))]
        moved = float(np.dot(along, np.abs(point)))
        size = max(map(abs, point))
        assert model.value(point) == pytest.approx(value, rel=2e-14, abs=1e-15 * moved + 1e-200)
        assert model.gradient(point) @ v == pytest.approx(
            slope, rel=1e-12, abs=1e-14 * (abs(second) * size + max(along) * 10.0**-2)
        )
        product = model.hvp(point, v) @ v
        assert product == pytest.approx(
            second, rel=1e-10, abs=1e-14 * max(1.0, max(along) / (size or 1.0))
        )


def test_long_sums_are_left_as_they_are() -> None:
    """What an element loses is below the rounding of the sum; poles are continued all the same."""
    for text, is_changed in (
        ("sum(1 - cos(v[i]) for i in 3)", False),
        ("sumsq(1 - cos(v))", True),
        ("sum((x + 1) * log(1 - cos(v)))", False),
        ("sum(2 ./ tanh(2 * v) - 1 ./ tanh(v))", True),
        ("sum(log(cosh(v)) ./ v^2)", True),
    ):
        objective = problem_of(text).objective
        assert (continued(objective) is not objective) == is_changed, text


SUMS: dict[str, tuple[list[float], list[float]]] = {
    "sum(d[i] * sin(x) / x for i in n)": ([2.0], [0.0]),
    "sum(d[i] * sin(d[i] * x) / x for i in n)": ([14.0], [0.0]),
    "sum(d[i] * (1 - exp(-d[i] * x)) / x for i in n)": ([14.0], [-10.0]),
    "sum(d[i] * (exp(2 * x) - exp(-x)) / x for i in n)": ([6.0], [3.0]),
    "sum(d[i] / x * tanh(x) for i in n)": ([2.0], [0.0]),
    "sum(d[i] * (exp(d[i] * x) - exp(-x)) / x for i in n)": ([16.0], [9.0]),
}
"""Sums with d = (1, -2, 3), and their values and derivatives at x = 0."""


@pytest.mark.parametrize("text", SUMS)
def test_poles_in_sums_over_data(text: str) -> None:
    data = {"d": np.array([1.0, -2.0, 3.0])}
    model = slomodel.compile(
        f"dim n\ndata d[n]\nvar x\nminimize {text}", data=data, backend="numpy"
    )
    value, gradient = SUMS[text]
    assert model.value([0.0]) == pytest.approx(value[0], rel=1e-14)
    np.testing.assert_allclose(model.gradient([0.0]), gradient, rtol=1e-12, atol=1e-14)


def test_a_common_factor_leaves_a_function_alone() -> None:
    """Of a σ(-x) + 0 a the factor a leaves σ(-x) + 0."""
    for text in ("a / (1 + exp(x)) + 0 * a", "0 * a - a / (1 + exp(x))", "a * exp(x) + 0 * a"):
        model = slomodel.compile(f"var x, a minimize {text}", backend="numpy")
        exact = {"a * exp(x) + 0 * a": 3.0 * np.exp(0.5)}.get(text, 3.0 / (1.0 + np.exp(0.5)))
        assert abs(model.value([0.5, 3.0])) == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize("name", sorted(set(SERIES) - {"bose", "log", "sqrt"}))
def test_series_are_those_of_the_functions(name: str) -> None:
    """Their sums at 1/8, against the functions themselves."""
    for family in (*QUOTIENTS.values(), BERNOULLI, LOG_SINH_QUOTIENT):
        family.member(0)
    u = Fraction(1, 8)
    found = SERIES[name](identity(24))
    total = sum(c * u ** (found.order + k) for k, c in enumerate(found.coefficients))
    assert float(total) == pytest.approx(float(defined(name).numpy(np.array(0.125))), rel=1e-14)
