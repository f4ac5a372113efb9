"""Objectives of distances in space as sums over elements, and quotients by powers as powers."""

import numpy as np
import pytest
from bounds.fuzz import cases
from bounds.ranges.test_liveness import PAIRS, POINTS, STRESS, model, upper
from marks import every, only

from slomodel import functions as fn
from slomodel.bounds import ObjectivePart, bounds
from slomodel.bounds.rules.linear_predictors import linear_predictors
from slomodel.bounds.structure.negative_powers import with_negative_powers
from slomodel.bounds.structure.short_sums import with_short_sums
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Affine, Einsum, Map
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
NEAR = ((1e-3, 1.05), (1e-2, 1.5), (0.1, 3.0))
"""Radii, and the largest share of the sampled value that a bound there may reach."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("radius", "share"), only((0.1, 3.0), NEAR))
@pytest.mark.parametrize("spelling", PAIRS)
def test_bounds_of_lennard_jones_are_near_the_truth(spelling, radius, share):
    """Within 2.6 of the largest sampled values; by norms of arrays they were 80 times that."""
    data = {"M": upper(4)[1]} if spelling == "of data" else {}
    own = model(PAIRS[spelling], **data)
    found = own.bounds(POINTS.ravel(), radius)
    sampled = own.sample_bounds(POINTS.ravel(), radius, samples=10, seed=1)
    assert sampled.L1 * (1 - 1e-9) <= found.L1 <= share * sampled.L1


def test_a_stress_of_distances_is_near_the_truth():
    D, M = upper(4)
    own = model(STRESS, D=D, M=M)
    found = own.bounds(POINTS.ravel(), 0.1)
    sampled = own.sample_bounds(POINTS.ravel(), 0.1, samples=10, seed=1)
    assert sampled.L1 * (1 - 1e-9) <= found.L1 <= 1.6 * sampled.L1


X = build.variable("x", (literal(5), literal(3)))
Y = build.variable("y", (literal(5),))
PLANE = build.gather(X, [Affine.along(0, 2), Affine.along(1, 2)], (literal(5), literal(2)))
D = build.data("d", (literal(5),))
VALUES = {
    X: np.sin(1.0 + np.arange(15.0)).reshape(5, 3) + 2.0,
    Y: np.cos(np.arange(5.0)) + 2.0,
}


def setting(objective):
    own = tuple(v for v in (X, Y) if v in postorder(objective))
    values = {v: VALUES[v] for v in own} | {D: np.arange(1.0, 6.0)}
    return ObjectivePart(objective, own, values, {})


def total(node):
    return build.sum_over(node, tuple(range(node.rank)))


def rows(*operands):
    """Sums over the last axis of products of matrices (5, 3)."""
    labels = [(0, 1)] * len(operands)
    return build.einsum(list(operands), labels, (0,), (literal(5), literal(3)))


SUMS = {
    "squares": lambda: fn.exp(fn.neg(rows(X, X))),
    "squares of maps": lambda: fn.log(rows(fn.square(fn.sub(X, 0.5)))),
    "cubes": lambda: fn.sin(rows(X, X, X)),
    "fourth powers": lambda: fn.sqrt(rows(fn.square(X), fn.square(X))),
    "products": lambda: fn.exp(fn.mul(0.1, rows(X, fn.exp(fn.neg(X))))),
    "with a weight": lambda: fn.sqrt(
        build.einsum([Y, PLANE, PLANE], [(0,), (0, 1), (0, 1)], (0,), (literal(5), literal(2)))
    ),
}


@pytest.mark.parametrize("name", SUMS)
def test_the_value_stays_what_it_is(name):
    own = setting(total(SUMS[name]()))
    made = with_short_sums(own)
    assert made is not None
    one, other = evaluate([own.objective, made.objective], own.values)
    assert other == pytest.approx(one, rel=1e-14)
    axes = [node for node in postorder(made.objective) if isinstance(node, Einsum) and node.rank]
    assert not axes


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SUMS)
def test_no_bound_is_passed(name):
    own = setting(total(SUMS[name]()))
    for case in cases(own, np.random.default_rng(0), (0.0, 0.05)):
        for which in ("L1", "L2"):
            assert not case.violates(which), (case.radius, case.bound, case.witnesses)


def test_longer_sums_are_left_alone():
    W = build.variable("w", (literal(2), literal(4)))
    squares = build.einsum([W, W], [(0, 1), (0, 1)], (0,), (literal(2), literal(4)))
    own = ObjectivePart(total(fn.exp(squares)), (W,), {W: np.ones((2, 4))}, {})
    assert with_short_sums(own) is None


def test_products_of_factors_are_left_alone():
    """Each with two factors of its own, they would be functions of more arguments than one has."""
    Z = build.gather(X, [Affine.along(1, 2), Affine.along(0, 2)], (literal(3), literal(5)))
    product = build.einsum([X, Z], [(0, 1), (1, 2)], (0, 2), [literal(5), literal(3), literal(5)])
    own = setting(total(fn.sqrt(fn.add(fn.square(product), 1.0))))
    assert with_short_sums(own) is None


def test_a_linear_sum_is_left_alone():
    own = setting(total(fn.exp(build.sum_over(X, (1,)))))
    assert with_short_sums(own) is None
    assert linear_predictors(own, 0.1) is not None


POWERS = {
    "reciprocal": (lambda x: fn.div(2.0, x), None),
    "of a power": (lambda x: fn.div(2.0, fn.pow(x, 3.0)), -3.0),
    "of a square": (lambda x: fn.div(2.0, fn.square(x)), None),
    "of a root": (lambda x: fn.div(2.0, fn.sqrt(x)), None),
    "of a root's power": (lambda x: fn.div(1.0, fn.pow(fn.root(x), 12.0)), -12.0),
    "of a root's odd power": (lambda x: fn.div(1.0, fn.pow(fn.root(x), 5.0)), -2.5),
    "of a length's power": (
        lambda x: fn.div(1.0, fn.pow(fn.root(fn.mul(2.0, fn.square(x))), 12.0)),
        -6.0,
    ),
    "power of a power": (lambda x: fn.pow(fn.pow(x, 3.0), -2.0), -6.0),
    "power of a reciprocal": (lambda x: fn.pow(fn.div(1.5, x), 6.0), -6.0),
    "square of a reciprocal": (lambda x: fn.square(fn.div(1.5, x)), None),
    "power of a quotient": (lambda x: fn.pow(fn.div(1.5, fn.sqrt(x)), 5.0), -2.5),
    "power of data by it": (lambda x: fn.pow(fn.div(D, x), 6.0), -6.0),
    "fractional": (lambda x: fn.div(1.0, fn.pow(x, 1.5)), -1.5),
    "fractional of a square": (lambda x: fn.div(1.0, fn.pow(fn.square(x), 1.5)), -1.5),
}


ROOTS = (
    *("of a root", "of a root's power", "of a root's odd power", "power of a quotient"),
    "fractional",
)


@pytest.mark.parametrize("name", ROOTS)
def test_what_has_no_value_has_no_bound(name):
    """1/√x¹² is 1/x⁶ for x > 0 alone."""
    own = setting(total(POWERS[name][0](Y)))
    own.values[Y] = -VALUES[Y]
    found = bounds(own, 0.01)
    assert found.L1 == found.L2 == np.inf


# The root of a negative number is undefined.
SIGNED = [(name, sign) for name in POWERS for sign in (1.0, -1.0) if sign > 0 or name not in ROOTS]


@pytest.mark.parametrize(("name", "sign"), SIGNED)
def test_quotients_by_powers_are_powers(name, sign):
    function, exponent = POWERS[name]
    own = setting(total(function(Y)))
    own.values[Y] = sign * VALUES[Y]
    made = with_negative_powers(own)
    one, other = evaluate([own.objective, made.objective], own.values)
    assert other == pytest.approx(one, rel=1e-13)
    order = [node for node in postorder(made.objective) if isinstance(node, Map)]
    powers = [
        node.operands[1].value for node in order if node.function is fn.pow and Y in postorder(node)
    ]
    assert powers == ([] if exponent is None else [exponent])
    for node in order:
        assert node.function is not fn.div or node.operands[1] is Y or exponent is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", every(3, POWERS))
def test_where_a_divisor_may_vanish_there_is_no_bound(name):
    """And where it does not there is one, above what a ball shows."""
    function, _ = POWERS[name]
    own = setting(total(function(Y)))
    for case in cases(own, np.random.default_rng(0), (0.0, 0.3)):
        assert np.isfinite(list(case.bound.values())).all()
        for which in ("L1", "L2"):
            assert not case.violates(which), (case.radius, case.bound, case.witnesses)
    touching = bounds(own, 1.5)
    assert touching.L1 == touching.L2 == np.inf


@pytest.mark.parametrize("n", only(150, [64, 100, 150]))
def test_many_points(n):
    """Up to 400 variables and few pairs, beyond, and with more variables."""
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(*[np.arange(6.0)] * 3), -1).reshape(-1, 3)[:n]
    X = 1.2 * grid + 0.05 * rng.standard_normal((n, 3))
    own = model(PAIRS["lengths"], n)
    found = own.bounds(X.ravel(), 0.01)
    sampled = own.sample_bounds(X.ravel(), 0.01, samples=4, seed=1)
    assert sampled.L1 * (1 - 1e-9) <= found.L1 <= 2.5 * sampled.L1
    assert sampled.L2 * (1 - 1e-6) <= found.L2 <= 4.0 * sampled.L2
