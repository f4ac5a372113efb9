"""Sums over the rows of groups, and values looked up by group, of few and of many rows each."""

from __future__ import annotations

import re

import numpy as np
import pytest
from codegen.cuda import standin

import slomodel
from slomodel.codegen.cuda import segments, source

TEXT = """dim N, A, B, C, k
data a[N] in A
data b[N] in B
data c[N] in C
data S[N, k]
var u[A], v[B], w[C], T[C, k]
minimize sum(exp(u[a] + v[b] .* w[c])) + sum(S[i, j] * T[c[i], j]^2 for i in N, j in k)
"""
N, A, B, C, K = 3000, 1, 130, 700, 2


def test_groups_of_all_sizes(
    cupy_on_cpu: type[standin.RawModule], monkeypatch: pytest.MonkeyPatch
) -> None:
    cupy_on_cpu.orders = (1,)
    monkeypatch.setattr(segments, "_FAR", 2)
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(0, size, N) for size in (A, B, C))
    b[: N // 2] = 7  # one group of very many rows, and some of none
    c[c % 5 == 0] = 1
    S = rng.normal(size=(N, K))
    data = {"a": a, "b": b, "c": c, "S": S}
    model = slomodel.compile(TEXT, data=data, dims={"A": A, "B": B, "C": C}, backend="cupy")
    u, v, w, T = rng.normal(size=A), rng.normal(size=B), rng.normal(size=C), rng.normal(size=(C, K))
    e = np.exp(u[a] + v[b] * w[c])
    value, gradient = model.value_and_gradient({"u": u, "v": v, "w": w, "T": T})
    assert value == pytest.approx(e.sum() + (S * T[c] ** 2).sum(), rel=1e-13)
    slope = np.zeros((C, K))
    np.add.at(slope, c, 2 * S * T[c])
    for name, expected in {
        "u": np.bincount(a, e, A),
        "v": np.bincount(b, e * w[c], B),
        "w": np.bincount(c, e * v[b], C),
        "T": slope,
    }.items():
        np.testing.assert_allclose(model.unpack(gradient)[name], expected, rtol=1e-12, atol=1e-12)


def test_a_loop_reads_through_its_index_arrays() -> None:
    data = {"a": np.zeros(N), "b": np.zeros(N), "c": np.zeros(N), "S": np.ones((N, K))}
    model = slomodel.compile(TEXT, data=data, dims={"A": A, "B": B, "C": C}, backend="numpy")
    text = model.source("cuda")
    kernels = re.findall(r" value_\d+\(.*?\n}", text, re.S)
    looping = [one for one in kernels if f"r < {N};" in one]
    assert len(looping) == 1
    assert len(re.findall(r"const int j\d = p\d+\[i0\];", looping[0])) == 3
    assert "exp(" in looping[0]


def test_products_that_cublas_computes(
    cupy_on_cpu: type[standin.RawModule], monkeypatch: pytest.MonkeyPatch
) -> None:
    cupy_on_cpu.orders = (1,)
    monkeypatch.setattr(source, "SMALL_PRODUCT", 0)
    text = "dim m, n\ndata M[m, n]\nvar X[n, m]\nminimize sum(exp(M @ X)) + sum(X^2)"
    M, X = np.random.default_rng(1).normal(size=(2, 4, 6)) / 3
    model = slomodel.compile(text, data={"M": M}, backend="cupy")
    assert "cp.matmul(" in model.source()
    assert "run1 = _graph(" in model.source()
    found = model.gradient(X.reshape(-1))
    expected = M.T @ np.exp(M @ X.reshape(6, 4)) + 2 * X.reshape(6, 4)
    np.testing.assert_allclose(found, expected.reshape(-1), rtol=1e-13)
    monkeypatch.setattr(standin.Stream, "refuses", True)
    again = slomodel.compile(text, data={"M": M}, backend="cupy")
    assert again.gradient(X.reshape(-1)).tobytes() == found.tobytes()
