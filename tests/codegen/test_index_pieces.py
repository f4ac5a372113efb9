"""Lookups at known places that are consecutive but for a few jumps, against NumPy by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import slomodel

Array = Any
GRID = """dim n = 20, k = 3
var f[n, n], h[n, k]
minimize sum(f[i, (j+1) % n]^3 * f[(i+1) % n, j] + f[i, j] * f[max(i-1, 0), min(j+2, n-1)]
             for i in n, j in n)
     + sum(h[(i+1) % n, a] * h[i, (a+1) % k]^2 for i in n, a in k)"""
STEPS = """dim n = 20, T = 5
var a[n], nu
let v[t in T, i in n] = v[t-1, i] - v[t-1, i] * (v[t-1, (i+1) % n] - v[t-1, (i+n-1) % n]) / 9
    + nu * v[t-1, min(i+1, n-1)]  first a[i]
minimize sum(v[T-1, i]^2 * v[2, (i+3) % n] for i in n)"""


def by_hand_grid(x: Array) -> Array:
    f, h = x[:400].reshape(20, 20), x[400:].reshape(20, 3)
    clamped = f[np.maximum(np.arange(20) - 1, 0)][:, np.minimum(np.arange(20) + 2, 19)]
    rolled = np.roll(f, -1, 1) ** 3 * np.roll(f, -1, 0) + f * clamped
    return rolled.sum() + (np.roll(h, -1, 0) * np.roll(h, -1, 1) ** 2).sum()


def by_hand_steps(x: Array) -> Array:
    v, nu = [x[:20]], x[20]
    for _ in range(4):
        p = v[-1]
        clamped = p[np.minimum(np.arange(20) + 1, 19)]
        v.append(p - p * (np.roll(p, -1) - np.roll(p, 1)) / 9 + nu * clamped)
    return (v[4] ** 2 * np.roll(v[2], -3)).sum()


@pytest.mark.parametrize(("source", "by_hand"), [(GRID, by_hand_grid), (STEPS, by_hand_steps)])
def test_derivatives_along_rolled_and_clamped_axes(
    source: str, by_hand: Callable[[Array], Array]
) -> None:
    model = slomodel.compile(source, backend="c")
    x, v = np.random.default_rng(0).normal(size=(2, model.n)) / 3
    value, gradient = model.value_and_gradient(x)
    assert value == pytest.approx(by_hand(x), rel=1e-13)
    assert gradient @ v == pytest.approx(by_hand(x + 1e-30j * v).imag / 1e-30, rel=1e-12)
    difference = model.gradient(x + 1e-5 * v) - model.gradient(x - 1e-5 * v)
    np.testing.assert_allclose(model.hvp(x, v), difference / 2e-5, atol=1e-8)

    assert "equal" not in model.source("c"), "places are looked up one by one"
