"""What gradient, jvp and hessian_vector return, on graphs small enough to write down."""

import numpy as np
import pytest

from slomodel import functions as fn
from slomodel.calculus import gradient, hessian_vector, jvp
from slomodel.errors import ShapeError
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.reference import evaluate

n, m = named("n"), named("m")
X = build.variable("x", (n,))
Y = build.variable("y", (m,))
A = build.data("A", (m, n))
T = build.direction("t", (n,))
SQUARES = build.inner(X, X)


def test_only_a_scalar_has_a_gradient() -> None:
    with pytest.raises(ShapeError, match="the gradient is of a scalar"):
        gradient(fn.sin(X), [X])


def test_what_does_not_depend_has_zeros_of_its_shape() -> None:
    assert gradient(SQUARES, [Y]) == (build.zeros((m,)),)
    assert jvp([SQUARES, Y], {Y: build.ones((m,))}) == (build.zeros(()), build.ones((m,)))
    assert hessian_vector(build.inner(X, build.ones((n,))), {X: T}) == (build.zeros((n,)),)


def test_objective_and_inner_nodes_may_be_asked_for() -> None:
    inner = build.matmul(A, X)
    f = build.inner(inner, inner)
    by_objective, by_inner, by_x = gradient(f, [f, inner, X])
    assert by_objective is build.const(1.0)
    assert by_inner is fn.mul(2.0, inner)
    assert by_x is build.matmul(fn.mul(2.0, inner), A)


def test_equal_terms_are_counted_not_added() -> None:
    assert gradient(SQUARES, [X]) == (fn.mul(2.0, X),)
    assert hessian_vector(SQUARES, {X: T}) == (fn.mul(2.0, T),)


def test_order_is_that_of_the_request() -> None:
    f = fn.add(SQUARES, build.inner(Y, Y))
    assert gradient(f, [Y, X]) == (fn.mul(2.0, Y), fn.mul(2.0, X))


def test_gradient_by_data() -> None:
    f = build.einsum([Y, A, X], [(0,), (0, 1), (1,)], (), (m, n))
    values = {
        Y: np.array([2.0, 3.0]),
        X: np.array([5.0, 7.0, 11.0]),
        A: np.ones((2, 3)),
    }
    (found,) = evaluate(gradient(f, [A]), values)
    assert np.array_equal(found, np.outer(values[Y], values[X]))


def test_a_condition_has_no_derivative() -> None:
    f = build.sum_over(fn.where(fn.gt(X, 0.0), 2.0, 3.0), (0,))
    assert gradient(f, [X]) == (build.zeros((n,)),)
    assert jvp([f], {X: T}) == (build.zeros(()),)
