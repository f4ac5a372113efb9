"""What is proved along a ray, against the truth in many digits and against closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
import sympy as sp
from bounds.objective_graph import evaluate_exactly
from calculus.rays_of_graphs import DIGITS, END, through, thrown, violations
from marks import only
from random_graphs import KINDS, WITH_LITERALS
from strategies import Example

from slomodel import functions as fn
from slomodel.calculus.rays.derivatives import largest_derivative
from slomodel.calculus.rays.numbers import MidRad
from slomodel.calculus.rays.perturbed import perturbed
from slomodel.calculus.rays.ray import ray_graph
from slomodel.errors import MissingRule
from slomodel.ir import build
from slomodel.ir.dims import literal, named
from slomodel.ir.expr import Const, Expr
from slomodel.ir.function import ANALYTIC, DISCONTINUOUS, ScalarFunction
from slomodel.reference import evaluate


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", [*KINDS, *WITH_LITERALS])
def test_random_rays(kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    for _ in range(8):
        try:
            ray = thrown(rng, kind, 2)
        except MissingRule:
            continue
        assert violations(ray, (0.0, 1.0)) == []
        return
    pytest.fail("no ray with a proof")


SMOOTH = [f for f in fn.TABLE.values() if f.result == "real" and not f.operand_types]


POSITIVE = (
    fn.pow,
    fn.log_rising_factorial,
    fn.digamma_difference,
    fn.trigamma_difference,
)


def _inside(function: ScalarFunction, rng: np.random.Generator) -> list[float]:
    """A point well inside the domain, with magnitudes from 0.01 to 10."""
    domain = function.domain or ((-math.inf, math.inf),) * function.arity
    point = []
    for low, high in domain:
        size = float(10.0 ** rng.uniform(-2.0, 1.0))
        if math.isfinite(low) and math.isfinite(high):
            point.append(low + (high - low) * float(rng.uniform(0.1, 0.9)))
        else:
            point.append(low + size if math.isfinite(low) else size * float(rng.choice([-1, 1])))
    return [abs(one) for one in point] if function in POSITIVE else point


# One for each way to bound a function; the others take minutes in all.
QUICK = ("exp", "log", "tanh", "softplus", "sin", "tan", "huber", "relu", "logaddexp", "floor")
CASES = [
    pytest.param(f, marks=[] if f.name in QUICK else [pytest.mark.slow], id=f.name) for f in SMOOTH
]


@pytest.mark.parametrize("function", CASES)
def test_every_function_along_short_and_long_rays(function: ScalarFunction) -> None:
    """All operands move; the longer rays cross critical points, kinks, and edges of the domain."""
    rng = np.random.default_rng(7)
    x = tuple(build.variable(f"x{k}", ()) for k in range(function.arity))
    known = 0
    for size in (0.05, 2.0):
        values = dict(zip(x, map(np.asarray, _inside(function, rng)), strict=True))
        ray = through(Example(function(*x), x, (), {}, values), rng, size)
        assert violations(ray, (0.0, 0.7)) == []
        known += all(map(math.isfinite, ray.proved()))
    assert known or function.arity > 1 or function.smoothness == DISCONTINUOUS


@pytest.mark.parametrize("function", [f for f in SMOOTH if f.arity == 1], ids=str)
def test_values_at_numbers_with_radii(function: ScalarFunction) -> None:
    """By one evaluation, where that is possible, they hold the values at all points within."""
    rng = np.random.default_rng(11)
    x, radius = (build.variable(name, ()) for name in ("x", "r"))
    near = perturbed(function, MidRad(x, radius))
    for size in (1e-9, 0.1, 1.5) if near is not None else ():
        (at,) = _inside(function, rng)
        values = {x: np.asarray(at), radius: np.asarray(size * abs(at))}
        found = evaluate((near.mid, near.rad or Const(0.0)), values, {})
        middle, reach = (mpmath.mpf(float(one)) for one in found)
        assert size > 0.1 or not abs(at) <= 3.0 or reach < 1e3 * size
        with mpmath.workdps(DIGITS):
            for part in (-1.0, -0.6, 0.0, 0.8, 1.0) if mpmath.isfinite(reach) else ():
                moved = np.array(mpmath.mpf(at) * (1 + mpmath.mpf(size) * part), dtype=object)
                (value,) = evaluate_exactly((function(x),), {x: moved}, {})
                assert abs(value.item() - middle) <= reach


WITH_SCALE = [f for f in SMOOTH if f.monotonicity and f.error_scale is not None]


@pytest.mark.parametrize("function", WITH_SCALE, ids=lambda one: one.name)
@pytest.mark.parametrize("highest", [1.0, 12.0, 300.0])
def test_stated_scales_of_errors(function: ScalarFunction, highest: float) -> None:
    """A ray takes the scale of errors to be at most 64 times 1, the operands or the value."""
    assert function.error_scale is not None
    rng = np.random.default_rng(3)
    shape = (function.arity, 5_000)
    at = rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(-highest, highest, shape)
    for operand, (low, _) in zip(at, function.domain, strict=False):
        operand[:] = np.abs(operand) if low == 0.0 else operand
    with np.errstate(all="ignore"):
        value = np.asarray(function.numpy(*at), dtype=np.float64)
        scale = np.asarray(function.error_scale(*at), dtype=np.float64)
    known = np.isfinite(value)
    size = np.maximum.reduce([np.ones(5_000), np.abs(value), *np.abs(at)])
    assert known.any()
    assert np.all(scale[known] <= 64.0 * size[known])


UNARY = [f for f in SMOOTH if f.arity == 1]


@pytest.mark.parametrize("function", only(fn.softplus, UNARY), ids=lambda one: one.name)
def test_derivatives_taken_as_bounded_have_limits(function: ScalarFunction) -> None:
    """SymPy's limits of derivatives of functions that are not periodic are bounded too."""
    x = sp.Symbol("x", real=True)
    is_periodic = function.monotonicity is not None and function.monotonicity.period
    if is_periodic or largest_derivative(function, 4) is None:
        return
    for order in range(1, 5):
        largest = largest_derivative(function, order)
        if largest is not None:
            derivative = sp.diff(function.definition(x), x, order).rewrite(sp.exp)
            for end in (sp.oo, -sp.oo):
                assert sp.Abs(sp.limit(derivative, x, end)) <= largest


