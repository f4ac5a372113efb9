"""What is proved along a ray, against the truth in many digits and against closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from calculus.rays_of_graphs import DIGITS, END, through, thrown, violations
from random_graphs import KINDS, WITH_LITERALS
from strategies import Example

from slomodel import functions as fn
from slomodel.calculus.rays.ray import ray_graph
from slomodel.errors import MissingRule
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.ir.expr import Expr
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
    return [abs(one) for one in point] if function is fn.pow else point


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


@pytest.mark.parametrize("function", SMOOTH, ids=lambda one: one.name)
def test_stated_scales_of_errors(function: ScalarFunction) -> None:
    """A ray takes the scale of errors to be at most 64 times 1, the operands or the value."""
    stated = function.monotonicity
    if stated is None or stated.error_scale is None:
        return
    rng = np.random.default_rng(3)
    for _ in range(100):
        at = [np.asarray(one) for one in _inside(function, rng)]
        size = max(1.0, abs(float(function.numpy(*at))), *(abs(float(one)) for one in at))
        assert float(stated.error_scale(*at)) <= 64.0 * size


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
    assert found[6:] == pytest.approx([6.0, 9.0, 6.0, 6.0], rel=1e-13)
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


def test_kinks_poles_and_edges_leave_nothing_known() -> None:
    """A kink of order 0 leaves no curvature, one of order 1 no third derivative."""
    for f, at in ((fn.abs, -0.5), (fn.relu, -0.5), (fn.log, -0.5), (fn.tan, 1.0)):
        upper = _scalar(f, at, 1.0)[7]
        assert not upper < math.inf
    inside = _scalar(lambda x: fn.huber(x, build.const(1.0)), 0.5, 0.2)
    across = _scalar(lambda x: fn.huber(x, build.const(1.0)), 0.5, 1.0)
    assert inside[6:] == pytest.approx([1.0, 1.0, 0.0, 0.0], abs=1e-12)
    assert across[7] == pytest.approx(1.0)
    assert across[9] == math.inf
    assert _scalar(fn.abs, 0.5, 0.4)[7] == pytest.approx(0.0, abs=1e-12)


def test_an_overflow_leaves_nothing_known() -> None:
    assert not _scalar(fn.exp, 700.0, 20.0)[7] < math.inf
    assert not _scalar(lambda x: fn.log(fn.exp(x)), 700.0, 20.0)[9] < math.inf


def test_a_recurrence_has_no_proof_yet() -> None:
    n = named("n")
    x, v = build.variable("x", (n,)), build.direction("v", (n,))
    with pytest.raises(MissingRule, match="Scan"):
        ray_graph(build.sum_over(build.scan(x, x, 0), (0,)), {x: v}, END)


def test_smooth_functions_have_no_kinks() -> None:
    """The functions above hold every smooth one of the table."""
    smooth = {f for f in fn.FUNCTIONS.values() if f.smoothness == ANALYTIC}
    assert smooth <= set(SMOOTH)
