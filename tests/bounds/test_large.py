"""Bounds for many unknowns: without arrays of n² numbers, or of many times n."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import slomodel

N = 40_000
MOST = 300
"""So many arrays of n numbers may be held at once; n² numbers would be 40,000 of them."""

TEXTS = {
    "chain": "dim n var x[n] minimize sum(100 * (x[i+1] - x[i]^2)^2 + (1 - x[i])^2 "
    "for i in range(n - 1))",
    "robust regression": "dim n data A[2, n], y[2] var x[n] "
    "minimize sum(log(1 + (A @ x - y).^2)) + sumsq(x)",
    "denoising": "dim n var x[n] minimize sum(log(1 + (x[i] - 1)^2) for i in n) "
    "+ sum(sqrt(1 + (x[i+1] - x[i])^2) for i in range(n - 1))",
    "factorization": "dim n data M[20, 20] var U[20, n], V[n, 20] minimize sumsq(U @ V - M)",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TEXTS)
def test_the_memory_is_a_multiple_of_n(name: str) -> None:
    rng = np.random.default_rng(0)
    dims = {"n": N if name != "factorization" else N // 40}
    shapes = {"A": (2, N), "y": (2,), "M": (20, 20)}
    data = {key: rng.standard_normal(s) for key, s in shapes.items() if f"{key}[" in TEXTS[name]}
    model = slomodel.compile(TEXTS[name], data=data, dims=dims)
    assert model.n == N
    centre = 0.1 * rng.standard_normal(N)
    tracemalloc.start()
    found = model.bounds(centre, 0.1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.0 < found.L1 < np.inf
    assert peak < MOST * 8 * N
