"""Derivatives where an exponential overflows and the value has reached its limit."""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest

import slomodel
from slomodel.functions import TABLE, limited
from slomodel.ir.expr import Map
from slomodel.ir.walk import postorder
from slomodel.rewrite.exponentials.limited_exponents import with_limited_exponents
from tests.rewrite.test_removable import exact
from tests.rewrite.texts import problem_of

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")

E = mp.exp
LEAST = 1e-149
"""Values below may differ: those of roots and of powers of divisors."""
CASES: dict[str, tuple[Callable[..., object], tuple[tuple[float, ...], ...]]] = {
    "1 / (exp(x) + exp(-x))": (lambda x: mp.sech(x) / 2, ((0.3,), (720.0,), (-1e5,))),
    "1 / cosh(x)^2": (lambda x: mp.sech(x) ** 2, ((0.3,), (720.0,), (-1e5,))),
    "x / sinh(x)": (lambda x: x / mp.sinh(x), ((0.3,), (720.0,), (-1e5,))),
    "3 / (1 + 0.5 * exp(-2 * (x - 1)))": (
        lambda x: 3 / (1 + E(-2 * (x - 1)) / 2),
        ((0.3,), (-800.0,), (1e4,)),
    ),
    "1 / sqrt(1 + exp(x))": (lambda x: 1 / mp.sqrt(1 + E(x)), ((0.3,), (1e4,), (-800.0,))),
    "1 / (1 + exp(-x))^3": (lambda x: (1 + E(-x)) ** -3, ((0.3,), (-1e4,), (800.0,))),
    "x / (1 + 10^(y - 7))": (lambda x, y: x / (1 + 10 ** (y - 7)), ((2.0, 400.0), (2.0, 7.3))),
    "1 / (1 + 0.5^x)^2": (lambda x: (1 + mp.mpf(0.5) ** x) ** -2, ((0.3,), (-2000.0,), (2e3,))),
    "3 * exp(-2 * exp(-0.5 * x))": (lambda x: 3 * E(-2 * E(-x / 2)), ((0.3,), (-1600.0,))),
    "exp(x - exp(x))": (lambda x: E(x - E(x)), ((0.3,), (800.0,), (-800.0,))),
    "tanh(exp(x))": (lambda x: mp.tanh(E(x)), ((0.3,), (800.0,), (-800.0,))),
    "erf(exp(x))": (lambda x: mp.erf(E(x)), ((0.3,), (800.0,), (-800.0,))),
    "y / (1 + 9 / exp(2 * x))": (
        lambda x, y: y / (1 + 9 * E(-2 * x)),
        ((0.3, 2.0), (-400.0, 2.0)),
    ),
    "y / (1 + x * exp(-2 * y))": (
        lambda x, y: y / (1 + x * E(-2 * y)),
        ((3.0, 0.3), (1.0, -800.0), (1.0, 800.0)),
    ),
    "exp(-(exp(x) - 1) * y)": (lambda x, y: E(-mp.expm1(x) * y), ((0.3, 1.0), (800.0, 0.1))),
    "1 / (1 + exp(x) + exp(y))": (lambda x, y: 1 / (1 + E(x) + E(y)), ((800.0, 900.0),)),
    "exp(x) / (1 + exp(x) + exp(y))": (
        lambda x, y: E(x) / (1 + E(x) + E(y)),
        ((800.0, 900.0), (800.0, 800.5), (-800.0, 2.0)),
    ),
    # A small factor or another term may bring a large exponential back to moderate numbers.
    "exp(-exp(x) * exp(y))": (lambda x, y: E(-E(x + y)), ((-200.0, 201.0), (400.3, -400.0))),
    "1 / (1 + exp(x) * sinh(y))": (
        lambda x, y: 1 / (1 + E(x) * mp.sinh(y)),
        ((-400.0, 401.0), (400.0, 1e-174)),
    ),
    "1 / (1 + 1e-305 * exp(x))": (lambda x: 1 / (1 + mp.mpf(1e-305) * E(x)), ((705.0,), (700.0,))),
    "tanh(exp(x) * (1 - tanh(y)))": (
        lambda x, y: mp.tanh(E(x) * (1 - mp.tanh(y))),
        ((350.0, 175.1), (300.0, 150.3)),
    ),
    "exp(-abs(exp(x) - exp(y)))": (
        lambda x, y: E(-abs(E(x) - E(y))),
        ((346.0, 347.0), (5.0, 5.25)),
    ),
    "x * exp(y) / (1 + x * (exp(y) - 1))": (
        lambda x, y: x * E(y) / (1 + x * mp.expm1(y)),
        ((0.1, 800.0), (0.1, -800.0), (0.3, 1e-9)),
    ),
}


@pytest.mark.parametrize("text", CASES)
def test_values_and_derivatives(text: str) -> None:
    formula, points = CASES[text]
    names = ("x", "y")[: len(points[0])]
    model = slomodel.compile(f"var {', '.join(names)}\nminimize {text}", backend="numpy")
    v = (1.0,) if len(names) == 1 else (0.6, -0.8)
    for point in points:
        value, slope, second = exact(formula, point, v)
        assert model.value(point) == pytest.approx(value, rel=1e-13, abs=LEAST)
        assert model.gradient(point) @ v == pytest.approx(slope, rel=1e-12, abs=LEAST)
        product = model.hvp(point, v) @ v
        assert product == pytest.approx(second, rel=1e-11, abs=1e-12 * abs(slope) + LEAST)


def test_sums_over_data_on_another_target() -> None:
    """Logistic and Gompertz growth from a start from which both exponentials overflow."""
    text = (
        "dim n\ndata t[n]\nvar K, r\nminimize sumsq(K ./ (1 + 9 * exp(-r * t)) - 1)"
        " + sumsq(K * exp(-5 * exp(-r * t)) - 1)"
    )
    t = np.array([1.0, 10.0, 60.0])
    for backend in ("numpy", "c"):
        model = slomodel.compile(text, data={"t": t}, backend=backend)
        value, gradient = model.value_and_gradient([2.0, -900.0])
        assert value == 6.0
        np.testing.assert_allclose(gradient, 0.0, atol=1e-140)
        np.testing.assert_allclose(model.hvp([2.0, -900.0], [1.0, 1.0]), 0.0, atol=1e-140)


@pytest.mark.parametrize(
    "text",
    [
        "exp(x) + 1 / (1 + exp(2 * x))^2 * exp(3 * x)",
        "exp(y) * (1 / (2 + exp(x)))",
        "log(1 + 2 * exp(x)) + x",
        "(2 + exp(x))^0.3",
        "1 / (2 + log(exp(x) + exp(y)^2 + 3))",
    ],
)
def test_where_the_objective_may_grow_nothing_is_limited(text: str) -> None:
    objective = problem_of(text).objective
    found = with_limited_exponents(objective)
    assert not any(isinstance(n, Map) and n.function is limited for n in postorder(found))
    assert limited.name not in TABLE
