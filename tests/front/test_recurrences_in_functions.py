"""Recurrences among the definitions of a function, against loops in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import slomodel
from slomodel.errors import SlomodelError

S, T = 3, 6
Y = np.random.default_rng(5).normal(size=(S, T))

GARCH = """dim S, T  data Y[S, T]  var w[S], a[S], b
fn variances(w, a, b, r[n]) =
  let h[t in n] = w + a * r[t-1]^2 + b * h[t-1]  first w
  return h
fn loss(w, a, b, r[n]) =
  let h = variances(w, a, b, r)
  return sum(log(h) + r^2 ./ h)
"""
PANEL = GARCH + "minimize sum(loss(w[s], a[s], b, Y[s, :]) for s in S)"
SEASONAL = """dim S, T  data Y[S, T]  var a, b, th[2]
fn loss(a, b, th[k], r[n]) =
  let s[t in n] = b * s[t-2] * r[t] + 0.1 * e[t-1]^2  first a * (j + 1) for j in 2
  and e[t in n] = where(t == 0, a, r[t] - s[t] - sum(th[j] * e[t-1-j] for j in k if j < t))
  return sumsq(e) + sum(exp(s))
"""


def _garch(x: np.ndarray) -> complex:
    w, a, b = x[:S], x[S : 2 * S], x[2 * S]
    total = 0
    for s in range(S):
        h = w[s]
        for t in range(T):
            h = w[s] + a[s] * Y[s, t - 1] ** 2 + b * h if t else h
            total += np.log(h) + Y[s, t] ** 2 / h
    return total


def _alike(x: np.ndarray) -> complex:
    """The variances of the first series with the parameters of every series."""
    total = 0
    for s in range(S):
        h = x[s]
        for t in range(T):
            h = x[s] + x[S + s] * Y[0, t - 1] ** 2 + x[2 * S] * h if t else h
            total += np.log(h) + Y[0, t] ** 2 / h
    return total


def _seasonal(x: np.ndarray) -> complex:
    a, b, th = x[0], x[1], x[2:]
    total = 0
    for r in Y:
        s, e = [a, 2 * a], [a]
        for t in range(1, T):
            if t > 1:
                s.append(b * s[t - 2] * r[t] + 0.1 * e[t - 1] ** 2)
            e.append(r[t] - s[t] - sum(th[j] * e[t - 1 - j] for j in range(2) if j < t))
        total += sum(np.square(e)) + sum(np.exp(s))
    return total


@pytest.mark.parametrize(
    ("text", "loop", "n", "target"),
    [
        (PANEL, _garch, 7, "numpy"),
        pytest.param(PANEL, _garch, 7, "c", marks=pytest.mark.slow),
        (GARCH + "minimize sum(loss(w, a, b, Y[0, :]))", _alike, 7, "numpy"),
        (SEASONAL + "minimize sum(loss(a, b, th, Y[s, :]) for s in S)", _seasonal, 4, "numpy"),
    ],
)
def test_one_run_for_each_call(
    text: str, loop: Callable[[np.ndarray], complex], n: int, target: str
) -> None:
    model = slomodel.compile(text, data={"Y": Y}, backend=target)
    x = np.random.default_rng(1).uniform(0.3, 0.9, n)
    f, g = model.value_and_gradient(x)
    slopes = [loop(x + step).imag / 1e-30 for step in 1e-30j * np.eye(n)]
    assert f == pytest.approx(loop(x).real, rel=1e-13)
    np.testing.assert_allclose(g, slopes, rtol=1e-11, atol=1e-12 * np.abs(slopes).max())
    v = np.random.default_rng(2).normal(size=n)
    change = (model.gradient(x + 1e-5 * v) - model.gradient(x - 1e-5 * v)) / 2e-5
    np.testing.assert_allclose(model.hvp(x, v), change, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("local", "message"),
    [
        ("let h[t in m] = h[t+1] first 0", "reads step 2, which comes later"),
        ("let h[t in m] = y[t] first 0", "nothing here depends on an earlier step"),
        ("let h[t in m] = h[t-1] first 0 and q = h", "`q` belongs to a recurrence"),
        ("let h[t in m] = h[t-1] + z first 0", "unknown name `z`"),
        ("let y[t in m] = y[t-1] first 0", "already has a `y`"),
    ],
)
def test_what_is_wrong_is_marked_in_the_function(local: str, message: str) -> None:
    text = f"dim n var x[n] fn f(y[m]) = {local} return sum(h) minimize f(x)"
    with pytest.raises(SlomodelError, match=message):
        slomodel.compile(text)
