"""Conditions in the terms of SymPy's sums: values and derivatives by loops, and work by size."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
import sympy as sp

import slomodel
from slomodel.errors import SlomodelError

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")

SIZE, GROUPS = 9, 4
RNG = np.random.default_rng(2)
g, h = RNG.integers(0, GROUPS, SIZE), RNG.integers(0, GROUPS, SIZE)
y = np.where(np.arange(SIZE) % 3 == 0, 1.0, RNG.normal(size=SIZE))
B = RNG.normal(size=GROUPS)
n, m = sp.symbols("n m", integer=True)
i, j, k = sp.symbols("i j k", integer=True)
G, H, Y = (sp.IndexedBase(name, shape=(n,)) for name in "ghy")
b = sp.IndexedBase("b", shape=(m,))
rows, groups = (i, 0, n - 1), (j, 0, m - 1)
KD = sp.KroneckerDelta
R, C = range(SIZE), range(GROUPS)


def choice(terms: sp.Expr, condition: sp.Basic) -> sp.Expr:
    return sp.Piecewise((terms, condition), (0, True))


Case = tuple[sp.Expr, Callable[[np.ndarray], complex]]
CASES: dict[str, Case] = {
    "an element": (
        sp.Sum((Y[i] - sp.Sum(KD(G[i], j) * b[j], groups)) ** 2, rows),
        lambda b: sum((y - b[g]) ** 2),
    ),
    "a sum by group": (
        sp.Sum((sp.Sum(KD(G[i], j) * Y[i] * b[j], rows) - b[j]) ** 2, groups),
        lambda b: sum((sum(y[i] * b[q] for i in R if g[i] == q) - b[q]) ** 2 for q in C),
    ),
    "one sum over both": (
        sp.Sum(choice(sp.exp(b[j]) * Y[i], sp.Eq(G[i], j)), groups, rows),
        lambda b: sum(np.exp(b[g]) * y),
    ),
    "the other branch": (
        sp.Sum(sp.Piecewise((0, sp.Ne(G[i], j)), (b[j] ** 2, True)), groups, rows),
        lambda b: sum(b[g] ** 2),
    ),
    "a shift": (
        sp.Sum(sp.Sum(KD(G[i], j + 1) * Y[i], rows) ** 2 * b[j], groups),
        lambda b: sum(sum(y[i] for i in R if g[i] == q + 1) ** 2 * b[q] for q in C),
    ),
    "a range from 1": (
        sp.Sum(sp.Sum(KD(G[i], j) * Y[i], rows) ** 2 * b[j], (j, 1, m - 1)),
        lambda b: sum(sum(y[i] for i in R if g[i] == q) ** 2 * b[q] for q in C if q),
    ),
    "two keys": (
        sp.Sum(
            sp.Sum(KD(G[i], j) * KD(H[i], k) * Y[i], rows) ** 2 * b[j] * b[k],
            groups,
            (k, 0, m - 1),
        ),
        lambda b: sum(
            sum(y[i] for i in R if g[i] == q and h[i] == p) ** 2 * b[q] * b[p] for q in C for p in C
        ),
    ),
    "one index, twice": (
        sp.Sum(sp.Sum(KD(G[i], j) * KD(H[i], j) * Y[i], rows) ** 2 * b[j], groups),
        lambda b: sum(sum(y[i] for i in R if g[i] == q == h[i]) ** 2 * b[q] for q in C),
    ),
    "numbers that are not whole": (
        sp.Sum(sp.Sum(KD(Y[i], j) * b[j], groups) * i, rows),
        lambda b: sum(i * b[1] for i in R if y[i] == 1.0),
    ),
    "further conditions": (
        sp.Sum(choice(b[j] ** 2 * Y[i], sp.And(sp.Eq(G[i], j), Y[i] > 0, j < i)), groups, rows),
        lambda b: sum(b[g[i]] ** 2 * y[i] for i in R if y[i] > 0 and g[i] < i),
    ),
    "indices alone": (
        sp.Sum(sp.Sum(KD(i, k) * b[i], (i, 0, m - 1)) ** 2, (k, 0, n - 1)),
        lambda b: sum(b**2),
    ),
    "a band": (
        sp.Sum(choice(b[i] * b[j] ** 2, sp.And(j >= i - 1, j <= i + 1)), groups, (i, 0, m - 1)),
        lambda b: sum(b[p] * b[q] ** 2 for p in C for q in C if abs(p - q) <= 1),
    ),
    "a band by distance": (
        sp.Sum(choice(sp.exp(b[j]) * Y[i], sp.And(abs(i - j) < 2, sp.Ne(i, j))), groups, rows),
        lambda b: sum(np.exp(b[q]) * y[i] for i in R for q in C if abs(i - q) == 1),
    ),
    "a strict band": (
        sp.Sum(choice(b[j] ** 2 * i, sp.And(j > i - 3, j < i + 1, j > 0)), groups, rows),
        lambda b: sum(b[q] ** 2 * i for i in R for q in C if q > 0 and i - 3 < q < i + 1),
    ),
    "limits with extremes": (
        sp.Sum(sp.Sum(b[j], (j, sp.Max(0, i - 1), sp.Min(m - 1, i + 1))) ** 2, rows),
        lambda b: sum(sum(b[max(0, i - 1) : i + 2]) ** 2 for i in R),
    ),
    "limits that a condition guards": (
        sp.Sum(choice(b[i] * b[j] ** 2, sp.And(j >= 0, j < m)), (j, i - 1, i + 1), (i, 0, m - 1)),
        lambda b: sum(b[p] * b[q] ** 2 for p in C for q in C if abs(p - q) <= 1),
    ),
    "products of indices": (
        sp.Sum(choice(b[j] * Y[i], sp.And(j >= i * j - 2, j <= i * j)), groups, rows),
        lambda b: sum(b[q] * y[i] for i in R for q in C if i * q - 2 <= q <= i * q),
    ),
    "no key": (
        sp.Sum(KD(G[i], 2 * H[i]) * Y[i] * b[0], rows),
        lambda b: b[0] * sum(y[i] for i in R if g[i] == 2 * h[i]),
    ),
    "a number": (
        sp.Sum((1 + KD(i, j)) * b[i] * b[j], (i, 0, m - 1), groups),
        lambda b: sum(b) ** 2 + sum(b**2),
    ),
}


@pytest.mark.parametrize("backend", ["numpy", pytest.param("c", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_are_those_of_loops(name: str, backend: str) -> None:
    objective, loop = CASES[name]
    given = {one: array for one, array in {"g": g, "h": h, "y": y}.items() if one in str(objective)}
    dims = {"m": GROUPS, "n": SIZE} if objective.has(n) else {"m": GROUPS}
    model = slomodel.compile(objective, variables=[b], data=given, dims=dims, backend=backend)
    value, slope = model.value_and_gradient(B)
    assert value == pytest.approx(loop(B).real, rel=1e-13)
    steps = 1e-30j * np.eye(GROUPS)
    np.testing.assert_allclose(slope, [loop(B + step).imag / 1e-30 for step in steps], rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["an element", "a sum by group", "one sum over both", "a strict band"]
)
def test_no_array_has_all_combinations(name: str) -> None:
    size, count = 30_000, 700
    objective = CASES[name][0]
    data = {"g": np.arange(size) % count, "y": np.ones(size)} if objective.has(G) else {}
    model = slomodel.compile(
        objective, variables=[b], data=data, dims={"m": count, "n": size}, backend="numpy"
    )
    source = model.source("c")
    assert str(size * count) not in source
    workspace = re.search(r"a workspace of (\d+) numbers", source)
    assert int(workspace[1] if workspace else 0) <= 4 * size
    assert np.isfinite(model.value(np.ones(count)))


def test_an_equation_on_variables_is_refused() -> None:
    with pytest.raises(SlomodelError, match="isolated points"):
        slomodel.compile(sp.Sum(KD(b[j], j), groups), variables=[b], dims={"m": 3})


def test_a_piecewise_that_sympy_has_moved_is_reported() -> None:
    """Its index would be a variable otherwise: the Sum below it no longer binds it."""
    objective = sp.Sum((Y[i] - sp.Sum(choice(b[j], sp.Eq(G[i], j)), groups)) ** 2, rows)
    with pytest.raises(SlomodelError, match=r"E406.*out of the Sum that binds the index `j`"):
        slomodel.compile(objective, data={"g": g, "y": y}, dims={"m": GROUPS, "n": SIZE})
