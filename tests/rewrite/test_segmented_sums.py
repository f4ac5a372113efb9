"""Sums over pairs in segments: the same numbers, in little memory."""

import re

import numpy as np
import pytest

import slomodel
from slomodel.rewrite.memory import segmented_sums

PAIRS = """dim n, k
var X[n, k] init normal(0, 1)
minimize sum(log(1 + sum(log(cosh(X[i, l] - X[j, l])) for l in k)) for i in n, j in n if i < j)
"""
LIST = """dim n, k, E
data a[E] in n, b[E] in n, w[E]
var X[n, k] init normal(0, 1), s > 0 init 2
let d[e in E] = sum(sin(X[a[e], l] - X[b[e], l]) for l in k)
minimize s * sum(w[e] * exp(-s * d[e]) for e in E) + sumsq(X)
"""
TRIANGLE = """dim n, k
var X[n, k] init normal(0, 1)
minimize sum(exp(-sumsq(X[i, :] - X[j, :])) for i in n, j in range(i))^2
"""


@pytest.fixture(autouse=True)
def every_array_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segmented_sums, "LARGEST_ARRAYS", 8)
    monkeypatch.setattr(segmented_sums, "_LARGER", 0)


def compiled(text: str, backend: str, rewrites: bool = True) -> slomodel.Model:
    draw = np.random.default_rng(0)
    data = {"a": draw.integers(0, 20, 300), "b": draw.integers(0, 20, 300), "w": draw.random(300)}
    given = data if "data" in text else {}
    own = {"n": 20, "k": 5} if given else {"n": 30, "k": 5}
    return slomodel.compile(text, data=given, dims=own, backend=backend, rewrites=rewrites)


@pytest.mark.parametrize("text", [PAIRS, LIST, TRIANGLE])
@pytest.mark.parametrize("backend", ["numpy", "numexpr"])
def test_values_and_derivatives_are_those_of_one_sum(text: str, backend: str) -> None:
    model, plain = compiled(text, backend), compiled(text, "numpy", rewrites=False)
    assert "a sum in segments of" in model.explain()
    (counts,) = re.findall(r"sums: (\S+) operations per gradient become (\S+)", model.explain())
    before, after = map(float, counts)
    assert before < after < 3.0 * before  # segments are computed again in the reverse sweep
    x = 0.3 * model.x0(1)
    along = np.cos(np.arange(model.n))
    assert model.value(x) == pytest.approx(plain.value(x), rel=1e-13)
    np.testing.assert_allclose(model.gradient(x), plain.gradient(x), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(model.hvp(x, along), plain.hvp(x, along), rtol=1e-10, atol=1e-11)


def test_compiled_kernels_need_less_than_the_terms() -> None:
    model, plain = compiled(LIST, "c"), compiled(LIST, "numpy", rewrites=False)
    (numbers,) = re.findall(r"a workspace of (\d+) numbers", model.source("c"))
    (others,) = re.findall(r"a workspace of (\d+) numbers", plain.source("c"))
    assert int(numbers) < 0.9 * int(others)
    x = 0.3 * model.x0(1)
    np.testing.assert_allclose(model.gradient(x), plain.gradient(x), rtol=1e-11, atol=1e-12)


def test_terms_over_samples_and_those_that_others_read_are_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = PAIRS.replace(
        "minimize", "let D = X[:, None, :] - X[None, :, :]\nminimize logsumexp(D) +"
    )
    shared = text.replace("X[i, l] - X[j, l]", "D[i, j, l]")
    assert "in segments" not in compiled(shared, "numpy").explain()
    monkeypatch.setattr(segmented_sums, "_LARGER", 16)
    samples = "dim N\ndata x[N], y[N]\nvar a, b\nminimize sum(tanh(a * x + b) - y)^2"
    data = {"x": np.ones(1000), "y": np.ones(1000)}
    assert "in segments" not in slomodel.compile(samples, data=data, backend="numpy").explain()
