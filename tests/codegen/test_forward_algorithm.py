"""The forward algorithm in probabilities: the sum over all paths, also where some are 0."""

from __future__ import annotations

from itertools import product

import mpmath
import numpy as np
import pytest

import slomodel

TEXT = """dim T, K
data e[T, K]
var P[K, K], s[K]
let f[t in T, k in K] = e[t, k] + logsumexp(f[t-1, j] + P[j, k] for j in K)  first s[k]
minimize -logsumexp(f[T-1, :])"""


def _model(e: np.ndarray, dtype: str = "float64", backend: str = "c") -> slomodel.Model:
    return slomodel.compile(TEXT, data={"e": e}, backend=backend, dtype=dtype)


def _over_paths(e: np.ndarray, x: np.ndarray) -> float:
    """The logarithm of the sum over all paths of states, in many digits."""
    steps, states = e.shape
    P, s = x[: states**2].reshape(states, states), x[states**2 :]
    with mpmath.workdps(40):
        total = mpmath.mpf(0)
        for path in product(range(states), repeat=steps):
            score = mpmath.mpf(s[path[0]])
            for t in range(1, steps):
                score += mpmath.mpf(P[path[t - 1], path[t]]) + mpmath.mpf(e[t, path[t]])
            total += mpmath.exp(score)
        return float(-mpmath.log(total))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("spread", [1.0, 300.0, 5000.0])
def test_the_value_is_that_of_all_paths(spread: float) -> None:
    rng = np.random.default_rng(1)
    e = rng.normal(size=(7, 3))
    model = _model(e)
    assert "slo_log_products(" in model.source("c")
    for _ in range(5):
        x = spread * rng.normal(size=model.n)
        assert model.value(x) == pytest.approx(_over_paths(e, x), rel=1e-14)


def _hidden(kind: str, rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(size=12)
    if kind == "unreachable":
        x[[1, 2, 5]] = -np.inf
    if kind == "underflows":
        x[[0, 4, 8]], x[[1, 2, 3, 5, 6, 7]] = -800.0, 0.0
        x[9:] = [0.0, -700.0, -1400.0]
    if kind == "not a number":
        x[4] = np.nan
    return x


@pytest.mark.parametrize("kind", ["unreachable", "underflows", "not a number"])
def test_paths_of_probability_zero_count_as_in_logarithms(kind: str) -> None:
    rng = np.random.default_rng(2)
    e = 3 * rng.normal(size=(150, 3))
    model, right = _model(e), _model(e, backend="numpy")
    x = _hidden(kind, rng)
    np.testing.assert_allclose(model.value(x), right.value(x), rtol=1e-13)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-4)])
def test_long_chains_neither_overflow_nor_underflow(dtype: str, tolerance: float) -> None:
    rng = np.random.default_rng(3)
    e = 30 * rng.normal(size=(700, 4)) - 40
    model, right = _model(e, dtype), _model(e, backend="numpy")
    x = rng.normal(size=model.n)
    value, slope = model.value_and_gradient(x)
    wanted, other = right.value_and_gradient(x)
    assert value == pytest.approx(wanted, rel=tolerance)
    np.testing.assert_allclose(slope, other, rtol=0, atol=tolerance * np.abs(other).max())
