"""Cells of a ball lie in the regions that bounds are proved over."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slomodel
from slomodel.bounds.ball import Displacements
from slomodel.bounds.rules.cells import CellOfBall


def is_in(region: Displacements, y: np.ndarray) -> bool:
    """By the definition of the region, but for rounding."""
    cut = np.isfinite(region.half)
    slack = 1.0 + 1e-12
    return bool(
        (np.abs(y[cut]) <= region.half[cut] * slack + 1e-12).all()
        and np.linalg.norm(y[~cut]) <= region.rest * slack + 1e-12
    )


@settings(max_examples=100)
@given(st.integers(1, 6), st.integers(0, 2**31))
def test_each_point_of_a_cell_is_in_its_region(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    centre, radius = rng.standard_normal(n), 10.0 ** rng.uniform(-3, 2)
    cell = CellOfBall.whole(n)
    for j in rng.integers(min(n, 2), size=int(rng.integers(8))):
        cell = cell.halves(int(j), radius)[int(rng.random() < 0.9)]
    placed = cell.around(centre, radius)
    cut = np.isfinite(cell.low)
    for _ in range(40):
        y = rng.standard_normal(n)
        y[cut] = rng.uniform(cell.low[cut], cell.high[cut])
        left = radius**2 - float(np.sum(y[cut] ** 2))
        if left < 0.0:
            continue
        y[~cut] *= np.sqrt(left) * rng.random() / max(float(np.linalg.norm(y[~cut])), 1e-300)
        assert placed is not None
        at, region = placed
        away = centre + y - at
        assert is_in(region, away)
        assert (np.abs(away) <= region.widths * (1.0 + 1e-12) + 1e-12).all()
        rows = rng.standard_normal((n, 3))
        assert (np.abs(rows.T @ away) <= region.reach(np.abs(rows)) * (1.0 + 1e-12)).all()


@pytest.mark.parametrize(
    ("text", "radius", "L1", "L2"),
    [
        ("(1 + cos(3*x)) * exp(50*(y - 2)) + z", 2.0, 5000.0, 250000.0),
        ("cos(3*x) * exp(80*(y - 1)) + z", 1.0, 6400.0, 512000.0),
    ],
)
def test_bounds_over_cells_hold_where_two_unknowns_are_divided(
    text: str, radius: float, L1: float, L2: float
) -> None:
    """The derivatives by y at (0, r, 0)."""
    model = slomodel.compile(f"var x, y, z\nminimize {text}")
    found = model.bounds(np.zeros(3), radius)
    assert found.L1 >= L1
    assert found.L2 >= L2
