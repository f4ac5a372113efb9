"""`@` of arrays with more than two axes, and norms along an axis, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import slomodel

RNG = np.random.default_rng(3)
X, A, B = (RNG.normal(size=size) for size in ((2, 3, 4), (2, 4, 5), (4, 5)))
F, V, W = RNG.normal(size=(2, 2, 5, 3)), RNG.normal(size=4), RNG.normal(size=(6, 3))
S = sp.random_array((3, 4), density=0.6, rng=RNG)
POINT = {"X": X, "A": A, "B": B, "F": F, "V": V, "W": W}
HEAD = """dim b, m, n, k, p data S[m, n] sparse
var X[b, m, n], A[b, n, k], B[n, k], F[b, b, k, m], V[n], W[p, m]
"""
ROWS = np.sqrt(np.sum(X**2, axis=1))
VALUES = {
    "sum((X @ A) .^ 3)": np.sum((X @ A) ** 3),
    "sum((X @ B) .^ 3)": np.sum((X @ B) ** 3),
    "sum((W @ X) .^ 3)": np.sum((W @ X) ** 3),
    "sum((X @ V) .^ 3)": np.sum((X @ V) ** 3),
    "sum((V @ A) .^ 3)": np.sum((V @ A) ** 3),
    "sum((B @ F) .^ 3)": np.sum((B @ F) ** 3),
    "sum((X[:, :, :1] @ X[:, :1, :]) .^ 3)": np.sum((X[:, :, :1] @ X[:, :1, :]) ** 3),
    "sum(norm2(X, axis=1) .^ 3)": np.sum(ROWS**3),
    "sum(norm2(B, axis=0) .* V[0])": V[0] * np.sum(np.sqrt(np.sum(B**2, axis=0))),
    "sum(norm1(X, axis=-1) .^ 3)": np.sum(np.sum(np.abs(X), axis=-1) ** 3),
    "sum(sumsq(X, axis=2) .^ 3)": np.sum(np.sum(X**2, axis=2) ** 3),
    "sumsq(sumsq(S, axis=0))": np.sum(np.sum(S.toarray() ** 2, axis=0) ** 2),
    "sumsq(norm1(S, axis=1))": np.sum(np.sum(np.abs(S.toarray()), axis=1) ** 2),
}
_DIMS = {"b": 2, "k": 5, "p": 6}
REFUSED = {
    "sum(A @ X)": "the last dim of the left",
    "sum(F @ A)": "the last dim of the left",
    "sum(X @ F)": "the last dim of the left",
    "sum(F @ F)": "the last dim of the left",
    "sum(W @ A)": "the last dim of the left",
    "sum(X @ ones(p, n, k))": "equal dims before the last two",
    "sum(norm2(B))": "`norm2` takes a vector",
    "norm2(B, axis=2)": "axis",
}


@pytest.mark.parametrize("text", VALUES)
@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
def test_value(text: str) -> None:
    end = " + 0 * (sum(X) + sum(A) + sum(B) + sum(F) + sum(V) + sum(W) + sum(S))"
    model = slomodel.compile(
        HEAD + f"minimize {text}{end}", data={"S": S}, dims=_DIMS, backend="numpy"
    )
    assert model.value(model.pack(POINT)) == pytest.approx(VALUES[text], rel=1e-13)


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(slomodel.SlomodelError, match=REFUSED[text]) as caught:
        slomodel.compile(HEAD + f"minimize {text}")
    assert caught.value.diagnostics[0].help