def test_conditions_on_positions_and_data_are_known() -> None:
    """Counts are exact, and sums of data decide a branch if they are beyond their errors."""
    samples = named("N")
    x, y = build.variable("x", (samples,)), build.data("y", (samples,))
    last = fn.sub(fn.add(build.size_of(samples), 2.0), 3.0)
    place = fn.lt(build.iota(samples), build.broadcast(last, (), (samples,)))
    total = fn.gt(build.broadcast(build.sum_over(y, (0,)), (), (samples,)), 0.0)
    chosen = fn.where(place, fn.exp(x), fn.where(total, fn.square(x), fn.neg(x)))
    objective = build.sum_over(chosen, (0,))
    values = {x: np.array([0.5, -1.0, 2.0]), y: np.array([0.1, 0.2, -0.2])}
    example = Example(objective, (x,), (y,), {"N": 3}, values)
    ray = through(example, np.random.default_rng(3), 0.1)
    assert violations(ray, (0.0, 1.0)) == []
    assert all(map(math.isfinite, ray.proved()))


def test_rays_of_compressed_data_of_deficient_rank() -> None:
    """The triangular factor of data with equal columns is as good as the data."""
    rng = np.random.default_rng(5)
    data = rng.standard_normal((40, 3))
    samples, columns = named("N"), 5
    matrix = build.data("A", (samples, literal(columns)))
    x = build.variable("x", (literal(columns),))
    dims = (literal(columns), literal(columns))
    moved = build.einsum([build.triangle(matrix), x], [(0, 1), (1,)], (0,), dims)
    objective = build.sum_over(fn.square(moved), (0,))
    for gap in (0.0, 1e-15, 1e-9, 1e-3):
        a = np.c_[data, data[:, 0] + gap * data[:, 1], data[:, 2] * (1.0 + gap)]
        at = np.array([1.0, -1.0, 2.0, -1.0, -2.0]) + gap
        along = rng.standard_normal(columns)
        v = build.direction("v", x.shape)
        graph = ray_graph(objective, {x: v}, END)
        given = {matrix: a, x: at, v: along, END: np.asarray(0.5)}
        low, high = (float(one) for one in evaluate(graph.numbers, given, {"N": 40})[6:8])
        with mpmath.workdps(50):
            exact = mpmath.matrix(a.tolist()) * mpmath.matrix(along.tolist())
            curvature = 2 * sum(one * one for one in exact)
            assert low <= curvature <= high
        assert high - low <= 1e-8 * high
        value, radius = (float(one) for one in evaluate(graph.numbers, given, {"N": 40})[:2])
        with mpmath.workdps(50):
            exact = mpmath.matrix(a.tolist()) * mpmath.matrix(at.tolist())
            assert abs(sum(one * one for one in exact) - value) <= radius


