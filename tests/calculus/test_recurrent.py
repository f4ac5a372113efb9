"""Extremes and running products: values, derivatives at ties and zeros, and both backends."""

import itertools

import numpy as np
import pytest

from slomodel import functions as fn
from slomodel.calculus import gradient, hessian_vector
from slomodel.errors import ShapeError
from slomodel.ir import build
from slomodel.ir.dims import literal, named
from slomodel.ir.expr import Expr, Input
from slomodel.ir.show import show
from slomodel.reference import evaluate, first_nonfinite
from tests.functions.exact_values import Point

n, m = named("n"), named("m")
X = build.variable("x", (n,))
A = build.variable("A", (m, n))
V = build.direction("v", (n,))


def derivatives(f: Expr, x: Point, v: Point) -> list[list[float]]:
    """Value, gradient and Hessian-vector product over X."""
    (g,), (h,) = gradient(f, [X]), hessian_vector(f, {X: V})
    values: dict[Input, np.ndarray] = {X: np.array(x), V: np.array(v)}
    return [np.ravel(found).tolist() for found in evaluate([f, g, h], values)]


@pytest.mark.parametrize(
    ("x", "by_x"),
    [
        ((0.0, 2.0, 3.0), [6.0, 0.0, 0.0]),
        ((0.0, 0.0, 3.0), [0.0, 0.0, 0.0]),
        ((2.0, 3.0, 5.0), [15.0, 10.0, 6.0]),
        ((7.0,), [1.0]),
        ((), []),
    ],
)
def test_product_has_the_derivative_of_its_definition(x: Point, by_x: list[float]) -> None:
    """Products of all but one factor, and of all but two for the Hessian."""
    v = tuple(float(k + 1) for k in range(len(x)))
    value, slope, curved = derivatives(build.product_over(X, 0), x, v)
    assert value == [np.prod(x)]
    assert slope == by_x
    hessian = np.zeros((len(x), len(x)))
    for i, j in itertools.permutations(range(len(x)), 2):
        hessian[i, j] = np.prod([x[k] for k in range(len(x)) if k not in (i, j)])
    assert curved == (hessian @ np.array(v)).tolist()


def test_product_along_either_axis() -> None:
    array = np.arange(1.0, 7.0).reshape(2, 3)
    for axis in (0, 1):
        (found,) = evaluate([build.product_over(A, axis)], {A: array})
        assert found.tolist() == np.prod(array, axis=axis).tolist()


@pytest.mark.parametrize("which", ["max", "min"])
def test_ties_share_the_derivative_equally(which: str) -> None:
    sign = 1.0 if which == "max" else -1.0
    x = tuple(sign * value for value in (1.0, 3.0, 3.0, 2.0, 3.0))
    f = build.extreme(X, "max" if which == "max" else "min", (0,))
    value, slope, curved = derivatives(fn.square(f), x, (1.0, 3.0, 0.0, 5.0, 0.0))
    assert value == [9.0]
    assert slope == pytest.approx([0.0, *[sign * 2.0] * 2, 0.0, sign * 2.0], rel=1e-15)
    assert curved == pytest.approx([0.0, 2 / 3, 2 / 3, 0.0, 2 / 3], rel=1e-15)


def test_extreme_keeps_a_nan_and_names_it() -> None:
    bad = fn.log(X)
    f = build.extreme(bad, "max", (0,))
    (value,) = evaluate([f], {X: np.array([1.0, -1.0, 2.0])})
    assert np.isnan(value)
    found = first_nonfinite([f], {X: np.array([1.0, -1.0, 2.0])})
    assert found is not None
    assert (found.node, found.element) == (bad, (1,))


def test_an_infinity_that_is_not_the_extreme_is_not_blamed() -> None:
    f = build.extreme(fn.log(X), "max", (0,))
    assert first_nonfinite([f], {X: np.array([0.0, 2.0])}) is None


def test_a_branch_not_taken_leaks_no_nan() -> None:
    """Below an extreme and a product, in gradient and Hessian."""
    roots = fn.sqrt(X)
    for f in (build.extreme(roots, "max", (0,)), build.product_over(roots, 0)):
        chosen = fn.where(fn.gt(build.sum_over(X, (0,)), 0.0), f, build.inner(X, X))
        _, slope, curved = derivatives(chosen, (-1.0, -2.0), (1.0, 1.0))
        assert slope == [-2.0, -4.0]
        assert curved == [2.0, 2.0]


def test_a_running_product_used_in_part_leaks_no_nan() -> None:
    """Results before the NaN are used, results after it are not."""
    running = build.scan(fn.sqrt(X), build.ones((n,)), 0)
    used = fn.where(fn.gt(X, 0.0), running, 0.0)
    _, slope, _ = derivatives(build.sum_over(used, (0,)), (4.0, 1.0, -1.0), (1.0, 1.0, 1.0))
    assert slope == [0.0, 0.5, 0.0]


def test_of_nothing() -> None:
    empty = {X: np.zeros(0)}
    assert evaluate([build.product_over(X, 0)], empty)[0] == 1.0
    extremes = [build.extreme(X, "max", (0,)), build.extreme(X, "min", (0,))]
    assert [float(found) for found in evaluate(extremes, empty)] == [-np.inf, np.inf]


def test_shapes_are_checked() -> None:
    with pytest.raises(ShapeError, match=r"\(1,\) must be axes of \[n\]"):
        build.extreme(X, "max", (1,))
    with pytest.raises(ShapeError, match=r"two arrays of one shape, not \[n\] and \[m\]"):
        build.scan(X, build.variable("y", (m,)), 0)
    with pytest.raises(ShapeError, match="numbers, not truth values"):
        build.extreme(fn.gt(X, 0.0), "max", (0,))


def test_as_text() -> None:
    largest = build.extreme(A, "max", (1,))
    running = build.scan(A, build.broadcast(largest, (0,), (m, n)), 1)
    assert show(build.extreme(running, "min", (0, 1))).splitlines() == [
        "%0 = variable A [m, n]",
        "%1 = max[1](%0) [m]",
        "%2 = einsum[0 -> 0 1](%1) [m, n]",
        "%3 = scan[1](%0, %2) [m, n]",
        "%4 = min[0, 1](%3) scalar",
    ]


def test_shift_and_flip() -> None:
    y = build.variable("y", (literal(3),))
    values = {y: np.array([1.0, 2.0, 3.0])}
    moved = [build.shifted(y, 0, 1), build.shifted(y, 0, -1), build.flipped(y, 0)]
    found = [one.tolist() for one in evaluate(moved, values)]
    assert found == [[0.0, 1.0, 2.0], [2.0, 3.0, 0.0], [3.0, 2.0, 1.0]]
