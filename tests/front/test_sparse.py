"""Sparse data against dense arrays of NumPy: values, gradients, products, files, refusals."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import slomodel
from slomodel.errors import SlomodelError

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")

M, N = 6, 9
RNG = np.random.default_rng(5)
A = sp.random_array((M, N), density=0.4, rng=RNG, format="csr")
D = A.toarray()
STORED = D != 0
B, C = RNG.normal(size=M), RNG.normal(size=(N, 3))
X, Y = RNG.normal(size=N), RNG.normal(size=M)
HEAD = "dim m, n data A[m, n] sparse, b[m], C[n, 3] var x[n], y[m] init normal(0, 1) "
POINT = {"x": X, "y": Y}
OUTER = np.outer(Y, X)
E = D * OUTER

SAME = {
    "sum(A)": D.sum(),
    "sumsq(A @ x - b)": np.sum((D @ X - B) ** 2),
    "sumsq(A' @ y)": np.sum((D.T @ Y) ** 2),
    "sumsq(y' @ A)": np.sum((Y @ D) ** 2),
    "sumsq(y @ A)": np.sum((Y @ D) ** 2),
    "sumsq(A @ (C .* x[:, None]))": np.sum((D @ (C * X[:, None])) ** 2),
    "sumsq((C .* x[:, None])' @ A')": np.sum(((C * X[:, None]).T @ D.T) ** 2),
    "dot(y, A @ x)": Y @ D @ X,
    "sumsq(A .* outer(y, x))": np.sum(E**2),
    "sumsq(A .* (outer(y, x) @ C @ C'))": np.sum((D * (OUTER @ C @ C.T)) ** 2),
    "sumsq(outer(y, x) .* A ./ 2 - A)": np.sum((E / 2 - D) ** 2),
    "sum((A .* outer(y, x)) .^ 3)": np.sum(E**3),
    "sum(A ./ (1 + outer(y, x) .^ 2))": np.sum(D / (1 + OUTER**2)),
    "sum(A .* (y[:, None] - x[None, :]) .^ 2)": np.sum(D * (Y[:, None] - X) ** 2),
    "sum(sin(2 * A .* outer(y, x)))": np.sum(np.sin(2 * E)),
    "mean(-A .* outer(y, x))": np.mean(-E),
    "sumsq(sum(A .* outer(y, x), axis=0)) + sumsq(mean(A .* outer(y, x), axis=1) - b)": np.sum(
        E.sum(0) ** 2
    )
    + np.sum((E.mean(1) - B) ** 2),
    "norm1(A .* outer(y, x)) + fro(A .* outer(y, x))": np.abs(E).sum() + np.sqrt(np.sum(E**2)),
    "sumsq(masked(outer(y, x) - 1, A))": np.sum((OUTER - 1)[STORED] ** 2),
    "sum((A[i, j] - y[i] * x[j])^2 for i, j in A)": np.sum((D - OUTER)[STORED] ** 2),
    "sum((y[i] - x[j])^2 for i, j in A if A[i, j] > 0.5)": np.sum(((Y[:, None] - X) ** 2)[D > 0.5]),
    "mean(A[i, j] * x[j] for i, j in A if i < j)": np.mean(
        (D * X)[STORED & (np.arange(M)[:, None] < np.arange(N))]
    ),
    "max(A[i, j] * x[j] for i, j in A)": np.max((D * X)[STORED]),
    "logsumexp(y[i] * x[j] for i, j in A)": np.log(np.sum(np.exp(OUTER[STORED]))),
    "sumsq(y[i] * x[j] for i, j in A)": np.sum(OUTER[STORED] ** 2),
    "sum(sum(A[i, j] * x[j] for i, j in A if i == k)^2 * b[k] for k in m)": np.sum(
        (D @ X) ** 2 * B
    ),
    "sum(y[i] * sum(A[k, l] * x[l] for k, l in A) for i, j in A)": np.sum(Y @ STORED)
    * np.sum(D @ X),
    "sum(x[j]^2 * b[k] for i, j in A, k in range(i))": np.sum(
        [X[j] ** 2 * B[:i].sum() for i, j in np.argwhere(STORED)]
    ),
}
"""Objectives with their values, by dense arrays."""
BACKENDS = ("numpy", "numexpr", "c")


def compiled(text: str, backend: str = "numpy", **data: object) -> slomodel.Model:
    given = {"A": A, "b": B, "C": C} | data
    return slomodel.compile(HEAD + "minimize " + text, data=given, backend=backend)


@pytest.mark.parametrize("text", SAME)
def test_values_and_gradients(text: str) -> None:
    model = compiled(text)
    x = model.pack(POINT)
    assert model.value(x) == pytest.approx(SAME[text], rel=1e-12)
    if "max" not in text:
        assert max(model.check_gradient(x).values()) < 1e-7


@pytest.mark.parametrize("backend", BACKENDS)
def test_targets_and_second_derivatives(backend: str) -> None:
    text = "sum(sin(A .* outer(y, x))) + sumsq(A @ x - b) + sumsq(A' @ y)"
    dense = text.replace("A", "G")
    head = HEAD.replace("A[m, n] sparse", "G[m, n]")
    model = compiled(text, backend)
    other = slomodel.compile(head + "minimize " + dense, data={"G": D, "b": B, "C": C})
    x, v = model.pack(POINT), RNG.normal(size=model.n)
    assert model.value(x) == pytest.approx(other.value(x), rel=1e-12)
    np.testing.assert_allclose(model.gradient(x), other.gradient(x), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(model.hvp(x, v), other.hvp(x, v), rtol=1e-11, atol=1e-12)


def test_bounds_hold() -> None:
    model = compiled("sum((A[i, j] - y[i] * x[j])^2 for i, j in A)")
    x = model.pack(POINT)
    bounds = model.bounds(x, 0.5)
    assert bounds.rigor == "certified"
    worst = 0.0
    for _ in range(5):
        step = RNG.normal(size=model.n)
        near = x + 0.5 * step / np.linalg.norm(step)
        worst = max(worst, float(np.linalg.norm(model.hessian(near), 2)))
    assert worst <= bounds.L1 < 20 * worst


def test_definitions_over_entries_and_transposes() -> None:
    text = (
        "dim n data A[n, n] sparse var x[n] let E[i, j in A] = A[i, j] * x[i] - x[j] let F = A' "
        "minimize sumsq(E) + sumsq(E @ x) + sum(F[j, i] * x[i] for i, j in A) "
        "+ sum(F[i, j] * x[i]^2 for i, j in F)"
    )
    square = sp.random_array((5, 5), density=0.5, rng=RNG)
    dense = square.toarray()
    model = slomodel.compile(text, data={"A": square})
    x = RNG.normal(size=5)
    e = (dense * x[:, None] - x) * (dense != 0)
    expected = np.sum(e**2) + np.sum((e @ x) ** 2)
    expected += np.sum(dense * x[:, None]) + np.sum(dense.T * (x**2)[:, None])
    assert model.value(x) == pytest.approx(expected, rel=1e-12)


def test_vectors_and_tensors() -> None:
    text = (
        "dim k, m, n data a[n] sparse, T[k, m, n] sparse var x[n], y[m] "
        "minimize sum(a[i] * x[i]^2 for i in a) + sum(T[p, i, j] * y[i] * x[j]^2 for p, i, j in T)"
    )
    vector = np.where(RNG.random(7) < 0.5, RNG.normal(size=7), 0)
    tensor = np.where(RNG.random((2, 3, 7)) < 0.5, RNG.normal(size=(2, 3, 7)), 0)
    model = slomodel.compile(text, data={"a": vector, "T": tensor})
    x, y = RNG.normal(size=7), RNG.normal(size=3)
    expected = vector @ x**2 + np.einsum("pij,i,j->", tensor, y, x**2)
    assert model.value({"x": x, "y": y}) == pytest.approx(expected, rel=1e-12)


def test_missing_entries_and_products_never_form_the_matrix() -> None:
    # 10^10 elements would not fit in memory.
    size = 10**5
    places = RNG.integers(0, size, (2, 50))
    big = sp.coo_array((RNG.normal(size=50), tuple(places)), shape=(size, size))
    text = (
        "dim m, n data R[m, n] sparse var U[m, 2], V[n, 2] init normal(0, 1) "
        "minimize sumsq(R .* (U @ V'))"
    )
    model = slomodel.compile(text, data={"R": big}, backend="numpy")
    U, V = (part for part in model.unpack(model.x0(1)).values())
    coo = big.tocoo()
    inner = np.sum(U[coo.row] * V[coo.col], axis=1)
    assert model.value(model.x0(1)) == pytest.approx(np.sum((coo.data * inner) ** 2), rel=1e-12)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "matrix", "dense", "twice"])
def test_forms_of_data(form: str) -> None:
    given: object = D if form == "dense" else A
    if form == "matrix":
        given = sp.csr_matrix(A)
    elif form == "twice":
        coo = A.tocoo()
        both = (np.r_[coo.row, coo.row], np.r_[coo.col, coo.col])
        given = sp.coo_array((np.r_[coo.data, coo.data] / 2, both), shape=A.shape)
    elif form != "dense":
        given = A.asformat(form)
    model = compiled("sumsq(A @ x - b) + sum((x[j] - y[i])^2 for i, j in A)", A=given)
    expected = np.sum((D @ X - B) ** 2) + np.sum(((X - Y[:, None]) ** 2)[STORED])
    assert model.value(model.pack(POINT)) == pytest.approx(expected, rel=1e-12)


def test_files(tmp_path: Path) -> None:
    expected = np.sum((D @ X - B) ** 2)
    sp.save_npz(tmp_path / "csr.npz", A)
    sp.save_npz(tmp_path / "coo.npz", A.tocoo())
    scipy.io.mmwrite(tmp_path / "a.mtx", A)
    np.savez(tmp_path / "dense.npz", A=D)
    lines = []
    for k, row in enumerate(D):
        features = " ".join(f"{j + 1}:{float(row[j])!r}" for j in np.flatnonzero(row))
        lines.append(f"{float(B[k])!r} {features}  # row {k}")
    (tmp_path / "rows.svm").write_text("\n".join(lines))
    for name in ("csr.npz", "coo.npz", "a.mtx", "dense.npz", "rows.svm"):
        if name == "rows.svm" and not D[:, -1].any():
            continue
        model = compiled("sumsq(A @ x - b)", A=tmp_path / name)
        assert model.value(model.pack(POINT)) == pytest.approx(expected, rel=1e-12), name
    head = HEAD.replace("A[m, n] sparse, b[m]", 'A[m, n] sparse from "rows.svm", b[m]')
    head = head.replace("b[m], C[n, 3]", 'b[m] from "rows.svm:y"')
    path = tmp_path / "of_files.slo"
    path.write_text(head + "minimize sumsq(A @ x - b)")
    model = slomodel.compile(path)
    assert model.value(model.pack(POINT)) == pytest.approx(expected, rel=1e-12)


def test_binding_other_patterns_and_pickles() -> None:
    model = compiled("sumsq(A @ x - b)")
    other = sp.random_array((M, N), density=0.2, rng=RNG)
    x = model.pack(POINT)
    bound = model.bind(A=other)
    assert bound.value(x) == pytest.approx(np.sum((other.toarray() @ X - B) ** 2), rel=1e-12)
    assert pickle.loads(pickle.dumps(bound)).value(x) == bound.value(x)
    larger = model.bind(A=sp.random_array((M, 12), density=0.2, rng=RNG), C=np.zeros((12, 3)))
    assert larger.n == 12 + M
    empty = model.bind(A=sp.coo_array((M, N)))
    assert empty.value(x) == pytest.approx(B @ B, rel=1e-12)
    waiting = slomodel.compile(HEAD + "minimize sumsq(A @ x - b)", dims={"m": M, "n": N})
    assert waiting.missing == ("A", "b", "C")
    assert waiting.n == M + N
    assert waiting.bind(A=A, b=B, C=C).value(x) == model.value(x)


REFUSED = {
    "sumsq(A - outer(y, x))": "E229",
    "sum(exp(A))": "E229",
    "sumsq(A + 1)": "E229",
    "sum(A .^ 0)": "E229",
    "A[0, 1] * sum(x)": "E229",
    "sum(A[i, j] * x[j] for i in m, j in n)": "E229",
    "sum(A[i + 1, j] * x[j] for i, j in A)": "E229",
    "sum(A[j, i] * x[j] for i, j in A)": "E229",
    "max(A) * sum(x)": "E229",
    "sumsq(A @ A')": "E229",
    "sum(outer(y, x) ./ A)": "E229",
    "sum(x ./ A)": "E204",
    "sumsq(x @ A)": "E205",
    "sum(x[i] for i, j in n)": "E212",
    "sum(x[j] for i in A)": "E212",
    "sum(x[j] for i, j in A')": "E212",
    "sum(x[i] for i, i in A)": "E202",
    "sum(x) let D[i, j in A] = x": "E212",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals(text: str) -> None:
    with pytest.raises(SlomodelError) as caught:
        compiled(text)
    assert [one.code for one in caught.value.diagnostics] == [REFUSED[text]]
    assert caught.value.diagnostics[0].help


def test_positions_outside_and_other_ranks_are_refused() -> None:
    with pytest.raises(SlomodelError, match="dim `m` is"):
        compiled("sumsq(A @ x - b)", A=sp.random_array((M + 1, N), rng=RNG))
    with pytest.raises(SlomodelError, match="shape"):
        compiled("sumsq(A @ x - b)", A=np.zeros(3))
    with pytest.raises(SlomodelError, match="not finite"):
        compiled("sumsq(A @ x - b)", A=sp.coo_array(([np.nan], ([0], [0])), shape=(M, N)))
    with pytest.raises(SlomodelError, match=r"no data `A\.row`"):
        compiled("sumsq(A @ x - b)", **{"A.row": np.zeros(3)})
