"""The division of a ball into cells: bounds spent, and which unknowns are divided."""

from __future__ import annotations

import numpy as np
import pytest

from slomodel.bounds.enclosure import norm_of
from slomodel.bounds.rules.cells import CellBounds, CellOfBall, divided

N, RADIUS = 6, 1.0


def _bounds(cell: CellOfBall, decisive: tuple[int, ...]) -> CellBounds:
    """Bounds that shrink with the widths of the decisive unknowns; the first seems worth most."""
    widths = np.minimum(cell.high, RADIUS) - np.maximum(cell.low, -RADIUS)
    size = 1.0 + 100.0 * float(np.prod(widths[list(decisive)] / 2.0)) if decisive else 101.0
    return CellBounds(cell, (size, 0.0), size, widths * 8.0 ** np.arange(N, 0, -1), 3)


@pytest.mark.parametrize(
    ("decisive", "counts", "largest"), [((), (4, 4), 101.0), ((1,), (10, 16), 20.0)]
)
def test_cells_are_divided_where_that_pays(
    decisive: tuple[int, ...], counts: tuple[int, int], largest: float
) -> None:
    asked: list[CellOfBall] = []

    def bound(cell: CellOfBall) -> CellBounds:
        asked.append(cell)
        return _bounds(cell, decisive)

    cells = divided(_bounds(CellOfBall.whole(N), decisive), RADIUS, bound, 2.0, 16)
    assert counts[0] <= len(asked) <= counts[1]
    assert max(norm_of(one.ends) for one in cells) <= largest
    points = np.random.default_rng(0).uniform(-RADIUS, RADIUS, (200, N))
    held = [((one.cell.low <= points) & (points <= one.cell.high)).all(1) for one in cells]
    assert np.any(held, axis=0).all()


def test_cells_without_a_bound_are_divided_while_parts_of_them_have_one() -> None:
    """The function is infinite at one end of an axis: each division leaves one part without."""

    def bound(cell: CellOfBall) -> CellBounds:
        size = 1.0 if cell.low[0] > -RADIUS else np.inf
        worth = np.minimum(cell.high, RADIUS) - np.maximum(cell.low, -RADIUS)
        worth[1:] = 0.0
        return CellBounds(cell, (size, 0.0), size, worth, 3)

    cells = divided(bound(CellOfBall.whole(2)), RADIUS, bound, 2.0, 16)
    infinite = [one for one in cells if not np.isfinite(norm_of(one.ends))]
    assert len(cells) == 9
    assert [one.cell.high[0] for one in infinite] == [-RADIUS + 2.0**-7]
