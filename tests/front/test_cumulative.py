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


@pytest.mark.sampled(2)
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


RANGES = {
    "range(i + 1)": lambda i: range(i + 1),
    "range(i)": range,
    "range(i, n)": lambda i: range(i, n),
    "range(i + 1, n)": lambda i: range(i + 1, n),
    "range(1, i + 1)": lambda i: range(1, i + 1),
    "range(g[i], n)": lambda i: range(G[i], n),
    "range(g[i])": lambda i: range(G[i]),
}
G = np.array([2, 0, 4, 4, 1])


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("domain", RANGES)
def test_sums_over_ranges_from_or_to_an_index(domain: str, target: str) -> None:
    if target == "c" and domain not in ("range(i)", "range(g[i], n)"):
        return  # the same graphs
    text = f"""dim n  data g[n] in n, w[n]  var x[n]
    let s[i in n] = sum(x[j]^2 + j for j in {domain})
    let p[i in n, k in n] = sum(x[j] * x[k] for j in {domain})
    let e[i in n] = exp(logsumexp(3 * x[j] for j in {domain}))
    minimize sum(w .* s) + sumsq(p) + sum(w .* e) + 0 * sum(w[g])"""
    w = np.arange(1.0, n + 1.0)
    model = slomodel.compile(text, data={"g": G, "w": w}, backend=target)

    def value(x: np.ndarray) -> complex:
        total = 0
        for i in range(n):
            own = list(RANGES[domain](i))
            total = total + w[i] * sum(x[j] ** 2 + j for j in own)
            total = total + sum(sum(x[j] * x[k] for j in own) ** 2 for k in range(n))
            total = total + w[i] * sum(np.exp(3 * x[j]) for j in own)
        return total

    x = np.random.default_rng(1).normal(size=n)
    f, g = model.value_and_gradient(x)
    expected = [value(x + step).imag / 1e-30 for step in 1e-30j * np.eye(n)]
    assert f == pytest.approx(np.real(value(x)), rel=1e-13)
    np.testing.assert_allclose(g, expected, rtol=1e-11, atol=1e-12)


def test_a_long_running_sum_needs_no_pairs() -> None:
    text = """dim N  data g[N] in N, y[N]  var a
    minimize sum(logsumexp(a * y[j] for j in range(g[i], N)) for i in N)"""
    size = 20_000
    y = np.random.default_rng(0).normal(size=size)
    model = slomodel.compile(text, data={"g": np.arange(size), "y": y}, backend="c")
    f, g = model.value_and_gradient([0.5])
    tails = np.cumsum(np.exp(0.5 * y)[::-1])[::-1]
    slopes = np.cumsum((y * np.exp(0.5 * y))[::-1])[::-1] / tails
    assert f == pytest.approx(np.sum(np.log(tails)), rel=1e-12)
    assert g[0] == pytest.approx(np.sum(slopes), rel=1e-10)
