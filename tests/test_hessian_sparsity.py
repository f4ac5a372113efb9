"""Patterns of Hessians from the graph, their colours, and sparse Hessians from few products."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel
from slomodel.errors import DomainError
from slomodel.solve.coloured_hessian import coloured

RNG = np.random.default_rng(3)
SPARSE_MATRIX = np.where(RNG.random((5, 4)) < 0.6, 0.0, 1.5)
# Text, data, number of stored entries (n, the diagonal and both triangles) and of products.
MODELS: dict[str, tuple[str, dict[str, object], int, int]] = {
    "chain": (
        "var x[8] init 0.3\nminimize sum(100*(x[i+1] - x[i]^2)^2 + (1 - x[i])^2 for i in range(7))",
        {},
        22,
        3,
    ),
    "arrow": (
        "var x[6] init 0.3\nminimize sum(x[i]^4 for i in 6) + x[0]*sum(x[i]^2 for i in 6)",
        {},
        16,
        2,
    ),
    "dense": ("var x[6] init 0.3\nminimize log(sum(exp(x[i]) for i in 6))", {}, 36, 6),
    "two blocks": ("var a, b, c\nminimize a^4 + exp(a*b) + c^4", {}, 5, 2),
    "edges": (
        "dim n = 6\ndim m\ndata i[m] in n, j[m] in n\nvar x[n] init 0.3\n"
        "minimize sum((x[i[k]] - x[j[k]])^4 for k in m)",
        {"i": np.arange(6), "j": (np.arange(6) + 1) % 6},
        18,
        4,
    ),
    "linear": ("var x[5] init 1\nminimize sum((x[i] - i)^2 for i in 5)", {}, 5, 1),
    "kinks": (
        "var x[5] init 0.4\nminimize sum(max(x[i]*x[i+1], 0)^3 for i in range(4))",
        {},
        13,
        3,
    ),
    "running sums": (
        "var x[5] init 0.4\nlet s = cumsum(x)\nminimize sum(s[i]^4 for i in 5)",
        {},
        25,
        5,
    ),
    "matrix": ("var X[2,2] init 0.2\nminimize logdet(X@X' + eye(2))", {}, 16, 4),
    "columns": (
        "var X[3,4] init 0.2\nminimize sum(prod(1 + X[i,j]^2 for i in 3) for j in 4)",
        {},
        36,
        3,
    ),
}


def model_of(name: str) -> slomodel.Model:
    text, data, _, _ = MODELS[name]
    return slomodel.compile(text, data=data, backend="numpy")


@pytest.mark.parametrize("name", MODELS)
def test_patterns_hold_every_entry(name: str) -> None:
    model = model_of(name)
    _, _, stored, _ = MODELS[name]
    pattern = model.hessian_sparsity()
    assert (pattern.nnz, pattern.dtype) == (stored, np.bool_)
    assert (pattern != pattern.T).nnz == 0
    dense = pattern.toarray()
    for seed in range(3):
        x = model.x0(seed) + 0.1 * np.random.default_rng(seed).normal(size=model.n)
        hessian = model.hessian(x)
        assert not hessian[~dense].any()


@pytest.mark.parametrize("name", MODELS)
def test_sparse_hessians_are_the_dense_ones(name: str) -> None:
    model = model_of(name)
    _, _, _, products = MODELS[name]
    found = coloured(model.hessian_sparsity())
    assert found is not None
    assert found.products <= products
    x = model.x0(0) + 0.1 * np.random.default_rng(5).normal(size=model.n)
    sparse, dense = model.hessian(x, sparse=True), model.hessian(x)
    assert sparse.format == "csc"
    np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-13, atol=1e-14)


def test_zeros_of_data_are_not_entries() -> None:
    """The product with a data matrix couples the unknowns that some row has together."""
    text = "dim m\ndim n\ndata A[m,n]\nvar x[n] init 0.2\nminimize sum(exp(A@x))"
    model = slomodel.compile(text, data={"A": SPARSE_MATRIX}, backend="numpy")
    coupled = (SPARSE_MATRIX.T @ SPARSE_MATRIX != 0.0) | np.eye(4, dtype=bool)
    hessian = model.hessian(model.x0(0))
    assert not hessian[~model.hessian_sparsity().toarray()].any()
    assert ((hessian != 0.0) <= coupled).all()


def test_colours_separate_entries_of_random_patterns() -> None:
    """Every entry is recovered from the products with the sums of columns of one colour."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(1)
    for n in (1, 2, 7, 30):
        for density in (0.0, 0.05, 0.3, 1.0):
            half = np.triu(rng.random((n, n)) < density, 1)
            pattern = half | half.T | np.eye(n, dtype=bool)
            matrix = np.where(pattern, rng.normal(size=(n, n)), 0.0)
            matrix += matrix.T
            found = coloured(csr_array(pattern))
            assert found is not None
            entries = found.entries(lambda v, out, own=matrix: np.copyto(out, own @ v))
            np.testing.assert_allclose(found.matrix(entries).toarray(), matrix, atol=1e-13)


def test_too_many_colours() -> None:
    from scipy.sparse import csr_array

    assert coloured(csr_array(np.ones((9, 9), dtype=bool)), 8) is None
    assert coloured(csr_array(np.eye(9, dtype=bool)), 1) is not None


def test_large_hessians() -> None:
    text = "dim n\nvar x[n] init 1\nminimize sum((x[i+1] - x[i]^2)^2 for i in range(n - 1))"
    model = slomodel.compile(text, dims={"n": 6000}, backend="numpy")
    assert model.hessian_sparsity().nnz == 3 * 6000 - 2
    assert model.hessian(model.x0(0), sparse=True).shape == (6000, 6000)
    with pytest.raises(DomainError, match="too large"):
        model.hessian(model.x0(0))
    dense = slomodel.compile("dim n\nvar x[n] init 1\nminimize sum(x)^4", dims={"n": 6000})
    with pytest.raises(DomainError, match="too many entries"):
        dense.hessian_sparsity()
