"""Largest values of polynomials on the sphere by branch and bound: above every attained value."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.random import Generator

from slomodel.bounds.norms.polynomial import Polynomial, largest_closely, largest_value


def drawn(rng: Generator, blocks: int, degree: int) -> Polynomial:
    most = degree if blocks < 4 else 2
    every = [key for key in product(range(most + 1), repeat=blocks) if sum(key) == degree]
    a = rng.random(len(every)) ** 3 * 10.0 ** float(rng.integers(-60, 100))
    return Polynomial(np.array(every), a)


def seen(p: Polynomial, rng: Generator) -> float:
    """The most that 40 ascents t <- ∇p reach."""
    t = rng.random((40, p.blocks))
    for _ in range(300):
        t = np.maximum(t / np.linalg.norm(t, axis=1, keepdims=True), 1e-12)
        terms = p.coefficients * np.prod(t[:, np.newaxis] ** p.exponents, axis=2)
        t = terms @ p.exponents / t / np.max(terms.sum(axis=1))
    return float(np.max(terms.sum(axis=1)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("blocks", [2, 3, 4, 5])
@pytest.mark.parametrize("degree", [3, 4, 6])
def test_little_is_between_what_is_attained_and_the_bound(blocks: int, degree: int) -> None:
    rng = np.random.default_rng(100 * blocks + degree)
    for _ in range(3):
        p = drawn(rng, blocks, degree)
        assert seen(p, rng) * (1.0 - 1e-9) <= largest_closely(p) <= seen(p, rng) * 1.005


def test_a_part_that_is_largest_at_two_places_and_at_none_of_the_starts() -> None:
    """t1³ + t2³ + a t1² t3 by its stationary points along the edges."""
    p = Polynomial(np.array([[3, 0, 0], [0, 3, 0], [2, 0, 1]]), np.array([1.0, 1.1, 0.5]))
    t3 = np.linspace(0.0, 1.0, 100_001)
    exact = max(1.1, float(np.max((1.0 - t3**2) ** 1.5 + 0.5 * (1.0 - t3**2) * t3)))
    assert exact <= largest_closely(p) <= exact * 1.0005


def test_what_is_left_to_other_bounds() -> None:
    zero = Polynomial(np.array([[2, 1]]), np.array([0.0]))
    assert largest_closely(zero) == 0.0
    assert largest_closely(Polynomial(np.array([[2, 1]]), np.array([np.inf]))) == np.inf
    many = Polynomial(np.eye(9, dtype=np.int64) * 4, np.ones(9))
    assert largest_closely(many) == largest_value(many)
