"""Largest values of quartic forms: exact where known, close to the results of ascents elsewhere."""

from __future__ import annotations

import math

import numpy as np
import pytest

from slomodel.bounds.arithmetic.interval import point
from slomodel.bounds.arithmetic.midpoint_radius import Bounded, symmetrised
from slomodel.bounds.norms.loewner import Rows
from slomodel.bounds.norms.quartic_norm import (
    Quartic,
    largest_quartic,
    square_of_cubic,
    sum_of_fourth_powers,
)
from slomodel.bounds.refinements.quartic_sums import third_nearby
from slomodel.bounds.refinements.sums import Third

CLOSE = 2e-3


def rows_of(A: np.ndarray) -> Rows:
    return Rows.of(point(A))


def symmetric(T: np.ndarray) -> np.ndarray:
    return symmetrised(Bounded(T, 0.0)).value


def product(indices: tuple[int, int, int], n: int) -> np.ndarray:
    """The form of the product of three variables."""
    T = np.zeros((n, n, n))
    T[indices] = 1.0
    return symmetric(T)


@pytest.mark.parametrize(
    ("indices", "norm"),
    [((0, 0, 0), 1.0), ((0, 0, 1), 2.0 / math.sqrt(27.0)), ((0, 1, 2), 1.0 / math.sqrt(27.0))],
)
def test_cubic_monomials(indices: tuple[int, int, int], norm: float) -> None:
    """x²y is largest at x² = 2/3, xyz at x² = y² = z² = 1/3."""
    bound = math.sqrt(largest_quartic(square_of_cubic(product(indices, 4))))
    assert norm <= bound * (1.0 + 1e-14)
    assert bound <= norm * (1.0 + CLOSE)


def test_fourth_powers_along_axes_and_round_the_circle() -> None:
    """Of orthogonal rows the one that counts most, of an even star 3m/8."""
    own = sum_of_fourth_powers(rows_of(np.diag([1.0, 2.0, 3.0])), np.array([5.0, 6.0, 1.0]))
    assert 96.0 <= largest_quartic(own) <= 96.0 * (1.0 + CLOSE)
    angles = np.pi * np.arange(7) / 7
    star = np.stack([np.cos(angles), np.sin(angles)], 1)
    bound = largest_quartic(sum_of_fourth_powers(rows_of(star), np.ones(7)))
    assert bound * (1.0 + 1e-14) >= 21.0 / 8.0
    assert bound <= 21.0 / 8.0 * (1.0 + CLOSE)


def attained(q: Quartic, rng: np.random.Generator) -> float:
    """What a shifted power method reaches from many starts."""
    n = q.n
    i, j = np.triu_indices(n)
    weight = np.where(i == j, 1.0, math.sqrt(2.0))
    V = rng.standard_normal((40, n))
    shift = float(np.linalg.norm(q.value))
    for _ in range(400):
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        image = (weight * V[:, i] * V[:, j]) @ q.value / weight
        M = np.zeros((40, n, n))
        M[:, i, j] = M[:, j, i] = image
        M[:, np.arange(n), np.arange(n)] = image[:, i == j]
        V = np.einsum("kij,kj->ki", M, V) + shift * V
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    s = weight * V[:, i] * V[:, j]
    return float(np.max(np.einsum("ka,ab,kb->k", s, q.value, s)))


@pytest.mark.parametrize("seed", range(6))
def test_random_forms_are_not_below_what_is_attained(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    T = symmetric(rng.standard_normal((n, n, n)) * (rng.random((n, n, n)) < 0.5))
    cubic = square_of_cubic(T)
    powers = sum_of_fourth_powers(rows_of(rng.standard_normal((3 * n, n))), rng.random(3 * n))
    for q in (cubic, powers, cubic.plus(powers.times(0.3))):
        low, bound = attained(q, rng), largest_quartic(q)
        assert low <= bound * (1.0 + 1e-12)
        assert bound <= 1.15 * low


def test_a_cubic_and_quartic_form_at_one_vector_add_up() -> None:
    """For 2 (a·v)³ and 3 (a·v)⁴: 2‖a‖³ + 3 r ‖a‖⁴."""
    a = np.array([3.0, 4.0])
    T = Bounded(2.0 * np.einsum("i,j,k->ijk", a, a, a), 0.0)
    form = sum_of_fourth_powers(rows_of(a[np.newaxis]), np.array([3.0]))
    for radius in (0.0, 1e-3, 0.1, 10.0):
        bound = third_nearby(Third(T, 250.0), form, 1875.0, radius)
        exact = 250.0 + 1875.0 * radius
        assert exact <= bound * (1.0 + 1e-14)
        assert bound <= exact * (1.0 + CLOSE)


def test_a_cubic_and_a_quartic_form_at_different_vectors_do_not() -> None:
    """For v_1³ and v_2⁴ the largest of v_1³ + r e_2 v_2³ is that of one of them, or nearly."""
    T = Bounded(product((0, 0, 0), 2), 0.0)
    form = sum_of_fourth_powers(rows_of(np.array([[0.0, 1.0]])), np.ones(1))
    bound = third_nearby(Third(T, 1.0), form, 1.0, 1.0)
    assert 1.0 <= bound <= math.sqrt(2.0) * (1.0 + CLOSE)
