"""What depends on the point alone, where there is a direction too, is done once a point."""

from __future__ import annotations

import numpy as np

import slomodel


def test_a_hessian_product_does_what_its_point_needs_once() -> None:
    model = slomodel.compile("var x[3]\nminimize sum(exp(sin(x))) * x[0]")
    text = model.source().split("def hvp(point")[1].split("return hvp")[0]
    kept = text.split("if now != seen:")[1].split("seen = now")[0]
    calls = text.split("seen = now")[1]
    assert "sin" in kept
    assert "sin" not in calls


def test_what_is_kept_of_a_point_goes_with_its_bits() -> None:
    model = slomodel.compile("var x, y\nminimize x * x * y + 1 / y")
    fresh = slomodel.compile("var x, y\nminimize x * x * y + 1 / y")
    v = np.array([1.0, 2.0])
    points = [(2.0, 3.0), (2.0, np.nan), (2.0, 3.0), (0.0, -0.0), (0.0, 0.0), (2.0, 3.0)]
    for point in map(np.array, points):
        one, other = model.hvp(point, v), fresh.bind().hvp(point, v)
        np.testing.assert_array_equal(one, other)
