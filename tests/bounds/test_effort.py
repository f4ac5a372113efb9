"""Effort: more work never gives a larger bound, and every bound is true."""

import itertools

import numpy as np
import pytest
from marks import only

import slomodel
from slomodel.bounds import EFFORTS, effort_of
from slomodel.errors import DomainError

RNG = np.random.default_rng(11)
X, y = RNG.standard_normal((3, 15)), RNG.standard_normal(15)
MODELS = {
    "network": (
        "dim N data X[3, N], y[N] var A[3, 3], a[3] minimize sumsq(a' @ tanh(A @ X) - y) / N",
        {"X": X, "y": y},
    ),
    "few variables": ("var x[3] minimize exp(x[0] * x[1]) / (1 + x[2]^2) + cos(x[0] * x[2])", {}),
    "many variables": (
        "data A[60, 45] var x[45] minimize sum(log(1 + (A @ x).^2)) / (1 + sumsq(x))",
        {"A": RNG.standard_normal((60, 45))},
    ),
    "logistic": (
        "dim N data X[3, N] var x[3] minimize mean(softplus(x' @ X))",
        {"X": X},
    ),
    "polynomial": ("var x[3] minimize (x[0] * x[1] - 1)^2 + (x[1] * x[2])^2", {}),
}


@pytest.mark.parametrize("name", only("polynomial", MODELS))
def test_more_work_gives_no_larger_bound(name: str) -> None:
    text, data = MODELS[name]
    model = slomodel.compile(text, data=data)
    centre = 0.3 * np.random.default_rng(len(name)).standard_normal(model.n)
    for radius in (0.0, 0.3):
        found = [model.bounds(centre, radius, effort=one.name) for one in EFFORTS]
        seen = model.sample_bounds(centre, radius, samples=20)
        for one in found:
            assert seen.L1 * (1.0 - 1e-9) <= one.L1 < np.inf
            assert seen.L2 * (1.0 - 1e-5) <= one.L2 < np.inf
        for less, more in itertools.pairwise(found):
            assert more.L1 <= less.L1 * (1.0 + 1e-9)
            assert more.L2 <= less.L2 * (1.0 + 1e-9)


@pytest.mark.slow
def test_thorough_gains_and_quick_costs_less() -> None:
    text, data = MODELS["few variables"]
    model = slomodel.compile(text, data=data)
    quick, default, thorough = (
        model.bounds(np.full(3, 0.4), 1.0, effort=one.name) for one in EFFORTS
    )
    assert thorough.L2 < 0.999 * quick.L2
    assert default.L2 <= quick.L2


def test_another_radius_takes_the_same_effort() -> None:
    text, data = MODELS["few variables"]
    model = slomodel.compile(text, data=data)
    centre = np.full(3, 0.4)
    found = model.bounds(centre, 0.0, effort="quick").at(1.0)
    assert found.L2 == model.bounds(centre, 1.0, effort="quick").L2


@pytest.mark.parametrize("wrong", ["fast", "", 3, None])
def test_another_effort_is_refused(wrong: object) -> None:
    model = slomodel.compile("var x minimize x^2")
    with pytest.raises(DomainError) as refused:
        model.bounds([0.0], 1.0, effort=wrong)  # type: ignore[arg-type]
    text = str(refused.value)
    assert f"effort: expected one of 'quick', 'default', 'thorough', found {wrong!r}" in text


def test_budgets_are_in_proportion() -> None:
    quick, default, thorough = (effort_of(one.name) for one in EFFORTS)
    assert quick.flops < default.flops < thorough.flops
    assert default.scaled(7, 2.0) == 7
    assert quick.scaled(1, 1.0) == 1
    assert thorough.count(2.0) == 2 * thorough.count(4.0)
