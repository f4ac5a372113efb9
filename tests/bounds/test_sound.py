"""No point of a ball violates a bound: random graphs, models, rechecks."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from bounds.fuzz import RADII, cases, in_units, part_of
from bounds.objective_graph import ObjectiveGraph
from bounds.settings import claimed, setting
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Example, graphs

from slomodel import functions as fn
from slomodel.bounds import ObjectivePart, pipeline
from slomodel.bounds.enclosure import Enclosure
from slomodel.bounds.rules.table import RULES
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Expr

X = build.variable("x", (literal(3),))
Bound = Callable[[ObjectivePart, float], Enclosure | None]
CENTRE = np.array([0.3, -0.5, 0.9])
EVERY = (*(rule.bound for rule in RULES), pipeline.sum_of_parts)


def simple(objective: Expr, centre: np.ndarray = CENTRE) -> ObjectivePart:
    return ObjectivePart(objective, (X,), {X: centre}, {})


def alone(strategy: Bound) -> Callable[[ObjectivePart, float], tuple[float, float]]:
    """What one strategy claims without the others; inf where it is silent."""

    def ask(setting: ObjectivePart, radius: float) -> tuple[float, float]:
        with np.errstate(all="ignore"):
            found = claimed(strategy, setting, radius)
        return (math.inf, math.inf) if found is None else (found.L1, found.L2)

    return ask


@pytest.mark.sampled(8)
@pytest.mark.parametrize("strategy", EVERY, ids=lambda one: one.__name__)
@pytest.mark.parametrize("smooth", [True, False])
@settings(max_examples=6)
@given(data=st.data())
def test_no_claim_is_passed_on_random_graphs(
    strategy: Bound, smooth: bool, data: st.DataObject
) -> None:
    example: Example = data.draw(graphs(smooth=smooth, max_steps=5))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    for case in cases(part_of(example), rng, (0.0, 1e-3, 1.0), alone(strategy)):
        for which in ("L1", "L2"):
            assert not case.violates(which), (case.radius, case.bound, case.witnesses)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("smooth", [True, False])
@settings(max_examples=2)
@given(data=st.data())
def test_no_bound_is_passed_on_random_graphs(smooth: bool, data: st.DataObject) -> None:
    example: Example = data.draw(graphs(smooth=smooth, max_steps=5))
    seed = data.draw(st.integers(0, 2**16))
    for case in cases(part_of(example), np.random.default_rng(seed)):
        for which in ("L1", "L2"):
            assert not case.violates(which), (case.radius, case.bound, case.witnesses)


def sum_of(function: Callable[[Expr], Expr]) -> Expr:
    return build.sum_over(function(X), (0,))


# Constants of Σφ(x_i) over the ball: the largest |φ''| and |φ'''| over |x_i − c_i| ≤ r.
EXACT = {
    "square": (sum_of(fn.square), lambda r: (2.0, 0.0)),
    "exp": (sum_of(fn.exp), lambda r: (math.exp(0.9 + r), math.exp(0.9 + r))),
    "cube": (sum_of(lambda x: fn.mul(x, fn.square(x))), lambda r: (6.0 * (0.9 + r), 6.0)),
    "fourth": (
        sum_of(lambda x: fn.square(fn.square(x))),
        lambda r: (12.0 * (0.9 + r) ** 2, 24.0 * (0.9 + r)),
    ),
}


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("name", EXACT)
def test_the_search_comes_within_one_percent(name: str, radius: float) -> None:
    """The opponent is strong: it finds a bound that is 1 % too small, and none that is exact."""
    objective, constants = EXACT[name]

    def exact(setting: ObjectivePart, r: float) -> tuple[float, float]:
        L1, L2 = constants(r)
        return L1 * (1.0 + 1e-13), L2 * (1.0 + 1e-13)

    def too_small(setting: ObjectivePart, r: float) -> tuple[float, float]:
        L1, L2 = constants(r)
        return 0.99 * L1, 0.99 * L2

    rng = np.random.default_rng(0)
    (case,) = cases(simple(objective), rng, (radius,), exact)
    assert not case.violates("L1")
    assert not case.violates("L2")
    (case,) = cases(simple(objective), rng, (radius,), too_small)
    assert case.violates("L1")
    assert case.violates("L2") or constants(radius)[1] == 0.0


def test_a_bound_over_a_ball_that_leaves_the_domain_is_found() -> None:
    (case,) = cases(
        simple(sum_of(fn.log), np.array([1.0, 2.0, 3.0])),
        np.random.default_rng(0),
        (2.0,),
        lambda setting, radius: (1e9, 1e9),
    )
    assert case.violates("L1")


@settings(max_examples=20)
@given(example=graphs(max_steps=5), seed=st.integers(0, 2**16))
def test_the_graphs_in_60_digits_are_those_in_doubles(example: Example, seed: int) -> None:
    from bounds.objective_graph import exact

    graph = ObjectiveGraph(part_of(example))
    v = np.random.default_rng(seed).standard_normal(graph.n)
    c = graph.centre
    for doubles, digits in (
        (graph.gradient(c), graph.exact_gradient(exact(c))),
        (graph.hvp(c, v), graph.exact_hvp(exact(c), exact(v))),
    ):
        scale = 1.0 + float(np.abs(doubles).max(initial=0.0))
        np.testing.assert_allclose(digits.astype(float) / scale, doubles / scale, atol=1e-9)


@pytest.mark.parametrize("jump", [1.0, 1e-13])
@pytest.mark.parametrize("name", ["kink", "join", "jump"])
def test_a_finite_bound_across_a_kink_is_found(name: str, jump: float) -> None:
    """The slope, or the value, jumps by this at one plane of the ball: no constant holds."""
    t = fn.sub(build.inner(X, X), 1.2)
    low = build.inner(X, X)
    high = {
        "kink": fn.add(low, fn.mul(jump, fn.relu(t))),
        "join": fn.where(fn.gt(t, 0.0), fn.add(low, fn.mul(jump, t)), low),
        "jump": fn.where(fn.gt(t, 0.0), fn.add(low, jump), low),
    }[name]
    objective = fn.mul(1.0 / jump, high)
    rng = np.random.default_rng(0)
    (case,) = cases(simple(objective), rng, (0.5,), lambda setting, radius: (1e3 / jump, 1e3))
    assert case.violates("L1")


@pytest.mark.parametrize("text", ["abs(x - 0.1)*(x - 0.1)", "where(x > 0.1, (x - 0.1)^2, 0)"])
def test_a_join_that_is_smooth_is_not_a_violation(text: str) -> None:
    one = setting(f"var x minimize {text}", [0.2])
    (case,) = cases(one, np.random.default_rng(0), (0.5,))
    assert case.bound["L1"] == pytest.approx(2.0)
    assert not case.violates("L1")


def test_bounds_of_an_objective_in_other_units_are_set_against_the_same_points() -> None:
    """Of 2^k f(2^l x), however far from 1 these are: the numbers keep their exponents."""
    one = simple(sum_of(fn.exp))
    (case,) = cases(one, np.random.default_rng(0), (0.5,))
    for units in ((-300, -200), (400, -350)):
        other = in_units(case, *units)
        assert other is not None
        for which in ("L1", "L2"):
            assert float(other.bound[which]) == pytest.approx(case.bound[which])
            assert not other.violates(which)
            low = replace(other, bound={which: other.bound[which] * 0.9})
            assert low.violates(which)
