"""Proved curvature along a vector, and saddles that only a proof shows."""

import numpy as np
from bounds.settings import setting

import slomodel
from slomodel.bounds.centre import curvature_above

BOWL = "1e8*x^2 - 1e-7*y^2 + 1e-9*y^4"


def test_curvature_is_that_of_the_hessian() -> None:
    one = setting("var x, y\nminimize exp(x * y) - y^2", [0.3, -0.2])
    v = np.array([0.6, 0.8])
    x, y = 0.3, -0.2
    e = np.exp(x * y)
    H = np.array([[y * y * e, (1 + x * y) * e], [(1 + x * y) * e, x * x * e - 2]])
    exact = v @ H @ v / (v @ v)
    assert exact <= curvature_above(one, v) <= exact + 1e-13


def test_a_saddle_below_the_rounding_of_products_is_left() -> None:
    """The curvature -2e-7 is less than 1e-15 of the largest one, and proved all the same."""
    for text in (f"minimize {BOWL}", f"maximize -({BOWL})"):
        model = slomodel.compile(f"var x, y\n{text}", backend="numpy")
        found = model.solve(x0=[0.0, 0.0], second_order=True)
        assert abs(found.x[1]) > 1.0
