"""Sparse data in blocks of rows and of entries, against the same data in memory."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as ss

import slomodel
from slomodel.errors import SlomodelError

N, P = 40, 6
RNG = np.random.default_rng(1)
S = ss.random_array((N, P), density=0.3, rng=RNG, format="csr")
Y = np.sign(RNG.normal(size=N))
CUTS = (0, 5, 17, 17, 18, N)
ROWS = [S[a:b] for a, b in pairwise(CUTS)]
YS = np.split(Y, CUTS[1:-1])
HEAD = "dim N, p, r = 2 data A[N, p] sparse, y[N] "
SUMS = [
    "var w[p] minimize mean(softplus(-y .* (A @ w))) + sumsq(w)",
    "var W[p, r] minimize sumsq(A @ W) + sum(A[i, j] * y[i] * W[j, 0]^2 for i, j in A)",
    "var w[p] let q = A' @ (y .* (A @ w)) minimize dot(q, w) - sum(w)",
]
COMPLETION = (
    "dim m, n, r = 2 data R[m, n] sparse var U[m, r], V[n, r] init normal(0, 1) "
    "minimize sum((R[i, j] - dot(U[i, :], V[j, :]))^2 for i, j in R) + 0.1 * sumsq(U)"
)


def check(text: str, data: dict[str, Any], blocks: dict[str, Any]) -> Any:
    """Compare value, derivatives and bounds with those of the data in memory."""
    model = slomodel.compile(text, data=data, backend="numpy")
    blocked = slomodel.over_blocks(slomodel.compile(text, backend="numpy"), blocks)
    x, v = RNG.normal(size=(2, model.n))
    assert blocked.value(x) == pytest.approx(model.value(x), rel=1e-12)
    np.testing.assert_allclose(blocked.gradient(x), model.gradient(x), atol=1e-12)
    np.testing.assert_allclose(blocked.hvp(x, v), model.hvp(x, v), atol=1e-12)
    H = np.array([model.hvp(x, e) for e in np.eye(model.n)])
    norm = np.abs(np.linalg.eigvalsh(H)).max()
    assert norm <= blocked.bounds(x, 0.0, "quick").L1 <= 2.0 * norm
    return blocked


@pytest.mark.parametrize("text", SUMS)
def test_blocks_of_rows(text: str) -> None:
    blocked = check(HEAD + text, {"A": S, "y": Y}, {"A": ROWS, "y": YS})
    assert blocked.samples == ("N", N)


def test_blocks_of_entries() -> None:
    C = S.tocoo()
    which = np.arange(C.nnz) % 3
    i, j = C.coords
    parts = [
        ss.coo_array((C.data[which == k], (i[which == k], j[which == k])), shape=C.shape)
        for k in range(3)
    ]
    blocked = check(COMPLETION, {"R": S}, {"R": parts})
    assert blocked.samples == ("entries[R]", S.nnz)


def test_files_and_dense_blocks(tmp_path: Path) -> None:
    for name in ("A", "y"):
        (tmp_path / name).mkdir()
    for k, (a, y) in enumerate(zip(ROWS, YS, strict=True)):
        ss.save_npz(tmp_path / "A" / f"{k}.npz", a)
        np.save(tmp_path / "y" / f"{k}.npy", y)
    waiting = slomodel.compile(HEAD + SUMS[0], backend="numpy")
    files = slomodel.over_blocks(waiting, {name: tmp_path / name for name in ("A", "y")}, memory=0)
    dense = slomodel.over_blocks(waiting, {"A": [a.toarray() for a in ROWS], "y": YS})
    x = RNG.normal(size=P)
    assert files.value(x) == dense.value(x)


def test_what_is_not_a_sum_or_has_no_partition() -> None:
    square = ss.eye_array(N, format="csr")
    wrong: list[tuple[str, dict[str, Any], str]] = [
        (HEAD + "var w[p] minimize sumsq(A' @ (A @ w - y))", {"A": ROWS, "y": YS}, "combines"),
        (COMPLETION, {"R": ROWS}, "`U` has elements for every sample"),
        (
            "dim N data A[N, N] sparse, y[N] var w minimize sumsq(A @ y) * w^2",
            {"A": [square[:20], square[20:]], "y": [Y[:20], Y[20:]]},
            "those of `A` are along no dim",
        ),
        ("dim N, p data A[N, p] var w[p] minimize sumsq(A @ w)", {"A": ROWS}, "`data A"),
    ]
    for text, blocks, words in wrong:
        with pytest.raises(SlomodelError, match=words):
            slomodel.over_blocks(slomodel.compile(text, backend="numpy"), blocks)
    model = slomodel.compile(HEAD + SUMS[0], data={"A": S, "y": Y}, backend="numpy")
    with pytest.raises(SlomodelError, match="samples along any dim"):
        slomodel.minibatches(model, 4)
