"""Target `cupy` on the CPU against NumPy's kernels, on random graphs of all kinds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from strategies import Example, graphs

from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives, Kernels
from slomodel.reference import evaluate, evaluate_all


@pytest.mark.usefixtures("cupy_on_cpu")
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(example=graphs())
def test_value_gradient_and_hessian_product(example: Example) -> None:
    derivatives = Derivatives(example.objective, example.variables)
    compiled = Compiled("random", derivatives, example.data, example.sizes, TARGETS["cupy"])
    kernels = Kernels(compiled, {d.name: np.array(example.values[d], float) for d in example.data})
    rng = np.random.default_rng(0)
    values = dict(example.values)
    for node, variable in zip(derivatives.directions, example.variables, strict=True):
        values[node] = rng.normal(size=np.shape(values[variable]))
    roots = (example.objective, *derivatives.gradient, *derivatives.hessian_vector)
    expected = [np.ravel(one) for one in evaluate(roots, values, example.sizes)]
    count = len(example.variables)
    x = np.concatenate([np.ravel(np.asarray(values[v], float)) for v in example.variables])
    v = np.concatenate([np.ravel(values[d]) for d in derivatives.directions])
    gradient, product = np.full(x.size, np.nan), np.full(x.size, np.nan)
    value = kernels.function("value_and_gradient")(x, gradient)
    kernels.function("hvp")(x, v, product)
    largest = 1.0
    for array in evaluate_all(roots, values, example.sizes).values():
        finite = np.abs(array[np.isfinite(array)].astype(float))
        largest = max(largest, float(finite.max(initial=0.0)))
    for found, wanted in (
        (np.array([value]), expected[0]),
        (gradient, np.concatenate(expected[1 : 1 + count])),
        (product, np.concatenate(expected[1 + count :])),
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11 * largest)
