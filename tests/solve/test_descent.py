"""Laws of pgd and tgd: travel, descent of steps and epochs, and no stall at the boundary."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from solve.objectives import parabola, recorded_constants, recorded_problem, traces
from solve.test_line_search import CLASSICS

from slomodel.solve import Functions, Solution, State, solve
from slomodel.solve.norms import EPS
from slomodel.solve.stagnation.resolution import ROUNDING

METHODS = pytest.mark.parametrize("method", ["pgd", "tgd"])
PROBLEMS = sorted(traces()["problems"])
SMALL = st.floats(-1.5, 1.5)


def run(objective: Functions, x0: object, **options: object) -> tuple[Solution, list[State]]:
    seen: list[State] = []
    return solve(objective, x0, callback=seen.append, **options), seen


def epochs_of(seen: list[State]) -> list[list[State]]:
    """The points of each epoch, its centre first."""
    groups = [[seen[0]]]
    for state in seen[1:]:
        if state.epoch > len(groups):
            groups.append([groups[-1][-1]])
        groups[-1].append(state)
    return groups


def slack(state: State) -> float:
    return ROUNDING * EPS * (abs(state.fun) + 1.0)


@settings(max_examples=100)
@given(
    name=st.sampled_from(PROBLEMS),
    start=st.lists(SMALL, min_size=6, max_size=6),
    D=st.sampled_from([0.05, 0.3, 1.0]),
    method=st.sampled_from(["pgd", "tgd"]),
)
def test_the_theorems_hold_with_valid_constants(
    name: str, start: list[float], D: float, method: str
) -> None:
    objective, gtol = recorded_problem(name), 1e-3
    found, seen = run(
        objective,
        start[: objective.n],
        method=method,
        D=D,
        gtol=gtol,
        scaled=False,
        max_iter=200,
        lipschitz=recorded_constants(name),
    )
    assert found.violations == 0
    # The points where an epoch ended, but for the run's last.
    groups = epochs_of(seen)
    for record, points in zip(found.epochs, groups, strict=False):
        L1, d = record.L1, found.parameters["d"]
        centre = points[0].x
        for old, new in pairwise(points):
            assert np.linalg.norm(new.x - centre) <= D + 8.0 * EPS * (D + np.linalg.norm(new.x))
            step = np.linalg.norm(new.x - old.x)
            assert new.fun - old.fun <= -0.5 * L1 * step**2 + slack(old)
            if method == "tgd":
                assert step <= d + 8.0 * EPS * (d + np.linalg.norm(new.x))
                assert gtol / d <= L1
            if new is not points[-1]:
                assert new.fun - old.fun <= -(gtol**2) / (2.0 * L1) + slack(old)
                assert np.linalg.norm(new.x - centre) < D - d + 8.0 * EPS
    for points in groups[:-1]:
        assert points[-1].fun - points[0].fun <= -gtol * D / 4.0 + slack(points[0])


@pytest.mark.parametrize("seed", range(8))
def test_projected_points_end_their_epochs(seed: int) -> None:
    """Rounding puts some of them inside D: comparing distances, pgd would stay there."""
    generator = np.random.default_rng(seed)
    n = 7
    target = 400.0 * generator.standard_normal(n)
    bowl = Functions(lambda x: 0.5 * float((x - target) @ (x - target)), lambda x: x - target, n)
    x0 = generator.standard_normal(n)
    found, seen = run(bowl, x0, method="pgd", D=0.7, lipschitz=1.0, max_iter=3000)
    assert found.status == "converged"
    distance = float(np.linalg.norm(target - x0))
    assert found.nit == np.ceil(distance / 0.7)
    assert all(epoch.iterations == 1 for epoch in found.epochs[:-1])
    lengths = [np.linalg.norm(b.x - a.x) for a, b in pairwise(seen[:-1])]
    assert_allclose(lengths, 0.7, rtol=1e-11)
    assert min(lengths) < 0.7, "none lay inside: the test shows nothing"


def test_pgd_may_have_a_margin() -> None:
    found, seen = run(parabola(9.0), [0, 0], method="pgd", D=1.0, d=0.3, lipschitz=20.0, gtol=1e-4)
    assert found.status == "converged"
    for points in epochs_of(seen)[:-1]:
        distances = [np.linalg.norm(point.x - points[0].x) for point in points[1:]]
        assert all(distance < 0.7 for distance in distances[:-1])
        assert 0.7 <= distances[-1] <= 1.0 + 1e-14


def test_a_constant_of_zero_takes_pgd_to_the_boundary() -> None:
    slope = Functions(lambda x: float(x @ [3.0, 4.0]), lambda x: np.array([3.0, 4.0]), 2)
    found, seen = run(slope, [1.0, 1.0], method="pgd", D=5.0, lipschitz=0.0, max_iter=3)
    assert_allclose([state.x for state in seen], [[1.0, 1.0], [-2, -3], [-5, -7], [-8, -11]])
    assert found.violations == 0


@METHODS
@pytest.mark.parametrize("scale", [1e-200, 1e-20, 1.0, 1e12, 1e200])
def test_units_of_the_objective_do_not_matter(scale: float, method: str) -> None:
    found = solve(parabola(3.0, scale=scale), [0, 0], method=method)
    assert found.status == "converged"
    assert 0 < found.nit < 30
    assert_allclose(found.x, 3.0, rtol=1e-5)


@METHODS
@pytest.mark.parametrize("name", ["logistic", "expsum"])
def test_sampled_constants_reach_the_minimiser(name: str, method: str) -> None:
    objective, x0 = CLASSICS[name]
    found = solve(objective, x0, method=method)
    reference = solve(objective, x0, method="auto", gtol=1e-9)
    assert found.status == "converged"
    assert_allclose(found.x, reference.x, atol=1e-5)
    assert {epoch.source for epoch in found.epochs} == {"sampled"}
    assert found.njev == found.nit + 1 + 30 * len(found.epochs)


@METHODS
def test_rosenbrock_descends_with_sampled_constants(method: str) -> None:
    objective, x0 = CLASSICS["rosenbrock 30"]
    found, _ = run(objective, x0, method=method, max_iter=4000)
    assert found.fun < 0.01 * objective.value(x0)
    assert np.all(np.diff(found.history.fun) <= 0.0)
    assert sum(epoch.iterations for epoch in found.epochs) == found.nit


@METHODS
def test_a_run_repeats_to_the_bit_and_the_seed_matters(method: str) -> None:
    objective, x0 = CLASSICS["expsum"]
    first, again, other = (solve(objective, x0, method=method, seed=s) for s in (3, 3, 4))
    assert_array_equal(first.x, again.x)
    assert_array_equal(first.history.fun, again.history.fun)
    assert first.epochs == again.epochs
    assert first.epochs[0].L1 != other.epochs[0].L1
    assert_allclose(first.x, other.x, atol=1e-5)


@METHODS
def test_maximize(method: str) -> None:
    hill = parabola(2.0, scale=-1.0, offset=7.0)
    found = solve(hill, [0.0, 0.0], sense="maximize", method=method)
    assert found.status == "converged"
    assert found.fun == hill.value(found.x) == pytest.approx(7.0)
    assert np.all(np.diff(found.history.fun) >= 0.0)
