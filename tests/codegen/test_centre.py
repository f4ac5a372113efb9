"""Nodes that depend on the point alone, beside a direction, are computed once per point."""

from __future__ import annotations

import numpy as np

import slomodel


def test_what_depends_on_data_alone_is_done_once() -> None:
    text = """dim m, n
data A[m, n], y[m]
var w[n]
minimize sum((((A - mean(A)) / sqrt(mean((A - mean(A)).^2))) @ w - log(y)).^4)
"""
    rng = np.random.default_rng(0)
    data = {"A": rng.standard_normal((40, 5)), "y": rng.uniform(1.0, 2.0, 40)}
    model = slomodel.compile(text, data=data)
    called = model.source().split("def value(point")[1].split("return value")[0]
    for once in ("sqrt", "log(", "subtract(d0"):
        assert once in model.source()
        assert once not in called
    assert "operations on data alone are done once per bind" in model.explain()
    A = (data["A"] - data["A"].mean()) / data["A"].std()
    w = rng.standard_normal(5)
    np.testing.assert_allclose(model.value(w), ((A @ w - np.log(data["y"])) ** 4).sum(), rtol=1e-12)


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
