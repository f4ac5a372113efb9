"""Single precision: all computation is in it, none in double because of a literal."""

from __future__ import annotations

import re

import numexpr
import numpy as np
import pytest
from hypothesis import given
from strategies import Example, graphs

import slomodel
from slomodel import functions as fn
from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives, Kernels
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.reference import evaluate, evaluate_all

KERNEL = re.compile(r"^    k\d+ = (NumExpr\(.*\))$", re.MULTILINE)


def compiled_of(example: Example, target: str) -> Compiled:
    derivatives = Derivatives(example.objective, example.variables)
    args = "random", derivatives, example.data, example.sizes, TARGETS[target]
    return Compiled(*args, "float32")


def assert_single(source: str) -> None:
    """Every kernel, given single-precision arrays, makes single precision or truth values.

    But for three functions that numexpr has in double only.
    """
    for text in KERNEL.findall(source):
        kernel = eval(text, {"NumExpr": numexpr.NumExpr, "float": float, "bool": bool})
        types = {"float": np.float32, "bool": bool}
        arguments = [np.ones(3, types[kind]) for kind in re.findall(r'"v\d+", (\w+)', text)]
        double_only = re.search("maximum|minimum|sign", text)
        assert double_only or kernel(*arguments).dtype in (np.float32, bool)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", ["numexpr", "numpy"])
@given(example=graphs(smooth=True, max_steps=5))
def test_single_precision_is_near_double(target: str, example: Example) -> None:
    compiled = compiled_of(example, target)
    assert_single(compiled.source())
    arrays = {node.name: np.array(example.values[node], float) for node in example.data}
    kernels = Kernels(compiled, arrays)
    x = np.concatenate([np.ravel(example.values[node]) for node in example.variables])
    gradient = np.empty(x.size, np.float32)
    # What single precision cannot hold is compared where double precision does not come near.
    every = evaluate_all([example.objective], example.values, example.sizes)
    largest = max(float(np.abs(a[np.isfinite(a)]).max(initial=1.0)) for a in every.values())
    value = kernels.function("value_and_gradient")(x, gradient)
    if largest < 1e3:
        wanted = evaluate([example.objective], example.values, example.sizes)[0]
        assert abs(value - wanted) <= 3e-4 * largest**2


def test_infinite_and_small_constants_in_single_precision() -> None:
    x = build.variable("x", (named("n"),))
    node = fn.minimum(fn.mul(0.1, fn.exp(fn.mul(-0.25, fn.square(x)))), float("inf"))
    objective = build.sum_over(fn.relu(fn.add(node, fn.relu(x))), (0,))
    compiled = Compiled(
        "constants", Derivatives(objective, [x]), [], {"n": 3}, TARGETS["numexpr"], "float32"
    )
    assert_single(compiled.source())
    point = np.array([0.5, -1.0, 2.0])
    value = compiled.maker("value")({})(point)
    expected = 0.1 * np.exp(-0.25 * point**2) + np.maximum(point, 0.0)
    assert value == pytest.approx(expected.sum(), rel=1e-6)


@pytest.mark.parametrize("n", [5, 5000])
def test_points_in_single_precision_are_those_in_double(n: int) -> None:
    text = f"dim n = {n}\nvar x[n]\nminimize sum(exp(x) .* x)"
    model = slomodel.compile(text, dtype="float32", backend="c")
    x = np.linspace(-1, 1, n, dtype=np.float32)
    for own, other in zip(
        model.value_and_gradient(x), model.value_and_gradient(x.astype(float)), strict=True
    ):
        np.testing.assert_array_equal(own, other)
    assert model.value(x) == model.value(x.astype(float))
    np.testing.assert_array_equal(model.hvp(x, x), model.hvp(x.astype(float), x.astype(float)))
    with pytest.raises(slomodel.ShapeError):
        model.value(x[1:])
