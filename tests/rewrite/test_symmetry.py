"""Symmetric sums over their distinct terms: the same values, and only where there is symmetry."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy as sp

import slomodel
from slomodel import functions as fn
from slomodel.calculus import Known, gradient, jvp
from slomodel.ir import build
from slomodel.ir.dims import literal, named
from slomodel.ir.expr import Einsum, Expr, Input
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate
from slomodel.rewrite.symmetry.folding import folded
from slomodel.rewrite.symmetry.multisets import Multisets

D, M = named("d"), named("m")
X, U = build.variable("X", (M, D)), build.variable("U", (M, D))
RNG = np.random.default_rng(5)

INDICES = """dim d, m = 3
data T[d, d, d, d] symmetric
var X[m, d] init uniform(0, 1)
let S[a in d, b in d, c in d, e in d] = sum(X[i, a]*X[i, b]*X[i, c]*X[i, e] for i in m)
minimize sumsq(T - S)
"""
EINSUM = """dim d, m = 3
data T[d, d, d, d]
var X[m, d] init uniform(0, 1)
minimize sum((einsum("ia,ib,ic,ie->abce", X, X, X, X) - T).^2)
"""
VECTOR = """dim d
data T[d, d, d, d] symmetric
var x[d] init uniform(0, 1)
minimize sum(log(1 + (T[a,b,c,e] - x[a]*x[b]*x[c]*x[e])^2) for a in d, b in d, c in d, e in d)
"""


def symmetrised(array: np.ndarray) -> np.ndarray:
    orders = list(itertools.permutations(range(array.ndim)))
    return sum(np.transpose(array, order) for order in orders) / len(orders)


def by_sympy(d: int, m: int) -> sp.Expr:
    T, x = sp.IndexedBase("T", shape=(d, d, d, d)), sp.IndexedBase("x", shape=(m, d))
    a, b, c, e, i = sp.symbols("a b c e i", integer=True)
    inner = sp.Sum(x[i, a] * x[i, b] * x[i, c] * x[i, e], (i, 0, m - 1))
    return sp.Sum((T[a, b, c, e] - inner) ** 2, *((k, 0, d - 1) for k in (a, b, c, e)))


def models(source: object, data: dict, **options: object) -> list[slomodel.Model]:
    return [slomodel.compile(source, data=data, rewrites=on, **options) for on in (True, False)]


def same(pair: list[slomodel.Model], seed: int = 0) -> None:
    """Value, gradient and Hessian products of a model with and without passes agree."""
    rng = np.random.default_rng(seed)
    on, off = pair
    x, v = rng.uniform(0.2, 1.0, on.n), rng.standard_normal(on.n)
    np.testing.assert_allclose(on.value(x), off.value(x), rtol=1e-12)
    for one, other in ((on.gradient(x), off.gradient(x)), (on.hvp(x, v), off.hvp(x, v))):
        np.testing.assert_allclose(one, other, atol=1e-12 * np.abs(other).max())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numexpr", "numpy", "c"])
@pytest.mark.parametrize("source", [INDICES, EINSUM, VECTOR])
def test_it_fires_however_the_sum_is_written(source: str, backend: str) -> None:
    T = symmetrised(RNG.standard_normal((9, 9, 9, 9)))
    pair = models(source, {"T": T}, backend=backend)
    assert "rewritten  symmetry: " in pair[0].explain()
    assert "symmetry" not in pair[1].explain()
    same(pair)


def test_it_fires_for_sympy_and_data_without_symmetry() -> None:
    T = RNG.standard_normal((9, 9, 9, 9))
    pair = models(by_sympy(9, 2), {"T": T})
    assert "rewritten  symmetry: " in pair[0].explain()
    same(pair)
    other = {"T": RNG.standard_normal((9, 9, 9, 9))}
    same([one.bind(**other) for one in pair])


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("the factors differ", 'sumsq(T - einsum("ia,ib,ic,ie->abce", X, U, X, U))'),
        ("the weights are not symmetric", "sum(w .* (T - S).^2)"),
        ("the data of a robust loss are not symmetric", "sum(log(1 + (w - S).^2))"),
        ("one axis is another", "sum((T - S).^2 .* w[:, :, :, 0][:, :, :, None])"),
    ],
)
def test_it_does_not_fire(why: str, text: str) -> None:
    source = f"""dim d, m = 3
data T[d, d, d, d] symmetric, w[d, d, d, d]
var X[m, d], U[m, d]
let S = einsum("ia,ib,ic,ie->abce", X, X, X, X)
minimize {text} + sumsq(U) + sumsq(X) + sum(w) + sum(T)
"""
    data = {
        "T": symmetrised(RNG.standard_normal((8, 8, 8, 8))),
        "w": RNG.uniform(size=(8, 8, 8, 8)),
    }
    pair = models(source, data)
    assert "symmetry" not in pair[0].explain(), why
    same(pair)


def test_some_axes_are_exchangeable() -> None:
    source = """dim d, m = 3
