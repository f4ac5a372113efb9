"""Sums over tuples that indices and data decide: values by loops in Python, derivatives, bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import slomodel
from slomodel.errors import SlomodelError

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")

n, m, G, T = 7, 4, 5, 9
RNG = np.random.default_rng(0)
first = np.array([0, 2, 2, 5, 6, 9])
c, d, k = RNG.normal(size=n), RNG.normal(size=T), RNG.integers(0, n, m)
x, y = RNG.normal(size=n), RNG.normal(size=T)
HEAD = (
    "dim n, m, G, T data c[n], first[G+1] in T + 1, d[T], k[m] in n "
    "var x[n], y[T] init 0.1 minimize 0 * sum(x) + 0 * sum(y) + 0 * sum(d) + "
)
DATA = {"c": c, "first": first, "d": d, "k": k}


def model(text: str, backend: str = "numpy", **data: object) -> slomodel.Model:
    return slomodel.compile(HEAD + text, data={**DATA, **data}, dims={"G": G}, backend=backend)


SAME = {
    "sum(x[i]*x[j]*c[j] for i in n, j in range(i))": sum(
        x[i] * x[j] * c[j] for i in range(n) for j in range(i)
    ),
    "sum(exp(x[i]-x[j]) for i in n, j in range(i+1, n) if j != i+2)": sum(
        np.exp(x[i] - x[j]) for i in range(n) for j in range(i + 1, n) if j != i + 2
    ),
    "sum(sum(x[j] for j in range(i))^2 for i in n)": sum(x[:i].sum() ** 2 for i in range(n)),
    "sum(sum(y[t]*t for t in range(first[g], first[g+1]))^2 for g in G)": sum(
        (y * np.arange(T))[first[g] : first[g + 1]].sum() ** 2 for g in range(G)
    ),
    "sum(sum(x[j]*l for j in range(k[l])) for l in m)": sum(x[: k[a]].sum() * a for a in range(m)),
    "sum(sum(c[j]*x[t-j] for j in m if t >= j and t-j < n)^2 for t in range(n+m-1))": np.sum(
        np.convolve(c[:m], x) ** 2
    ),
    "sum(x[i]*x[j] for i in n, j in range(i-1, i+2) if j >= 0 and j < n)": sum(
        x[i] * x[j] for i in range(n) for j in range(i - 1, i + 2) if 0 <= j < n
    ),
    "sum(x[i]*x[j]*x[l] for i in n, j in range(i), l in range(j, i+1))": sum(
        x[i] * x[j] * x[a] for i in range(n) for j in range(i) for a in range(j, i + 1)
    ),
    "sum(x[i]*y[a]*x[j] for a in T, i in n, j in range(i))": y.sum()
    * sum(x[i] * x[j] for i in range(n) for j in range(i)),
    "max(x[i]-x[j] for i in n, j in range(i))": max(
        x[i] - x[j] for i in range(n) for j in range(i)
    ),
    "logsumexp(x[i]-x[j] for i in n, j in range(i))": np.log(
        sum(np.exp(x[i] - x[j]) for i in range(n) for j in range(i))
    ),
    "sum(mean(y[t] for t in range(k[l]+1)) for l in m)": sum(
        np.mean(y[: k[a] + 1]) for a in range(m)
    ),
    "sum(x[j] for j in range(k[0], k[0]))": 0.0,
    "sum(x[i-1]^2 for i in n if i > 0)": np.sum(x[:-1] ** 2),
    "sum(x[i]*x[j] for i in n, j in range(i) if x[i] > x[j] + 0.01)": sum(
        x[i] * x[j] for i in range(n) for j in range(i) if x[i] > x[j] + 0.01
    ),
    "sum(sum(x[j]*c[i] for j in range(i) if k[a] == j) for i in n, a in m)": sum(
        x[k[a]] * c[i] for i in range(n) for a in range(m) if k[a] < i
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("backend", ["numpy", "numexpr", "c"])
@pytest.mark.parametrize("text", SAME)
def test_values_and_derivatives(text: str, backend: str) -> None:
    own = model(text, backend)
    point = own.pack({"x": x, "y": y})
    value, slope = own.value_and_gradient(point)
    assert value == pytest.approx(SAME[text], rel=1e-12, abs=1e-12)
    along, step = RNG.normal(size=own.n), 1e-5
    ends = point + step * along, point - step * along
    difference = (own.value(ends[0]) - own.value(ends[1])) / (2 * step)
    assert slope @ along == pytest.approx(difference, rel=1e-6, abs=1e-7)
    product = (own.gradient(ends[0]) - own.gradient(ends[1])) / (2 * step)
    np.testing.assert_allclose(own.hvp(point, along), product, rtol=1e-5, atol=1e-6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", SAME)
def test_bounds_hold(text: str) -> None:
    own = model(text)
    point = own.pack({"x": x, "y": y})
    found = own.bounds(point, 0.1)
    for _ in range(5):
        step = RNG.normal(size=own.n)
        near = point + 0.1 * RNG.uniform() * step / np.linalg.norm(step)
        if np.isfinite(found.L1):
            assert np.linalg.norm(own.hessian(near), 2) <= found.L1 * (1 + 1e-9)


def test_other_data_give_other_tuples() -> None:
    text = "sum(sum(y[t] for t in range(first[g], first[g+1]))^2 for g in G)"
    own = model(text)
    other = np.array([0, 0, 1, 3, 9, 9])
    point = own.pack({"x": x, "y": y})
    expected = sum(y[other[g] : other[g + 1]].sum() ** 2 for g in range(G))
    assert own.bind(first=other).value(point) == pytest.approx(expected)
    assert own.bind(first=np.zeros(G + 1)).value(point) == 0.0


def test_work_is_proportional_to_the_tuples() -> None:
    size = 100_000
    text = "dim n data c[n] var x[n] "
    text += "minimize sum(c[i] * x[j]^2 for i in n, j in range(i-2, i+1) if j >= 0)"
    own = slomodel.compile(text, data={"c": np.ones(size)})
    assert "10000000000" not in own.source("c")
    slope = own.gradient(np.ones(size))
    assert slope[0] == 6.0
    assert slope[-1] == 2.0


REFUSED = {
    "sum(x[j] for i in n, j in range(x[i]))": "E212",
    "sum(x[j] for i in n, j in range(c[i]))": "E212",
    "sum(x[j] for i in n, j in range(i / 2))": "E212",
    "sum(x[j] for i in n, j in range(i, n, -1))": "E212",
    "sum(x[i] for i in n, i in range(i))": "E202",
    "sum(x[t-1] for t in n if x[t] > 0)": "E210",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(SlomodelError) as caught:
        model(text)
    assert caught.value.diagnostics[0].code == REFUSED[text]


def test_an_index_outside_is_found_with_the_data() -> None:
    with pytest.raises(SlomodelError, match="axis of size 7") as caught:
        model("sum(x[j] for i in n, j in range(i + 2))")
    assert caught.value.diagnostics[0].code == "E313"


def test_without_data_the_model_compiles_and_says_what_it_needs() -> None:
    text = "dim G, T data first[G + 1] in T + 1 var y[T] "
    text += "minimize sum(sum(y[t] for t in range(first[g], first[g+1]))^2 for g in G)"
    own = slomodel.compile(text, dims={"G": 2, "T": 3})
    assert own.missing == ("first",)
    assert own.x0().shape == (3,)
    with pytest.raises(SlomodelError, match="no values for data `first`"):
        own.value(np.ones(3))
    assert own.bind(first=[0, 1, 3]).value(np.ones(3)) == 5.0


A, B, C = np.array([0, 1, 2]), np.array([1, 2, 2]), np.array([1.0, 10.0, 100.0])
W = np.array([1.0, 2.0, 3.0])
R = range(3)
NESTED = {
    "sum(sum(y[i]*a[k] for i in N if g[i]==k) for k in range(1, G))": sum(
        C[i] * W[k] for k in range(1, 3) for i in R if A[i] == k
    ),
    "sum(sum(y[i]*k for i in N if g[i]==k and k>=1) for k in range(1, G))": sum(
        C[i] * k for k in range(1, 3) for i in R if A[i] == k
    ),
    "sum(mean(y[i]*a[k] for i in N if g[i]==k) for k in range(1, G))": sum(
        C[i] * W[k] for k in range(1, 3) for i in R if A[i] == k
    ),
    "sum(sum(y[i] for i in N if g[i]==k and h[i]-k==l) for k in G, l in G)": sum(
        C[i] for k in R for m in R for i in R if A[i] == k and B[i] - k == m
    ),
    "sum(sum(y[i] for i in N if l==max(g[i],k) and h[i]==k) for k in G, l in G)": sum(
        C[i] for k in R for m in R for i in R if m == max(A[i], k) and B[i] == k
    ),
    "sum(sum(y[l] for l in range(j+1) if max(g[l],i)==k) for i in N, j in range(i+1), k in G)": sum(
        C[m] for i in R for j in range(i + 1) for k in R for m in range(j + 1) if max(A[m], i) == k
    ),
    "sum(sum(y[j]*i for j in range(i)) for i in N, m in range(i))": sum(
        C[j] * i for i in R for m in range(i) for j in range(i)
    ),
    "sum(sum(sum(y[l]*y[i] for l in range(j)) for j in range(i)) for i in N)": sum(
        C[m] * C[i] for i in R for j in range(i) for m in range(j)
    ),
    "sum(sum(sum(y[j]*i for j in range(g[i]) if h[j]==k) for i in N if g[i]==k) for k in G)": sum(
        C[j] * i for k in R for i in R if A[i] == k for j in range(A[i]) if B[j] == k
    ),
    "sum(a[k-1]*sum(y[i]*a[k-1] for i in range(k))^2 for k in G if k>0)": sum(
        W[k - 1] * sum(C[i] * W[k - 1] for i in range(k)) ** 2 for k in range(1, 3)
    ),
    "sum(sum(w[j]*y[i-j] for j in q if i >= j)^2 for i in N)": sum(
        sum([2.0, 5.0][j] * C[i - j] for j in range(2) if i >= j) ** 2 for i in R
    ),
    "sum(y[u[i]] for i in N if u[i] >= 0)": C[0] + C[2],
    "sum(a[g[i]+1] for i in N if g[i] < 2)": W[1] + W[2],
    "sum(y[i-1]*a[g[i]+1] for i in N if i > 0 and g[i] < 2)": C[0] * W[2],
    "sum(a[g[i]+1]*y[i-1] for i in N if i > 0 and g[i] < 2)": C[0] * W[2],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", NESTED)
def test_keys_and_lists_within_each_other(text: str) -> None:
    head = "dim N, G, q data g[N] in G, h[N] in G, u[N] whole, w[q] var y[N], a[G] minimize "
    rest = " + 0 * sum(g) + 0 * sum(h) + 0 * sum(u) + 0 * sum(w) + 0 * sum(a) + 0 * sum(y)"
    data = {"g": A, "h": B, "u": np.array([0, -1, 2]), "w": np.array([2.0, 5.0])}
    for backend in ("numpy", "c"):
        own = slomodel.compile(head + text + rest, data=data, dims={"G": 3}, backend=backend)
        point = own.pack({"y": C, "a": W})
        value, slope = own.value_and_gradient(point)
        assert value == pytest.approx(NESTED[text], rel=1e-12)
        along, step = RNG.normal(size=own.n), 1e-6
        difference = (own.value(point + step * along) - own.value(point - step * along)) / 2 / step
        assert slope @ along == pytest.approx(difference, rel=1e-6, abs=1e-4)


def test_lists_that_do_not_fit_are_refused() -> None:
    text = "dim n data c[n] whole var x[n] minimize sum(x[i] for i in n, j in range(c[i]))"
    for counts in ([1e18, 1e300], [1e10, 0], [1e9, 1e9]):
        with pytest.raises(SlomodelError, match="tuples, more than fit"):
            slomodel.compile(text, data={"c": np.array(counts)})


def test_source_of_lists_needs_the_data_and_is_for_their_number() -> None:
    text = "dim n, T data c[n] whole, w[T] var y[T] "
    text += "minimize sum(sum(w[t] * y[t] for t in range(c[i]))^2 for i in n)"
    unbound = slomodel.compile(text, dims={"n": 2, "T": 3})
    for target in ("numpy", "c"):
        with pytest.raises(SlomodelError, match="the size of an index set") as caught:
            unbound.source(target)
        assert caught.value.diagnostics[0].code == "E706"
    data = {"c": np.array([1.0, 3.0]), "w": np.ones(3)}
    space: dict[str, Callable[..., Callable[..., float]]] = {}
    exec(unbound.bind(**data).source("numpy"), space)
    assert space["make_value"](data)(np.ones(3)) == 10.0
    with pytest.raises(ValueError, match="has 3 tuples with these data, and this module is for 4"):
        space["make_value"]({**data, "c": np.array([0.0, 3.0])})
