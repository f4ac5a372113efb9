"""Operations on matrices on every CPU target, against the reference interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from matrix_objectives import FUNCTIONS, arrays, inputs, objective

from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives, Kernels
from slomodel.ir.expr import MatrixFunction
from slomodel.reference import evaluate


def check(function: MatrixFunction, batched: bool, target: str, sizes: dict[str, int]) -> None:
    rng = np.random.default_rng(3)
    A, B, W, V = inputs(batched)
    derivatives = Derivatives(objective(function, batched), [A, B])
    known = dict(zip((A, B, W, V), arrays(rng, sizes, batched), strict=True))
    compiled = Compiled("matrices", derivatives, [W, V], sizes, TARGETS[target])
    kernels = Kernels(compiled, {"W": known[W], "V": known[V]})
    directions = [rng.normal(size=known[node].shape) for node in (A, B)]
    values = known | dict(zip(derivatives.directions, directions, strict=True))
    roots = (derivatives.objective, *derivatives.gradient, *derivatives.hessian_vector)
    expected = evaluate(roots, values, sizes)
    x = np.concatenate([known[A].ravel(), known[B].ravel()])
    v = np.concatenate([one.ravel() for one in directions])
    for point in (x + 0.01, x):  # the second call meets arrays that the first one filled
        slope, product = np.full(x.size, np.nan), np.full(x.size, np.nan)
        value = kernels.function("value")(point)
        again = kernels.function("value_and_gradient")(point, slope)
        kernels.function("hvp")(point, v, product)
    wanted = [np.concatenate([one.ravel() for one in expected[k : k + 2]]) for k in (1, 3)]
    np.testing.assert_allclose([value, again], [expected[0]] * 2, rtol=1e-11, atol=1e-12)
    for found, right in zip((slope, product), wanted, strict=True):
        scale = np.abs(right).max(initial=1.0)
        np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-11 * scale)


@pytest.mark.parametrize("target", ["numpy", "numexpr"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_targets_agree_with_the_reference(function: MatrixFunction, target: str) -> None:
    check(function, False, target, {"n": 5, "m": 3, "b": 2})
    check(function, True, target, {"n": 3, "m": 1, "b": 2})


@pytest.mark.parametrize("function", FUNCTIONS)
def test_matrices_without_rows(function: MatrixFunction) -> None:
    check(function, False, "numpy", {"n": 0, "m": 2, "b": 1})
