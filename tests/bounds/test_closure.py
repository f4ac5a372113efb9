"""The Taylor closure and sums of enclosures: each inequality is exact somewhere."""

import math

import numpy as np
import pytest

from slomodel.bounds.closure import (
    BY_FOURTH,
    BY_SLOPE,
    OVER_FIRST,
    OVER_SECOND,
    THIRD_BY_FOURTH,
    close,
    ends_by_fourth,
    ends_by_slope,
    series_terms,
    total,
)
from slomodel.bounds.enclosure import (
    UNKNOWN,
    DerivativeBounds,
    Enclosure,
    add,
    both_ends,
    least,
    norm_of,
)

INF = math.inf
R = 0.5


def enclosure(centre: tuple[float, float], over: tuple[float, float, float]) -> Enclosure:
    """From |f''|, |f'''| at the centre and |f''|, |f'''|, |f''''| over the ball."""
    return Enclosure(
        DerivativeBounds(both_ends(centre[0]), centre[1]),
        DerivativeBounds(both_ends(over[0]), over[1], both_ends(over[2])),
    )


# f over |x - c| ≤ R: what is known, and the constant, which the inequality attains.
FIRST = {
    # exp at 0, where only the supremum itself is exact.
    OVER_FIRST: (enclosure((1.0, 1.0), (math.exp(R),) * 3), math.exp(R)),
    # x³ at 1: f'' = 6x.
    BY_SLOPE: (enclosure((6.0, INF), (INF, 6.0, INF)), 9.0),
    # x⁴ at 1: f'' = 12x².
    BY_FOURTH: (enclosure((12.0, 24.0), (INF, INF, 24.0)), 27.0),
}
SECOND = {
    OVER_SECOND: (enclosure((1.0, 1.0), (INF, math.exp(R), INF)), math.exp(R)),
    # x⁴ at 1: f''' = 24x.
    THIRD_BY_FOURTH: (enclosure((12.0, 24.0), (INF, INF, 24.0)), 36.0),
}


@pytest.mark.parametrize("rule", FIRST)
def test_each_inequality_for_the_gradient_is_exact(rule: str) -> None:
    known, constant = FIRST[rule]
    found = close(known, R).first
    assert found.rule == rule
    assert constant <= found.value <= constant * (1.0 + 1e-14)


@pytest.mark.parametrize("rule", SECOND)
def test_each_inequality_for_the_hessian_is_exact(rule: str) -> None:
    known, constant = SECOND[rule]
    found = close(known, R).second
    assert found.rule == rule
    assert constant <= found.value <= constant * (1.0 + 1e-14)


def test_a_radius_of_zero_leaves_the_centre() -> None:
    found = close(enclosure((6.0, 5.0), (INF, INF, INF)), 0.0)
    assert (found.first.value, found.second.value) == (6.0, 5.0)


def test_each_end_of_the_spectrum_goes_alone() -> None:
    """x⁴ - 10y² at 0: H has the ends 0 and -20, and D⁴f[v, v, w, w] lies in [0, 24]."""
    centre, fourth = (0.0, 20.0), (24.0, 0.0)
    found = norm_of(ends_by_fourth(centre, 1.0, 0.0, fourth))
    assert 20.0 <= found <= 20.0 * (1.0 + 1e-14)
    assert norm_of(ends_by_fourth(centre, 2.0, 0.0, fourth)) >= 48.0
    assert norm_of(ends_by_slope(centre, 1.0, 4.0)) >= 24.0
    assert norm_of(ends_by_slope((-3.0, -1.0), 0.5, 1.0)) == 0.0, "an end below 0 bounds no norm"
    at_centre, over = DerivativeBounds(centre, 0.0), DerivativeBounds(fourth=fourth)
    upper, lower = close(Enclosure(at_centre, over), 1.0).ends
    assert 12.0 <= upper <= 12.0 * (1.0 + 1e-14)
    assert 20.0 <= lower <= 20.0 * (1.0 + 1e-14)


@pytest.mark.parametrize("radius", [5e-324, 1e-200, 1e-9])
def test_a_small_radius_is_not_lost(radius: float) -> None:
    assert min(ends_by_fourth((1.0, 1.0), radius, 0.0, (1.0, 1.0))) > 1.0
    assert min(ends_by_slope((0.0, 0.0), radius, 1e-300)) > 0.0


def test_a_sum_has_the_sums_of_both_ends() -> None:
    """x² - y² beside y² - x²: the ends cancel, while the norms would add."""
    one = Enclosure(over=DerivativeBounds((3.0, -1.0), 2.0, (1.0, 0.0)), order=3, reason="kink")
    other = Enclosure(over=DerivativeBounds((-1.0, 2.0), 5.0, UNKNOWN))
    both = add([one, other])
    assert both.over == DerivativeBounds((2.0, 1.0), 7.0, UNKNOWN)
    assert norm_of(both.over.second) == 2.0
    assert (both.order, both.reason) == (3, "kink")
    assert add([]).over.third == 0.0


def test_the_least_of_each_quantity() -> None:
    one = Enclosure(over=DerivativeBounds((3.0, 1.0), 2.0), order=1, reason="kink")
    other = Enclosure(DerivativeBounds((1.0, 1.0)), DerivativeBounds((1.0, 4.0), INF))
    both = least([one, other])
    assert both.over == DerivativeBounds((1.0, 1.0), 2.0)
    assert both.centre.second == (1.0, 1.0)
    assert both.reason == ""


def test_the_series_of_a_polynomial() -> None:
    """(1 + x)⁵ in powers of x: the derivatives at r."""
    sizes = {k: float(math.comb(5, k)) for k in range(2, 6)}
    for order, exact in ((2, 20.0 * 1.5**3), (3, 60.0 * 1.5**2)):
        start = 2.0 * sizes[2] if order == 2 else 0.0
        found = total([start, *series_terms(sizes, order, 0.5).values()])
        assert exact <= found <= exact * (1.0 + 1e-13)


def test_the_closure_is_above_what_points_show() -> None:
    """Random quartics of three variables: all is known exactly, no point is above."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows, weights = rng.standard_normal((6, 3)), rng.standard_normal(6)

        def hessian(x: np.ndarray, A: np.ndarray = rows, w: np.ndarray = weights) -> np.ndarray:
            return (A.T * (12.0 * w * (A @ x) ** 2)) @ A

        lengths = np.linalg.norm(rows, axis=1)
        fourth = (
            float(24.0 * np.maximum(weights, 0.0) @ lengths**4),
            float(24.0 * np.maximum(-weights, 0.0) @ lengths**4),
        )
        c = rng.standard_normal(3)
        ends = np.linalg.eigvalsh(hessian(c))
        third = float(24.0 * np.abs(weights * (rows @ c)) @ lengths**3)
        known = Enclosure(
            DerivativeBounds((ends[-1] + 1e-9, -ends[0] + 1e-9), third),
            DerivativeBounds(fourth=fourth),
        )
        for radius in (1e-3, 0.3, 2.0):
            L1 = close(known, radius).first.value
            for _ in range(20):
                d = rng.standard_normal(3)
                seen = np.linalg.eigvalsh(hessian(c + radius * d / np.linalg.norm(d)))
                assert np.abs(seen).max() <= L1
