"""Slopes of rays in extended precision, against many digits."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from calculus.rays_of_graphs import DIGITS, RandomRay, thrown
from random_graphs import KINDS, WITH_LITERALS

import slomodel
import slomodel.functions as fn
from slomodel.calculus import jvp
from slomodel.calculus.rays.derivatives import PartialFunction, derivative_graph
from slomodel.calculus.rays.extended import is_extended
from slomodel.calculus.rays.functions import steps_of
from slomodel.errors import MissingRule
from slomodel.functions import symbols
from slomodel.ir import build
from slomodel.ir.dims import literal, named
from slomodel.ir.exact import without_rounding
from slomodel.ir.expr import Const
from slomodel.ir.function import ScalarFunction, every_function
from slomodel.ir.walk import postorder
from slomodel.model.extended_slope import extended_slopes
from slomodel.reference.extended import ExtendedValues, has_extended_precision

pytestmark = pytest.mark.skipif(not has_extended_precision(), reason="no extended precision")
BY_NAME = [function for function in every_function() if function.extended]


def _exactly(x: np.longdouble) -> mpmath.mpf:
    """An extended number in many digits."""
    head = float(x)
    return mpmath.mpf(head) + mpmath.mpf(float(x - np.longdouble(head)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", BY_NAME, ids=str)
def test_errors_of_the_library(function: ScalarFunction) -> None:
    """At most half of what is counted, as that is twice the largest error in doubles."""
    rng = np.random.default_rng(0)
    own = []
    for low, high in function.domain or ((-math.inf, math.inf),) * function.arity:
        size = 10.0 ** rng.uniform(-6.0, 3.0, 200)
        if math.isfinite(low) and math.isfinite(high):
            x = rng.uniform(low, high, 200)
        elif function is fn.pow or math.isfinite(low):
            x = size + max(low, 0.0)
        else:
            x = high - size if math.isfinite(high) else size * rng.choice([-1.0, 1.0], 200)
        own.append(x if len(own) == 0 or function is not fn.pow else rng.uniform(-3.0, 3.0, 200))
    with np.errstate(all="ignore"):
        found = function.numpy(*(one.astype(np.longdouble) for one in own))
    truth = sp.lambdify(symbols(function), function.definition(*symbols(function)), "mpmath")
    with mpmath.workdps(400):
        for *at, value in zip(*own, found, strict=True):
            exact = truth(*map(mpmath.mpf, at))
            if mpmath.isfinite(exact) and 1e-300 < abs(exact) < 1e300:
                off = abs(_exactly(value) - exact) / abs(exact) * mpmath.mpf(2) ** 64
                assert off <= 0.5 * steps_of(function), at


@pytest.mark.parametrize("function", BY_NAME, ids=str)
def test_derivatives_have_exact_numbers(function: ScalarFunction) -> None:
    constants = (None,) * (function.arity - 1) + (
        (Const(0.375),) if function.arity > 1 else (None,)
    )
    for order in (1, 2):
        _, graph = derivative_graph(PartialFunction(function, 0, constants), order)
        nodes = postorder(graph)
        numbers = [one for one in nodes if isinstance(one, Const) and one.value != 0.375]
        assert all(one.dtype == "bool" or one.exact == Fraction(one.value) for one in numbers)
        assert all(not hasattr(one, "function") or is_extended(one.function) for one in nodes)


def test_sums_of_products_by_parts() -> None:
    rng = np.random.default_rng(1)
    a, b = (build.variable(name, (literal(37), literal(5))) for name in "ab")
    c = build.variable("c", (literal(5),))
    roots = [
        build.einsum([a], [(0, 1)], (), a.shape),
        build.einsum([a, b], [(0, 1), (0, 2)], (2, 1), (literal(37), literal(5), literal(5))),
        build.einsum([a, b, c], [(0, 1), (0, 1), (1,)], (0,), a.shape),
        build.einsum([c], [(0,)], (0,), (literal(5), literal(3))),
    ]
    given = {one: rng.integers(-9, 9, (37, 5)).astype(float) for one in (a, b)}
    given[c] = rng.integers(-9, 9, 5).astype(float)
    found = ExtendedValues(roots, {b: given[b]}, (a, c), {})({a: given[a], c: given[c]})
    assert [one.dtype for one in found] == [np.longdouble] * 4
    x, y, z = given[a], given[b], given[c]
    for one, truth in zip(found, (x.sum(), y.T @ x, (x * y) @ z, 3.0 * z), strict=True):
        assert np.array_equal(one, truth)


def test_empty_sums_of_products() -> None:
    a = build.variable("a", (literal(0), literal(5)))
    roots = [build.einsum([a], [(0, 1)], axes, a.shape) for axes in ((0,), (1,), ())]
    found = ExtendedValues(roots, {}, (a,), {})({a: np.ones((0, 5))})
    assert [one.tolist() for one in found] == [[], [0.0] * 5, 0.0]


def _off_by(ray: RandomRay) -> tuple[mpmath.mpf, float, float] | None:
    """The error of the slope of a ray, with the bounds on it in extended precision and doubles."""
    example = ray.example
    data = {node: one for node, one in example.values.items() if node not in ray.directions}
    slopes = extended_slopes([example.objective], list(ray.directions), data, example.sizes)
    if slopes is None:
        return None
    x = [np.asarray(example.values[node]) for node in ray.directions]
    middle, radius = slopes.enclosure(x, [ray.v[one] for one in ray.directions.values()])
    if not np.isfinite(float(middle) + float(radius)):
        return None
    with without_rounding():
        derivative = jvp((example.objective,), dict(ray.directions))
    with mpmath.workdps(DIGITS):
        truth = replace(ray, derivatives=derivative).exact(0.0)[0]
        return abs(_exactly(middle) - truth), float(radius), ray.proved()[3]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", [*KINDS, *WITH_LITERALS])
def test_random_rays(kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    for _ in range(6):
        try:
            found = _off_by(thrown(rng, kind, 2))
        except MissingRule:
            continue
        if found is not None:
            off, radius, in_doubles = found
            assert off <= radius
            assert radius <= max(1e-2 * in_doubles, 1e-280)
            return


def test_slopes_below_the_errors_of_doubles() -> None:
    """At the minimum of a sum of many terms, three digits more of the slope are known."""
    rng = np.random.default_rng(2)
    a, y = rng.normal(size=(400, 3)), rng.normal(size=400)
    model = slomodel.compile(
        "dim N, d\ndata A[N, d], y[N]\nvar x[d]\nminimize sum(softplus(-y .* (A @ x))) + sumsq(x)",
        data={"A": a, "y": y},
        backend="numpy",
    )
    ends = [
        model.solve("norm-armijo", direction="lbfgs", line_search=search, gtol=1e-16)
        for search in ("armijo", "certified")
    ]
    with mpmath.workdps(50):
        rows = mpmath.matrix(a.tolist())

        def gradient(x: np.ndarray) -> mpmath.matrix:
            u, at = rows * mpmath.matrix(x.tolist()), mpmath.matrix(x.tolist())
            weights = [-one / (1 + mpmath.exp(one * u[k])) for k, one in enumerate(y.tolist())]
            return rows.T * mpmath.matrix(weights) + 2 * at

        armijo, certified = (gradient(one.x) for one in ends)
        assert mpmath.norm(certified) <= 4 * mpmath.norm(armijo) <= 1e-13
        x = ends[1].x
        v = -model.gradient(x)
        plain, precise = (model.ray_bounds(x, v, 1e-3, precise=one) for one in (False, True))
        assert abs(plain.slope) < plain.slope_error
        assert 0.0 < precise.slope_error <= 1e-3 * plain.slope_error
        truth = mpmath.fdot(certified, v.tolist())
        assert abs(truth - precise.slope) <= precise.slope_error
    assert precise._replace(slope=0.0, slope_error=0.0) == plain._replace(
        slope=0.0, slope_error=0.0
    )


@pytest.mark.parametrize("objective", ["sum(erf(x))", "logdet(outer(x, x) + eye(3))"])
def test_where_there_is_no_extended_precision(objective: str) -> None:
    model = slomodel.compile(f"var x[3]\nminimize {objective} + sumsq(x)", backend="numpy")
    x, v = np.array([0.3, -0.2, 0.1]), np.array([1.0, 2.0, -1.0])
    assert model.ray_bounds(x, v, 0.1, precise=True) == model.ray_bounds(x, v, 0.1)


def test_none_where_they_would_take_long() -> None:
    """A sum of products over three labels of 10,000 each, and one over one of them."""
    x, a = build.variable("x", (named("n"),)), build.variable("a", (named("n"),))
    long = build.einsum([x, a, x], [(0,), (1,), (2,)], (), (named("n"),) * 3)
    short = build.einsum([x, a], [(0,), (0,)], (), (named("n"),))
    for objective, many in ((short, False), (long, True)):
        found = extended_slopes([objective], [x], {a: np.ones(10_000)}, {"n": 10_000})
        assert (found is None) == many
