"""Cumulative sums, products and log-sum-exps against NumPy, with derivatives by complex steps."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel
from slomodel.errors import SlomodelError

n, m = 5, 3
W = np.random.default_rng(4).normal(size=(n, m))
RULES = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cumlogsumexp": lambda a, axis: np.log(np.cumsum(np.exp(a), axis)),
}


@pytest.mark.parametrize("target", ["numpy", "numexpr", "c"])
@pytest.mark.parametrize("name", RULES)
def test_values_and_derivatives(name: str, target: str) -> None:
    text = f"""dim n, m  data W[n, m]  var x[n], X[n, m]
    minimize sum({name}(x)^2) + sum(W .* {name}(X, axis=0)) + sum(W .* sin({name}(X, axis=1)))"""
    model = slomodel.compile(text, data={"W": W}, backend=target)

    def value(z: np.ndarray) -> complex:
        x, X = z[:n], z[n:].reshape(n, m)
        rule = RULES[name]
        first = np.sum(rule(x, 0) ** 2) + np.sum(W * rule(X, 0))
        return first + np.sum(W * np.sin(rule(X, 1)))

    z = np.random.default_rng(5).normal(size=n + n * m)
    z[[1, n + 4]] = 0.0  # products of zeros have derivatives too
    f, g = model.value_and_gradient(z)
    expected = np.array([value(z + e).imag / 1e-30 for e in 1e-30j * np.eye(z.size)])
    assert f == pytest.approx(value(z).real, rel=1e-13)
    np.testing.assert_allclose(g, expected, rtol=1e-11, atol=1e-13)
    v = np.random.default_rng(6).normal(size=z.size)
    difference = (model.gradient(z + 1e-5 * v) - model.gradient(z - 1e-5 * v)) / 2e-5
    np.testing.assert_allclose(model.hvp(z, v), difference, rtol=1e-6, atol=1e-6)


def test_large_numbers_do_not_overflow() -> None:
    text = "dim n data y[n] var a minimize sum(cumlogsumexp(a * y))"
    y = np.array([-1e4, 900.0, 1000.0, 998.0])
    model = slomodel.compile(text, data={"y": y}, backend="numpy")
    tail = 1000.0 + np.log(1 + np.exp(-100.0)), 1000.0 + np.log(1 + np.exp(-100.0) + np.exp(-2.0))
    assert model.value([1.0]) == pytest.approx(-1e4 + 900.0 + sum(tail), rel=1e-13)


def test_an_axis_is_needed_for_matrices() -> None:
    with pytest.raises(SlomodelError, match=r"write `cumsum\(…, axis=0\)`"):
        slomodel.compile("var X[3, 2] minimize sum(cumsum(X))")


def test_bounds_of_cumulative_sums() -> None:
    model = slomodel.compile("var x[3] minimize sumsq(cumsum(x))", backend="numpy")
    hessian = 2 * np.tril(np.ones((3, 3))).T @ np.tril(np.ones((3, 3)))
    largest = np.linalg.norm(hessian, 2)
    assert largest <= model.bounds(np.zeros(3), 1.0).L1 <= 1.01 * largest
