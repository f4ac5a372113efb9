"""Spellings of one function by random algebra agree near its edges."""

from __future__ import annotations

import warnings

import mpmath as mp
import numpy as np
import pytest

import slomodel
from tests.rewrite.random_algebra import spelling, tree, value, written

FORMULAS: list[tuple[str, tuple[float, ...]]] = [
    ("log(exp(x) + 2 * exp(y))", (800.0, 790.0)),
    ("log(exp(x) - exp(y))", (800.0, 799.5)),
    ("log(exp(x - y) + 1) - x", (-750.0, 60.0)),
    ("(exp(x) - 1) / x", (1e-9,)),
    ("x / (exp(x) - 1)", (1e-7,)),
    ("x^2 * exp(x) / (exp(x) - 1)^2", (1e-6,)),
    ("log(normcdf(x))", (-30.0,)),
    ("x * normcdf(x)", (-9.0,)),
    ("log(sigmoid(x) * sigmoid(y))", (-800.0, 40.0)),
    ("softplus(x) - softplus(y)", (-40.0, -41.0)),
    ("exp(x) - 1 - x + y^2", (1e-5, 1e-6)),
    ("x - sin(x)", (1e-3,)),
    ("x * log(x / y) - x + y", (0.3, 0.3000001)),
    ("log(y / x) + x^2 / (2 * y^2) - 0.5", (0.3, 0.3000001)),
    ("x^2 / y - 2 * x + y", (0.3, 0.3000001)),
    ("x - 1 - log(x)", (1.0000001,)),
    ("sqrt(x + 1) - sqrt(x)", (1e12,)),
    ("sqrt(x^2 + 1) - x", (1e7,)),
    ("1 / (1 + exp(x) + exp(y))", (800.0, 790.0)),
    ("exp(-exp(-x))", (-6.5,)),
    ("log(1 - exp(-exp(x)))", (-50.0,)),
    ("log(cosh(x))", (800.0,)),
    ("1 - tanh(x)", (30.0,)),
    ("exp(-x) * sinh(y)", (750.0, 749.0)),
    ("(cosh(x) - 1) / x^2", (1e-6,)),
    ("1 - cos(x)", (1e-8,)),
    ("exp(x) / (exp(x) + exp(y))", (800.0, 799.0)),
    ("log(1 + x * exp(y))", (0.125, 800.0)),
    ("log(x + (1 - x) * exp(-y))", (1e-20, 50.0)),
    ("exp(x) / sigmoid(y)", (-760.0, -761.0)),
    ("3 * sigmoid(x) / sigmoid(y)", (-760.0, -761.0)),
    ("normcdf(x) / normcdf(y)", (-39.0, -39.5)),
    ("expm1(x + y) * sigmoid(-x)", (800.0, 2.0)),
    ("exp(x + y) / (1 + exp(x))^2", (800.0, 799.0)),
    ("(1 + exp(x))^3 * exp(y - 3 * x)", (800.0, 1.5)),
    ("exp(x) * cosh(y) / exp(y)", (-2.0, 800.0)),
    ("exp(x / 2) / sqrt(exp(x) + exp(y))", (800.0, 799.0)),
    ("exp((x - y) / 2) / exp(-x)", (-800.0, -2300.0)),
    ("exp(-(x - y)^2 / 2) / normcdf(x - y + 1)", (-50.0, 2.0)),
    ("y + exp(x) * softplus(-x)", (800.0, 2.0)),
    ("y * log(softplus(x))", (-800.0, 2.0)),
    ("log(tanh(x))", (30.0,)),
    ("log(sqrt(1 + exp(2 * x)))", (-40.0,)),
    ("x^y / y - 1 / y", (2.0, 1e-9)),
    ("exp(x * y) / x - 1 / x", (1e-9, 2.0)),
    ("log(2 / (2 - x))", (1e-9,)),
    ("cosh(x) - sinh(x)", (30.0,)),
    ("3 / (1 + exp(-x))^(1 / y)", (-500.0, 1.5)),
    ("log((1 + exp(x))^(1 / y))", (800.0, 0.5)),
    ("(exp(x) + exp(y))^0.3", (800.0, 801.0)),
    ("log(cosh(x) - 1)", (800.0,)),
    ("(tanh(x) - tanh(y)) / (x - y)", (0.5, 0.5000001)),
    ("(softplus(x) - softplus(y)) / (x - y)", (-30.0, -30.00001)),
]
"""Formulas, each with a point near an edge."""
LEAST = 1e-149
"""Values below may differ: those of roots of divisors that overflow."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("text", "point"), FORMULAS, ids=[text for text, _ in FORMULAS])
def test_spellings_agree(text: str, point: tuple[float, ...]) -> None:
    compare(text, point, range(1))


@pytest.mark.slow
@pytest.mark.parametrize(("text", "point"), FORMULAS, ids=[text for text, _ in FORMULAS])
def test_many_spellings_agree(text: str, point: tuple[float, ...]) -> None:
    compare(text, point, range(1, 30))


def compare(text: str, point: tuple[float, ...], seeds: range) -> None:
    """Value, gradient and Hessian product to 1e-12, beside roundings of the point itself."""
    found = [fault(text, point, seed) for seed in seeds]
    assert not any(found), "\n".join(one for one in found if one)


def fault(text: str, point: tuple[float, ...], seed: int, changes: int = 4) -> str:
    """What a spelling gets wrong; empty where it agrees."""
    names = ("x", "y")[: len(point)]
    with mp.workdps(60):
        at = {name: mp.mpf(x) for name, x in zip(names, point, strict=True)}
        spelt = written(spelling(tree(text), np.random.default_rng(seed), at, changes))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", slomodel.ModelWarning)
        model = slomodel.compile(f"var {', '.join(names)}\nminimize {spelt}", backend="numpy")
        v = np.array((1.0, -0.7))[: len(point)]
        got = [[model.value(point)], model.gradient(point), model.hvp(point, v)]
    wrong = ""
    for order, (own, (wanted, slack)) in enumerate(zip(got, exact(text, point), strict=True)):
        if not np.all(np.abs(np.subtract(own, wanted)) <= slack):
            wrong += f"{spelt} at {point}: derivative {order} {own}, not {wanted}; "
    return wrong


def exact(text: str, point: tuple[float, ...]) -> list[tuple[list[float], np.ndarray]]:
    """Value, gradient and Hessian product, each with the error that is allowed."""
    names, formula, n = ("x", "y")[: len(point)], tree(text), len(point)
    with mp.workdps(500):
        h = mp.mpf(10) ** -120

        def f(*moves: int) -> object:
            return value(
                formula,
                {k: mp.mpf(x) + h * m for k, x, m in zip(names, point, moves, strict=True)},
            )

        at = [tuple(int(k == j) for k in range(n)) for j in range(n)]
        centre = f(*[0] * n)
        slopes = [(f(*e) - f(*(-k for k in e))) / (2 * h) for e in at]  # type: ignore[operator]
        hessian = [
            [
                (
                    f(*map(sum, zip(d, e, strict=True)))
                    - f(*(a - b for a, b in zip(d, e, strict=True)))  # type: ignore[operator]
                    - f(*(b - a for a, b in zip(d, e, strict=True)))
                    + f(*(-a - b for a, b in zip(d, e, strict=True)))
                )
                / (4 * h * h)
                for e in at
            ]
            for d in at
        ]
        numbers = [[float(c) for c in row] for row in hessian]
        results = [
            [float(centre)],
            [float(s) for s in slopes],
            list(np.dot(numbers, (1.0, -0.7)[:n])),
        ]
    size = np.abs(point)
    largest = [max(map(abs, one)) for one in results]
    moved = [
        np.abs(results[1]) @ size,
        np.abs(numbers) @ size,
        largest[2] + np.abs(results[1]) / np.maximum(size, 1e-3),
    ]
    return [
        (one, 1e-12 * np.abs(one) + 1e-12 * (largest[k] if k else 0.0) + 4e-15 * moved[k] + LEAST)
        for k, one in enumerate(results)
    ]
