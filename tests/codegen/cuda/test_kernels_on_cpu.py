"""The unchanged CUDA text, run on the CPU in several orders of its threads, against NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from codegen.cuda import standin
from codegen.cuda.everything import LENGTHS, compiled, differs, evaluated

import slomodel
from slomodel.codegen.cuda import kernel
from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives, Kernels
from slomodel.functions import add, mul
from slomodel.functions.translate import balanced
from slomodel.ir import build
from slomodel.ir.dims import named
from tests.functions.test_ulps import MEASURED


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("cupy_on_cpu")
@pytest.mark.parametrize("n", LENGTHS)
def test_every_kind_of_kernel_at_lengths_round_those_of_blocks(n: int) -> None:
    # Products with the Hessian at fewer lengths: their kernels take as long to compile again.
    results = 2 if n in (0, 33, 257) else 1
    assert differs(evaluated(n, "cupy", results), evaluated(n, "numpy", results)) < 1e-12


@pytest.mark.usefixtures("cupy_on_cpu")
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-13), ("float32", 2e-5)])
def test_every_function(dtype: str, rtol: float) -> None:
    """The gradient of a sum of p * f(y) by p is f(y): all functions in one text."""
    # In single precision a third of them: nvrtc's stand-in takes seconds for all.
    functions = MEASURED if dtype == "float64" else MEASURED[::3]
    n = named("n")
    points = np.random.default_rng(0).uniform(0.1, 3.0, (3, 40))
    weights = [build.variable(f"p{k}", (n,)) for k in range(len(functions))]
    operands = [build.variable(f"y{k}", (n,)) for k in range(3)]
    terms = [
        build.sum_over(mul(p, function(*operands[: function.arity])), (0,))
        for p, function in zip(weights, functions, strict=True)
    ]
    derivatives = Derivatives(balanced(add, terms), [*weights, *operands])
    text = Compiled("own", derivatives, [], {"n": 40}, TARGETS["cupy"], dtype)
    out = np.zeros(40 * (len(weights) + 3))
    point = np.concatenate([np.ones(40 * len(weights)), *points])
    Kernels(text, {}).function("value_and_gradient")(point, out)
    found = out.reshape(-1, 40)[: len(weights)]
    with np.errstate(all="ignore"):
        for row, function in zip(found, functions, strict=True):
            expected = np.asarray(function.numpy(*points[: function.arity]), float)
            np.testing.assert_allclose(row, expected, rtol, rtol, err_msg=str(function))


def test_long_indices(
    cupy_on_cpu: type[standin.RawModule], monkeypatch: pytest.MonkeyPatch
) -> None:
    short = compiled(33, "cuda").source()
    monkeypatch.setattr(kernel, "SHORT", 1)
    long = compiled(33, "cuda").source()
    assert "(int i = " in short
    assert "(int i = " not in long
    cupy_on_cpu.orders = (1,)
    assert differs(evaluated(33, "cupy", 1), evaluated(33, "numpy", 1)) < 1e-12


@pytest.mark.parametrize(("rows", "columns"), [(3, 70_000), (70_000, 3), (40, 3000), (3000, 40)])
def test_sums_along_either_axis_are_shared_out_among_blocks(
    rows: int, columns: int, cupy_on_cpu: type[standin.RawModule]
) -> None:
    cupy_on_cpu.orders = (1,)
    text = """dim m, n
var X[m, n], y[m], z[n]
minimize sum(y[i] * sum(exp(X[i, j]) for j in n) for i in m)
       + sum(z[j] * sum(X[i, j]^2 for i in m) for j in n)
"""
    model = slomodel.compile(text, dims={"m": rows, "n": columns}, backend="cupy", rewrites=False)
    rng = np.random.default_rng(0)
    X, y, z = rng.normal(size=(rows, columns)), rng.normal(size=rows), rng.normal(size=columns)
    found = model.unpack(model.gradient({"X": X, "y": y, "z": z}))
    for name, expected in {
        "X": y[:, None] * np.exp(X) + 2 * z * X,
        "y": np.exp(X).sum(axis=1),
        "z": (X**2).sum(axis=0),
    }.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-12, atol=1e-12)


def test_single_precision(cupy_on_cpu: type[standin.RawModule]) -> None:
    cupy_on_cpu.orders = (1,)
    apart = differs(evaluated(33, "cupy", 2, "float32"), evaluated(33, "numpy"))
    # Among its terms are cosines of numbers up to some hundreds.
    assert 1e-9 < apart < 2e-4


def test_no_constant_of_single_precision_text_is_a_double() -> None:
    # One that is would make the operation a double one. `mean` divides by a product of sizes.
    mean = slomodel.compile(
        "dim m = 3, n = 5\nvar X[m, n], t\nminimize sin(t * sum(1 for i in m, j in n))^2"
        " + sum((X[i, j] - 0.5 * t * sum(1 for k in n))^2 for i in m, j in n)",
        backend="numpy",
        dtype="float32",
        rewrites=False,
    )
    for text in (compiled(33, "cuda", "float32").source(), mean.source("cuda")):
        kernels = text[text.index('extern "C"') :]
        computed = [line for line in kernels.splitlines() if "const real " in line and "=" in line]
        # An argument of a function of reals is converted before it meets anything.
        rest = [re.sub(r"\(real\)\(?-?[\d.]+|, 0\.0\)", "", line) for line in computed]
        assert not [line for line in rest if re.search(r"(?<![\w.])\d+\.", line)]