data T[d, d, d, d] symmetric
var X[m, d], U[m, d]
minimize sumsq(T - einsum("ia,ib,ic,ie->abce", X, X, X, U))
"""
    pair = models(source, {"T": symmetrised(RNG.standard_normal((9, 9, 9, 9)))})
    assert "symmetry" in pair[0].explain()
    same(pair)


def test_small_sums_stay_as_they_are() -> None:
    T = symmetrised(RNG.standard_normal((3, 3, 3, 3)))
    assert "symmetry" not in slomodel.compile(INDICES, data={"T": T}).explain()


def power(x: Expr, degree: int) -> Expr:
    labels = [(0, k + 1) for k in range(degree)]
    return build.einsum([x] * degree, labels, tuple(range(1, degree + 1)), (M, *[D] * degree))


def objectives(degree: int) -> dict[str, tuple[Expr, tuple[Input, ...]]]:
    """Sums over symmetric arrays of an order, and the data in them."""
    shape = (D,) * degree
    T, W = build.data("T", shape), build.data("W", shape)
    axes = tuple(range(degree))
    residual = fn.sub(T, power(X, degree))
    two = fn.add(power(X, degree), fn.mul(-0.5, power(U, degree)))
    return {
        "squares": (build.inner(residual, residual), (T,)),
        "weights": (build.sum_over(fn.mul(W, fn.square(residual)), axes), (T, W)),
        "robust": (build.sum_over(fn.softplus(residual), axes), (T,)),
        "two kinds": (build.inner(fn.sub(T, two), fn.sub(two, W)), (T, W)),
        "product": (fn.mul(3.0, build.inner(T, power(X, degree))), (T,)),
    }


@pytest.mark.parametrize("degree", [3, 4, 5])
@pytest.mark.parametrize("name", objectives(3))
def test_folded_graphs_mean_the_same(
    degree: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slomodel.rewrite.symmetry.folding._LEAST_SAVED", 0)
    monkeypatch.setattr("slomodel.rewrite.symmetry.folding._LEAST_GAIN", 1)
    objective, data = objectives(degree)[name]
    values: dict[Input, np.ndarray] = {
        node: symmetrised(RNG.uniform(0.5, 1.0, (3,) * degree)) for node in data
    }
    values |= {node: RNG.standard_normal((2, 3)) for node in (X, U)}
    known = Known(symmetric=frozenset(data))
    roots = (objective, *gradient(objective, (X, U), known))
    sizes = {"d": 3, "m": 2}
    made = folded(roots, sizes, known.symmetric)
    assert made.sums
    along = {node: build.direction(f"v{node.name}", node.shape) for node in (X, U)}
    values |= {one: RNG.standard_normal((2, 3)) for one in along.values()}
    before = evaluate((*roots, *jvp(roots[1:], along)), values, sizes)
    after = evaluate((*made.roots, *jvp(made.roots[1:], along)), values, made.sizes)
    for one, other in zip(after, before, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-11)
    full = [n for n in postorder(*made.roots) if isinstance(n, Einsum) and n.rank == degree]
    assert not full


@pytest.mark.parametrize(("d", "degree"), [(1, 4), (2, 3), (3, 5), (5, 2), (8, 4)])
def test_tuples_and_their_numbers(d: int, degree: int) -> None:
    every = list(itertools.combinations_with_replacement(range(d), degree))
    count = [len(set(itertools.permutations(one))) for one in every]
    x = RNG.standard_normal((2, d))
    for dim in (literal(d), named("d")):
        tuples = Multisets({"d": d})
        own = build.variable("x", (literal(2), dim))
        roots = (tuples.multiplicity(dim, degree), tuples.monomial(own, 1, degree))
        found = evaluate(roots, {own: x}, tuples.sizes)
        np.testing.assert_array_equal(found[0], count)
        products = np.array([x[:, list(one)].prod(axis=1) for one in every]).T
        np.testing.assert_allclose(found[1], products, rtol=1e-14)


def test_near_a_planted_tensor_the_value_keeps_its_digits() -> None:
    """Against extended precision, down to the rounding of the data themselves."""
    rng = np.random.default_rng(3)
    planted, direction = rng.uniform(0.2, 1.0, (3, 8)), rng.standard_normal((3, 8))
    letters = "ia,ib,ic,ie->abce"
    T = np.einsum(letters, *[planted] * 4)
    model = slomodel.compile(INDICES, data={"T": symmetrised(T)})
    exact = np.asarray(symmetrised(T), np.longdouble)
    assert "symmetry" in model.explain()
    for t in 10.0 ** -np.arange(0, 15):
        x = planted + t * direction
        residual = exact - np.einsum(letters, *[np.asarray(x, np.longdouble)] * 4)
        truth = float((residual**2).sum())
        assert truth / 2 < model.value(x.ravel()) < 2 * truth or truth < 1e-26
        slope = -8 * np.einsum("abce,ib,ic,ie->ia", residual, x, x, x).astype(float)
        gap = np.abs(model.gradient(x.ravel()) - slope.ravel()).max()
        assert gap < 100 * 2.3e-16 * np.abs(T).max() * 8**3 * 8
