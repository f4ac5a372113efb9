"""Sums of fourth powers: bounds of multiples, loose cases, and extreme eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
from bounds.settings import setting

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.midpoint_radius import Bounded
from slomodel.bounds.norms.element_derivatives import Weighted, fourth_order_ends, third_order
from slomodel.bounds.norms.fourth_powers import attained, cubic_by_fourth_powers, fourth_powers
from slomodel.bounds.norms.loewner import Rows, upper_end
from slomodel.bounds.ranges.elements.element_functions import derivative_graphs
from slomodel.bounds.ranges.elements.element_ranges import ranges_over_pieces
from slomodel.bounds.structure.linear_predictors import elements

CLOSE = 1e-9


def rows_of(A: np.ndarray) -> Rows:
    return Rows.of(point(A))


def largest(A: np.ndarray, d: np.ndarray) -> float:
    """The largest Σ d (a·v)⁴ that a power method meets from many starts."""
    best = 0.0
    for v in np.random.default_rng(1).standard_normal((30, A.shape[1])):
        for _ in range(60):
            v = A.T @ (d * (A @ v) ** 3)
            v = v / np.linalg.norm(v)
        best = max(best, float(d @ (A @ v) ** 4))
    return best


def test_multiples_have_the_multiple_of_the_bound() -> None:
    rng = np.random.default_rng(0)
    A, d = rng.standard_normal((30, 7)), rng.random(30)
    rows = rows_of(A)
    first = fourth_powers(rows, d)
    assert fourth_powers(rows, 3.0 * d) == pytest.approx(3.0 * first, rel=1e-12)
    near = 3.0 * d * (1.0 + 5e-4 * rng.random(30))
    assert largest(A, near) <= fourth_powers(rows, near) <= 3.002 * first
    other = rng.random(30)
    other[:10] = 0.0
    assert fourth_powers(rows, other) == fourth_powers(rows_of(A), other)


def test_what_is_attained_is_below_the_bounds_and_exact_for_one_row() -> None:
    rng = np.random.default_rng(2)
    for n, m in ((4, 50), (15, 40), (60, 20)):
        rows, d = rows_of(rng.standard_normal((m, n))), rng.random(m)
        assert 0.2 * fourth_powers(rows, d) < attained(rows, d, 4) <= fourth_powers(rows, d)
        assert attained(rows, d, 3) <= cubic_by_fourth_powers(rows, d)
    one = rows_of(np.array([[3.0, 4.0]]))
    assert attained(one, np.array([2.0]), 4) == pytest.approx(1250.0, rel=CLOSE)
    assert attained(one, np.array([2.0]), 3) == pytest.approx(250.0, rel=CLOSE)


def test_what_is_of_no_use_is_bounded_less_closely_and_no_lower() -> None:
    """Σ (a·v)⁴ over rows round the circle is 3m/8, by lengths m/2; likewise Σ |a·v|³."""
    angles = np.pi * np.arange(9) / 9
    rows = (rows_of(np.stack([np.cos(angles), np.sin(angles)], 1)),)
    sizes = Interval(-np.ones(9), np.ones(9))
    parts = [Weighted(rows, {(0, 0, 0): sizes, (0, 0, 0, 0): sizes})]
    close, rough = fourth_order_ends(parts), fourth_order_ends(parts, (1.0, 1.0))
    assert close == pytest.approx((27 / 8, 27 / 8), rel=CLOSE)
    assert rough == pytest.approx((9 / 2, 9 / 2), rel=CLOSE)
    assert min(third_order(parts)) == pytest.approx(np.sqrt(9 / 2 * 27 / 8), rel=CLOSE)
    assert min(third_order(parts, 1.0)) == pytest.approx(9 / 2, rel=CLOSE)


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1.0, 1e150])
def test_upper_ends_of_dense_matrices(scale: float) -> None:
    """Below 0 too: Q diag(values) Qᵀ, to a few roundings."""
    Q = np.linalg.qr(np.random.default_rng(3).standard_normal((12, 12)))[0]
    for top in (-1.0, 0.5, 3.0):
        values = np.linspace(-3.0, 1.0, 12)
        values = values - values[-1] + top
        S = scale * ((Q * values) @ Q.T)
        end = upper_end(Bounded(0.5 * S + 0.5 * S.T, 0.0))
        assert scale * top <= end + 1e-14 * scale
        assert end == pytest.approx(scale * top, rel=1e-11)
    assert upper_end(Bounded(np.diag([-2.0, -4.0]), 0.0)) >= -2.0


def test_elements_in_blocks_have_the_ranges_that_they_have_alone() -> None:
    one = setting(
        "data t[6] var a, w, p minimize sum((a * sin(w * t + p))^2)", [0.5] * 3, t=np.ones(6)
    )
    found = elements(one.objective, one.variables)
    assert found is not None
    (own,) = found
    graphs = derivative_graphs(own.value, own.arguments)
    m = 9000
    centres = np.linspace(-3.0, 3.0, m)
    boxes = {u: Interval(centres - 0.3, centres + 0.3) for u in own.arguments}
    whole = ranges_over_pieces(own.value, graphs, boxes, {}, {})
    for k in (0, 4095, m - 1):
        alone = {u: box.each(lambda a, k=k: a[k : k + 1]) for u, box in boxes.items()}
        closer = ranges_over_pieces(own.value, graphs, alone, {}, {})
        for slots in graphs:
            lo, hi = closer.derivatives[slots].lo[0], closer.derivatives[slots].hi[0]
            assert whole.derivatives[slots].lo[k] <= lo <= hi <= whole.derivatives[slots].hi[k]
