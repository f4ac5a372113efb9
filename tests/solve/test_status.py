"""Every way a run can end, each on an objective with that end."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from solve.objectives import Vector, elementwise, parabola, rosenbrock

from slomodel.solve import Functions, Solution, Status, solve
from slomodel.solve.objective import Evaluator
from slomodel.solve.run_options import RunOptions
from slomodel.solve.stagnation.diagnosis import Trial
from slomodel.solve.subroutine import Iterate

DIRECTIONS = pytest.mark.parametrize(
    "direction", ["gradient", "lbfgs", "cg", "lbfgs/newton", "newton-cg", "newton"]
)


def check(found: Solution, status: str) -> None:
    assert found.status == status, found.message
    assert found.success == (status in ("converged", "precision"))
    assert np.all(np.isfinite(found.x))


def test_codes_are_those_of_scipy_and_sentences_are_there() -> None:
    codes = {status.value: status.code for status in Status}
    assert codes["converged"] == codes["precision"] == 0
    assert {codes[s] for s in ("max_iter", "max_time", "max_nfev")} == {1}
    assert codes["line_search_stalled"] == codes["not_descent"] == 2
    assert codes["nonfinite_start"] == 3
    assert codes["user_stopped"] == codes["interrupted"] == 99
    for status in Status:
        assert status.sentence.endswith(".")
        assert status.success == (status.code == 0)
        assert status.remedy.endswith(".") or status in ("converged", "user_stopped")


@DIRECTIONS
@pytest.mark.parametrize("x0", [[5, 5], np.float32([0, 0]), np.array([True, False])])
def test_x0_of_any_real_type_is_float64(x0: Vector, direction: str) -> None:
    found = solve(parabola(0.5), x0, direction=direction)
    check(found, "converged")
    assert found.x.dtype == np.float64
    assert_allclose(found.x, 0.5, atol=1e-6)


@DIRECTIONS
@pytest.mark.parametrize("scale", [1e-200, 1e-20, 1e-12, 1.0, 1e12, 1e200])
def test_units_of_the_objective_do_not_matter(scale: float, direction: str) -> None:
    found = solve(parabola(3.0, scale=scale), [0, 0], direction=direction)
    check(found, "converged")
    assert found.nit > 0
    assert_allclose(found.x, 3.0, rtol=1e-5)


@DIRECTIONS
def test_a_large_constant_does_not_end_the_run_early(direction: str) -> None:
    found = solve(parabola(3.0, offset=1e10), [0.707, 0.707], direction=direction)
    check(found, "converged")
    assert_allclose(found.x, 3.0, rtol=1e-6)


def test_unscaled_tolerance_is_absolute() -> None:
    flat = parabola(3.0, scale=1e-12)
    assert solve(flat, [0, 0], scaled=False).nit == 0
    assert solve(flat, [0, 0], scaled=True).nit > 0


@DIRECTIONS
def test_precision_where_rounding_ends_the_run(direction: str) -> None:
    generator = np.random.default_rng(5)
    A = generator.normal(size=(12, 12))
    H = A @ A.T + np.eye(12)
    b = generator.normal(size=12)
    quadratic = Functions(
        lambda x: 0.5 * float(x @ H @ x) - float(b @ x) + 1e3, lambda x: H @ x - b, 12
    )
    found = solve(quadratic, np.zeros(12), direction=direction, gtol=0.0, max_iter=20_000)
    check(found, "precision")
    assert found.gradient_norm < 1e-7
    assert found.rounding_steps > 0
    exact = np.linalg.solve(H, b)
    assert_allclose(found.x, exact, atol=1e-6)
    assert_allclose(found.gradient_norm, np.linalg.norm(found.jac), rtol=1e-12)


def test_precision_where_large_terms_cancel() -> None:
    stiffness = np.logspace(0, 4, 3)

    def f(x: Vector) -> float:
        return float(np.sum(1e8 * (1.0 + 1e-8 * stiffness * (x - 1.0) ** 2)) - 3e8)

    found = solve(Functions(f, lambda x: 2.0 * stiffness * (x - 1.0), 3), [3, -0.7, 2], gtol=1e-12)
    check(found, "precision")
    assert_allclose(found.x, 1.0, atol=1e-3)


@DIRECTIONS
def test_kink_stalls(direction: str) -> None:
    found = solve(elementwise(np.abs, np.sign, 2), [1, -0.3], direction=direction)
    check(found, "line_search_stalled")
    assert found.gradient_norm == pytest.approx(np.sqrt(2.0))
    assert found.fun < 1e-12
    assert "kink" in found.message
    assert f"{found.gradient_norm:.3g}" in found.message


@DIRECTIONS
@pytest.mark.parametrize("x0", [-3.0, 3.0])
def test_uneven_kink_stalls(x0: float, direction: str) -> None:
    bent = Functions(
        lambda x: float(max(x[0] - 1.0, 10.0 - 10.0 * x[0])),
        lambda x: np.array([1.0 if x[0] > 1.0 else -10.0]),
        1,
    )
    found = solve(bent, [x0], direction=direction)
    check(found, "line_search_stalled")
    assert found.gradient_norm == 1.0, "of the points with f at its floor, the one of least ‖g‖"


@DIRECTIONS
def test_wrong_gradient_stalls(direction: str) -> None:
    wrong = Functions(
        lambda x: float(np.sum((x - 1.0) ** 2 + 3.0 * np.sin(x))), lambda x: 2.0 * (x - 1.0), 2
    )
    found = solve(wrong, [3.0, -0.7], direction=direction)
    check(found, "line_search_stalled")
    assert "check_gradient" in found.message


@DIRECTIONS
@pytest.mark.parametrize("x0", [5.0, 1e-3, -2e4])
def test_gradient_of_the_wrong_sign(x0: float, direction: str) -> None:
    wrong = Functions(parabola(1.0, n=1).fun, lambda x: -2.0 * (x - 1.0), 1)
    found = solve(wrong, [x0], direction=direction)
    check(found, "not_descent")
    assert found.nit == 0
    assert_allclose(found.x, x0)


@DIRECTIONS
@pytest.mark.parametrize(
    ("fun", "jac", "x0"),
    [
        (np.negative, lambda x: -np.ones_like(x), 0.0),
        (lambda x: -(x**2), lambda x: -2.0 * x, 1.0),
        (lambda x: -(x**2), lambda x: -2.0 * x, 1e6),
        (lambda x: x - np.exp(x), lambda x: 1.0 - np.exp(x), 1.0),
        (lambda x: -1.0 / x, lambda x: 1.0 / x**2, 1.0),
    ],
    ids=["-x", "-x^2", "-x^2 from 1e6", "x-exp(x)", "-1/x"],
)
def test_unbounded(fun: object, jac: object, x0: float, direction: str) -> None:
    found = solve(elementwise(fun, jac, 1), [x0], direction=direction, max_iter=500)
    check(found, "unbounded")


def test_a_minimum_many_full_steps_away_is_not_called_unbounded() -> None:
    found = solve(parabola(1e3, n=1), [0.0])
    check(found, "converged")
    assert found.nit > 900
    assert found.nfev < found.nit + 100


@DIRECTIONS
def test_steps_at_the_cap_are_accepted(direction: str) -> None:
    found = solve(parabola(10.0, n=1), [0.0], delta_bar=1.0, direction=direction)
    check(found, "converged")
    assert_allclose(found.history.step[1:9], 1.0, rtol=1e-12)


@pytest.mark.parametrize(("x0", "part"), [(-1.0, "objective is nan"), (np.nan, "Element 0 of x0")])
def test_nonfinite_start(x0: float, part: str) -> None:
    found = solve(elementwise(np.log, lambda x: 1.0 / x, 1), [x0])
    assert found.status == "nonfinite_start"
    assert not found.success
    assert part in found.message


def test_nonfinite_gradient_at_the_start_is_named() -> None:
    root = elementwise(np.sqrt, lambda x: 0.5 / np.sqrt(x), 3)
    found = solve(root, [1.0, 4.0, 0.0])
    assert found.status == "nonfinite_start"
    assert "Element 2 of the gradient is inf" in found.message
    told = solve(root, [1.0, 4.0, 0.0], diagnose=lambda x: f"root of {x[2]:g}")
    assert "root of 0" in told.message


@DIRECTIONS
def test_trials_outside_the_domain_are_rejected(direction: str) -> None:
    barrier = elementwise(lambda x: x - np.log(x), lambda x: 1.0 - 1.0 / x, 2)
    found = solve(barrier, [5.0, 0.01], direction=direction)
    check(found, "converged")
    assert_allclose(found.x, 1.0, rtol=1e-5)
    assert np.all(np.isfinite(found.history.fun))


def test_a_trial_with_a_nonfinite_gradient_is_rejected() -> None:
    def jac(x: Vector) -> Vector:
        return 2.0 * x if abs(x[0]) < 4.5 else np.array([np.nan])

    found = solve(
        Functions(lambda x: float(x[0] ** 2) if x[0] > -4.5 else -1.0, jac, 1),
        [4.0],
        delta_bar=9.0,
        initial_step="full",
    )
    check(found, "converged")
    assert abs(found.x[0]) < 1e-6


@DIRECTIONS
def test_maximize(direction: str) -> None:
    hill = parabola(2.0, scale=-1.0, offset=7.0)
    found = solve(hill, [0.0, 0.0], sense="maximize", direction=direction)
    check(found, "converged")
    assert found.fun == hill.value(found.x) == pytest.approx(7.0)
    assert_allclose(found.jac, hill.jac(found.x))
    assert found.history.fun[0] == -1.0
    assert np.all(np.diff(found.history.fun) >= 0.0)


def test_a_steep_start_takes_bounded_steps() -> None:
    quartic = elementwise(lambda x: x**4, lambda x: 4.0 * x**3, 1)
    found = solve(quartic, [1e5], delta_bar=1e4)
    check(found, "converged")
    assert np.all(np.diff(found.history.fun) <= 0.0)
    assert np.all(found.history.step <= 1e4 * (1 + 1e-12))


def test_a_kink_is_not_a_gradient_of_the_wrong_sign() -> None:
    """A step across a kink may rise as much as the gradients at its ends imply that f falls."""
    at, v, suspected = Iterate(np.zeros(1), 0.0, np.full(1, -1.0), 1.0), np.ones(1), 0
    for rise in (0.2, 0.4, 0.7, 1.0, 3.0):
        for kink in np.linspace(0.0, 0.98, 50):
            bent = Functions(
                lambda x, k=kink, b=rise: float(max(-x[0], b * (x[0] - k) - k)),
                lambda x, k=kink, b=rise: np.full(1, b if x[0] > k else -1.0),
                1,
            )
            evaluate = Evaluator(bent, RunOptions())
            trial = Trial.along(evaluate, at, v, 1.0)
            ending = trial.ending(0.0)
            suspected += ending is Status.not_descent
            assert trial.confirmed(ending, evaluate, at, v, 0.0) is not Status.not_descent
    assert suspected > 20


def test_counts_in_the_message_are_the_counters() -> None:
    found = solve(rosenbrock(), [-1.2, 1.0], max_iter=5)
    check(found, "max_iter")
    assert found.nit == 5
    assert f"5 iterations, {found.nfev} values, 6 gradients" in found.message


@pytest.mark.parametrize(("sense", "other"), [("minimize", "maximum"), ("maximize", "minimum")])
def test_a_stationary_start_is_not_praised(sense: str, other: str) -> None:
    saddle = Functions(lambda x: float(x[0] * x[1]), lambda x: x[::-1].copy(), 2)
    found = solve(saddle, [0.0, 0.0], sense=sense)
    check(found, "converged")
    assert f"already stationary: it may be a saddle or a {other}" in found.message
    assert "random init" in found.message
    moved = solve(parabola(), [0.0, 0.0])
    assert "stationary" not in moved.message
    assert "stationary" not in solve(parabola(n=0), []).message


def test_messages_of_a_maximum() -> None:
    rising = elementwise(np.square, lambda x: 2.0 * x, 2)
    found = solve(rising, [1.0, 1.0], sense="maximize", max_iter=500)
    check(found, "unbounded")
    assert "unbounded above" in found.message
    assert "below" not in found.message
    bent = elementwise(lambda x: -np.abs(x), lambda x: -np.sign(x), 2)
    found = solve(bent, [1, -0.3], sense="maximize")
    check(found, "line_search_stalled")
    assert "raises the objective" in found.message
    wrong = Functions(lambda x: -float(x @ x), lambda x: 2.0 * x, 2)
    found = solve(wrong, [1.0, 1.0], sense="maximize")
    check(found, "not_descent")
    assert "falls along the gradient" in found.message
    assert "whether a minimum is wanted" in found.message


def test_limits_point_to_the_faster_method() -> None:
    for method in ("norm-armijo", "std-armijo", "pgd", "tgd"):
        assert "method auto" in solve(rosenbrock(), [-1.2, 1.0], method=method, max_iter=3).message
    for options in ({"method": "auto"}, {"direction": "lbfgs"}):
        found = solve(rosenbrock(), [-1.2, 1.0], max_iter=3, **options)
        check(found, "max_iter")
        assert "method auto" not in found.message


@pytest.mark.parametrize("method", ["auto", "pgd", "tgd", "std-armijo"])
def test_a_start_whose_norm_overflows_gives_no_warning(method: str) -> None:
    huge = Functions(lambda x: float(np.abs(x).sum()), np.sign, 2)
    options = {"lipschitz": 1.0} if method in ("pgd", "tgd") else {}
    found = solve(huge, [1e200, 1e200], method=method, max_iter=2, **options)
    assert np.isfinite(found.fun)
