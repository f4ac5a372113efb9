"""Equal derivatives of equal operands are computed once, and only where they are equal."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from slomodel import functions as fn
from slomodel.calculus import Known, gradient
from slomodel.calculus.symmetry import is_invariant
from slomodel.functions import where
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.ir.expr import Einsum, Expr, Input, Multiset
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate

D, M = named("d"), named("m")
X = build.variable("X", (M, D))
T = build.data("T", (D, D, D))
RNG = np.random.default_rng(5)


def symmetrised(array: np.ndarray) -> np.ndarray:
    orders = list(itertools.permutations(range(array.ndim)))
    return sum(np.transpose(array, order) for order in orders) / len(orders)


def cube(*operands: Expr) -> Expr:
    return build.einsum(operands, [(0, 1), (0, 2), (0, 3)], (1, 2, 3), (M, D, D, D))


def products(*roots: Expr) -> int:
    return sum(isinstance(node, Einsum) and len(node.operands) > 2 for node in postorder(*roots))


def check(objective: Expr, variables: list[Input], known: Known, values: dict) -> tuple[int, int]:
    """The gradient with and without the facts: same numbers; the numbers of large products."""
    plain, clever = gradient(objective, variables), gradient(objective, variables, known)
    for one, other in zip(evaluate(plain, values), evaluate(clever, values), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)
    return products(*plain), products(*clever)


def test_a_symmetric_residual_needs_one_contraction() -> None:
    residual = fn.sub(T, cube(X, X, X))
    objective = build.inner(residual, residual)
    values = {T: symmetrised(RNG.normal(size=(3, 3, 3))), X: RNG.normal(size=(2, 3))}
    assert check(objective, [X], Known(symmetric=frozenset({T})), values) == (4, 2)


def test_an_elementwise_function_and_scales_keep_the_symmetry() -> None:
    residual = fn.mul(0.5, fn.sub(cube(X, X, X), fn.mul(2.0, fn.sin(T))))
    objective = build.sum_over(fn.softplus(residual), (0, 1, 2))
    values = {T: symmetrised(RNG.normal(size=(3, 3, 3))), X: RNG.normal(size=(2, 3))}
    assert check(objective, [X], Known(symmetric=frozenset({T})), values) == (4, 2)


def test_data_that_is_not_said_to_be_symmetric_is_not_taken_so() -> None:
    residual = fn.sub(T, cube(X, X, X))
    objective = build.inner(residual, residual)
    values = {T: RNG.normal(size=(3, 3, 3)), X: RNG.normal(size=(2, 3))}
    assert check(objective, [X], Known(), values) == (4, 4)


def test_operands_that_differ_have_derivatives_that_differ() -> None:
    Y = build.variable("Y", (M, D))
    residual = fn.sub(T, cube(X, X, Y))
    objective = build.inner(residual, residual)
    values = {
        T: symmetrised(RNG.normal(size=(3, 3, 3))),
        X: RNG.normal(size=(2, 3)),
        Y: RNG.normal(size=(2, 3)),
    }
    # X·X·Y is not symmetric in the place of Y, but X and X still have one derivative.
    assert check(objective, [X, Y], Known(symmetric=frozenset({T})), values) == (4, 3)


def test_weights_of_single_entries_break_the_symmetry() -> None:
    W = build.data("W", (D, D, D))
    residual = fn.mul(W, fn.sub(T, cube(X, X, X)))
    objective = build.inner(residual, residual)
    values = {
        T: symmetrised(RNG.normal(size=(3, 3, 3))),
        W: RNG.normal(size=(3, 3, 3)),
        X: RNG.normal(size=(2, 3)),
    }
    assert check(objective, [X], Known(symmetric=frozenset({T})), values) == (4, 4)


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_quadratic_form(symmetric: bool) -> None:
    A, x = build.data("A", (D, D)), build.variable("x", (D,))
    objective = build.einsum([A, x, x], [(0, 1), (0,), (1,)], (), (D, D))
    A_value = RNG.normal(size=(3, 3))
    values = {A: A_value + A_value.T if symmetric else A_value, x: RNG.normal(size=3)}
    known = Known(symmetric=frozenset({A} if symmetric else ()))
    (g,) = gradient(objective, [x], known)
    expected = (values[A] + values[A].T) @ values[x]
    np.testing.assert_allclose(evaluate([g], values)[0], expected, rtol=1e-13)
    contractions = sum(isinstance(node, Einsum) for node in postorder(g))
    assert contractions == (1 if symmetric else 2)


def test_invariance_is_claimed_of_nothing_that_changes() -> None:
    S = build.data("S", (D, D))
    outer = build.apply_along(fn.mul, (x := build.variable("x", (D,)), x), ((0,), (1,)), (D, D))
    one_sided = build.apply_along(fn.mul, (S, x), ((0, 1), (0,)), (D, D))
    skew = build.apply_along(fn.sub, (x, x), ((0,), (1,)), (D, D))
    known = frozenset({S})
    assert is_invariant(fn.add(S, fn.exp(S)), (1, 0), known)
    assert not is_invariant(one_sided, (1, 0), known)
    assert not is_invariant(skew, (1, 0), known)
    assert not is_invariant(build.data("A", (D, D)), (1, 0), known)
    assert is_invariant(outer, (1, 0), known)


@pytest.mark.parametrize("condition", [fn.lt, fn.le, fn.gt, fn.ne])
def test_pairs_under_a_condition_are_symmetric_if_the_condition_is(
    condition: ScalarFunction,
) -> None:
    # The derivatives by X_i and by X_j of terms of pairs i < j have different sums.
    pairs = build.einsum([X, X], [(0, 1), (0, 2)], (1, 2), (M, D, D))
    index = build.iota(D)
    chosen = build.apply_along(condition, (index, index), ((0,), (1,)), (D, D))
    terms = build.apply(where, chosen, fn.sin(pairs), build.const(0.0))
    found = gradient(build.sum_over(terms, (0, 1)), [X])
    x = RNG.normal(size=(2, 3))
    weights = evaluate([chosen], {X: x})[0] * np.cos(x.T @ x)
    np.testing.assert_allclose(evaluate(found, {X: x})[0], x @ (weights + weights.T), rtol=1e-12)


def test_entries_of_sorted_tuples_swap_with_the_axes_of_their_tuples() -> None:
    # A[i_0, j_0] over pairs i and j: swapping the pairs transposes A.
    pairs, A = named("pairs"), build.data("A", (D, D))
    index = [Multiset(axis, D, 2, 0, 1) for axis in (0, 1)]
    node = build.gather(A, index, (pairs, pairs))
    assert is_invariant(node, (1, 0), frozenset({A}))
    assert not is_invariant(node, (1, 0), frozenset())


def test_a_node_that_is_reached_in_many_ways_is_queried_once() -> None:
    node: Expr = cube(X, X, X)
    for _ in range(60):
        node = fn.sin(fn.add(node, fn.mul(node, node)))
    objective = build.inner(node, node)
    assert len(gradient(objective, [X])) == 1
