"""Short axes written out: the same values, and loops over long axes alone."""

from __future__ import annotations

import numpy as np
import pytest
from agreeing import asked
from codegen.test_lower import assert_simple
from random_graphs import KINDS, throw

import slomodel
from slomodel.codegen.loops import planning, short_axes
from slomodel.codegen.lower import lower
from slomodel.ir.expr import Affine, Gather, Scatter
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate_all


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_values_whatever_is_written_out(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_axes, "_LEAST", 1)
    rng = np.random.default_rng(len(kind))
    for _ in range(4):
        question = asked(throw(rng, kind, 6, 4), rng)
        every = tuple(root for roots in question.roots.values() for root in roots)
        lowered = lower(every, question.sizes, planning.spells)
        written = short_axes.with_short_axes(lowered, question.sizes)
        with np.errstate(all="ignore"):
            known = evaluate_all(lowered, question.values, question.sizes)
            found = evaluate_all(written, question.values, question.sizes)
        finite = [a[np.isfinite(a)].astype(float) for a in map(np.asarray, known.values())]
        scale = max(float(np.abs(one).max(initial=0.0)) for one in finite)
        for node in postorder(*written):
            assert_simple(node, "c")
        for old, new in zip(lowered, written, strict=True):
            same = {"rtol": 1e-10, "atol": 1e-14 * min(scale, 1e300)}
            np.testing.assert_allclose(found[new], known[old], **same)


PAIRS = """dim N, n, r = 3
data a[N] in n, b[N] in n, d[N]
var X[n, r]
minimize sum((sumsq(X[a[k], :] - X[b[k], :]) - d[k])^2 for k in N)"""
"""Squared distances of listed pairs."""


@pytest.mark.parametrize("order", ["sorted", "any", "one"])
def test_rows_of_pairs_whatever_their_order(order: str) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 40, size=(2, 1300))
    a = {"sorted": np.sort(a), "any": a, "one": np.full_like(a, 39)}[order]
    d, X = rng.normal(size=a.size), rng.normal(size=(40, 3))
    model = slomodel.compile(PAIRS, data={"a": a, "b": b, "d": d}, dims={"n": 40}, backend="c")
    e = X[a] - X[b]
    residual = (e**2).sum(axis=1) - d
    wanted = np.zeros_like(X)
    np.add.at(wanted, a, 4 * residual[:, None] * e)
    np.add.at(wanted, b, -4 * residual[:, None] * e)
    value, gradient = model.value_and_gradient(X.ravel())
    assert value == pytest.approx(residual @ residual, rel=1e-13)
    np.testing.assert_allclose(gradient.reshape(X.shape), wanted, rtol=1e-13, atol=1e-9)


def test_rows_of_pairs_are_numbers_of_one_loop() -> None:
    rng = np.random.default_rng(5)
    data = {"a": rng.integers(0, 40, 900), "b": rng.integers(0, 40, 900), "d": rng.normal(size=900)}
    model = slomodel.compile(PAIRS, data=data, dims={"n": 40}, backend="c")
    compiled = model._compiled
    program, _ = planning.planned(
        compiled.derivatives.entry("value_and_gradient"),
        compiled._layout,
        compiled.numbers,
        in_order=True,
    )
    every = postorder(*program.roots)
    moved = [one for one in every if isinstance(one, Gather | Scatter)]
    listed = [one for one in moved if not all(isinstance(k, Affine) for k in one.index)]
    assert len(listed) == 12
    assert all(one.rank == 1 for one in listed)


_N = 37
_I, _J = np.ogrid[:_N, :_N]
_FIRST = np.minimum(2 * np.arange(_N), _N - 1)
INNER = {
    "range(i)": _J < _I,
    "range(i, n)": _J >= _I,
    "range(first[i], n)": _FIRST[:, None] <= _J,
}
"""Ranges of j for each i, and the pairs that are in them."""


