"""Estimates over balls so small that differences are mostly rounding errors."""

import numpy as np
import pytest
from marks import only
from paper.test_certificate import SMALL, small

import slomodel

RADII = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)
TINY = 1e-12


@pytest.mark.parametrize("name", only("phase_retrieval", SMALL))
def test_no_estimate_is_above_a_proof(name: str) -> None:
    model = small(name)
    x0 = model.x0(seed=1) + 0.1
    for radius in RADII:
        proved = model.bounds(x0, radius)
        for method, seed in (("ascent", 1), ("ascent", 2), ("pairs", 1), ("pairs", 2)):
            seen = model.sample_bounds(x0, radius, 20, seed=seed, method=method)
            assert seen.L1 <= proved.L1 * (1.0 + TINY)
            assert seen.L2 <= proved.L2 * (1.0 + TINY)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("method", ["ascent", "pairs"])
def test_estimates_of_a_power_against_its_closed_form(method: str, dtype: str) -> None:
    text = "var x[3] minimize sum((x - 1000)^4) - 4e9*sum(x)"
    model = slomodel.compile(text, dtype=dtype)
    for offset in (3.0, 1e-2, 40.0):
        for radius in RADII:
            seen = model.sample_bounds(np.full(3, 1000.0 + offset), radius, 20, method=method)
            farthest = offset + radius
            slack = 1.0 + (1e-12 if dtype == "float64" else 1e-3)
            # Rounding of x itself, which the kernel subtracts from.
            moved = 1e3 * np.finfo(dtype).eps
            assert 12.0 * (farthest + moved) ** 2 * slack >= seen.L1
            assert 24.0 * (farthest + moved) * slack >= seen.L2


def test_close_pairs_are_compared_by_products() -> None:
    """At the proved constant but for the direction, however small the ball."""
    model = slomodel.compile("var x[2] minimize 5*sumsq(x) + 1e6*sum(x)")
    for radius in (1e-14, 1e-12, 1e-9, 1e-3, 1.0):
        seen = model.sample_bounds([1.0, 2.0], radius, 20, method="pairs")
        assert 10.0 * (1.0 - 1e-5) <= seen.L1 <= 10.0
        assert seen.L2 == 0.0


def test_curvature_that_turns_is_seen_where_it_can_be() -> None:
    model = slomodel.compile("var x[3] minimize sum(x^4)")
    x = [1.0, -2.0, 0.5]
    assert model.sample_bounds(x, 1e-4).L2 >= 0.9 * 48.0
    assert model.sample_bounds(x, 1e-15).L2 == 0.0
    assert pytest.approx(48.0, rel=1e-6) == model.sample_bounds(x, 1e-15).L1
