"""Every target against the reference interpreter, on random graphs of all kinds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from strategies import Example, graphs

from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives, Kernels
from slomodel.reference import evaluate, evaluate_all


def kernels_of(example: Example, target: str) -> tuple[Kernels, Derivatives]:
    derivatives = Derivatives(example.objective, example.variables)
    compiled = Compiled("random", derivatives, example.data, example.sizes, TARGETS[target])
    arrays = {node.name: np.array(example.values[node], float) for node in example.data}
    return Kernels(compiled, arrays), derivatives


def flat(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(array) for array in arrays]) if arrays else np.zeros(0)


def scale_of(example: Example, roots: tuple, values: dict) -> float:
    """The largest number met on the way: rounding differences are relative to it."""
    largest = 1.0
    for array in evaluate_all(roots, values, example.sizes).values():
        finite = np.abs(array[np.isfinite(array)].astype(float))
        largest = max(largest, float(finite.max(initial=0.0)))
    return largest


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", ["numexpr", "numpy"])
@given(example=graphs())
def test_value_gradient_and_hessian_product(target: str, example: Example) -> None:
    kernels, derivatives = kernels_of(example, target)
    rng = np.random.default_rng(0)
    values = dict(example.values)
    for node, variable in zip(derivatives.directions, example.variables, strict=True):
        values[node] = rng.normal(size=np.shape(values[variable]))
    roots = (example.objective, *derivatives.gradient, *derivatives.hessian_vector)
    expected = evaluate(roots, values, example.sizes)
    count = len(example.variables)
    tolerance = 1e-11 * scale_of(example, roots, values)
    x = flat([np.asarray(example.values[node], float) for node in example.variables])
    v = flat([values[node] for node in derivatives.directions])
    # Twice: the second call meets buffers that the first one filled.
    for point in (x + 0.25, x):
        value = kernels.function("value")(point)
        gradient, product = np.full(x.size, np.nan), np.full(x.size, np.nan)
        again = kernels.function("value_and_gradient")(point, gradient)
        # Along another direction before: what depends on the point alone is kept in between.
        kernels.function("hvp")(point, 1.0 - v, product)
        kernels.function("hvp")(point, v, product)
    for found, wanted in (
        (value, expected[0]),
        (again, expected[0]),
        (gradient, flat(expected[1 : 1 + count])),
        (product, flat(expected[1 + count :])),
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=tolerance)
