"""Steps of recurrences: costly functions in vectors or at all steps at once, sums over pairs."""

from __future__ import annotations

import re

import numpy as np
import pytest

import slomodel

PHASES = """dim T = 9, n
data y[T, n], start[n]
var w[n], K
let p[t in T, i in n] = p[t-1, i]
    + 0.1 * (w[i] + K * sum(sin(p[t-1, j] - p[t-1, i]) for j in n))  first start[i]
minimize sum(1 - cos(p - y))"""

STATES = """dim T, K = 3
data y[T]
var A[K, K], mu[K]
let P[j in K, k in K] = A[j, k] - logsumexp(A[j, :])
let f[t in T, k in K] =
    -(y[t] - mu[k])^2 + logsumexp(f[t-1, j] + P[j, k] for j in K)  first -(y[0] - mu[k])^2
minimize -logsumexp(f[T-1, :])"""

POWERS = """dim T, n = 5
data y[T, n]
var a[n], b[n]
let z[t in T, i in n] = exp(-a[i] * z[t-1, i]) + abs(z[t-1, i] + b[i])^1.3 + y[t, i] / 3  first 0.5
minimize sumsq(z)"""


def _both(text: str, arrays: dict[str, np.ndarray]) -> tuple[slomodel.Model, slomodel.Model]:
    one, other = (slomodel.compile(text, data=arrays, backend=name) for name in ("c", "numpy"))
    return one, other


@pytest.mark.parametrize(
    ("text", "spread"), [(STATES, 0.3), (STATES, 30.0), (POWERS, 0.3), (PHASES, 0.3)]
)
def test_values_and_derivatives_are_those_of_numpy(text: str, spread: float) -> None:
    rng = np.random.default_rng(3)
    n = 17 if text is PHASES else 5
    shape = (9, n) if "[T, n]" in text else (9,)
    arrays = {"y": rng.normal(size=shape)} | ({"start": rng.normal(size=n)} if n == 17 else {})
    model, right = _both(text, arrays)
    x, v = spread * rng.normal(size=model.n), rng.normal(size=model.n)
    for own, other in zip(model.value_and_gradient(x), right.value_and_gradient(x), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-11, atol=1e-12 * np.abs(other).max())
    own, other = model.hvp(x, v), right.hvp(x, v)
    np.testing.assert_allclose(own, other, rtol=1e-10, atol=1e-11 * np.abs(other).max())


def test_states_that_cannot_be_reached_have_probability_zero() -> None:
    model, right = _both(STATES, {"y": np.linspace(-1, 1, 6)})
    x = np.zeros(model.n)
    x[[1, 2, 5]] = -2000.0
    for own, other in zip(model.value_and_gradient(x), right.value_and_gradient(x), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-13)


def test_a_step_calls_vectors_and_its_adjoint_reads_what_is_known() -> None:
    text = slomodel.compile(POWERS, data={"y": np.zeros((9, 5))}, backend="c").source("c")
    assert "v0[i] = exp(v0[i])" in text
    assert not re.search(r"s\d+ = exp\(", text)


def test_probabilities_of_transitions_are_computed_once_for_all_their_adjoints() -> None:
    text = slomodel.compile(STATES, data={"y": np.zeros(9)}, backend="c").source("c")
    text = text[text.index("double value_and_gradient") : text.index("void prepare_hvp")]
    # Of the parameters, of the transitions at all steps, and of the last states.
    assert len(re.findall(r"\bexp\(", text)) == 3


def test_steps_of_many_series_run_along_the_series() -> None:
    source = """dim T = 3, N = 64, K = 5
    data e[T, N, K]
    var A[K, K]
    let f[t in T, n in N, k in K] =
        e[t, n, k] + logsumexp(f[t-1, n, j] + A[j, k] for j in K)  first e[0, n, k]
    minimize -sum(logsumexp(f[T-1, n, :]) for n in N)"""
    rng = np.random.default_rng(6)
    model, right = _both(source, {"e": rng.normal(size=(3, 64, 5))})
    x = rng.normal(size=25)
    for own, other in zip(model.value_and_gradient(x), right.value_and_gradient(x), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-13 * np.abs(other).max())
    text = model.source("c")
    step = text[text.index("double value(") :].split("for (long step = ")[1]
    # The scores (n, j, k) of a step are stored series by series along their last axis.
    assert "const long m = 64;" in step
    assert "[i * 25]" not in step


def test_sums_of_angles_run_over_each_side() -> None:
    arrays = {"y": np.zeros((9, 17)), "start": np.zeros(17)}
    text = slomodel.compile(PHASES, data=arrays, backend="c").source("c")
    # 17² sines would be two loops, or 289 numbers.
    assert not re.search(r"sin\(\(p0\[\w+\] - p1\[\w+\]\)\)", text)
    assert text.count("sin(") < 30


AFFINE = {
    "first order": """var a, b, c
        let e[t in T] = y[t] - (a + b * y[t-1] + c * e[t-1])  first y[0] - a
        minimize sumsq(e)""",
    "several states": """var m[3]
        let z[t in T, i in 2] =
            z[t-1, i] + 0.1 * (m[i] * (1 - z[t-1, i]) - m[2] * z[t-1, 1-i] / 3) + y[t]  first 0.2
        minimize sum(z .^ 4)""",
    "two lags": """var p[2]
        let z[t in T] = p[0] * z[t-1] - z[t-2] * p[1] + y[t] * p[0]^2  first 0.1, 0.3
        minimize sum(cos(z))""",
    "a system": """var p[3]
        fn rate(v[2]) = [-(p[0] + p[2]) * v[0]^2, p[0] * v[0]^2 - p[1] * v[1]]
        fn next(v[2], u) =
          let k = rate(v)
          return v + 0.1 * rate(v + 0.05 * k) + [u, 0] / 9
        let z[t in T] = next(z[t-1, :], y[t])  first [1, 0]
        minimize sum(z .^ 2)""",
}


@pytest.mark.parametrize("name", AFFINE)
def test_affine_steps_are_those_of_numpy(name: str) -> None:
    text = f"dim T\ndata y[T]\n{AFFINE[name]}"
    rng = np.random.default_rng(4)
    model, right = _both(text, {"y": rng.normal(size=14)})
    x, v = 0.4 + 0.2 * rng.normal(size=model.n), rng.normal(size=model.n)
    for own, other in zip(model.value_and_gradient(x), right.value_and_gradient(x), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-13 * np.abs(other).max())
    own, other = model.hvp(x, v), right.hvp(x, v)
    np.testing.assert_allclose(own, other, rtol=1e-11, atol=1e-12 * np.abs(other).max())


def test_only_products_with_coefficients_wait_for_states() -> None:
    text = f"dim T\ndata y[T]\n{AFFINE['first order']}"
    source = slomodel.compile(text, data={"y": np.zeros(9)}, backend="c").source("c")
    steps = re.findall(r"for \(long step = [^{]*\{(.*?)\n +\}", source, re.DOTALL)
    assert steps
    # A product, perhaps a sum, and the accumulation of the adjoint.
    assert all(len(re.findall(r"s\d+ = ", body)) <= 2 for body in steps[:2])
