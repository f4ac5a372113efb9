"""Warnings about starts that products of variables cannot leave, and no warnings about others."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slomodel
from slomodel.calculus import gradient
from slomodel.front.lints.initial_facts import initial_facts
from slomodel.reference import evaluate_all
from tests.strategies import Example, graphs

DECLARED = """dim n, m, r = 2, h = 3
data M[n, m] = 1, A[n, m] = 1, y[n] = 1, T[n, n, n] symmetric = 1
"""
DIMS = {"n": 4, "m": 5}


def told(text: str) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        slomodel.compile(DECLARED + text, dims=DIMS)
    return [str(one.message) for one in caught if "W203" in str(one.message)]


AT_ZERO = [
    ("var U[n, r] init 0, V[m, r] init 0 minimize sumsq(U @ V' - M)", "`U`, `V` start at 0"),
    ("var U[n, r], V[m, r] init zeros minimize sumsq(U @ V' - M) + sumsq(U)", "`U`, `V` start"),
    ("var x, z init 0 minimize (x * z - 1)^2", "`x`, `z` start at 0"),
    ("var x[m] init 0 minimize sum(((A[k,:] @ x)^2 - y[k])^2 for k in n)", "`x` starts at 0"),
    ("var x init 0 minimize (x^2 - 1)^2", "`x` starts at 0"),
    ("var W[h, m], v[h] init 0 minimize sumsq(v' @ tanh(W @ A') - y)", "`v`, `W` start at 0"),
]
ALIKE = [
    ("var U[n, r] init 1, V[m, r] init 2 minimize sumsq(U @ V' - M)", "`r`"),
    ("var U[n, r] init ones minimize sumsq(U @ U' - M @ M')", "`r`"),
    ("var W[h, m], b[h], v[h], c init 0.5 minimize sumsq(v' @ tanh(W @ A' + b[:, None]) + c - y)",
     "`h`"),
    ("var X[h, n] init 1 let F[a in n, b in n, c in n] = sum(X[i,a] * X[i,b] * X[i,c] for i in h) "
     "minimize sumsq(T - F)", "`h`"),
    ("var W1[20, m], W2[n, 20] init 0.1 minimize sumsq(W2 @ W1 @ A' - M @ A')", "`20`"),
]  # fmt: skip
NOT = [
    "var U[n, r] init 0, V[m, r] init normal(0, 1) minimize sumsq(U @ V' - M)",
    "var U[n, r] init 1, V[m, r] minimize sumsq(U @ V' - M)",
    "var U[n, 1], V[m, 1] init 1 minimize sumsq(U @ V' - M)",
    "var x[m] init 0 minimize sumsq(A @ x - y) + sumsq(x)",
    "var x[m] init 0 minimize sum(softplus(-y .* (A @ x))) + sumsq(x)",
    "var x, z init 0 minimize (x * z - 1)^2 + (x - 2)^2",
    "var x[m], z[m] init 1 minimize (dot(x, z) - 1)^2",
    "var x[m] init 1 minimize sum(x .* exp(-x))",
    "var x[m] init -1.2 minimize sum((x[i+1] - x[i]^2)^2 + (1 - x[i])^2 for i in range(m - 1))",
    "var U[n, r] init 1, V[m, r] init 1 minimize sumsq(U @ V' - M) + U[0, 0]",
    "var b init 1 minimize (b - 1)^4",
    "var x[m] init 0 minimize sumsq(x)",
    "var c, x, z init 0 minimize c * x * z + (c - 1)^2",
]


def test_a_start_that_only_some_variables_do_not_leave_is_not_called_a_saddle() -> None:
    """softplus(0) is not 0, so that v moves in the first step and W after it."""
    fit = "sumsq(v' @ softplus(W @ A') - y) + sumsq(W)"
    remark = told(f"var W[h, m], v[h] init 0 minimize {fit}")[0]
    assert "`W` starts at 0, where its gradient is zero" in remark
    assert "saddle" not in remark.splitlines()[0]


@pytest.mark.parametrize(("text", "words"), AT_ZERO)
def test_products_that_start_at_zero(text: str, words: str) -> None:
    (message,) = told(text)
    assert words in message
    assert "init normal(0, 0.1)" in message
    model = compiled(text)
    assert np.all(model.gradient(model.x0()) == 0.0)


@pytest.mark.parametrize(
    "text",
    [
        "var x, z init 0 minimize x^2 + x * z + z^2",
        "var x[m] init 0 minimize sum(exp(x .* x))",
        "var x[m] init 0 minimize x' @ (A' @ A) @ x",
    ],
)
def test_a_start_at_the_minimum_is_not_called_a_mistake(text: str) -> None:
    (message,) = told(text)
    assert "or the optimum itself" in message
    assert "unless the optimum is there" in message
    model = compiled(text)
    near = [model.value(model.x0() + 0.1 * step) for step in np.eye(model.n)]
    assert min(near) > model.value(model.x0())


@pytest.mark.parametrize(("text", "dim"), ALIKE)
def test_units_that_start_alike(text: str, dim: str) -> None:
    (message,) = told(text)
    assert f"along {dim} that start equal stay equal" in message
    model = compiled(text)
    sizes = {"`r`": 2, "`h`": 3, "`20`": 20}
    found = model.solve("norm-armijo", max_iter=20)
    for array in found.variables.values():
        for axis in (k for k, size in enumerate(array.shape) if size == sizes[dim]):
            np.testing.assert_allclose(np.ptp(array, axis=axis), 0.0, atol=1e-9)


@pytest.mark.parametrize("text", NOT)
def test_other_starts_are_not_reported(text: str) -> None:
    assert told(text) == []


def compiled(text: str) -> slomodel.Model:
    rng = np.random.default_rng(3)
    data = {"M": rng.normal(size=(4, 5)), "A": rng.normal(size=(4, 5)), "y": rng.normal(size=4)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return slomodel.compile(DECLARED + text, data=data)


@pytest.mark.parametrize("value", [0.0, 1.0, -0.3])
@settings(max_examples=30)
@given(example=graphs(max_steps=6), data=st.data())
def test_facts_hold(value: float, example: Example, data: st.DataObject) -> None:
    """Facts of all nodes of a value and its gradient, if some variables start as numbers."""
    fixed = data.draw(st.lists(st.sampled_from(example.variables), unique=True))
    values = {
        node: np.full_like(array, value) if node in fixed else array
        for node, array in example.values.items()
    }
    roots = [example.objective, *gradient(example.objective, example.variables)]
    arrays = evaluate_all(roots, values, example.sizes)
    for node, fact in initial_facts(roots, dict.fromkeys(fixed, value)).items():
        array = arrays[node].astype(float)
        if not array.size or not np.all(np.isfinite(array)):
            continue
        if fact.value is not None:
            np.testing.assert_allclose(array, fact.value, rtol=1e-12, atol=1e-12)
        for axis in fact.constant_axes:
            np.testing.assert_allclose(np.ptp(array, axis=axis), 0.0, atol=1e-12 * abs(array).max())
