"""Lookups at known places that are consecutive but for a few jumps, against NumPy by hand."""

from __future__ import annotations

import re
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

PLANE = """dim n = 7, T = 5
data s[n, n]
var c[n, n]
let u[t in T, i in n, j in n] = 2*u[t-1, i, j] - u[t-2, i, j] + exp(c[i, j]) * (u[t-1, (i+1) % n, j]
    + where(j > 0, u[t-1, i, j-1], 0) - 2*u[t-1, i, j]) / 9  first s[i, j], s[i, j]
minimize sum(u[T-1, i, j]^3 for i in n, j in n) + sumsq(u) / 2"""
START = np.cos(np.arange(49.0)).reshape(7, 7)


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


def by_hand_plane(x: Array) -> Array:
    u = [START, START]
    for _ in range(3):
        p = u[-1]
        left = np.concatenate([np.zeros((7, 1)), p[:, :-1]], axis=1)
        bent = np.roll(p, -1, 0) + left - 2 * p
        u.append(2 * p - u[-2] + np.exp(x.reshape(7, 7)) * bent / 9)
    return (u[4] ** 3).sum() + (np.array(u) ** 2).sum() / 2


@pytest.mark.parametrize(
    ("source", "by_hand"), [(GRID, by_hand_grid), (STEPS, by_hand_steps), (PLANE, by_hand_plane)]
)
def test_derivatives_along_rolled_and_clamped_axes(
    source: str, by_hand: Callable[[Array], Array]
) -> None:
    model = slomodel.compile(source, data={"s": START} if source is PLANE else None, backend="c")
    x, v = np.random.default_rng(0).normal(size=(2, model.n)) / 3
    value, gradient = model.value_and_gradient(x)
    assert value == pytest.approx(by_hand(x), rel=1e-13)
    assert gradient @ v == pytest.approx(by_hand(x + 1e-30j * v).imag / 1e-30, rel=1e-12)
    difference = model.gradient(x + 1e-5 * v) - model.gradient(x - 1e-5 * v)
    np.testing.assert_allclose(model.hvp(x, v), difference / 2e-5, atol=1e-8)

    assert "equal" not in model.source("c"), "places are looked up one by one"


@pytest.mark.parametrize("source", [STEPS, PLANE])
def test_a_step_reads_neighbours_where_they_are_and_stores_each_element_once(source: str) -> None:
    model = slomodel.compile(source, data={"s": START} if source is PLANE else None, backend="c")
    pattern = re.compile(r"^( *)for \(long step = .*?^\1\}", re.MULTILINE | re.DOTALL)
    bodies = [match[0] for match in pattern.finditer(model.source("c"))]
    assert len(bodies) >= 3
    assert not any("slo_fill" in text or "slo_total(t" in text for text in bodies[:3])


def test_arrays_of_all_steps_are_the_states_and_their_adjoints() -> None:
    source = """dim n = 40, T = 200
    data y[T, n]
    var c[n]
    let u[t in T, i in n] = u[t-1, i] + exp(c[i]) * (u[t-1, (i+1) % n] - u[t-1, i])  first y[0, i]
    minimize sumsq(u - y)"""
    model = slomodel.compile(source, data={"y": np.ones((200, 40))}, backend="c")
    model.value_and_gradient(np.zeros(40))
    text = model.source("c")
    own = text[text.index("double value_and_gradient") : text.index("void prepare_hvp")]
    offsets = [int(one) for one in re.findall(r"\bw \+ (\d+)", own)]
    assert max(offsets) < 2 * 8000 + 40 * 10, "seeds are where adjoints are, differences in blocks"
    assert not re.search(r"\[i \* \d", own), "the states and what is computed with them are in rows"
