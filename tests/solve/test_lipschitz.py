"""Sources of constants: sampled estimates, and the consequences of too small ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from solve.objectives import Vector, elementwise, parabola

from slomodel.errors import DomainError
from slomodel.solve import Functions, load_solution, solve
from slomodel.solve.constants.source import GROUP_BYTES, Sampled, in_unit_ball, steepest_pair
from slomodel.solve.objective import Evaluator
from slomodel.solve.run_options import RunOptions
from slomodel.solve.subroutine import Iterate

METHODS = pytest.mark.parametrize("method", ["pgd", "tgd"])


def quadratic(H: Vector) -> Functions:
    return Functions(lambda x: 0.5 * float(x @ H @ x), lambda x: H @ x, len(H))


def estimate(objective: Functions, centre: Vector, radius: float, **options: float) -> float:
    """L1 over the ball by Sampled."""
    evaluate = Evaluator(objective, RunOptions())
    at = Iterate(centre, 0.0, np.empty_like(centre), 0.0)
    source = Sampled(**{"samples": 60, "safety": 1.0} | options)
    with np.errstate(all="ignore"):
        at.gnorm = evaluate.gradient(at.x, at.g)
        return source.start(evaluate, 0)(at, radius).L1


def test_samples_of_a_quadratic_lie_between_its_eigenvalues() -> None:
    generator = np.random.default_rng(1)
    for n in (1, 2, 5, 40):
        A = generator.standard_normal((n, n))
        H = A @ A.T
        low, high = np.linalg.eigvalsh(H)[[0, -1]]
        found = estimate(quadratic(H), generator.standard_normal(n), 0.3)
        assert low * (1 - 1e-9) <= found <= high * (1 + 1e-9)
        if n <= 2:
            assert found >= 0.98 * high


@pytest.mark.parametrize("radius", [1e-6, 1.0, 1e5])
@pytest.mark.parametrize("scale", [1e-180, 1.0, 1e180])
def test_no_scale_is_lost(radius: float, scale: float) -> None:
    found = estimate(quadratic(3.0 * scale * np.eye(4)), np.full(4, 0.1), radius)
    assert_allclose(found, 3.0 * scale, rtol=1e-8)


def test_safety_multiplies() -> None:
    objective, centre = quadratic(np.diag([1.0, 9.0])), np.ones(2)
    plain, safe = (estimate(objective, centre, 1.0, safety=s) for s in (1.0, 1.5))
    assert safe == 1.5 * plain


def test_the_steepest_pair_is_the_one_of_all_pairs() -> None:
    generator = np.random.default_rng(2)
    U, G = generator.standard_normal((2, 25, 6))
    ratios = [
        np.linalg.norm(G[i] - G[j]) / np.linalg.norm(U[i] - U[j])
        for i in range(25)
        for j in range(i)
    ]
    assert_allclose(steepest_pair(U, G), max(ratios), rtol=1e-12)
    assert steepest_pair(np.zeros((3, 2)), G[:3, :2]) == -np.inf


def test_points_fill_the_ball_evenly() -> None:
    generator = np.random.default_rng(3)
    points = np.array([in_unit_ball(generator, 3) for _ in range(4000)])
    lengths = np.linalg.norm(points, axis=1)
    assert lengths.max() <= 1.0
    # P(‖x‖ ≤ t) = t³; 0.04 is more than five standard deviations of 4000 draws.
    for t in (0.3, 0.6, 0.8, 0.95):
        assert abs(np.mean(lengths <= t) - t**3) < 0.04
    assert np.all(np.abs(points.mean(axis=0)) < 0.04)


def test_large_problems_are_sampled_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def jac(x: Vector) -> Vector:
        calls.append(x)
        return 5.0 * x

    monkeypatch.setattr("slomodel.solve.constants.source.GROUP_BYTES", 16 * 3 * 5)
    assert GROUP_BYTES > 10**8
    found = estimate(Functions(lambda x: 0.0, jac, 3), np.ones(3), 1.0, samples=11)
    assert_allclose(found, 5.0)
    assert len(calls) == 12


def test_points_outside_the_domain_are_left_out() -> None:
    root = elementwise(np.sqrt, lambda x: 0.5 / np.sqrt(x), 2)
    found = estimate(root, np.array([0.5, 0.5]), 1.0)
    assert 0.5 < found < np.inf
    nowhere = Functions(
        lambda x: 0.0, lambda x: np.zeros(2) if not x.any() else np.full(2, np.nan), 2
    )
    assert estimate(nowhere, np.zeros(2), 1.0) == np.inf


@METHODS
def test_a_sampled_constant_that_is_too_small_is_doubled(method: str) -> None:
    objective = parabola(3.0)
    found = solve(objective, [0.0, 0.0], method=method, safety=0.3)
    assert found.status == "converged"
    assert np.all(np.diff(found.history.fun) <= 0.0)
    # L1 = 2: 0.3·2 is doubled to 1.2 and 2.4, or less often where d cuts the steps.
    assert found.violations == sum(epoch.violations for epoch in found.epochs) > 0
    for epoch in found.epochs:
        assert_allclose(epoch.L1, 0.6 * 2.0**epoch.violations, rtol=1e-9)
    assert max(epoch.violations for epoch in found.epochs) == 2
    assert f"too small for {found.violations} steps, and doubled" in found.message
    assert found.nfev >= found.nit + 1 + found.violations


@METHODS
@pytest.mark.parametrize("given", [0.5, lambda centre, radius: (0.5, 1.0)])
def test_a_given_constant_that_is_too_small_is_kept(method: str, given: object) -> None:
    found = solve(parabola(0.3), [0.0, 0.0], method=method, lipschitz=given, D=4.0, max_iter=21)
    assert not found.success
    assert {epoch.L1 for epoch in found.epochs} == {0.5}
    assert found.violations > 5
    assert "The given L1 is too small" in found.message
    assert found.history.fun.max() > found.history.fun[0]
    assert (
        found.history.fun[-1] > found.fun == found.history.fun.min() == parabola(0.3).value(found.x)
    )
    assert_array_equal(found.jac, parabola(0.3).jac(found.x))


def test_a_rise_is_counted_once() -> None:
    """Too small an L1 in the first epoch: what follows is above the start and descends."""
    answers = iter([0.5])

    def constants(centre: Vector, radius: float) -> float:
        return next(answers, 20.0)

    found = solve(parabola(3.0), [2.0, 2.0], method="pgd", D=4.0, lipschitz=constants)
    assert found.status == "converged"
    assert [epoch.violations for epoch in found.epochs] == [1, 0]
    assert found.history.fun[3] > found.history.fun[0]


@METHODS
def test_cancellation_is_not_a_violation(method: str) -> None:
    stiffness = np.array([1.0, 10.0, 100.0])

    def f(x: Vector) -> float:
        return float(np.sum(1e8 * (1.0 + 1e-8 * stiffness * (x - 1.0) ** 2)) - 3e8)

    objective = Functions(f, lambda x: 2.0 * stiffness * (x - 1.0), 3)
    found = solve(objective, [3, -0.7, 2], method=method, lipschitz=200.0, gtol=1e-9)
    assert found.status == "converged"
    assert found.violations == 0
    assert found.rounding_steps > 100


@METHODS
def test_a_given_constant_that_never_descends_ends_the_run(method: str) -> None:
    found = solve(parabola(0.3), [0.0, 0.0], method=method, lipschitz=0.5, D=4.0)
    assert found.status == "line_search_stalled"
    assert found.nit < 1000
    assert "With L1 = 0.5 the steps are too long" in found.message


@METHODS
def test_a_step_to_where_nothing_is_finite_is_shortened(method: str) -> None:
    barrier = elementwise(lambda x: x - np.log(x), lambda x: 1.0 - 1.0 / x, 2)
    found = solve(barrier, [5.0, 3.0], method=method, D=40.0, d=10.0, lipschitz=0.05)
    assert found.epochs[0].violations > 0
    assert found.epochs[0].L1 > 0.05
    assert np.all(np.isfinite(found.history.fun))


@METHODS
@pytest.mark.parametrize(
    ("L1", "part"),
    [(np.inf, "With L1 = inf the steps are too short"), (1e25, "With L1 = 1e+25 the steps")],
)
def test_a_constant_that_allows_no_step(method: str, L1: float, part: str) -> None:
    found = solve(parabola(), [0.3, 0.3], method=method, lipschitz=lambda centre, radius: L1)
    assert found.status == "line_search_stalled"
    assert part in found.message
    assert_array_equal(found.x, 0.3)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "2",
        -1.0,
        np.nan,
        (1.0, -2.0),
        (1.0, 2.0, 3.0),
        [1.0, 2.0],
        True,
        np.array(True),
        np.ones(1),
    ],
)
def test_answers_that_are_not_constants(answer: object) -> None:
    with pytest.raises(DomainError, match=r"lipschitz\(centre, radius\): expected L1 or"):
        solve(parabola(), [0.0, 0.0], method="pgd", lipschitz=lambda centre, radius: answer)


@pytest.mark.parametrize(
    "answer", [2, np.float32(2.0), np.array(2.0), (2.0, np.inf), (np.array(2), 0)]
)
def test_answers_that_are_constants(answer: object) -> None:
    found = solve(parabola(), [0.0, 0.0], method="pgd", lipschitz=lambda centre, radius: answer)
    assert found.status == "converged"
    assert found.epochs[0].L1 == 2.0


def test_the_function_cannot_change_the_run() -> None:
    def spoil(centre: Vector, radius: float) -> float:
        centre[:] = np.nan
        return 2.0

    spoilt, plain = (solve(parabola(), [0, 0], method="tgd", lipschitz=s) for s in (spoil, 2.0))
    assert_array_equal(spoilt.history.fun, plain.history.fun)


def test_epochs_are_saved(tmp_path: object) -> None:
    found = solve(parabola(3.0), [0.0, 0.0], method="pgd", safety=0.3)
    path = f"{tmp_path}/run.npz"
    found.save(path)
    again = load_solution(path)
    assert again.epochs == found.epochs
    assert again.violations == found.violations > 0
    assert again.parameters == found.parameters
