"""Checkpoints of recurrences: the same numbers as with all states stored, in little memory."""

import re

import numpy as np
import pytest

import slomodel
from slomodel.reference import evaluate
from slomodel.rewrite.memory import checkpoints

LEAKY = """dim T, K
data x[T], y[T]
var a[K] init 0.5, c[K] init 0.3
let h[t in T, k in K] = tanh(a[k] * h[t-1, k] + x[t])  first 0.1
minimize sum((y[t] - dot(c, h[t, :]))^2 for t in T)
"""
# Differences of neighbouring steps, elements at fixed steps, and stored arrays.
READERS = """dim T, K, N
data x[T], y[T - 1], at[N] in T, obs[N]
var a[K] init 0.5, c[K] init 0.3, h0[K] init 0.2
let h[t in T, k in K] = tanh(a[k] * h[t-1, k] + exp(-x[t]^2))  first h0[k]
let m = h @ c
minimize sumsq(y - dot(c, c) * sum(h[1:, :] - 0.5 * h[:-1, :], axis=1)) + h[T-1, 2] + sum(h[0, :])
  + h[T-2, 0]^2 + sum((m[at[i]] - obs[i])^2 for i in N) + logsumexp(m[::-1] .* x)
"""
# Two states with several lags, tables, a definition of variables along the steps.
SEVERAL = """dim T, K, p
data X[T, p], r[T]
var a[K] init 0.5, b[7, K] init normal(0, 0.1), U[p, K] init normal(0, 1)
let E = X @ U
let s[t in T, k in K] = 0.9 * s[t-7, k] + a[k] * l[t-1, k]
    + where(r[t] > 0, E[t, k], 0.1 * s[t-3, k])
    first a[k] for t in 7
and l[t in T, k in K] = 0.5 * l[t-1, k] + exp(-t / 100) * b[t % 7, k] + 0.1 * tanh(s[t, k])
    first 1
minimize sumsq(s) / T + sum(tanh(l[t, k]) * r[t] for t in T, k in K if t > 10)
"""
BACKWARDS = """dim T, K
data x[T], y[T]
var a[K] init 0.5, W[K, K] init normal(0, 0.2)
let h[t in T] = where(t == T - 1, 0.1 * a, tanh(W @ h[t+1, :] + a * x[t]))
minimize sum((y[t] - sum(h[t, :]))^2 for t in T) + h[0, 1]
"""
SUBSTEPS = """dim T, K
data y[T]
var a[K] init 0.5
fn after(v[K], u) =
  let z[s in 4] = z[s-1, :] + 0.1 * (u - tanh(a * z[s-1, :])) first v
  return z[3, :]
let h[t in T] = after(h[t-1, :], y[t-1])  first zeros(K)
minimize sum((y[t] - sum(h[t, :]))^2 for t in T)
"""


def data_of(text: str, T: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(3)
    every = {
        "x": draw.standard_normal(T),
        "r": draw.standard_normal(T),
        "y": draw.standard_normal(T - 1 if "y[T - 1]" in text else T),
        "X": draw.standard_normal((T, 2)),
        "obs": draw.standard_normal(9),
        "at": draw.integers(0, T, 9),
    }
    return {
        name: array
        for name, array in every.items()
        if f"{name}[" in text.split("var", maxsplit=1)[0]
    }


def compiled(text: str, backend: str, T: int, K: int = 6) -> slomodel.Model:
    return slomodel.compile(text, data=data_of(text, T), dims={"K": K}, backend=backend)


@pytest.fixture(autouse=True)
def every_history_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "LARGEST_HISTORY", 1)


def test_value_and_gradient_are_those_of_the_formula() -> None:
    T, K = 251, 6
    model = compiled(LEAKY, "numpy", T)
    assert "checkpoints: " in model.explain()
    assert len(model._compiled.derivatives.squares) == 1  # which Gauss-Newton methods need
    x, y = (model.data[name] for name in "xy")

    def formula(point: np.ndarray) -> np.ndarray:
        a, c = point[:K], point[K:]
        h, total = 0.1 * np.ones(K, point.dtype), 0.0
        for t in range(T):
            h = np.tanh(a * h + x[t]) if t else h
            total = total + (y[t] - c @ h) ** 2
        return total

    point = model.x0() + 0.1 * np.sin(np.arange(2 * K))
    slope = [formula(point + 1e-30j * unit).imag * 1e30 for unit in np.eye(2 * K)[::3]]
    assert model.value(point) == pytest.approx(formula(point), rel=1e-13)
    np.testing.assert_allclose(model.gradient(point)[::3], slope, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("text", [READERS, SEVERAL, BACKWARDS, SUBSTEPS])
def test_derivatives_are_those_with_all_states_stored(text: str) -> None:
    model = compiled(text, "numpy", 401)
    assert "every" in model.explain()
    point, along = model.x0(1), np.cos(np.arange(model.n))
    written = model._plans.written
    parts, sides = model.unpack(point), model.unpack(along)
    given = {node: parts[node.name] for node in written.variables}
    given |= {node: sides[node.name] for node in written.directions}
    given |= {one.node: model.data[one.name] for one in model._problem.data}
    roots = [written.objective, *written.gradient, *written.hessian_vector]
    value, *rest = evaluate(roots, given, model._binding.sizes)
    expected = np.concatenate([array.ravel() for array in rest])
    assert model.value(point) == pytest.approx(float(value), rel=1e-13)
    found = np.concatenate([model.gradient(point), model.hvp(point, along)])
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12 * np.abs(expected).max())


def test_compiled_kernels_need_less_than_the_states() -> None:
    T, K = 4000, 40
    model = compiled(LEAKY, "c", T, K)
    (numbers,) = re.findall(r"a workspace of (\d+) numbers", model.source("c"))
    assert int(numbers) < T * K / 2
    other = compiled(LEAKY, "numpy", T, K)
    x = model.x0()
    np.testing.assert_allclose(model.gradient(x), other.gradient(x), rtol=1e-11)


def test_short_histories_and_those_that_are_read_as_a_whole_are_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = LEAKY.replace("minimize sum(", "minimize logsumexp(h) + sum(")
    assert "checkpoints" not in compiled(whole, "numpy", 300).explain()
    monkeypatch.setattr(checkpoints, "LARGEST_HISTORY", 8 * 300 * 6 + 1)
    assert "checkpoints" not in compiled(LEAKY, "numpy", 300).explain()
    assert "checkpoints" in compiled(LEAKY, "numpy", 301).explain()
