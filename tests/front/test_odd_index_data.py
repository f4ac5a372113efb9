"""Index data, index sets and recurrences at their edges, on every target, against loops."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel
from slomodel.errors import SlomodelError

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")

TEXT = """dim N, G
data g[N] in G, w[N], first[G + 1] in N + 1
var a[G], x[N], r
let s[k in G] = sum(x[i] * w[i] for i in N if g[i] == k)
let q[k in G] = sum(x[i]^2 for i in range(first[k], first[k+1]))
let h[t in range(N + 1)] = r * h[t-1] + sin(r) + t - 1  first r
minimize sumsq(a[g] - x) + sum((s - a)^2) + sum(q .* a) + sum(h^2)
  + sum(x[i] * x[j]^2 for i in N, j in range(i)) + sum(exp(a[g[i]]) for i in N if g[i] != 1)
  + sum(where(i > 0, x[max(i - 1, 0)] * x[i], 0) for i in N) + sum(cumsum(x))"""


def loop(z: np.ndarray, g: np.ndarray, groups: int) -> complex:
    size = g.size
    a, x, r = z[:groups], z[groups : groups + size], z[-1]
    w, first = weights(size), bounds_of(size, groups)
    total = sum((a[g[i]] - x[i]) ** 2 for i in range(size)) + np.sum(np.cumsum(x))
    for k in range(groups):
        total += (sum(x[i] * w[i] for i in range(size) if g[i] == k) - a[k]) ** 2
        total += a[k] * np.sum(x[first[k] : first[k + 1]] ** 2)
    h = [r]
    for t in range(1, size + 1):
        h.append(r * h[-1] + np.sin(r) + t - 1)
    total += np.sum(np.square(h))
    total += sum(x[i] * x[j] ** 2 for i in range(size) for j in range(i))
    total += sum(np.exp(a[k]) for k in g if k != 1)
    return total + sum(x[i - 1] * x[i] for i in range(1, size))


def weights(size: int) -> np.ndarray:
    return np.arange(1.0, size + 1)


def bounds_of(size: int, groups: int) -> np.ndarray:
    """Where ragged rows begin and end: the first one is empty, the second has all but one."""
    return np.minimum(np.append(0, np.maximum(0, size - 1) * (np.arange(groups) > 0)), size)


ODD: dict[str, tuple[list[int], int]] = {
    "no terms and no groups": ([], 0),
    "no terms": ([], 3),
    "one of each": ([0], 1),
    "two terms": ([1, 0], 2),
    "a permutation": ([2, 0, 3, 1], 4),
    "duplicates and empty groups": ([3, 1, 1, 3, 3], 5),
    "all in the last group": ([2, 2, 2], 3),
}
COMPILED = ("no terms and no groups", "duplicates and empty groups")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "backend"),
    [
        pytest.param(name, one, marks=[pytest.mark.slow] * (one == "c" and name not in COMPILED))
        for name in ODD
        for one in ("numpy", "numexpr", "c")
    ],
)
def test_values_and_gradients_are_those_of_loops(name: str, backend: str) -> None:
    positions, groups = ODD[name]
    g = np.array(positions, dtype=int)
    data = {"g": g, "w": weights(g.size), "first": bounds_of(g.size, groups)}
    model = slomodel.compile(TEXT, data=data, dims={"G": groups}, backend=backend)
    z = np.random.default_rng(3).normal(size=model.n)
    value, slope = model.value_and_gradient(z)
    assert value == pytest.approx(loop(z, g, groups).real, rel=1e-13)
    steps = 1e-30j * np.eye(model.n)
    expected = [loop(z + step, g, groups).imag / 1e-30 for step in steps]
    np.testing.assert_allclose(slope, expected, rtol=1e-11, atol=1e-12)
    other = g[::-1].copy()
    if g.size:
        assert model.bind(g=other).value(z) == pytest.approx(loop(z, other, groups).real)


@pytest.mark.parametrize("backend", ["numpy", "numexpr", "c"])
@pytest.mark.parametrize(
    ("position", "code"), [(-1, "E312"), (3, "E312"), (np.nan, "E308"), (1e300, "E312")]
)
def test_positions_outside_are_refused_when_bound_too(
    position: float, code: str, backend: str
) -> None:
    text = "dim N, G data g[N] in G var a[G] minimize sumsq(a[g])"
    model = slomodel.compile(text, dims={"G": 3}, backend=backend)
    with pytest.raises(SlomodelError) as caught:
        model.bind(g=[0.0, position])
    assert caught.value.diagnostics[0].code == code


@pytest.mark.parametrize("backend", ["numpy", "numexpr", "c"])
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_recurrences_of_few_steps(steps: int, backend: str) -> None:
    text = """dim T data y[T] var a, b
    let h[t in T] = a * h[t-1] + y[t] first b
    minimize sumsq(h)"""
    if not steps:
        with pytest.raises(SlomodelError, match=r"E315.*needs a step for its first value"):
            slomodel.compile(text, data={"y": []}, backend=backend)
        return
    model = slomodel.compile(text, data={"y": [5.0, 1.0][:steps]}, backend=backend)
    second = [2.0 * 3.0 + 1.0] * (steps - 1)
    assert model.value([2.0, 3.0]) == pytest.approx(9.0 + sum(np.square(second)))
    slopes = [2 * 7.0 * 3.0, 6.0 + 2 * 7.0 * 2.0] if steps > 1 else [0.0, 6.0]
    np.testing.assert_allclose(model.gradient([2.0, 3.0]), slopes)
