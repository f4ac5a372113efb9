"""Operations on matrices by CuPy's functions, against the reference interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from agreeing import in_python
from codegen.cuda import standin
from codegen.test_matrices import expected, questions
from matrix_objectives import FUNCTIONS

import slomodel


@pytest.mark.sampled(11)
@pytest.mark.parametrize("k", range(len(FUNCTIONS)), ids=FUNCTIONS)
def test_operations_agree_with_the_reference(k: int, cupy_on_cpu: type[standin.RawModule]) -> None:
    cupy_on_cpu.orders = (0,)
    # The first of each function is a batch.
    found, wanted = in_python(questions()[2 * k], "cupy"), expected()[2 * k]
    for name, array in found.items():
        scale = np.abs(wanted[name]).max(initial=1e-3)
        np.testing.assert_allclose(array, wanted[name], rtol=1e-9, atol=1e-11 * scale)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "term", ["dot(r, solve(K + t * eye(n), r))", "sumsq(cholesky(K + t * eye(n)) @ r)"]
)
def test_matrices_that_are_not_positive_definite(
    term: str, cupy_on_cpu: type[standin.RawModule]
) -> None:
    cupy_on_cpu.orders = (0,)
    text = f"dim n\ndata K[n, n], r[n]\nvar t, s\nminimize s * {term}"
    data = {"K": np.array([[2.0, 1.0], [1.0, 1.0]]), "r": np.array([1.0, 3.0])}
    numpy, cupy = (slomodel.compile(text, data=data, backend=one) for one in ("numpy", "cupy"))
    for point in (np.array([0.3, 2.0]), np.array([-1.5, 2.0])):
        found, expected = (model.value_and_gradient(point) for model in (cupy, numpy))
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-11)
