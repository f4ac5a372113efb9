"""Values and derivatives at edges, where the obvious rule gives NaN or a wrong number."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slomodel import functions as fn
from slomodel.calculus import gradient, hessian_vector, jvp
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Affine, Expr, Input
from slomodel.reference import evaluate

INF = math.inf


def total(node: Expr) -> Expr:
    return build.sum_over(node, tuple(range(node.rank)))


def element(x: Expr, k: int) -> Expr:
    return build.gather(x, [Affine(literal(k), ())], ())


def powers(x: Expr) -> Expr:
    """1 + x + x**2, by exponents that are an array."""
    return total(fn.pow(x, build.iota(literal(3))))


def product(x: Expr) -> Expr:
    return build.einsum([element(x, k) for k in range(3)], [(), (), ()], (), ())


def entropy(x: Expr) -> Expr:
    return total(fn.where(fn.gt(x, 0.0), fn.mul(x, fn.log(x)), 0.0))


def branch_below_sum(x: Expr) -> Expr:
    """The sum of square roots, or x[0] where x[0] < 1: the whole sum is then a dead branch."""
    return fn.where(fn.lt(element(x, 0), 1.0), element(x, 0), total(fn.sqrt(x)))


def nested(x: Expr) -> Expr:
    inner = fn.where(fn.lt(x, 1.0), fn.sqrt(fn.sub(1.0, x)), fn.log(fn.sub(x, 1.0)))
    return total(fn.where(fn.gt(x, 0.0), inner, fn.neg(x)))


def live_where_outer_is_dead(x: Expr) -> Expr:
    inner = fn.where(fn.lt(x, 1.0), fn.sqrt(x), x)
    return total(fn.where(fn.gt(x, 0.0), inner, fn.square(x)))


def one_logarithm_read(x: Expr) -> Expr:
    return fn.where(fn.gt(element(x, 1), 0.0), element(fn.log(x), 1), 0.0)


def scalar_in_no_element(x: Expr) -> Expr:
    never = fn.gt(build.iota(literal(3)), 5.0)
    shape = (literal(3),)
    return total(build.apply_along(fn.where, [never, fn.sqrt(x), x], [(0,), (), ()], shape))


def shared(x: Expr) -> Expr:
    """sqrt(x) is in both branches, as itself and inside a logarithm."""
    root = fn.sqrt(x)
    return total(fn.where(fn.gt(x, 1.0), root, fn.where(fn.gt(x, 0.0), fn.log(root), 0.0)))


def moved(x: Expr) -> Expr:
    """The dead elements pass through Gather, Scatter, Reshape and a diagonal."""
    back = Affine(literal(1), (-1,))
    place = [Affine(literal(1), (1,))]
    y = build.gather(fn.log(x), [back], (literal(2),))
    z = build.scatter(y, place, (literal(4),))
    square = build.reshape(z, (literal(2), literal(2)))
    live = fn.gt(
        build.reshape(
            build.scatter(build.gather(x, [back], (literal(2),)), place, (literal(4),)),
            (literal(2), literal(2)),
        ),
        0.0,
    )
    return total(fn.where(live, square, 0.0))


def sinc(x: Expr) -> Expr:
    return fn.where(fn.ne(x, 0.0), fn.div(fn.sin(x), x), 1.0)


def norm(x: Expr) -> Expr:
    return fn.root(build.inner(x, x))


Numbers = float | list[float] | list[list[float]]

CASES: dict[str, tuple[Callable[[Expr], Expr], Numbers, Numbers, Numbers, Numbers]] = {
    "sqrt not taken": (lambda x: fn.where(fn.gt(x, 0.0), fn.sqrt(x), 0.0), -1, 0, 0, 0),
    "sqrt not taken, at its edge": (lambda x: fn.where(fn.lt(x, 1.0), x, fn.sqrt(x)), 0, 0, 1, 0),
    "vanishing adjoint": (lambda x: fn.where(fn.lt(x, 5.0), fn.square(fn.sin(x)), 0.0), 0, 0, 0, 2),
    "quotient not taken": (sinc, 0, 1, 0, 0),
    "x log x": (entropy, [0.0, 1.0], 0, [0, 1], [[0, 0], [0, 1]]),
    "sum not taken": (branch_below_sum, [0.0, -1.0], 0, [1, 0], [[0, 0], [0, 0]]),
    "branches in branches": (nested, [-1.0, 0.75], 1.5, [-1, -1], [[0, 0], [0, -2]]),
    "inner condition holds": (
        live_where_outer_is_dead, [-1.0, 0.25], 1.5, [-2, 1], [[2, 0], [0, -2]]
    ),
    "one element read": (one_logarithm_read, [0.0, 1.0], 0, [0, 1], [[0, 0], [0, -1]]),
    "scalar for no element": (scalar_in_no_element, -1, -3, 3, 0),
    "shared by branches": (shared, [4.0, -1.0], 2, [0.25, 0], [[-1 / 32, 0], [0, 0]]),
    "moved elements": (moved, [-1.0, 1.0], 0, [0, 1], [[0, 0], [0, -1]]),
    "root of sumsq": (norm, [0.0, 0.0], 0, [0, 0], [[0, 0], [0, 0]]),
    "x^1.875 at 0": (lambda x: fn.pow(x, 1.875), 0, 0, 0, INF),
    "x^2.0 at 0": (lambda x: fn.pow(x, 2.0), 0, 0, 0, 2),
    "x^2.0 at -3": (lambda x: fn.pow(x, 2.0), -3, 9, -6, 2),
    "1 + x + x^2": (powers, 0, 1, 1, 2),
    "product with one zero": (
        product, [0.0, 2.0, 3.0], 0, [6, 0, 0], [[0, 3, 2], [3, 0, 0], [2, 0, 0]]
    ),
    "product with two zeros": (
        product, [0.0, 0.0, 3.0], 0, [0, 0, 0], [[0, 3, 0], [3, 0, 0], [0, 0, 0]]
    ),
    "abs at 0": (fn.abs, 0, 0, 0, 0),
    "relu at 0": (fn.relu, 0, 0, 0, 0),
    "max(x, 0) at 0": (lambda x: fn.maximum(x, 0.0), 0, 0, 0, 0),
    "max(0, x) at 0": (lambda x: fn.maximum(0.0, x), 0, 0, 0, 0),
    "where(x > 0, x, 0) at 0": (lambda x: fn.where(fn.gt(x, 0.0), x, 0.0), 0, 0, 0, 0),
    "clip(x, 0, inf) at 0": (lambda x: fn.clip(x, 0.0, INF), 0, 0, 0, 0),
}  # fmt: skip


def derivatives(f: Expr, x: Input, values: dict[Input, np.ndarray]) -> list[np.ndarray]:
    """Value, gradient, Hessian and jvp along ones, each evaluated from its own graph."""
    direction = build.direction("t", x.shape)
    (g,), (hvp,) = gradient(f, [x]), hessian_vector(f, {x: direction})
    (tangent,) = jvp([f], {x: build.ones(x.shape)})
    columns = []
    for k in range(values[x].size):
        unit = np.zeros(values[x].size)
        unit[k] = 1.0
        at = {**values, direction: unit.reshape(values[x].shape)}
        columns.append(evaluate([hvp], at)[0].ravel())
    hessian = np.stack(columns, axis=1)
    return [*evaluate([f, g], values), hessian, *evaluate([tangent], values)]


@pytest.mark.parametrize("case", CASES)
def test_value_gradient_and_hessian(case: str) -> None:
    make, at, value, slope, curvature = CASES[case]
    point = np.asarray(at, dtype=float)
    x = build.variable("x", tuple(map(literal, point.shape)))
    f, g, hessian, tangent = derivatives(make(x), x, {x: point})
    np.testing.assert_allclose(f, value, atol=1e-15)
    np.testing.assert_allclose(g, slope, atol=1e-15)
    np.testing.assert_allclose(hessian, np.reshape(curvature, hessian.shape), atol=1e-15)
    np.testing.assert_allclose(tangent, np.sum(slope), atol=1e-15)


@pytest.mark.parametrize("p", [2.0, 1.0, 0.0])
@pytest.mark.parametrize("at", [0.0, -3.0, 0.7])
def test_an_exponent_in_data_is_the_same_as_in_the_text(p: float, at: float) -> None:
    x, exponent = build.variable("x", ()), build.data("p", ())
    values = {x: np.asarray(at), exponent: np.asarray(p)}
    by_data = derivatives(fn.pow(x, exponent), x, values)
    by_text = derivatives(fn.pow(x, p), x, values)
    for one, other in zip(by_data, by_text, strict=True):
        np.testing.assert_allclose(one, other, rtol=4 * np.finfo(float).eps)


def test_power_by_base_and_exponent_at_zero_to_the_one() -> None:
    x, p = build.variable("x", ()), build.variable("p", ())
    f = fn.pow(x, p)
    found = evaluate([f, *gradient(f, [x, p])], {x: np.asarray(0.0), p: np.asarray(1.0)})
    assert [float(array) for array in found] == [0.0, 1.0, 0.0]


def residuals(observed: bool) -> tuple[Expr, Input, dict[Input, np.ndarray]]:
    """sum(sin(A @ x - y)^2) over the rows that the mask keeps; others NaN in A, inf in y."""
    rows, columns = literal(3), literal(2)
    x, A = build.variable("x", (columns,)), build.data("A", (rows, columns))
    y, mask = build.data("y", (rows,)), build.data("mask", (rows,))
    a = np.array([[1.0, 2.0], [0.5, -1.0], [-0.25, 3.0]])
    b = np.array([1.0, 2.0, 0.5])
    keep = np.array([True, observed, True])
    a[~keep], b[~keep] = np.nan, np.inf
    fit = fn.sub(build.matmul(A, x), y)
    squares = fn.where(fn.ne(mask, 0.0), fn.square(fn.sin(fit)), 0.0)
    return total(squares), x, {x: np.array([0.3, -0.2]), A: a, y: b, mask: keep.astype(float)}


@pytest.mark.parametrize("observed", [True, False])
def test_rows_of_data_that_a_mask_drops_do_not_count(observed: bool) -> None:
    f, x, values = residuals(observed)
    value, g, hessian, _ = derivatives(f, x, values)
    arrays = {node.name: array for node, array in values.items()}
    keep = arrays["mask"] != 0.0
    a, r = arrays["A"][keep], arrays["A"][keep] @ arrays["x"] - arrays["y"][keep]
    np.testing.assert_allclose(value, np.sum(np.sin(r) ** 2), rtol=1e-14)
    np.testing.assert_allclose(g, a.T @ np.sin(2 * r), rtol=1e-13)
    np.testing.assert_allclose(hessian, 2 * a.T @ np.diag(np.cos(2 * r)) @ a, rtol=1e-13)


@given(st.lists(st.floats(-2, 2), min_size=3, max_size=3))
def test_no_element_of_a_dead_branch_leaks(point: list[float]) -> None:
    """A product of log(x) below a vector condition, the logarithm shared with a live sum."""
    size = literal(3)
    x, A = build.variable("x", (size,)), build.data("A", (size, size))
    live = fn.gt(x, 0.1)
    logs = fn.where(live, fn.log(x), 0.0)
    f = fn.add(total(fn.where(live, fn.mul(build.matmul(A, logs), fn.sqrt(x)), x)), total(logs))
    arrays = {x: np.array(point), A: np.arange(9.0).reshape(3, 3)}
    for array in derivatives(f, x, arrays):
        assert np.all(np.isfinite(array))


@pytest.mark.parametrize("gathers", [False, True])
@pytest.mark.parametrize(
    ("function", "at"),
    [
        (fn.sqrt, 0.0),
        (lambda x: fn.pow(x, 0.3), 0.0),
        (lambda x: fn.div(1.0, fn.add(fn.sqrt(x), 0.5)), 0.0),
        (fn.asin, 1.0),
        (fn.acosh, 1.0),
        (lambda x: fn.log(fn.add(1.0, fn.sqrt(x))), 0.0),
        (lambda x: fn.mul(fn.sqrt(x), fn.exp(x)), 0.0),
    ],
)
def test_constants_at_ends_of_a_domain_have_no_slope(
    function: Callable[[Expr], Expr], at: float, gathers: bool
) -> None:
    """Elements of a choice that are constant, where the function's derivative is infinite."""
    x = Input("x", "variable", (literal(4),))
    inside = fn.add(0.5, fn.mul(0.1, fn.sin(x)))
    inside = fn.add(inside, 1.0) if function is fn.acosh else inside
    # Constants at both ends, as in boundary values of a discretised path.
    last = fn.eq(build.iota(literal(4)), 3.0)
    chosen = fn.where(fn.eq(build.iota(literal(4)), 0.0), at, fn.where(last, at, inside))
    neighbour = fn.mul(element(x, 1), function(chosen))
    if gathers:
        ahead = build.gather(function(chosen), [Affine(literal(1), (1,))], (literal(3),))
        here = build.gather(function(chosen), [Affine(literal(0), (1,))], (literal(3),))
        neighbour = fn.mul(element(x, 2), fn.mul(ahead, here))
    f = total(neighbour)
    v = Input("v", "data", x.shape)
    (g,) = gradient(f, [x])
    (product,) = hessian_vector(f, {x: v})
    rng = np.random.default_rng(0)
    at_x, direction = rng.standard_normal((2, 4))

    before, after = (evaluate([g], {x: at_x + h * direction}, {})[0] for h in (-1e-5, 1e-5))
    (found,) = evaluate([product], {x: at_x, v: direction}, {})
    np.testing.assert_allclose(found, (after - before) / 2e-5, rtol=1e-7, atol=1e-8)
