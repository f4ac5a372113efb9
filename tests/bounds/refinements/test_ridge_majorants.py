"""Majorants along the ball: exact for chords, above attained values, below ranges."""

from __future__ import annotations

import numpy as np
import pytest
from bounds.settings import claimed, setting

from slomodel.bounds.arithmetic.interval import point
from slomodel.bounds.norms.loewner import Rows
from slomodel.bounds.refinements.ridge_majorants import Ridge, end_along
from slomodel.bounds.rules.linear_predictors import linear_predictors

ROUND = np.stack([np.cos(np.pi * np.arange(3) / 3), np.sin(np.pi * np.arange(3) / 3)], 1)
"""Σ (a·v)² = 3/2 and Σ (a·v)⁴ = 9/8 for every unit v."""


def ridge(slope: float, curvature: float, radius: float) -> Ridge:
    """φ'' = 2 + slope s + curvature s²/2 on each of three rows round the circle."""
    s = np.linspace(0.0, radius, 129)[:, np.newaxis] * np.ones(3)
    values = np.stack([2.0 + t * slope + 0.5 * curvature * s**2 for t in (s, -s)])
    rows = Rows.of(point(ROUND))
    return Ridge(rows, s, point(values), np.full(3, slope), point(np.full(3, curvature)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_quadratic_is_its_own_majorant(sign: float) -> None:
    """2 Σ (a·v)² + ½ c r² max Σ (a·d)² (a·v)² = 3 + 9/4 for c = 4 and r = 1."""
    own = ridge(0.0, sign * 4.0, 1.0)
    bound = end_along(own, 0.0, 1.0, sign)
    exact = sign * 3.0 + 9.0 / 4.0
    assert exact <= bound <= exact + 1e-3 * abs(exact)


def test_a_slope_counts_by_the_norm_of_its_form() -> None:
    """For φ'' = 2 + s the form Σ a⊗a⊗a of rows round the circle, with signs, has norm 3/4."""
    rows = ROUND * np.array([1.0, -1.0, 1.0])[:, np.newaxis]
    s = np.linspace(0.0, 1.0, 129)[:, np.newaxis] * np.ones(3)
    values = point(np.stack([2.0 + s, 2.0 - s]))
    own = Ridge(Rows.of(point(rows)), s, values, np.ones(3), point(np.zeros(3)))
    assert 3.75 <= end_along(own, 0.75, 1.0, 1.0) <= 3.75 * (1.0 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_random_rows_are_not_below_what_is_attained(seed: int) -> None:
    """H of mean(softplus(-y A x)) at points of the sphere; and below what ranges alone give."""
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((100, 12)), np.sign(rng.standard_normal(100))
    c = rng.standard_normal(12)
    text = "dim N, n data A[N, n], y[N] var x[n] minimize mean(softplus(-y .* (A @ x)))"
    found = claimed(linear_predictors, setting(text, list(c), A=A, y=y), 0.4)
    assert found is not None
    told = {name: float(value) for name, value in (line.split(" ≤ ") for line in found.trace)}
    along = told["H by majorants along the ball"]
    assert along < told["H elementwise"]
    d = rng.standard_normal((2000, 12))
    u = A @ (c + 0.4 * d / np.linalg.norm(d, axis=1, keepdims=True)).T
    weights = 1.0 / (4.0 * np.cosh(u / 2.0) ** 2) / 100.0
    H = np.einsum("ik,ia,ib->kab", weights, A, A)
    assert float(np.max(np.linalg.eigvalsh(H))) <= along
