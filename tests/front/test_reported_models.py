"""Models of public reports: conditions that make indices legal, sets of tuples, messages.

Each has the value of a loop; what a condition excludes takes neither time nor memory, measured as
the largest memory of an evaluation against that of a mask over all combinations of indices.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
import sympy as sp

import slomodel

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")

RNG = np.random.default_rng(5)
H, X, E = RNG.normal(size=3), RNG.normal(size=7), RNG.normal(size=7)
FULL = np.convolve(H, X)

GUARDED = {
    "sum(sum(h[j]*x[t-j] for j in k if t >= j and t < n + j)^2 for t in range(n + k - 1))": (
        np.sum(FULL**2)
    ),
    "sum((x[i+1]-x[i])^2 for i in n if i < n-1)": np.sum(np.diff(X) ** 2),
    "sum(where(t == 0, 2, e[t-1]) * x[t] for t in n)": X @ [2.0, *E[:-1]],
    "sum(sum(x[i]*x[j] for j in range(i)) * e[i] for i in n)": E @ (X * (np.cumsum(X) - X)),
    "sum(x[i]*x[j]^2 for i in n, j in range(i+1, n))": sum(
        X[i] * X[j] ** 2 for i in range(7) for j in range(i + 1, 7)
    ),
    "sum(x[2*i]*e[2*i+1] for i in m)": X[:6:2] @ E[1::2],
}


@pytest.mark.parametrize("text", GUARDED)
def test_a_condition_makes_an_index_legal(text: str) -> None:
    head = "dim n, k, m\ndata h[k], e[n]\nvar x[n]\nminimize sum(h) * 0 + sum(e) * 0 + "
    model = slomodel.compile(head + text, data={"h": H, "e": E}, dims={"m": 3}, backend="numpy")
    assert model.value(X) == pytest.approx(GUARDED[text], rel=1e-13)


def test_conditions_of_sympy() -> None:
    n, i, j, t = sp.Symbol("n", integer=True), *sp.symbols("i j t", integer=True)
    x, e = sp.IndexedBase("x", shape=(n,)), sp.IndexedBase("e", shape=(n,))
    cases = [
        (sp.Sum(x[i] * x[j] ** 2, (j, i + 1, n - 1), (i, 0, n - 1)), list(GUARDED)[4]),
        (
            sp.Sum(
                sp.Piecewise((2, sp.Eq(t, 0)), (e[t - 1], True)) * x[t],
                (t, 0, n - 1),
            ),
            list(GUARDED)[2],
        ),
        (
            sp.Sum(sp.Piecewise(((x[i + 1] - x[i]) ** 2, i < n - 1), (0, True)), (i, 0, n - 1)),
            list(GUARDED)[1],
        ),
    ]
    for expr, text in cases:
        model = slomodel.compile(
            expr, variables=[x], data={"e": E} if expr.has(e) else {}, dims={"n": 7}
        )
        assert model.value(X) == pytest.approx(GUARDED[text], rel=1e-13)


def banded(x: np.ndarray) -> float:
    total = 0.0
    for i in range(len(x)):
        own = [j for j in range(max(0, i - 5), min(len(x), i + 2)) if j != i]
        total += float(np.sum(x[own] * (1 + x[own]))) ** 2
    return total


N = 3000
GROUP = RNG.integers(0, 400, N)
ENDS = RNG.integers(0, N, (2, 9000))
EDGES = np.zeros((N // 3, N // 3))
EDGES[RNG.integers(0, N // 3, 514), RNG.integers(0, N // 3, 514)] = 1.0
Case = tuple[str, dict[str, object], Callable[[np.ndarray], float]]

SPARSE: dict[str, Case] = {
    "a band": (
        "dim n\nvar x[n]\nminimize sum(sum(x[j]*(1+x[j]) for j in n if j != i and j >= i-5 "
        "and j <= i+1)^2 for i in n)",
        {"dims": {"n": N}},
        banded,
    ),
    "groups by comparison": (
        "dim n, G\ndata g[n] in G\nvar x[n]\n"
        "minimize sum(sum(x[i] for i in n if g[i] == j)^2 for j in G)",
        {"data": {"g": GROUP}, "dims": {"G": 400}},
        lambda x: float(np.sum(np.bincount(GROUP, x, 400) ** 2)),
    ),
    "groups by choice": (
        "dim n, G\ndata g[n] in G\nvar x[n]\n"
        "minimize sum(sum(x[i] * where(g[i] == j, 1, 0) for i in n)^2 for j in G)",
        {"data": {"g": GROUP}, "dims": {"G": 400}},
        lambda x: float(np.sum(np.bincount(GROUP, x, 400) ** 2)),
    ),
    "elements by comparison": (
        "dim n\ndata g[n] in n\nvar x[n]\n"
        "minimize sum((x[i] - sum(x[j] for j in n if g[i] == j))^2 for i in n)",
        {"data": {"g": ENDS[0, :N]}, "dims": {"n": N}},
        lambda x: float(np.sum((x - x[ENDS[0, :N]]) ** 2)),
    ),
    "edges": (
        "dim n, m\ndata a[m] in n, b[m] in n\nvar x[n]\n"
        "minimize sum(sum(x[b[k]] for k in m if a[k] == i)^2 for i in n)",
        {"data": {"a": ENDS[0], "b": ENDS[1]}, "dims": {"n": N}},
        lambda x: float(np.sum(np.bincount(ENDS[0], x[ENDS[1]], N) ** 2)),
    ),
    "edges by comparison": (
        "dim n, m\ndata a[m] in n, b[m] in n\nvar x[n]\n"
        "minimize sum((x[i] - x[j])^2 for k in m, i in n, j in n if a[k] == i and b[k] == j)",
        {"data": {"a": ENDS[0], "b": ENDS[1]}, "dims": {"n": N}},
        lambda x: float(np.sum((x[ENDS[0]] - x[ENDS[1]]) ** 2)),
    ),
    "pairs of data by choice": (
        "dim p, n\ndata A[p, p]\nvar x[n]\n"
        "minimize sum(where(A[i, j] != 0, exp(x[i] * x[j]), 0) for i in p, j in p) + sumsq(x)",
        {"data": {"A": EDGES}, "dims": {"n": N}},
        lambda x: (
            float(np.exp(x[np.nonzero(EDGES)[0]] * x[np.nonzero(EDGES)[1]]).sum()) + float(x @ x)
        ),
    ),
    "pairs of data": (
        "dim p, n\ndata A[p, p]\nvar x[n]\n"
        "minimize sum(exp(x[i] * x[j]) for i in p, j in p if A[i, j] != 0) + sumsq(x)",
        {"data": {"A": EDGES}, "dims": {"n": N}},
        lambda x: (
            float(np.exp(x[np.nonzero(EDGES)[0]] * x[np.nonzero(EDGES)[1]]).sum()) + float(x @ x)
        ),
    ),
}


@pytest.mark.parametrize("name", SPARSE)
def test_a_condition_takes_memory_of_its_tuples(name: str) -> None:
    text, given, formula = SPARSE[name]
    model = slomodel.compile(text, backend="numpy", **given)  # type: ignore[arg-type]
    x = RNG.normal(size=N)
    assert model.value(x) == pytest.approx(formula(x), rel=1e-11)
    model.gradient(x)
    tracemalloc.start()
    try:
        model.gradient(x)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 2e6  # a mask has at least 8e6 bytes, and 7e7 for a band or edges


def test_pairs_are_half_of_all() -> None:
    """Lennard-Jones: the native loops run over i < j alone."""
    text = (
        "dim n\nvar q[n, 3] init normal(0, 1)\n"
        "let d[i in n, j in n] = sumsq(q[i, :] - q[j, :])\n"
        "minimize sum(4 * (1 / d[i, j]^6 - 1 / d[i, j]^3) for i in n, j in n if i < j)"
    )
    model = slomodel.compile(text, dims={"n": 38}, backend="numpy")
    q = RNG.normal(size=(38, 3)) * 3
    want = 0.0
    for i in range(38):
        for j in range(i + 1, 38):
            r = float(np.sum((q[i] - q[j]) ** 2))
            want += 4 * (r**-6 - r**-3)
    assert model.value(q.ravel()) == pytest.approx(want, rel=1e-11)
    assert np.isfinite(model.gradient(q.ravel())).all()


MESSAGES = [
    ("dim n\nvar x[n]\nminimize sum(x[2*i]^2 for i in n)", ("2", "range")),
    ("dim n, m\nvar a[n], b[n], c[m, n]\nminimize sumsq(concat(a, b, c))", ("the axis",)),
    ("dim T\ndata e[T]\nvar r\nlet s[t in T] = r*s[t-1] + e[t]\nminimize sumsq(s)", ("first",)),
    ("var x\nminimize x % 2", ("whole numbers",)),
    ("dim n, k = 2\ndata y[n]\nvar x\nminimize sumsq(y[n+k-1] - x)", ("y",)),
    (
        "dim N, L\ndata loc[N]\nvar beta[L]\nminimize sum(beta[loc[i]]^2 for i in N)",
        ("data loc[N] in L",),
    ),
]


@pytest.mark.parametrize(("text", "words"), MESSAGES)
def test_messages_say_what_works(text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(slomodel.SlomodelError) as caught:
        slomodel.compile(text, dims={"n": 4})
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_memory_that_runs_out_is_reported_with_its_place() -> None:
    text = "dim n\nvar x init 1\nlet s[i in n] = sin(x * i)\nminimize sumsq(cumsum(s))"
    model = slomodel.compile(text, dims={"n": 10**12}, backend="numpy")
    with pytest.raises(slomodel.TargetLimit, match=r"E707.*\n.*<model>:[34]:") as caught:
        model.value([1.0])
    assert "write the sum without an array that large" in str(caught.value)


def test_a_million_rows_in_groups_take_no_mask() -> None:
    """Written as a comparison, at a size whose mask would have 40 GB."""
    size, groups = 100_000, 5_000
    g = np.arange(size) % groups
    text = "dim N, G\ndata g[N] in G, y[N]\nvar b[G]\n"
    text += "minimize sum((sum(y[i] for i in N if g[i] == k) - b[k])^2 for k in G)"
    data = {"g": g, "y": np.ones(size)}
    model = slomodel.compile(text, data=data, dims={"G": groups}, backend="numpy")
    assert model.value(np.zeros(groups)) == groups * (size / groups) ** 2


LARGE: dict[str, tuple[str, dict[str, np.ndarray], dict[str, int], Callable[[], float]]] = {
    "rows in groups": (
        "dim N, G\ndata g[N] in G, y[N]\nvar b[G]\n"
        "minimize sum((sum(y[i] for i in N if g[i] == k) - b[k])^2 for k in G)",
        {"g": np.arange(1_000_000) % 5_000, "y": np.ones(1_000_000)},
        {"G": 5_000},
        lambda: 5_000 * 199.0**2,
    ),
    "pairs of columns": (
        "dim m, n\ndata X[m, n]\nvar w[n]\n"
        "minimize sum((X[r, i]*w[i] - X[r, j]*w[j])^2 for r in m, i in n, j in n if i < j)",
        {"X": np.arange(300.0)[:, None] * np.ones(1_000)},
        {},
        lambda: 0.0,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_large_index_sets_take_little_more_memory_than_their_data(name: str) -> None:
    text, data, dims, value = LARGE[name]
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        model = slomodel.compile(text, data=data, dims=dims, backend="c")
        f, _ = model.value_and_gradient(np.ones(model.n))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert f == value()
    # The model holds the data as its own; the positions and their order are two more arrays.
    own = sum(array.nbytes for array in data.values())
    assert most - before < own + 100e6
