"""The reference interpreter against plain loops, its errors, and the first NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_loops import Reals, einsum_by_loops, position

from slomodel import functions as fn
from slomodel.errors import ShapeError
from slomodel.ir import build
from slomodel.ir.dims import Shape, literal, named
from slomodel.ir.expr import Affine, Einsum, Expr, Gather, Iota, Map, Reshape, Scatter
from slomodel.reference import evaluate, evaluate_all, first_nonfinite

n, m = named("n"), named("m")


def array_of(shape: tuple[int, ...], seed: int = 0) -> Reals:
    return np.asarray(np.random.default_rng(seed).uniform(-1, 1, shape))


def literals(*sizes: int) -> Shape:
    return tuple(map(literal, sizes))


label_lists = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@given(
    st.lists(label_lists, max_size=3),
    label_lists,
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
)
def test_einsum(inputs: list[tuple[int, ...]], output: tuple[int, ...], sizes: list[int]) -> None:
    shapes = [tuple(sizes[label] for label in own) for own in inputs]
    arrays = [array_of(shape, seed) for seed, shape in enumerate(shapes)]
    operands = tuple(build.data(f"a{k}", literals(*shape)) for k, shape in enumerate(shapes))
    node = Einsum(operands, tuple(inputs), output, literals(*sizes))
    (found,) = evaluate([node], dict(zip(operands, arrays, strict=True)))
    expected = einsum_by_loops(arrays, inputs, output, sizes)
    assert found.shape == expected.shape
    # At most 3**4 products of numbers below 1 in a sum.
    np.testing.assert_allclose(found, expected, atol=3**4 * 4 * np.finfo(float).eps)


def test_einsum_of_truth_values_is_a_view() -> None:
    x = build.variable("x", (n,))
    seen = build.broadcast(fn.gt(x, 0.0), (1,), (m, n))
    (found,) = evaluate([seen], {x: np.array([1.0, -1.0, 2.0])}, {"m": 2})
    assert found.dtype == bool
    assert np.array_equal(found, [[True, False, True]] * 2)


def test_map_lays_operands_along_their_axes() -> None:
    a, b = build.variable("a", (n,)), build.variable("b", (m, n))
    node = Map(fn.sub, (a, b), ((1,), (0, 1)), (m, n))
    outer = Map(fn.pow, (a, a), ((0,), (1,)), (n, n))
    x, y = np.array([1.0, 2.0, 3.0]), array_of((2, 3))
    found, powers = evaluate([node, outer], {a: x, b: y})
    for i in range(2):
        for j in range(3):
            assert found[i, j] == x[j] - y[i, j]
    assert powers.tolist() == [[float(p) ** float(q) for q in x] for p in x]


INDICES: dict[str, tuple[tuple[int, ...], tuple[int, ...], list[tuple[int, tuple[int, ...]]]]] = {
    "slice": ((5,), (3,), [(1, (1,))]),
    "reversed": ((4,), (4,), [(3, (-1,))]),
    "every other": ((5,), (3,), [(0, (2,))]),
    "element": ((4, 3), (3,), [(2, (0,)), (0, (1,))]),
    "scalar": ((4, 3), (), [(2, ()), (1, ())]),
    "diagonal": ((3, 3), (3,), [(0, (1,)), (0, (1,))]),
    "off the diagonal": ((3, 4), (3,), [(0, (1,)), (1, (1,))]),
    "swapped": ((2, 3), (3, 2), [(0, (0, 1)), (0, (1, 0))]),
    "windows": ((6,), (4, 3), [(0, (1, 1))]),
    "two-way windows": ((4, 5), (2, 3, 3, 3), [(0, (1, 0, 1, 0)), (0, (0, 1, 0, 1))]),
    "nothing": ((4,), (0,), [(4, (1,))]),
}


@pytest.mark.parametrize("case", INDICES)
def test_gather_and_scatter(case: str) -> None:
    indexed, iterated, index = INDICES[case]
    affine = tuple(Affine(literal(offset), own) for offset, own in index)
    a, b = build.variable("a", literals(*indexed)), build.variable("b", literals(*iterated))
    values = {a: array_of(indexed), b: array_of(iterated, 1)}
    roots = [Gather(a, affine, b.shape), Scatter(b, affine, a.shape)]
    gathered, scattered = evaluate(roots, values)
    expected = np.zeros(indexed)
    assert gathered.shape == iterated
    for at in np.ndindex(*iterated):
        assert gathered[at] == values[a][position(index, at)]
        expected[position(index, at)] += values[b][at]
    np.testing.assert_allclose(scattered, expected, rtol=8 * np.finfo(float).eps)


def test_offsets_follow_the_sizes() -> None:
    x = build.variable("x", (n,))
    last = build.gather(x, [Affine(n - 1, ())], ())
    for size in (1, 4):
        assert evaluate([last], {x: np.arange(float(size))})[0] == size - 1


@pytest.mark.parametrize("offset", [-1, 2])
def test_an_index_never_wraps_around(offset: int) -> None:
    x = build.variable("x", (n,))
    window = build.gather(x, [Affine(literal(offset), (1,))], (n - 1,))
    with pytest.raises(ShapeError, match=r"index -?\d\.\.\d leaves an axis of size 3"):
        evaluate([window], {x: np.zeros(3)})


def test_reshape_is_in_c_order() -> None:
    x = build.variable("x", (n, m))
    value = array_of((2, 3))
    (found,) = evaluate([Reshape(x, (m, n))], {x: value})
    assert found.ravel().tolist() == [value[i, j] for i in range(2) for j in range(3)]
    with pytest.raises(ShapeError, match=r"\(2, 3\) cannot be reshaped to \(5,\)"):
        evaluate([Reshape(x, literals(5))], {x: value})


def test_iota_and_constants() -> None:
    found = evaluate([Iota(n), Iota(n - 2), build.const(2.5), build.const(True)], {}, {"n": 3})
    assert [array.tolist() for array in found] == [[0.0, 1.0, 2.0], [0.0], 2.5, True]
    assert found[0].dtype == np.float64


def test_all_nodes_come_in_evaluation_order() -> None:
    x = build.variable("x", ())
    root = fn.add(fn.sin(x), x)
    assert list(evaluate_all([root], {x: np.asarray(0.5)})) == [x, fn.sin(x), root]


def test_sizes_come_from_the_arrays() -> None:
    x, y = build.variable("x", (n,)), build.data("y", (m + 1,))
    (found,) = evaluate(
        [fn.add(build.size_of(n), fn.mul(10.0, build.size_of(m)))],
        {x: np.zeros(3), y: np.zeros(5)},
    )
    assert found == 43.0


def test_missing_and_wrong_inputs_are_named() -> None:
    x, y = build.variable("x", (n,)), build.data("y", (n,))
    root = build.inner(x, y)
    with pytest.raises(ShapeError, match="no value is given for data `y`"):
        evaluate([root], {x: np.zeros(2)})
    with pytest.raises(ShapeError, match=r"`y` has shape \(3,\), expected \[n\]"):
        evaluate([root], {x: np.zeros(2), y: np.zeros(3)})
    with pytest.raises(ShapeError, match=r"`x` has shape \(2, 1\), expected \[n\]"):
        evaluate([root], {x: np.zeros((2, 1)), y: np.zeros(2)})
    with pytest.raises(ShapeError, match=r"`x` has shape \(2,\), expected \[n\]"):
        evaluate([root], {x: np.zeros(2), y: np.zeros(2)}, {"n": 3})
    with pytest.raises(ShapeError, match="the size of dim `m` is not known yet"):
        evaluate([Iota(m)], {})


X = build.variable("x", (literal(3),))
LOG, ROOT = fn.log(X), fn.sqrt(X)


def total(node: Expr) -> Expr:
    return build.sum_over(node, tuple(range(node.rank)))


NONFINITE: dict[str, tuple[Expr, list[float], Expr | None, tuple[int, ...], float]] = {
    "all finite": (total(LOG), [1, 2, 3], None, (), 0),
    "the first of two": (fn.div(1.0, total(fn.mul(LOG, LOG))), [1, 0, -1], LOG, (1,), -math.inf),
    "overflow": (total(fn.exp(X)), [0, 0, 1000], fn.exp(X), (2,), math.inf),
    "made finite again": (total(fn.div(1.0, fn.exp(X))), [1000, 0, 0], None, (), 0),
    "branch not taken": (total(fn.where(fn.gt(X, 0.0), LOG, 0.0)), [-1, 0, 1], None, (), 0),
    "dead and live elements": (
        total(fn.where(fn.ne(X, -1.0), LOG, 0.0)), [-1, 0, 1], LOG, (1,), -math.inf
    ),
    "other branch to blame": (
        total(fn.where(fn.gt(X, 0.0), LOG, ROOT)), [1, 2, -1], ROOT, (2,), math.nan
    ),
    "dead row of a product": (
        total(fn.where(fn.gt(X, 0.0), build.matmul(build.outer(LOG, X), X), 0.0)),
        [-1, 1, 2], None, (), 0,
    ),
    "moved by a gather": (
        build.gather(LOG, [Affine(literal(2), ())], ()), [-1, -1, 0], LOG, (2,), -math.inf
    ),
    "left behind by a gather": (
        build.gather(LOG, [Affine(literal(2), ())], ()), [-1, -1, 1], None, (), 0
    ),
    "moved by a scatter and a reshape": (
        total(build.reshape(build.scatter(
            fn.where(fn.gt(X, -0.5), LOG, 0.0), [Affine(literal(1), (1,))], literals(4)
        ), literals(2, 2))),
        [-1, 1, 0], LOG, (2,), -math.inf,
    ),
    "the input itself": (total(X), [1, math.nan, 0], X, (1,), math.nan),
}  # fmt: skip


@pytest.mark.parametrize("case", NONFINITE)
def test_first_nonfinite(case: str) -> None:
    root, point, node, element, value = NONFINITE[case]
    found = first_nonfinite([root], {X: np.array(point, dtype=float)})
    if node is None:
        assert found is None
        return
    assert found is not None
    assert (found.node, found.element) == (node, element)
    assert found.value == value or (math.isnan(found.value) and math.isnan(value))
    assert len(found.operands) == len(node.operands)
