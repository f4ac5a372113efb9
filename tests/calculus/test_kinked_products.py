"""Smoothness of products of |t| and relu(t) with factors that vanish at the same point."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import slomodel

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
SMOOTH = [
    "abs(x)^3",
    "x*abs(x)",
    "abs(x)*x",
    "abs(x^3)",
    "x^2*abs(x)",
    "abs(x)^2.5",
    "relu(x)*x",
    "relu(x)*abs(x)",
    "-2*x*abs(3*x)",
    "x*abs(x)/7",
    "abs(x)*y*x*abs(y)",
    "(abs(x)*y)^2*(y + 1)",
    "exp(x*abs(x))",
    "relu(x*y)^2",
    "abs(x*abs(x))",
    "min(x, 0)^3",
    "max(x, -x)^3",
    "x^3*sign(x)",
    "cosh(abs(x))",
    "abs(x*y)*tanh(abs(x*y))",
    "log(cosh(abs(x)))",
    "where(abs(x) > 1, (abs(x) - 1)^2, 0)",
    "where(2 < abs(x), 1 + 3*(abs(x) - 2)^2*y, 1)",
    "where(sqrt(x^2 + y^2) > 1, (sqrt(x^2 + y^2) - 1)^2, 0)",
    "abs(-3*exp(x))",
    "abs(2/(1 + x^2)) + relu(-cosh(x)/(y^2 + 3))",
    "abs(normcdf(x)*2^y)*y",
    "max(sigmoid(x)*softplus(y), 0) + sign(-exp(x))",
    "abs(x^2 + exp(y)) + abs(exp(x) + softplus(y))",
    "abs(exp(x)/y)*y^2",
]
ROUGH = [
    "where(abs(x) > 0.5, 1, 1 + 0*abs(x))",
    "where(abs(x) > -1, (abs(x) + 1)^2, 0)",
    "where(abs(x) >= 0, abs(x), 0)",
    "where(abs(x) > 1, (abs(x) - 1)^2, 0) + abs(x)",
    "where(abs(x) > 1, (abs(x) - 1)^2*abs(y), 0)",
    "abs(x)*y",
    "min(x, 0)*(x + 1)",
    "max(x, y)^3",
    "tanh(abs(x))",
    "cosh(abs(x) + 1)",
    "abs(x)*abs(y)",
    "x*abs(y)",
    "abs(abs(x) - 1)^3",
    "relu(x)*(x + 1)",
    "abs(exp(x)*y)",
    "abs(exp(x) - 1)",
    "abs(exp(x) + y)",
    "abs(sinh(x)/cosh(x))",
    "abs(x^2 - 1 + exp(y))",
    "max(exp(x), exp(y))",
    "abs((-2)^3*x)",
]


@pytest.mark.parametrize("text", SMOOTH)
def test_no_warning_of_a_kink_that_is_none(text: str) -> None:
    slomodel.compile(f"var x, y minimize {text} + y^2", strict=True, backend="numpy")


@pytest.mark.parametrize("text", ROUGH)
def test_a_kink_that_is_one_is_warned_of(text: str) -> None:
    with pytest.raises(slomodel.ModelSyntaxError, match="kink"):
        slomodel.compile(f"var x, y minimize {text}", strict=True, backend="numpy")


@pytest.mark.parametrize(
    ("text", "L1", "L2"),
    [
        ("abs(x)^3", 6.0, 6.0),
        ("x*abs(x)", 2.0, math.inf),
        ("abs(x^3)", 6.0, 6.0),
        ("x^2*abs(x)^3", 20.0, 60.0),
        ("relu(x)*x", 2.0, math.inf),
        ("1e-13*abs(1e5*x)*x", 2e-8, math.inf),
        ("abs(x)^2.5", 3.75, math.inf),
        ("min(x, 0)^3", 6.0, 6.0),
        ("max(x, -x)^3", 6.0, 6.0),
        ("x^3*sign(x)", 6.0, 6.0),
        ("cosh(abs(x))", math.cosh(1.0), math.sinh(1.0)),
    ],
)
def test_bounds_on_the_unit_ball_are_the_constants(text: str, L1: float, L2: float) -> None:
    found = slomodel.compile(f"var x minimize {text}", backend="numpy").bounds(
        [0.0], 1.0, effort="quick"
    )
    assert L1 <= found.L1 <= L1 * (1.0 + 1e-9)
    assert L2 <= found.L2
    assert found.L2 <= L2 * (1.0 + 1e-9)


@pytest.mark.parametrize("text", ["sum(abs(x[i])^3 for i in n)", "sum(x .* abs(x))", "x @ abs(x)"])
def test_sums_of_such_products(text: str) -> None:
    model = slomodel.compile(f"dim n = 3 var x[n] minimize {text}", strict=True, backend="numpy")
    assert model.bounds(np.zeros(3), 1.0, effort="quick").L1 < 6.1


@pytest.mark.sampled(18)
@pytest.mark.parametrize(
    ("kinked", "a", "b"), list(itertools.product(("abs", "relu"), (1, 2, 3), (0, 1, 2)))
)
@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
def test_bounds_hold_across_the_kink(kinked: str, a: int, b: int) -> None:
    """Quotients of gradients over pairs on both sides of 0, at distances down to 1e-12."""
    text = f"var x, y minimize {kinked}(2*x)^{a}*x^{b}*(1 + y^2) + {kinked}(y)^{a}*x*y^{b}"
    model = slomodel.compile(text, backend="numpy")
    found = model.bounds([0.0, 0.0], 0.5)
    steepest = 0.0
    for distance in (1e-12, 1e-6, 0.1):
        for u in np.linspace(-0.3, 0.3, 5):
            for axis in (0, 1):
                above, below = np.full(2, u), np.full(2, u)
                above[axis], below[axis] = distance, -distance
                gap = model.gradient(above) - model.gradient(below)
                steepest = max(steepest, float(np.linalg.norm(gap)) / (2.0 * distance))
    assert steepest <= found.L1 * (1.0 + 1e-3)
    odd = kinked == "relu" or a % 2 == 1
    assert math.isinf(found.L1) == (odd and a + b == 1)


@pytest.mark.parametrize("base", ["d^2*exp(x) + y^2", "y^2 + abs(d)*2^x", "(d*exp(x))^2 + abs(y)"])
def test_data_that_are_0_leave_a_kink(base: str) -> None:
    text = f"data d var x, y minimize (3 + x)*abs({base})^1.25"
    at_kink = np.zeros(2)
    ends = np.array([[0.5, 0.6], [0.3, -0.8]])
    for d in (0.0, 1.0):
        model = slomodel.compile(text, data={"d": d}, backend="numpy")
        largest = max(np.linalg.norm(model.hessian(x), 2) for x in ends)
        assert largest <= model.bounds(at_kink, 1.0).L1
