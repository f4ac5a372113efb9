"""Data declared symmetric are exactly symmetric once bound, which derivatives rely on."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import slomodel

QUADRATIC = "dim n\ndata A[n, n] symmetric\nvar x[n] minimize x@A@x"
CUBIC = """dim n
data T[n, n, n] symmetric
var x[n] minimize sum(T[i,j,k]*x[i]*x[j]*x[k] for i in n, j in n, k in n)"""


def nearly(order: int) -> np.ndarray:
    """A symmetric array with entries moved by 2 eps."""
    rng = np.random.default_rng(0)
    array = rng.uniform(0.5, 1.0, (3,) * order)
    array = sum(np.transpose(array, one) for one in permutations(range(order)))
    places = np.sort(np.indices(array.shape).reshape(order, -1), axis=0)
    array = array[tuple(places)].reshape(array.shape)
    return np.asarray(array * (1.0 + 2.0**-51 * rng.integers(-1, 2, array.shape)))


@pytest.mark.parametrize(("name", "text", "order"), [("A", QUADRATIC, 2), ("T", CUBIC, 3)])
def test_bound_data_are_exactly_symmetric(name: str, text: str, order: int) -> None:
    given = nearly(order)
    before = given.copy()
    model = slomodel.compile(text, data={name: given})
    (bound,) = (v for k, v in model._part(np.ones(3)).values.items() if k.name == name)
    assert all(np.array_equal(bound, np.transpose(bound, p)) for p in permutations(range(order)))
    assert np.abs(bound - given).max() <= 8.0 * np.finfo(float).eps * np.abs(given).max()
    assert np.array_equal(given, before)
    x = np.array([0.3, -1.2, 0.8])
    value = bound
    for _ in range(order):
        value = value @ x
    assert float(model.value(x)) == pytest.approx(float(value), rel=1e-13)


def test_exactly_symmetric_data_are_taken_as_they_are() -> None:
    given = np.array([[1.0, np.pi], [np.pi, -0.0]])
    model = slomodel.compile(QUADRATIC, data={"A": given})
    (bound,) = (v for k, v in model._part(np.ones(2)).values.items() if k.name == "A")
    assert bound.tobytes() == given.tobytes()
