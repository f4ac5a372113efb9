"""Index data: what it means, by hand-written NumPy; what is refused, and at which place."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import slomodel
from slomodel.errors import SlomodelError, SourceText
from slomodel.front.data.random_data import random_data
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.parse import parse

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")

N, G = 40, 5
RNG = np.random.default_rng(3)
DATA = {
    "g": RNG.integers(0, G, N),
    "h": RNG.integers(0, G, N),
    "q": RNG.permutation(N),
    "t": RNG.integers(0, G, (N, 3)),
    "x": RNG.normal(size=N),
}
HEAD = "dim N, G data g[N] in G, h[N] in G, q[N] in N, t[N, 3] in G, x[N] "
A, B = RNG.normal(size=G), RNG.normal(size=(G, G))


def value(text: str, backend: str = "numpy", **data: object) -> float:
    """The value of a model of a [G] and B [G, G], at the points above."""
    given = {**DATA, **data}
    model = slomodel.compile(
        HEAD + "var a[G], B[G, G] minimize " + text + " + 0 * sum(a) + 0 * sum(B)",
        data=given,
        dims={"N": N, "G": G},
        backend=backend,
    )
    return model.value(model.pack({"a": A, "B": B}))


g, h, q, t, x = (DATA[name] for name in "ghqtx")
SAME = {
    "sum(exp(a[g]) .* x)": np.sum(np.exp(A[g]) * x),
    "sum(a[g[i]] * x[i] for i in N)": A[g] @ x,
    "sum(exp(B[g, :]))": np.exp(B[g]).sum(),
    "sum(exp(B[:, g]))": np.exp(B[:, g]).sum(),
    "sum(sin(B[g[i], h[i]]) for i in N)": np.sin(B[g, h]).sum(),
    "sum(sin(B[g[i], k]) * x[i] for i in N, k in G)": x @ np.sin(B[g]).sum(axis=1),
    "sum(a[g[q[i]]]^2 * x[i] for i in N)": (A[g[q]] ** 2) @ x,
    "sum(x[q[i]] * a[g[i]] for i in N)": x[q] @ A[g],
    "sumsq(a[t])": np.sum(A[t] ** 2),
    "sum(a[t[i, j]] * j * x[i] for i in N, j in 3)": np.sum(A[t] * np.arange(3) * x[:, None]),
    "sum(a[max(g[i] - 1, 0)] for i in N)": A[np.maximum(g - 1, 0)].sum(),
    "sum(where(g[i] == 2, a[g[i]], 0) for i in N)": np.sum(np.where(g == 2, A[g], 0)),
    "sum(sum(x[i] for i in N if g[i] == k) * a[k] for k in G)": np.bincount(g, x, G) @ A,
    "sum(sum(x[i] * a[k]^2 for i in N if k == g[i] and x[i] > 0)^2 for k in G)": np.sum(
        (np.bincount(g, np.where(x > 0, x, 0), G) * A**2) ** 2
    ),
    "sum(sum(x[i] for i in N if g[i] == k and h[i] == l) * B[k, l] for k in G, l in G)": np.sum(
        x * B[g, h]
    ),
    "sum(sum(x[i] for i in N if g[i] == k) * a[k] for k in range(1, 3))": (
        np.bincount(g, x, G)[1:3] @ A[1:3]
    ),
    "sum(sum(x[i] for i in N if g[i] - 1 == k) * a[k] for k in range(1, 3))": (
        np.bincount(g, x, G)[2:4] @ A[1:3]
    ),
    "sum(mean(x[i] + a[k] for i in N if g[i] == k)^2 for k in G)": np.sum(
        (np.bincount(g, x, G) / np.bincount(g, minlength=G) + A) ** 2
    ),
}


@pytest.mark.parametrize("text", SAME)
def test_values_are_those_of_numpy(text: str) -> None:
    assert value(text) == pytest.approx(SAME[text], rel=1e-12, abs=1e-12)


def test_a_sum_by_group_makes_no_array_of_terms_times_groups() -> None:
    text = "dim N, G data g[N] in G, x[N] var a[G], s let b[k in G] = sum((s * x[i] - a[k])^2 "
    text += "for i in N if g[i] == k) minimize sumsq(b)"
    size = 300_000
    data = {"g": np.arange(size) % 5000, "x": np.ones(size)}
    model = slomodel.compile(text, data=data, dims={"G": 5000})
    for name in ("numpy", "c"):
        assert "[N, G]" not in model.source(name)
        assert f"{size * 5000}" not in model.source(name)
    assert np.isfinite(model.value_and_gradient(np.ones(model.n))[0])


def test_one_based_positions_are_shifted_and_bound_again() -> None:
    text = "dim N, G data g[N] in G one_based, x[N] var a[G] minimize sum(a[g] .* x)"
    model = slomodel.compile(text, data={"g": g + 1, "x": x}, dims={"G": G})
    assert model.value(A) == pytest.approx(A[g] @ x)
    assert model.bind(x=2 * x).value(A) == pytest.approx(2 * A[g] @ x)
    assert model.bind(g=h + 1).value(A) == pytest.approx(A[h] @ x)


def test_a_permutation_duplicates_an_empty_group_and_no_terms() -> None:
    text = "dim N, G data g[N] in G, x[N] var a[G] minimize sumsq(a[g] - x)"
    for places in ([2, 0, 1], [1, 1, 1], [0, 0, 2], []):
        given = np.array(places, dtype=float)
        model = slomodel.compile(text, data={"g": given, "x": np.ones(len(given))}, dims={"G": 3})
        point = np.array([1.0, 2.0, 3.0])
        expected = np.zeros(3)
        np.add.at(expected, given.astype(int), 2 * (point[given.astype(int)] - 1))
        np.testing.assert_allclose(model.gradient(point), expected)


def test_no_groups_and_no_terms() -> None:
    text = "dim N, G data g[N] in G var a[G], s minimize sumsq(a[g]) + s^2"
    model = slomodel.compile(text, data={"g": np.zeros(0)}, dims={"G": 0})
    assert model.value(np.array([3.0])) == 9.0


REFUSED = {
    "an index of -1": (g - 1, "E312", "positions of `G` are 0 to 4"),
    "an index of G": (np.where(g == 0, 0, G), "E312", "dims={'G': 6}"),
    "from 1": (np.where(g == 0, 5, g), "E312", "one_based"),
    "not whole": (g + 0.5, "E312", "whole numbers"),
    "not a number": (np.where(g == 0, np.nan, g), "E308", "not finite"),
    "infinite": (np.where(g == 0, np.inf, g), "E308", "not finite"),
    "huge": (np.where(g == 0, 1e300, g), "E312", "give positions inside"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_positions_outside_are_refused_with_the_first(name: str) -> None:
    given, code, words = REFUSED[name]
    with pytest.raises(SlomodelError) as caught:
        value("sumsq(a[g])", g=given)
    assert caught.value.diagnostics[0].code == code
    assert words in str(caught.value)


def test_computed_indices_are_tested_with_the_data() -> None:
    with pytest.raises(SlomodelError, match=r"takes 5 in an axis of size 5") as caught:
        value("sum(a[g[i] + 1] for i in N)", g=np.full(N, 4))
    assert caught.value.diagnostics[0].code == "E313"
    assert value("sum(a[g[i] + 1] for i in N)", g=np.full(N, 3)) == pytest.approx(N * A[4])


def test_undeclared_index_data_are_reported_with_their_declaration() -> None:
    with pytest.raises(SlomodelError, match=r"declare `data x\[N\] in G`") as caught:
        value("sum(a[x[i]] for i in N)")
    assert caught.value.diagnostics[0].code == "E209"


def test_positions_beyond_the_digits_of_float32() -> None:
    size = 2**24 + 3
    text = "dim N, G data g[N] in G, x[N] var a[G] minimize sum(a[g] .* x)"
    data = {"g": np.array([size - 1, size - 2]), "x": np.array([1.0, 2.0])}
    for backend in ("numpy", "c"):
        model = slomodel.compile(
            text, data=data, dims={"G": size}, dtype="float32", backend=backend
        )
        slope = model.gradient(np.zeros(size))
        assert slope[size - 1] == 1.0
        assert slope[size - 2] == 2.0


def test_sympy_indexed_by_data() -> None:
    n, m = sp.symbols("n m", integer=True)
    i, k = sp.symbols("i k", integer=True)
    a, w, y = sp.IndexedBase("a", shape=(m,)), sp.IndexedBase("w"), sp.IndexedBase("y")
    objective = sp.Sum((y[i] - a[w[i]]) ** 2, (i, 0, n - 1)) + sp.Sum(a[k] ** 2, (k, 0, m - 1))
    model = slomodel.compile(objective, data={"w": g, "y": x}, dims={"m": G, "n": N})
    assert model.value(A) == pytest.approx(np.sum((x - A[g]) ** 2) + A @ A)
    with pytest.raises(SlomodelError, match="axis of size 5"):
        slomodel.compile(objective, data={"w": g + 1, "y": x}, dims={"m": G, "n": N})
    unknown = sp.Sum((y[i] - sp.IndexedBase("b")[w[i]]) ** 2, (i, 0, n - 1))
    with pytest.raises(SlomodelError, match="state its shape"):
        slomodel.compile(unknown, data={"w": g, "y": x}, dims={"n": N})


def test_data_at_random_are_positions() -> None:
    text = "dim N, G data g[N] in G one_based, c[N] whole var a[G] minimize sumsq(a[g] .* c)"
    problem = elaborate(parse(SourceText(text)), SourceText(text))
    drawn = random_data(problem, {}, {"N": 50, "G": 3}, np.random.default_rng(0))
    assert set(np.unique(drawn["g"])) == {1, 2, 3}
    assert np.array_equal(drawn["c"], np.floor(drawn["c"]))


def test_bounds_hold_and_know_the_sizes_of_groups() -> None:
    text = "dim N, G data g[N] in G var a[G] minimize sumsq(a[g]) / 2"
    model = slomodel.compile(text, data={"g": g}, dims={"G": G})
    largest = np.bincount(g).max()
    assert pytest.approx(largest, rel=1e-9) == model.bounds(A, 1.0).L1
    assert largest <= model.bounds(A, 1.0).L1


def test_a_mixed_logit_is_bounded_near_the_truth() -> None:
    text = "dim N, G data g[N] in G, x[N] var a[G], b "
    text += "minimize sum(softplus(a[g] + b * x)) + sumsq(a) / 2"
    model = slomodel.compile(text, data={"g": g, "x": x}, dims={"G": G})
    centre = 0.1 * RNG.normal(size=model.n)
    found = model.bounds(centre, 0.1)
    seen = np.linalg.eigvalsh(model.hessian(centre))[-1]
    assert seen <= found.L1 <= 1.2 * seen


def test_data_at_random_keep_computed_indices_inside() -> None:
    text = "dim N, G data g[N] in G, k[N] whole var a[G], b[N] "
    text += "minimize sum(a[g[i] + 1] for i in N) + sum(b[k[i]] for i in N)"
    problem = elaborate(parse(SourceText(text)), SourceText(text))
    drawn = random_data(problem, {}, {"N": 20, "G": 4}, np.random.default_rng(0))
    slomodel.compile(text, data=drawn, dims={"G": 4})


def test_the_size_that_positions_require_is_offered() -> None:
    text = "dim N, G data g[N] in G one_based var a[G] minimize sumsq(a[g])"
    model = slomodel.compile(text, data={"g": [1, 7]})
    with pytest.raises(SlomodelError, match=r"dims={'G': 7}") as caught:
        model.x0()
    assert caught.value.diagnostics[0].code == "E706"


def test_positions_along_a_dim_less_a_number() -> None:
    text = "dim N data g[N] in N - 3 var a[N] minimize sumsq(a[g])"
    assert slomodel.compile(text, data={"g": np.zeros(4)}).value(np.full(4, 2.0)) == 16.0
    with pytest.raises(SlomodelError) as caught:
        slomodel.compile(text, data={"g": np.zeros(2)})
    assert caught.value.diagnostics[0].code == "E315"


def test_modules_take_positions_from_0_and_say_so() -> None:
    text = "dim N, G data g[N] in G one_based var a[G] minimize sumsq(a[g])"
    source = slomodel.compile(text, data={"g": [1, 2]}, dims={"G": 3}).source("numpy")
    assert "g [N], positions from 0 here" in source
    source = slomodel.compile(text, data={"g": [1, 2]}, dims={"G": 3}).source("c")
    assert "g [N], positions from 0 here" in source
    assert "I[1] [N], whole numbers (long), from other data as in the module for numpy" in source


def test_attributes_after_a_default_are_refused_with_the_order() -> None:
    text = "dim N, G data g[N] in G = 1 one_based, x[N] var a[G] minimize sum(a[g] .* x)"
    with pytest.raises(SlomodelError, match="attributes stand before the default"):
        slomodel.compile(text)
    first = text.replace("= 1 one_based", "one_based = 1")
    model = slomodel.compile(first, data={"x": [1.0, 2.0]}, dims={"G": 2})
    assert model.gradient(np.ones(2)).tolist() == [3.0, 0.0]


def test_no_groups_for_the_terms_that_there_are() -> None:
    text = "dim N, G data g[N] whole, x[N] var a[G], s minimize s^2 + "
    for reduced in (
        "sum(x[i] * s for i in N if g[i] == k + 1)",
        "max(x[i] for i in N if g[i] == k)",
    ):
        own = f"{text}sum({reduced} * a[k] for k in G)"
        model = slomodel.compile(own, data={"g": [1, 1], "x": [1, 1]}, dims={"G": 0})
        assert model.value(np.array([3.0])) == 9.0