def test_rays_of_products_of_one_array() -> None:
    """Equal factors along other axes are other terms; a sum of sums is not that of its parts."""
    rng = np.random.default_rng(4)
    m, r = literal(3), literal(2)
    x = build.variable("x", (m, r))
    cubes = build.einsum([x, x, x], [(0, 1), (2, 1), (3, 1)], (0, 2, 3), (m, r, m, m))
    rows = build.sum_over(fn.square(x), (1,))
    total = build.einsum([rows, build.sum_over(fn.exp(x), (1,))], [(0,), (0,)], (), (m,))
    for objective in (build.sum_over(fn.square(cubes), (0, 1, 2)), total):
        values = {x: rng.normal(size=(3, 2))}
        ray = through(Example(objective, (x,), (), {}, values), rng, 0.3)
        assert violations(ray, (0.0, 0.5, 1.0)) == []


def _scalar(f: Callable[[Expr], Expr], at: float, end: float, v: float = 1.0) -> list[float]:
    x, along = build.variable("x", ()), build.direction("v", ())
    graph = ray_graph(f(x), {x: along}, END)
    values = {x: np.asarray(at), along: np.asarray(v), END: np.asarray(end)}
    return [float(one) for one in evaluate(graph.numbers, values, {})]


def test_polynomials_are_bounded_by_their_ends() -> None:
    """x^3 and its derivatives along x = 1 + t, exact but for roundings."""
    found = _scalar(lambda x: fn.mul(fn.square(x), x), 1.0, 0.5)
    assert found[0::2][:3] == [1.0, 3.0, 6.0]
    assert max(found[1:6:2]) < 1e-13
    assert found[6:] == pytest.approx([6.0, 9.0, 6.0, 6.0, 6.0, 7.0, 6.0, 6.0], rel=1e-13)
    assert found[6] <= 6.0
    assert found[7] >= 9.0


def test_the_bound_is_sharp_to_second_order() -> None:
    """For short rays the upper end of φ'' exceeds its supremum by O(end²)."""

    def network(x: Expr) -> Expr:
        return fn.square(fn.sub(fn.tanh(fn.mul(1.3, x)), fn.exp(fn.neg(x))))

    def exact(s: mpmath.mpf) -> mpmath.mpf:
        return (mpmath.tanh(mpmath.mpf(1.3) * s) - mpmath.exp(-s)) ** 2

    def curvature(t: float) -> float:
        with mpmath.workdps(DIGITS):
            return float(mpmath.diff(exact, 0.4 + t, 2))

    for end in (0.1, 0.01, 0.001):
        upper = _scalar(network, 0.4, end)[7]
        truth = max(curvature(share * end) for share in np.linspace(0.0, 1.0, 21))
        assert truth <= upper <= truth + 200.0 * end**2 + 1e-12


@pytest.mark.parametrize("common", [0.0, 30.0])
def test_what_all_exponents_share_does_not_loosen_a_log_sum_exp(common: float) -> None:
    """The curvature of log Σ w exp(a s + b s² + common s) is that of a quadratic and a variance."""
    kinds = named("K")
    a, w = (build.data(name, (kinds,)) for name in "aw")
    x, along = build.variable("x", ()), build.direction("v", ())
    line = build.einsum([x, fn.add(a, common)], [(), (0,)], (0,), (kinds,))
    exponents = fn.add(line, build.broadcast(fn.mul(common, fn.square(x)), (), (kinds,)))
    total = build.einsum([w, fn.exp(exponents)], [(0,), (0,)], (), (kinds,))
    slopes, weights, end = np.asarray([-1.0, 0.5, 2.0]), np.asarray([0.2, 1.0, 0.7]), 0.1
    graph = ray_graph(fn.log(total), {x: along}, END)
    at = {x: np.asarray(0.3), along: np.asarray(1.0), END: np.asarray(end)}
    upper = float(evaluate(graph.numbers, at | {a: slopes, w: weights}, {"K": 3})[7])

    def curvature(s: float) -> float:
        shares = weights * np.exp(slopes * s)
        shares /= shares.sum()
        return 2.0 * common + float(shares @ slopes**2 - (shares @ slopes) ** 2)

    seen = max(map(curvature, np.linspace(0.3, 0.3 + end, 9)))
    assert seen - 1e-11 * (1.0 + common) <= upper <= seen + 0.02


