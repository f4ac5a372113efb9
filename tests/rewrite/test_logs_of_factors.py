"""Logarithms of products, quotients and choices that leave the range of doubles, and roots."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel
from tests.rewrite.test_random_algebra import fault

FORMULAS: list[tuple[str, tuple[float, ...]]] = [
    ("log(sigmoid(x) / (1 - sigmoid(x)))", (-900.0,)),
    ("log(normcdf(x) / normcdf(-x))", (-50.0,)),
    ("log(normcdf(x) / normcdf(y))", (-50.0, 3.0)),
    ("log(sigmoid(x) * normcdf(y) / 2)", (-2.0, -50.0)),
    ("log(sigmoid(x) * y)", (-2.0, 3.0)),
    ("log(0.3 * (exp(x) + exp(y)) / exp(x))", (-900.0, 40.0)),
    ("1 - (1 - exp(-x))", (50.0,)),
    ("x - (x - exp(-y))", (3.0, 50.0)),
    ("2 - (2 - x)", (1e-20,)),
    ("log(1 - (1 - 0.5 * sigmoid(x) * exp(-softplus(y))))", (-40.0, 30.0)),
    ("sqrt(1 + exp(x))", (800.0,)),
    ("sqrt(exp(x) + exp(y))", (800.0, 799.0)),
    ("(1 + exp(x))^0.3", (900.0,)),
    ("cbrt(1 + exp(x))", (1200.0,)),
    ("sqrt(sinh(x))", (900.0,)),
    ("exp(y) * sqrt(1 + exp(x))", (800.0, -300.0)),
    ("sqrt(2 + expm1(x))", (900.0,)),
    ("(y^2 * exp(2 * x))^0.75", (400.0, 0.1)),
    ("sqrt(y^2 * exp(2 * x))", (400.0, 2.0)),
    ("1 - sigmoid(x)^y", (40.0, 3.0)),
    ("log(1 - (1 - exp(-x))^y)", (40.0, 3.0)),
    ("log(1 - normcdf(x)^y)", (10.0, 3.0)),
    ("log(1 - normcdf(x)^3)", (10.0,)),
    ("log(1 - sigmoid(x)^4)", (40.0,)),
    ("1 - sqrt(sigmoid(x))", (40.0,)),
    ("1 - (1 - exp(x))^5", (1.0,)),
    ("1 - 1 / (1 + exp(-x))^y", (40.0, 3.0)),
    ("1 / (1 + exp(-x))^(1 / y) - 1", (40.0, 3.0)),
    ("log(1 + (x / 2)^y)", (1e6, 80.0)),
    ("log(1 + (x / 2)^(-y))", (1e-6, 80.0)),
    ("3 / (1 + (x / 2)^y)", (1e6, 80.0)),
    ("log(1 / (1 + (x / 2)^y))", (3.0, 2.0)),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("text", "point"), FORMULAS, ids=[text for text, _ in FORMULAS])
def test_formulas_at_the_ends_of_the_range(text: str, point: tuple[float, ...]) -> None:
    assert not fault(text, point, seed=0, changes=0)


@pytest.mark.parametrize(
    "term",
    [
        "log(where(i == 0, 1 - sigmoid(x[i]), sigmoid(x[i])))",
        "log(x[i] / 40 * sigmoid(x[i]) if i > 0 else sigmoid(-x[i]))",
    ],
)
def test_logs_of_choices(term: str) -> None:
    """Each branch has its stable form: log(sigmoid(x)) is x far below 0."""
    model = slomodel.compile(f"dim n\nvar x[n]\nminimize sum({term} for i in n)", dims={"n": 2})
    x = np.array([900.0, -800.0 if "40" not in term else 800.0])
    wanted = -900.0 + (np.log(x[1] / 40) if "40" in term else x[1])
    assert model.value(x) == pytest.approx(wanted, rel=1e-15)
    assert np.isfinite(model.gradient(x)).all()


@pytest.mark.parametrize(
    ("inverse", "wanted"),
    [
        ("sigmoid(x)", 20.346573590279973),
        ("1 - exp(-x)", 20.346573590279973),
        ("1 - 2 * sigmoid(-x)", 20.0),
        ("-tanh(-x / 2)", 20.0),
    ],
)
def test_atanh_of_what_is_close_to_1(inverse: str, wanted: float) -> None:
    model = slomodel.compile(f"var x\nminimize atanh({inverse})", backend="numpy")
    assert model.value([40.0]) == pytest.approx(wanted, rel=1e-15)
    assert model.gradient([40.0])[0] == pytest.approx(0.5, rel=1e-15)


def test_powers_of_what_is_a_probability_on_one_side_only() -> None:
    text = "dim n\ndata p[n]\nvar x[n]\nminimize sum((1 - exp(-x)).^p - 1)"
    model = slomodel.compile(text, data={"p": [3.0, 3.0, 2.0]}, backend="numpy")
    x, p = np.array([-1.0, 1.0, -2.0]), np.array([3.0, 3.0, 2.0])
    assert model.value(x) == pytest.approx(((1.0 - np.exp(-x)) ** p - 1.0).sum(), rel=1e-14)
    slopes = p * (1.0 - np.exp(-x)) ** (p - 1.0) * np.exp(-x)
    np.testing.assert_allclose(model.gradient(x), slopes, rtol=1e-14)


def test_one_less_a_product_of_tails() -> None:
    text = "dim n\nvar x[n]\nminimize -log(1 - prod(1 - sigmoid(x[i]) for i in n))"
    model = slomodel.compile(text, dims={"n": 3}, backend="numpy")
    x = np.array([-100.0, -101.0, -99.0])
    wanted = -np.log(np.exp(x).sum())
    assert model.value(x) == pytest.approx(wanted, rel=1e-15)
    np.testing.assert_allclose(model.gradient(x), -np.exp(x) / np.exp(x).sum(), rtol=1e-13)
