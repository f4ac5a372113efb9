"""Norms of symmetric trilinear forms of more than thirty variables."""

from __future__ import annotations

import math

import numpy as np
import pytest

from slomodel.bounds.arithmetic.midpoint_radius import Bounded, symmetrised
from slomodel.bounds.norms.cubic_norm import cubic_norm, split_norm


def turned(T: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """The form of a few variables along as many orthogonal directions of n."""
    Q = np.linalg.qr(rng.standard_normal((n, len(T))))[0]
    return symmetrised(
        Bounded(np.einsum("ijk,ai,bj,ck->abc", T, Q, Q, Q, optimize=True), 0.0)
    ).value


def square_times(n: int) -> np.ndarray:
    """x² y in the first two of n variables, with norm 2/√27."""
    T = np.zeros((n, n, n))
    T[0, 0, 1] = T[0, 1, 0] = T[1, 0, 0] = 1.0 / 3.0
    return T


@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e160])
@pytest.mark.parametrize(("few", "n"), [(2, 33), (8, 40)])
def test_a_product_along_few_directions(few: int, n: int, scale: float) -> None:
    T = scale * turned(square_times(few), n, np.random.default_rng(few))
    exact = scale * 2.0 / math.sqrt(27.0)
    bound, attained = split_norm(T)
    assert exact * (1.0 - 1e-12) <= bound <= exact * 1.002
    assert exact * 0.99 <= attained <= exact * (1.0 + 1e-9)
    assert exact * (1.0 - 1e-12) <= cubic_norm(Bounded(T, 0.0)) <= exact * 1.002


@pytest.mark.parametrize("n", [31, 41])
def test_no_value_is_above(n: int) -> None:
    """Of forms that are large along few directions, and along all."""
    rng = np.random.default_rng(n)
    weights = np.exp(-0.3 * np.arange(n)) if n == 31 else np.ones(n)
    T = symmetrised(Bounded(rng.standard_normal((n, n, n)), 0.0)).value
    T = T * weights[:, None, None] * weights[:, None] * weights
    most = 0.0
    for v in rng.standard_normal((20, n)) * weights:
        for _ in range(60):
            image = T @ v @ v
            most = max(most, float(np.linalg.norm(image)) / float(v @ v))
            v = image / np.linalg.norm(image) + 0.3 * v / np.linalg.norm(v)
    unfolded = float(np.linalg.norm(T.reshape(n, n * n), 2))
    bound = split_norm(T)[0]
    assert most <= bound <= (1.05 * most if n == 31 else np.inf)
    assert most + 7.0 <= cubic_norm(Bounded(T, 7.0)) <= unfolded * (1.0 + 1e-6) + 7.0


def test_what_is_left_counts_too() -> None:
    """Twenty-five squares along their own directions times one more: more than the chosen space."""
    n = 34
    T = np.zeros((n, n, n))
    for i in range(25):
        T[i, i, 25] = T[i, 25, i] = T[25, i, i] = 1.0 / 3.0
    exact = 2.0 / math.sqrt(27.0)  # y Σ x_i², at Σ x_i² = 2/3
    assert exact <= split_norm(T)[0] * (1.0 + 1e-14)
    assert exact <= cubic_norm(Bounded(T, 0.0)) * (1.0 + 1e-14)


def test_zero_and_what_is_not_finite() -> None:
    assert split_norm(np.zeros((31, 31, 31))) == (0.0, 0.0)
    T = np.zeros((31, 31, 31))
    T[0, 0, 0] = np.inf
    assert cubic_norm(Bounded(T, 0.0)) == math.inf