@pytest.mark.parametrize("inner", INNER)
def test_pairs_of_an_inner_range(inner: str) -> None:
    index = "data first[n] in n" if "first" in inner else ""
    text = f"""dim n, r = 3
    data D[n, n]
    {index}
    var X[n, r]
    let e[i in n, j in n] = sqrt(sumsq(X[i, :] - X[j, :]) + 1) - D[i, j]
    minimize sum(e[i, j]^2 * (1 + j) for i in n, j in {inner})"""
    rng = np.random.default_rng(3)
    data = {"D": rng.normal(size=(_N, _N)), **({"first": _FIRST} if index else {})}
    X = rng.normal(size=(_N, 3))
    apart = X[:, None] - X[None]
    length = np.sqrt((apart**2).sum(axis=2) + 1)
    weight = INNER[inner] * (1.0 + _J)
    off = length - data["D"]
    slope = (2 * weight * off / length)[:, :, None] * apart
    model = slomodel.compile(text, data=data, backend="c")
    value, gradient = model.value_and_gradient(X.ravel())
    assert value == pytest.approx((weight * off**2).sum(), rel=1e-13)
    wanted = slope.sum(axis=1) - slope.sum(axis=0)
    np.testing.assert_allclose(gradient.reshape(X.shape), wanted, rtol=1e-12, atol=1e-9)
    if inner == "range(i)":
        assert "run += 1)" in model.source("c").split("void prepare_", 1)[1]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("condition", "is_cut"),
    [
        ("i < j", True),
        ("i >= j", True),
        ("j > i + 28", True),
        ("i != j", False),
        ("i < j + 26", False),
    ],
)
def test_rows_of_a_mask_run_where_there_is_something_to_add(condition: str, is_cut: bool) -> None:
    text = f"""dim n = 31
    var X[n, 3]
    let d[i in n, j in n] = sumsq(X[i, :] - X[j, :]) + 1
    minimize sum(d[i, j]^-3 - 2 * d[i, j]^-1 for i in n, j in n if {condition})"""
    model, right = (slomodel.compile(text, backend=name) for name in ("c", "numpy"))
    x, v = np.random.default_rng(4).normal(size=(2, model.n))
    for own, other in zip(model.value_and_gradient(x), right.value_and_gradient(x), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-12 * np.abs(other).max())
    np.testing.assert_allclose(model.hvp(x, v), right.hvp(x, v), rtol=1e-10, atol=1e-10)
    assert ("const long low = " in model.source("c")) == is_cut


ROWS = {
    "logarithms of sums": """let s[i in n] = sum(exp(a * q[i] * q[j] - q[j]) for j in n if j < i)
    minimize sum(log(1 + s))""",
    "rows read by columns": """let s[i in n, j in n] = where(j < i, sin(a * q[i] - q[j]), 0)
    minimize sum(s[i, j] * s[j, i]^2 + s[i, j]^3 + cos(s[i, j]) for i in n, j in n)""",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [45, 600])
@pytest.mark.parametrize("name", ROWS)
def test_arrays_are_stored_where_other_loops_read_them(name: str, size: int) -> None:
    text = f"dim n = {size}\nvar q[n], a\n{ROWS[name]}"
    model, right = (slomodel.compile(text, backend=one) for one in ("c", "numpy"))
    x, v = np.random.default_rng(4).normal(size=(2, model.n))
    for k in range(2):  # in memory that another call has used
        own, other = model.value_and_gradient(x + k), right.value_and_gradient(x + k)
        assert own[0] == pytest.approx(other[0], rel=1e-12)
        np.testing.assert_allclose(own[1], other[1], rtol=1e-9, atol=1e-9 * np.abs(other[1]).max())
        products = model.hvp(x + k, v), right.hvp(x + k, v)
        largest = np.abs(products[1]).max()
        np.testing.assert_allclose(*products, rtol=1e-9, atol=1e-9 * largest)
    assert "const long low = " in model.source("c")


SAMPLES = """dim N = 60, K = 2, d = 3
data y[N, d], S[N, d, d]
var L[K, d, d]
let V[k in K] = L[k, :, :] @ L[k, :, :]' + 0.1 * eye(d)
fn fit(A[d, d], b[d]) = logdet(A) + dot(b, solve(A, b))
minimize sum(fit(V[k, :, :] + S[i, :, :], y[i, :]) for i in N, k in K)"""
"""The gradient adds outer products of each sample, which lie with the samples last."""


def test_products_are_stored_with_their_batch_last() -> None:
    rng = np.random.default_rng(3)
    A, y = rng.normal(size=(60, 3, 3)), rng.normal(size=(60, 3))
    data = {"S": A @ A.transpose(0, 2, 1) / 6 + 0.1 * np.eye(3), "y": y}
    model, right = (slomodel.compile(SAMPLES, data=data, backend=one) for one in ("c", "numpy"))
    for _ in range(2):  # in memory that another call has used
        x = rng.normal(size=model.n)
        np.testing.assert_allclose(model.gradient(x), right.gradient(x), rtol=1e-11, atol=1e-9)
