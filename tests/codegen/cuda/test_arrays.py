"""Arrays of CuPy as input and output, and arguments that kernels reject."""

from __future__ import annotations

import ast
import sys

import numpy as np
import pytest
import sympy as sp
from codegen.cuda import standin

import slomodel
from slomodel.codegen.cuda.source import DIRECT
from slomodel.codegen.runtime import load

TEXT = """dim n, m
data A[m, n]
var x[n], c
minimize sum(exp(A @ x) .* (A @ x)) + c^2
"""
A = np.random.default_rng(0).normal(size=(5, 3))


def device(array: np.ndarray) -> standin.ndarray:
    made: standin.ndarray = sys.modules["cupy"].asarray(array, float)
    return made


@pytest.mark.usefixtures("cupy_on_cpu")
def test_points_and_data_may_lie_on_the_device() -> None:
    host = slomodel.compile(TEXT, data={"A": A}, backend="numpy")
    model = slomodel.compile(TEXT, data={"A": device(A)}, backend="cupy")
    x, v = np.arange(4.0), np.ones(4)
    for point, direction, kind in (
        (x, v, np.ndarray),
        (device(x), device(v), standin.ndarray),
        (device(x), v, standin.ndarray),
    ):
        value, gradient = model.value_and_gradient(point)
        product = model.hvp(point, direction)
        assert type(gradient) is type(product) is kind
        assert value == model.value(point) == pytest.approx(host.value(x), rel=1e-13)
        np.testing.assert_allclose(np.asarray(gradient), host.gradient(x), rtol=1e-12)
        np.testing.assert_allclose(np.asarray(product), host.hvp(x, v), rtol=1e-12)
    assert host.value(device(x)) == host.value(x)
    assert model.solve(x0=device(x), max_iter=3).x.shape == (4,)
    with pytest.raises(slomodel.ShapeError, match=r"x has shape \(3,\), not \(4,\)"):
        model.value(device(np.ones(3)))


@pytest.mark.usefixtures("cupy_on_cpu")
def test_names_that_a_module_does_not_know() -> None:
    module = load(slomodel.compile(TEXT, data={"A": A}).source("cupy"), "standalone")
    with pytest.raises(TypeError, match=r"data has \['B'\], and the names are \['A'\]"):
        module["make_value"]({"A": A, "B": A})


@pytest.mark.parametrize("n", [10, DIRECT])
def test_vectors_that_overlap_or_have_gaps(n: int, cupy_on_cpu: type[standin.RawModule]) -> None:
    cupy_on_cpu.orders = (1,)
    text = "dim n\nvar x[n]\nminimize sum(x[i]^3 for i in range(n)) + x[0]^2 * x[n-1]^2"
    model = slomodel.compile(text, dims={"n": n}, backend="cupy")
    host = slomodel.compile(text, dims={"n": n}, backend="numpy")
    x, v = np.random.default_rng(0).normal(size=(2, n))
    wide, wide_v, out = (device(np.zeros(2 * n)) for _ in range(3))
    wide[::2], wide_v[::2] = x, v
    run, product = model._kernels.function("value_and_gradient"), model._kernels.function("hvp")
    expected, curvature = host.gradient(x), host.hvp(x, v)
    for point, direction, result in (
        (device(x), device(v), out[:n]),
        (wide[::2], wide_v[::2], out[1::2]),
        (x, device(v), out[:n]),
        (device(x), v, np.zeros(n)),
        (device(x), device(v), device(x)),
    ):
        assert run(point, result) == pytest.approx(host.value(x), rel=1e-12)
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-13)
        product(point, direction, result)
        np.testing.assert_allclose(np.asarray(result), curvature, rtol=1e-13)
    both, moved = device(x), device(x)
    run(both, both)
    np.testing.assert_allclose(np.asarray(both), expected, rtol=1e-13)
    product(moved, device(v), moved)
    np.testing.assert_allclose(np.asarray(moved), curvature, rtol=1e-13)


@pytest.mark.usefixtures("cupy_on_cpu")
def test_a_kernel_refuses_other_arrays_than_its_own() -> None:
    text = slomodel.compile(TEXT, data={"A": A}, backend="cupy").source()
    space = load(text, "standalone cupy")
    name, (_, _, arrays) = next(iter(space["_bound"].__globals__["KERNELS"].items()))
    right = [device(np.ones(size)) for _, size in arrays]
    space["_bound"](name, *right)
    for wrong, kind, words in (
        (right[1:], TypeError, "takes 2 arrays, not 1"),
        ([right[0].get(), *right[1:]], TypeError, "takes arrays of CuPy"),
        ([right[0].astype(np.float32), *right[1:]], TypeError, "of type float64"),
        ([device(np.ones(99)), *right[1:]], ValueError, "numbers in C order"),
        ([np.repeat(right[0], 2)[::2], *right[1:]], ValueError, "numbers in C order"),
    ):
        with pytest.raises(kind, match=words):
            space["_bound"](name, *wrong)


@pytest.mark.usefixtures("cupy_on_cpu")
def test_single_precision_adds_up_in_double() -> None:
    text = "dim n\nvar x[n]\nminimize sum(x)"
    point = np.full(100_000, 0.1)
    model = slomodel.compile(text, dims={"n": point.size}, backend="cupy", dtype="float32")
    value, gradient = model.value_and_gradient(point)
    assert gradient.dtype == np.float32
    # One sum in single precision would be off by 1e-4 and more.
    assert value == pytest.approx(point.size * float(np.float32(0.1)), rel=1e-7)


@pytest.mark.usefixtures("cupy_on_cpu")
@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
@pytest.mark.parametrize("which", ["max", "min"])
def test_extremes_keep_a_nan(which: str) -> None:
    text = f"dim n\nvar x[n]\nminimize {which}(x[i]^2 for i in range(n))"
    model = slomodel.compile(text, dims={"n": 600}, backend="cupy")
    x = np.random.default_rng(0).normal(size=600)
    assert model.value(x) == getattr(np, which)(x**2)
    for place in (0, 255, 256, 599):
        y = x.copy()
        y[place] = np.nan
        assert np.isnan(model.value(y))


@pytest.mark.usefixtures("cupy_on_cpu")
def test_names_of_users_are_nothing_but_comments() -> None:
    wild = '*/ while(1); """\nraise SystemExit # \\'
    size, k = sp.Symbol(wild + "n", integer=True), sp.Symbol("k", integer=True)
    x, c = sp.IndexedBase(wild + "x"), sp.Symbol(wild + "c")
    objective = sp.Sum(sp.exp(c * x[k]), (k, 0, size - 1)) + c**2
    model = slomodel.compile(objective, dims={size: 4}, backend="cupy")
    point = np.arange(1.0, 6.0) / 5
    numpy = slomodel.compile(objective, dims={size: 4}, backend="numpy")
    assert model.value(point) == pytest.approx(numpy.value(point), rel=1e-14)
    raised = [node for node in ast.walk(ast.parse(model.source())) if isinstance(node, ast.Raise)]
    assert {node.exc.func.id for node in raised} == {"TypeError", "ValueError"}
    comment, code = model.source("cuda").split("*/", 1)
    assert "while(1)" in comment
    assert "while" not in code
