"""L-BFGS directions against dense updates, and the rules for the first step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from solve.objectives import Vector

from slomodel.solve.directions.direction import Gradient, SecantPair
from slomodel.solve.directions.lbfgs import LBFGS
from slomodel.solve.line_search.initial_step import INITIAL_STEPS, StepMemory
from slomodel.solve.norms import norm, slope_along
from slomodel.solve.subroutine import Iterate

# As in a run: squares past the largest number are met, not warned about.
WITHOUT_WARNINGS = np.errstate(all="ignore")


def pair_of(s: Vector, y: Vector) -> SecantPair:
    return SecantPair(s, y, float(s @ y), norm(s), norm(y))


def at(g: Vector) -> Iterate:
    """A point with this gradient; where it lies is not asked."""
    return Iterate(np.zeros_like(g), 0.0, g, norm(g))


def dense_bfgs(pairs: list[tuple[Vector, Vector]], n: int) -> Vector:
    """The inverse Hessian estimate by n × n products, oldest pair first."""
    s, y = pairs[-1]
    H = np.eye(n) * (s @ y) / (y @ y)
    for s, y in pairs:
        rho = 1.0 / (s @ y)
        V = np.eye(n) - rho * np.outer(y, s)
        H = V.T @ H @ V + rho * np.outer(s, s)
    return H


def curved_pairs(seed: int, n: int, count: int) -> list[tuple[Vector, Vector]]:
    generator = np.random.default_rng(seed)
    B = generator.normal(size=(n, n))
    A = B @ B.T + 0.1 * np.eye(n)
    steps = generator.normal(size=(count, n))
    return [(s, A @ s + 0.01 * generator.normal(size=n)) for s in steps]


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), count=st.integers(1, 40))
def test_lbfgs_is_dense_bfgs_of_the_last_pairs(seed: int, n: int, count: int) -> None:
    direction = LBFGS(n, 1.0, memory=4)
    kept = []
    for s, y in curved_pairs(seed, n, count):
        before = direction.count, direction.pairs[0].copy()
        direction.learn(pair_of(s, y))
        if s @ y > 1e-7 * norm(s) * norm(y):
            kept = [*kept, (s, y)][-4:]
        else:
            assert direction.count == before[0]
    if not kept:
        return
    g = np.random.default_rng(seed + 1).normal(size=n)
    v = np.empty(n)
    vnorm = direction.propose(at(g), v)
    expected = -dense_bfgs(kept, n) @ g
    H = dense_bfgs(kept, n)
    slack = 1e-9 * np.linalg.cond(H) * max(1.0, norm(expected))
    assert_allclose(v, expected, rtol=1e-6, atol=slack)
    assert vnorm == pytest.approx(norm(v))
    assert_array_equal(direction.pairs[0], [s for s, _ in kept])


def test_secant_equation() -> None:
    direction = LBFGS(5, 1.0)
    pairs = curved_pairs(1, 5, 3)
    for s, y in pairs:
        direction.learn(pair_of(s, y))
    s, y = pairs[-1]
    v = np.empty(5)
    direction.propose(at(y), v)
    assert_allclose(v, -s, rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@WITHOUT_WARNINGS
def test_scale_of_the_objective(scale: float) -> None:
    plain, scaled = LBFGS(4, 1.0), LBFGS(4, 1.0)
    for s, y in curved_pairs(2, 4, 6):
        plain.learn(pair_of(s, y))
        scaled.learn(pair_of(s, scale * y))
    g = np.arange(1.0, 5.0)
    v, w = np.empty(4), np.empty(4)
    plain.propose(at(g), v)
    scaled.propose(at(scale * g), w)
    assert_allclose(w, v, rtol=1e-10)


def test_pairs_without_curvature_are_skipped() -> None:
    direction = LBFGS(2, 1.0)
    s = np.array([1.0, 0.0])
    for y in (-s, np.zeros(2), np.array([0.0, 1.0]), np.array([1e-9, 1.0])):
        direction.learn(pair_of(s, y))
        assert direction.count == 0
    direction.learn(pair_of(s, np.array([1e-6, 1.0])))
    assert direction.count == 1


def test_before_any_pair_the_direction_has_the_length_of_the_search() -> None:
    g = np.array([3.0, 4.0]) * 1e-150
    v = np.empty(2)
    assert LBFGS(2, 7.0).propose(at(g), v) == pytest.approx(7.0)
    assert_allclose(v, [-4.2, -5.6])
    assert Gradient().propose(at(g), v) == norm(g)
    assert_array_equal(v, -g)


def test_minus_the_gradient_is_never_lost_to_underflow() -> None:
    direction = LBFGS(1, 1.0)
    direction.learn(pair_of(np.array([1e-8]), np.array([1.0])))
    v = np.empty(1)
    assert direction.fallback(at(np.array([5e-324])), v) == 5e-324
    assert_array_equal(v, [-5e-324])


def test_first_steps() -> None:
    s, y = np.array([0.0, 2.0]), np.array([1.0, 4.0])
    memory = StepMemory(pair_of(s, y), 0.25)
    first = {name: rule(10.0, memory) for name, rule in INITIAL_STEPS.items()}
    assert first == pytest.approx({"full": 10.0, "bb": 0.5, "unit": 1.0, "memory": 1.0})
    capped = {rule(0.1, memory) for rule in INITIAL_STEPS.values()}
    assert capped == {0.1}
    for other in (StepMemory(), StepMemory(pair_of(s, -y)), StepMemory(pair_of(s, 0.0 * y))):
        assert INITIAL_STEPS["bb"](10.0, other) == 10.0
    assert INITIAL_STEPS["memory"](10.0, StepMemory()) == 10.0


@given(
    st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=6),
    st.sampled_from([1e-300, 1e-200, 1.0, 1e200, 1e300]),
)
@WITHOUT_WARNINGS
def test_norm_scales(values: list[float], scale: float) -> None:
    v = np.array(values)
    v[np.abs(v) < 1e-3] = 0.0
    assert norm(scale * v) == pytest.approx(scale * float(np.linalg.norm(v)), rel=1e-14, abs=0.0)


def test_norm_of_nothing_and_of_what_is_not_finite() -> None:
    assert norm(np.zeros(3)) == norm(np.zeros(0)) == 0.0
    assert np.isnan(norm(np.array([1.0, np.nan])))
    assert norm(np.array([1.0, -np.inf])) == np.inf


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@WITHOUT_WARNINGS
def test_slope_scales(scale: float) -> None:
    g, v = np.array([1.0, 2.0]), np.array([-3.0, 0.5])
    expected = float(g @ v) / norm(v)
    found = slope_along(scale * g, norm(scale * g), scale * v, norm(scale * v))
    assert found == pytest.approx(scale * expected, rel=1e-14)