def test_log_sum_exps_with_weights_along_other_axes() -> None:
    """Sums over axes that only a weight, or only the exponent, has, and kinks of the exponent."""
    rng = np.random.default_rng(6)
    m, j, k = literal(2), literal(3), literal(4)
    x, y = build.variable("x", (m, k)), build.variable("y", (k,))
    w, c = build.data("w", (j,)), build.data("c", (j, k))
    u = fn.mul(fn.abs(x), build.broadcast(y, (1,), (m, k)))
    weights = fn.square(w)
    sums = [
        build.einsum([weights, fn.exp(u)], [(1,), (0, 2)], (0,), (m, j, k)),
        build.einsum([fn.square(c), fn.exp(u)], [(1, 2), (0, 2)], (1, 0), (m, j, k)),
        build.einsum([weights, fn.exp(y)], [(0,), (1,)], (0,), (j, k)),
    ]
    for total in sums:
        objective = build.sum_over(fn.log(total), tuple(range(total.rank)))
        given = {w: rng.normal(size=3), c: rng.normal(size=(3, 4))}
        for size in (0.1, 3.0):
            values = {x: rng.normal(size=(2, 4)), y: rng.normal(size=4)} | given
            ray = through(Example(objective, (x, y), (w, c), {}, values), rng, size)
            assert violations(ray, (0.0, 0.5, 1.0)) == []


@pytest.mark.parametrize("end", [0.5, 5.0, 50.0])
def test_functions_of_affine_numbers_are_bounded_by_their_second_derivative(end: float) -> None:
    """Σ w softplus(a s) has the curvature Σ w a² σ(1 - σ), at most a quarter of Σ w a²."""
    samples = named("N")
    a, w = (build.data(name, (samples,)) for name in "aw")
    x, along = build.variable("x", ()), build.direction("v", ())
    line = build.einsum([x, a], [(), (0,)], (0,), (samples,))
    losses = fn.neg(fn.mul(2.0, fn.softplus(line)))
    graph = ray_graph(build.einsum([w, losses], [(0,), (0,)], (), (samples,)), {x: along}, END)
    slopes, weights = np.asarray([-4.0, -1.0, 0.5, 3.0]), np.asarray([1.0, 2.0, 0.3, 1.0])
    at = {x: np.asarray(-0.1), along: np.asarray(1.0), END: np.asarray(end)}
    given = at | {a: slopes, w: weights}
    lower, upper = map(float, evaluate(graph.numbers, given, {"N": 4})[6:8])
    chances = 1.0 / (1.0 + np.exp(-np.outer(np.linspace(-0.1, -0.1 + end, 501), slopes)))
    seen = -2.0 * (chances * (1.0 - chances)) @ (weights * slopes**2)
    assert -0.51 * float(weights @ slopes**2) <= lower <= seen.min()
    assert seen.max() <= upper <= 1e-12


def test_kinks_poles_and_edges_leave_nothing_known() -> None:
    """A kink of order 0 leaves no curvature, one of order 1 no third derivative."""
    for f, at in ((fn.abs, -0.5), (fn.relu, -0.5), (fn.log, -0.5), (fn.tan, 1.0)):
        upper = _scalar(f, at, 1.0)[7]
        assert not upper < math.inf
    inside = _scalar(lambda x: fn.huber(x, build.const(1.0)), 0.5, 0.2)
    across = _scalar(lambda x: fn.huber(x, build.const(1.0)), 0.5, 1.0)
    assert inside[6:] == pytest.approx(2 * [1.0, 1.0, 0.0, 0.0], abs=1e-12)
    assert across[7] == pytest.approx(1.0)
    assert across[9] == math.inf
    assert _scalar(fn.abs, 0.5, 0.4)[7] == pytest.approx(0.0, abs=1e-12)


def test_an_overflow_leaves_nothing_known() -> None:
    assert not _scalar(fn.exp, 700.0, 20.0)[7] < math.inf
    assert not _scalar(lambda x: fn.log(fn.exp(x)), 700.0, 20.0)[9] < math.inf


def test_smooth_functions_have_no_kinks() -> None:
    """The functions above hold every smooth one of the table."""
    smooth = {f for f in fn.FUNCTIONS.values() if f.smoothness == ANALYTIC}
    assert smooth <= set(SMOOTH)
