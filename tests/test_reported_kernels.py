"""Problems reported by users of similar tools, about kernels: sums, memory, names, integers."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest

import slomodel

BACKENDS = ("numexpr", "numpy", pytest.param("c", marks=pytest.mark.slow))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_million_terms_are_added_as_well_as_exactly(backend: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(10**6), rng.random(10**6)
    text = "dim n data a[n], b[n] var s init 1 minimize s * sum((a - b)^2)"
    model = slomodel.compile(text, data={"a": a, "b": b}, backend=backend)
    exact = math.fsum(((a - b) ** 2).tolist())
    assert abs(model.value([1.0]) - exact) <= 1e-14 * exact
    tenth = slomodel.compile(
        "dim n data a[n] var s init 1 minimize s * sum(a)",
        data={"a": np.full(10**6, 0.1, np.float32)},
        backend=backend,
    )
    exact = math.fsum([float(np.float32(0.1))] * 10**6)
    assert abs(tenth.value([1.0]) - exact) <= 1e-14 * exact


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_and_models_give_their_memory_back(backend: str) -> None:
    text = "dim n data a[n] var x[n] init 1 minimize sum((a .* x + 1)^2 .* x - a ./ (1 + x^2))"
    model = slomodel.compile(text, data={"a": np.ones(500_000)}, backend=backend)
    x = model.x0()
    gradient = model.gradient(x)
    kernels = model._kernels
    held = [weakref.ref(x), weakref.ref(gradient), weakref.ref(kernels)]
    held += [weakref.ref(array) for array in kernels.data.values()]
    del x, gradient
    gc.collect()
    assert held[0]() is None
    assert held[1]() is None
    del model, kernels
    gc.collect()
    assert [one() is None for one in held] == [True] * len(held)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_result_is_never_overwritten_by_a_later_call(backend: str) -> None:
    model = slomodel.compile("var x[4] minimize sum(x^3)", backend=backend)
    first = model.gradient([1.0, 2.0, 3.0, 4.0])
    kept = first.copy()
    second = model.gradient([4.0, 3.0, 2.0, 1.0])
    np.testing.assert_array_equal(first, kept)
    second[:] = np.nan
    np.testing.assert_array_equal(model.gradient([1.0, 2.0, 3.0, 4.0]), kept)


@pytest.mark.parametrize("backend", BACKENDS)
def test_x_may_be_the_array_that_the_gradient_goes_into(backend: str) -> None:
    model = slomodel.compile("var x[3] minimize sumsq(x)^2", backend=backend)
    x = np.array([1.0, -2.0, 0.5])
    expected = model.gradient(x.copy())
    value, out = model.value_and_gradient(x, out=x)
    assert out is x
    assert value == 5.25**2
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint8])
def test_whole_numbers_are_reals(backend: str, kind: type) -> None:
    text = "data a[2], b[2] var x[2] init 1 minimize sum(x .* a^-2) + sum(x .* b^2) + sum(1/2 * x)"
    data = {"a": np.array([1, 2], kind), "b": np.array([100, 120], kind)}
    model = slomodel.compile(text, data=data, backend=backend)
    assert model.value([1.0, 1.0]) == 1.25 + 100.0**2 + 120.0**2 + 1.0


@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("n", [3, 1000])
@pytest.mark.parametrize("function", ["max(x, 0.5)", "min(x, 0.25)", "relu(x)", "abs(x)"])
def test_a_nan_is_never_dropped(backend: str, n: int, function: str) -> None:
    text = f"dim n var x[n] minimize sum({function} .* x + x^2)"
    model = slomodel.compile(text, dims={"n": n}, backend=backend)
    x = np.ones(n)
    x[1] = np.nan
    assert np.isnan(model.value(x))
    assert np.isnan(model.gradient(x)[1])
