"""Derivatives of log Σ exp: attained constants, and random weights below the bounds."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.interval import interval, point
from slomodel.bounds.ranges.curvature.log_sum_exp import cumulant_bounds, largest_variance, shares

CLOSE = 1e-12
LOGITS = st.lists(st.floats(-30.0, 30.0), min_size=2, max_size=5)


def cumulants(p: NDArray[np.float64], v: NDArray[np.float64]) -> list[mpmath.mpf]:
    """Those of orders 2 to 4 of the numbers v with weights p, by their moments."""
    with mpmath.workdps(40):
        total = sum(map(mpmath.mpf, p))
        q = [mpmath.mpf(x) / total for x in p]
        mean = sum(a * mpmath.mpf(b) for a, b in zip(q, v, strict=True))
        two, three, four = (
            sum(a * (mpmath.mpf(b) - mean) ** k for a, b in zip(q, v, strict=True))
            for k in (2, 3, 4)
        )
        return [two, three, four - 3 * two**2]


@pytest.mark.parametrize(
    ("share", "order", "exact"),
    [
        (0.5, 2, 0.5),
        (0.5 - math.sqrt(1.0 / 12.0), 3, math.sqrt(8.0) / (6.0 * math.sqrt(3.0))),
        (0.5, 4, 0.5),
    ],
)
def test_constants_that_two_weights_attain(share: float, order: int, exact: float) -> None:
    p = np.array([share, 1.0 - share])
    v = np.array([1.0, -1.0]) / math.sqrt(2.0)
    attained = abs(cumulants(p, v)[order - 2])
    assert attained == pytest.approx(exact, rel=1e-9)
    (found,) = cumulant_bounds(np.array([0.5]))[order - 2]
    assert attained <= found <= exact * (1.0 + CLOSE)


@settings(max_examples=60, deadline=None)
@given(LOGITS, st.integers(0, 2**32 - 1))
def test_nothing_is_above_the_bounds(logits: list[float], seed: int) -> None:
    p = shares(point(np.array(logits)[:, np.newaxis]))
    found = cumulant_bounds(largest_variance(p))
    weights = p.mid[:, 0]
    for v in np.random.default_rng(seed).standard_normal((20, len(logits))):
        own = cumulants(weights, v / np.linalg.norm(v))
        for cumulant, bound in zip(own, found, strict=True):
            assert abs(cumulant) <= bound[0] * (1.0 + 1e-9) + 1e-14


@settings(max_examples=60, deadline=None)
@given(LOGITS, st.floats(0.0, 3.0), st.integers(0, 2**32 - 1))
def test_shares_hold_over_a_box(logits: list[float], radius: float, seed: int) -> None:
    u = np.array(logits)
    found = shares(interval((u - radius)[:, np.newaxis], (u + radius)[:, np.newaxis]))
    ends = np.random.default_rng(seed).choice([-radius, radius], (20, len(u)))
    for shift in (*ends, *(np.where(np.eye(len(u), dtype=bool), radius, -radius))):
        with mpmath.workdps(40):
            powers = [
                mpmath.exp(mpmath.mpf(a) + mpmath.mpf(b)) for a, b in zip(u, shift, strict=True)
            ]
            for k, own in enumerate(powers):
                share = own / sum(powers)
                assert share * (1 - mpmath.mpf(2) ** -44) <= found.hi[k, 0]
                assert share * (1 + mpmath.mpf(2) ** -44) >= found.lo[k, 0]
    for k in range(len(u)):  # attained where u_k is at one end and the others at the other
        shift = np.where(np.arange(len(u)) == k, radius, -radius)
        powers = np.exp(u + shift - (u + shift).max())
        assert found.hi[k, 0] == pytest.approx(powers[k] / powers.sum(), rel=1e-9, abs=1e-300)


def test_numbers_without_bounds_have_all_shares() -> None:
    found = shares(interval(np.array([[-np.inf], [0.0]]), np.array([[np.inf], [0.0]])))
    assert np.all(found.lo == 0.0)
    assert np.all(found.hi == 1.0)
    assert largest_variance(found) == 0.5
