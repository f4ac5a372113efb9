"""Recurrences inside the steps of others, against loops in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

import slomodel

S, T, N = 3, 5, 4
RNG = np.random.default_rng(0)
Y, W, C = RNG.normal(size=(S, T)), RNG.normal(size=3), RNG.normal(size=(3, N))


def _logsumexp(values: list[complex]) -> complex:
    return np.log(np.sum(np.exp(values)))


def _substeps(x):
    a, b, u = x
    total = u**2
    for t in range(1, T):
        p, q = u, Y[0, t]
        for k in range(1, 3):
            p = p + 0.1 * q * W[k] * a
            q = q - 0.1 * np.sin(p)
        u = p * b + q
        total += u**2
    return total


def _grid(x):
    g, s = x
    above = s * C[0]
    for i in range(1, 3):
        row = []
        for j in range(N):
            before = [-above[j] - g]
            before += [-row[j - 1] - g, -above[j - 1]] if j else []
            row.append(s * C[i, j] - _logsumexp(before))
        above = np.array(row)
    return above[-1]


def _cumulative(x):
    d = C[0] + 0 * x[0]
    for i in range(1, 3):
        z = C[i] * x[0] + d
        d = np.array([_logsumexp(z[: j + 1]) for j in range(N)])
    return _logsumexp(d)


def _three_levels(x):
    a, b = x[:S], x[S]

    def inner(v, a):
        z = v
        for _ in range(2):
            z = np.sin(z * a) + v
        return z

    def middle(v, a):
        z = v
        for _ in range(2):
            z = inner(z, a) * b
        return z + 0.4 * b

    total = 0
    for s in range(S):
        u = b
        for t in range(T):
            u = middle(u, a[s]) + Y[s, t] if t else u
            total += u**2
    return total


Case = tuple[str, Mapping[str, object], int, Callable[[np.ndarray], complex]]
CASES: dict[str, Case] = {
    "substeps of two states": (
        """dim T, K  data y[T], w[K]  var a, b, u0
        fn substeps(v, s) =
          let p[k in K] = p[k-1] + 0.1 * q[k-1] * w[k] * a  first v
          and q[k in K] = q[k-1] - 0.1 * sin(p[k])  first s
          return p[K-1] * b + q[K-1]
        let u[t in T] = substeps(u[t-1], y[t])  first u0
        minimize sumsq(u)""",
        {"y": Y[0], "w": W},
        3,
        _substeps,
    ),
    "a grid row by row": (
        """dim m, n  data C[m, n]  var g, s
        fn row(above[k], c[k]) =
          let d[j in k] = c[j] - logsumexp([-above[j] - g,
            where(j > 0, -d[j-1] - g, -1e3), where(j > 0, -above[j-1], -1e3)])
          return d
        let D[i in m] = row(D[i-1, :], s * C[i, :])  first s * C[0, :]
        minimize D[m-1, n-1]""",
        {"C": C},
        2,
        _grid,
    ),
    "a cumulative sum": (
        """dim m, n  data C[m, n]  var g
        let D[i in m] = cumlogsumexp(C[i, :] * g + D[i-1, :])  first C[0, :]
        minimize logsumexp(D[m-1, :])""",
        {"C": C},
        1,
        _cumulative,
    ),
    "three levels for each series": (
        """dim S, T  data Y[S, T]  var a[S], b
        fn inner(v, a) =
          let z[i in range(3)] = sin(z[i-1] * a) + v  first v
          return z[2]
        fn middle(v, a) =
          let z[i in range(3)] = inner(z[i-1], a) * b  first v
          and c[i in range(3)] = 2 * c[i-1]  first b
          return z[2] + 0.1 * c[2]
        fn loss(a, y[n]) =
          let u[t in n] = middle(u[t-1], a) + y[t]  first b
          return sumsq(u)
        minimize sum(loss(a[s], Y[s, :]) for s in S)""",
        {"Y": Y},
        S + 1,
        _three_levels,
    ),
}


@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, marks=[pytest.mark.slow] * (target != "numpy"))
        for name in CASES
        for target in ("numpy", "numexpr", "c")
    ],
)
def test_values_and_derivatives(name: str, target: str) -> None:
    text, data, n, loop = CASES[name]
    model = slomodel.compile(text, data=data, backend=target)
    x = np.random.default_rng(1).uniform(0.3, 0.9, n)
    f, g = model.value_and_gradient(x)
    slopes = [loop(x + step).imag / 1e-30 for step in 1e-30j * np.eye(n)]
    assert f == pytest.approx(loop(x).real, rel=1e-13)
    np.testing.assert_allclose(g, slopes, rtol=1e-11, atol=1e-12 * np.abs(slopes).max())
    v = np.random.default_rng(2).normal(size=n)
    change = (model.gradient(x + 1e-5 * v) - model.gradient(x - 1e-5 * v)) / 2e-5
    np.testing.assert_allclose(model.hvp(x, v), change, rtol=1e-6, atol=1e-7)


@pytest.mark.slow
def test_bounds_with_inner_steps() -> None:
    text, data, n, _ = CASES["substeps of two states"]
    model = slomodel.compile(text, data=data, backend="numpy")
    x = np.full(n, 0.5)
    bounds = model.bounds(x, 0.01)
    draw = np.random.default_rng(3)
    for _ in range(5):
        step = draw.normal(size=n)
        hessian = model.hessian(x + 0.01 * step / np.linalg.norm(step))
        assert np.linalg.norm(hessian, 2) <= bounds.L1 < 1.1 * np.linalg.norm(hessian, 2)


def test_inner_steps_count_for_the_length_of_a_bound() -> None:
    text = """dim T, K  var a, b
    fn substeps(v) =
      let z[k in K] = sin(a * z[k-1])  first v
      return z[K-1]
    let u[t in T] = substeps(u[t-1])  first b
    minimize sumsq(u)"""
    model = slomodel.compile(text, dims={"T": 50, "K": 400}, backend="numpy")
    assert "has 50 steps, too many for a bound" in str(model.bounds([0.5, 0.5], 0.1))


def test_kinks_of_inner_steps_are_reported() -> None:
    text, data, _, _ = CASES["substeps of two states"]
    with pytest.warns(slomodel.NonsmoothWarning, match="`abs` has a kink at 0"):
        slomodel.compile(text.replace("sin(", "abs("), data=data, backend="numpy")
