"""Divided differences (f(x) - f(y))/(x - y): values and derivatives near x = y and at it."""

import mpmath as mp
import numpy as np
import pytest

import slomodel
from tests.rewrite.random_algebra import tree, value
from tests.rewrite.test_random_algebra import fault

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
FUNCTIONS: dict[str, float] = {
    "sinh(x)": 0.5,
    "cosh(x)": -2.0,
    "sin(x)": 3.0,
    "cos(x)": 0.7,
    "tan(x)": 1.0,
    "tanh(x)": 4.0,
    "sigmoid(3 * x)": -20.0,
    "softplus(x)": -30.0,
    "log(cosh(x))": 0.5,
    "atan(x)": -3.0,
    "x * log(x)": 0.2,
    "sqrt(x)": 2.0,
    "cbrt(x)": 2.0,
    "erf(x)": 2.0,
    "erfc(x)": 5.0,
    "normcdf(x)": -12.0,
    "exp(x)": 1.0,
    "log(x)": 3.0,
    "1 / x": 0.3,
    "x^3": 0.3,
    "1 / x^2": 2.0,
    "x^2.5": 1.5,
    "x^0.3": 1.5,
    "x^(-0.5)": 1.5,
}
"""Functions, each with a point. Differences reach from 1e-9 to where they are as written."""
APART = (1e-9, 1e-3, 0.3, 2.5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", FUNCTIONS)
def test_divided_differences(text: str) -> None:
    """Value, gradient and Hessian product to 1e-12, in two spellings."""
    x, k = FUNCTIONS[text], list(FUNCTIONS).index(text)
    other = text.replace("x", "y").replace("eyp", "exp")
    for quotient, d in (
        (f"({text} - {other}) / (x - y)", APART[k % 4]),
        (f"x * ({other} - ({text})) / (2 * y - 2 * x)", APART[(k + 1) % 4]),
    ):
        assert not fault(quotient, (x, x + d), 0, changes=0)


@pytest.mark.parametrize("text", list(FUNCTIONS)[::3])
def test_at_equal_arguments(text: str) -> None:
    """f'(x), with the halves of f''(x) and thirds and sixths of f'''(x) as derivatives."""
    x = FUNCTIONS[text]
    other = text.replace("x", "y").replace("eyp", "exp")
    model = slomodel.compile(f"var x, y minimize ({text} - {other}) / (x - y)", backend="numpy")
    with mp.workdps(60):
        formula = tree(text)
        first, second, third = (
            float(mp.diff(lambda t: value(formula, {"x": t}), mp.mpf(x), n)) for n in (1, 2, 3)
        )
    assert model.value([x, x]) == pytest.approx(first, rel=1e-13)
    np.testing.assert_allclose(model.gradient([x, x]), [second / 2] * 2, rtol=1e-12)
    np.testing.assert_allclose(
        model.hvp([x, x], [1.0, 2.0]),
        [2 * third / 3, 5 * third / 6],
        rtol=1e-12,
        atol=1e-12 * abs(second),
    )


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("(sin(x + y) - sin(x)) / y", (0.5, 1e-9)),
        ("(cosh(x + y) - cosh(x - y)) / (2 * y)", (0.5, 1e-9)),
        ("(x - y) / (tanh(x) - tanh(y))", (0.5, 0.50001)),
        ("(x^2 - 3 * x * y + 2 * y^2) / (x - y)", (0.5, 0.50001)),
        ("(x^4 - 1) / (x - 1) + y", (1.000001, 1.0)),
    ],
)
def test_differences_as_other_factors(text: str, point: tuple[float, ...]) -> None:
    assert not fault(text, point, 0, changes=0)


ENDS: dict[str, tuple[str, float]] = {
    "exp": ("(exp(x) - exp(1)) / (x - 1)", 1.0),
    "log": ("y * (log(x) - log(2)) / (2 - x)", 2.0),
    "sqrt": ("(sqrt(x) - 1) / (x - 1)", 1.0),
    "power": ("(8 - x^1.5) / (4 - x)", 4.0),
    "sin": ("(sin(x) - sin(1)) / (x - 1)", 1.0),
    "softplus": ("(softplus(x) - softplus(1)) / (x - 1)", 1.0),
    "multiple": ("(2 * tanh(x) - 2 * tanh(0.5)) / (1 - 2 * x)", 0.5),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ENDS)
def test_divided_differences_from_a_number(name: str) -> None:
    text, x = ENDS[name]
    assert not fault(text, (x + 1e-7, 3.0)[: 1 + ("y" in text)], seed=0, changes=0)
    model = slomodel.compile(f"var x, y\nminimize {text} + 0 * y", backend="numpy")
    assert np.isfinite(model.gradient([x, 3.0])).all()
