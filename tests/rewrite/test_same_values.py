"""Random expressions have the values, and the lack of values, that NumPy gives them as written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from marks import only
from scipy import special

import slomodel
from slomodel.errors import SlomodelError

Value = Callable[[float, float], np.float64]
Written = tuple[str, Value]
POINTS = ((-1.2, 0.7), (0.8, -0.4), (-0.3, -2.1), (1.3, 0.6))
POWERS = (0.5, 1.5, -0.5, 2.0, 3.0, -1.0, -2.0, 0.25)
FUNCTIONS: dict[str, Callable[[np.float64], np.float64]] = {
    **{name: getattr(np, name) for name in ("sqrt", "log", "exp", "abs", "tanh", "log1p", "expm1")},
    **{name: getattr(np, name) for name in ("cosh", "sinh", "log2", "sin")},
    **{"sigmoid": special.expit, "erf": special.erf, "erfc": special.erfc},
    **{"normcdf": special.ndtr, "softplus": lambda t: np.logaddexp(0.0, t)},
}


def leaf(rng: np.random.Generator) -> Written:
    number = float(rng.choice([0.5, 1.0, 2.0, 3.0, -1.0]))
    leaves: list[Written] = [
        ("x", lambda x, y: np.float64(x)),
        ("x", lambda x, y: np.float64(x)),
        ("y", lambda x, y: np.float64(y)),
        (f"({number})", lambda x, y: np.float64(number)),
    ]
    return leaves[rng.integers(len(leaves))]


def expression(rng: np.random.Generator, depth: int) -> Written:
    """A random expression in x and y: its text, and its value as NumPy computes it."""
    if depth == 0 or rng.random() < 0.12:
        return leaf(rng)
    a, u = expression(rng, depth - 1)
    b, v = (a, u) if rng.random() < 0.2 else expression(rng, depth - 1)
    kinds: list[Written] = [
        (f"({a} * {b})", lambda x, y: u(x, y) * v(x, y)),
        (f"({a} * {b})", lambda x, y: u(x, y) * v(x, y)),
        (f"({a} / {b})", lambda x, y: u(x, y) / v(x, y)),
        (f"({a} + {b})", lambda x, y: u(x, y) + v(x, y)),
        (f"({a} - {b})", lambda x, y: u(x, y) - v(x, y)),
        (f"(1 + {a})", lambda x, y: 1.0 + u(x, y)),
        (f"(1 - {a})", lambda x, y: 1.0 - u(x, y)),
    ]
    pick = rng.integers(len(kinds) + 5)
    if pick < len(kinds):
        return kinds[pick]
    if pick == len(kinds):
        power = float(rng.choice(POWERS))
        return f"({a})^({power})", lambda x, y: np.power(u(x, y), power)
    name = str(rng.choice(list(FUNCTIONS)))
    return f"{name}({a})", lambda x, y: FUNCTIONS[name](u(x, y))


@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
@pytest.mark.parametrize("seed", only(0, range(12)))
def test_random_expressions(seed: int) -> None:
    """A product of square roots, for one, has no value where its factors have none."""
    rng = np.random.default_rng(seed)
    compared = 0
    for _ in range(300):
        text, value = expression(rng, int(rng.integers(2, 5)))
        try:
            model = slomodel.compile(f"var x, y minimize {text} + 0*x + 0*y", backend="numpy")
        except SlomodelError:
            continue  # a constant that has no value, for one
        for x, y in POINTS:
            with np.errstate(all="ignore"):
                expected, found = float(value(x, y)), model.value([x, y])
            if np.isinf([expected, found]).any():
                continue
            assert np.isnan(expected) == np.isnan(found), (text, x, y)
            compared += 1
            if not np.isnan(expected):
                assert found == pytest.approx(expected, rel=1e-7, abs=1e-10), (text, x, y)
    assert compared > 500


@pytest.mark.parametrize(
    "text",
    ["sqrt(x)*sqrt(x)", "sqrt(x)^2", "sqrt(x)^4", "1/sqrt(x)^4", "x^1.5*x^(-0.5)", "x^0.5*x^0.5"],
)
def test_products_of_roots_have_no_value_below_zero(text: str) -> None:
    assert np.isnan(slomodel.compile(f"var x minimize {text}", backend="numpy").value([-1.2]))


@pytest.mark.parametrize("factor", ["1/x", "x^(-2)", "x", "1/(1 + x)", "1 - x", "2 + x", "1 + 2*x"])
def test_factors_of_logarithms_that_are_not_one_more(factor: str) -> None:
    """A quotient 1/x was taken for the sum 1 + x."""
    found = slomodel.compile(f"var x minimize log1p(x) * ({factor})", backend="numpy").value([0.8])
    value = {"1/x": 1.25, "x^(-2)": 1.5625, "x": 0.8, "1/(1 + x)": 1 / 1.8}
    value |= {"1 - x": 0.2, "2 + x": 2.8, "1 + 2*x": 2.6}
    assert found == pytest.approx(np.log1p(0.8) * value[factor], rel=1e-14)
