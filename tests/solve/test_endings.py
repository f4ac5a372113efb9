"""Every way a run can end, for the methods that are not norm-armijo."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from solve.objectives import Counting, Vector, elementwise, parabola, recorded_problem, rosenbrock

from slomodel.solve import METHODS, Functions, Solution, State
from slomodel.solve import solve as solve_with

CHECKED = ["pgd", "tgd", "std-armijo", "gd", "agp"]
OTHERS = pytest.mark.parametrize("method", CHECKED)
EVERY = pytest.mark.parametrize("method", [*CHECKED, "ngd", "adgd", "bpg"])
BALLS = pytest.mark.parametrize("method", ["pgd", "tgd", "agp"])
X0 = [-1.2, 1.0]


def solve(*args: object, method: str, **options: object) -> Solution:
    """`solve`, with what the method cannot do without."""
    needed = {"L": 3e3, "p": 4} if method == "bpg" else {}
    return solve_with(*args, method=method, **needed, **options)  # type: ignore[arg-type]


def check(found: Solution, status: str) -> None:
    assert found.status == status, found.message
    assert np.all(np.isfinite(found.x))
    assert sum(epoch.iterations * epoch.count for epoch in found.epochs) == found.nit
    assert found.epochs or not found.nit


def test_these_are_all_the_others() -> None:
    assert set(METHODS) == {"auto", "norm-armijo", *CHECKED, "ngd", "adgd", "bpg"}


@OTHERS
def test_converged(method: str) -> None:
    found = solve(recorded_problem("expsum"), [3.0, -2.0, 1.0], method=method)
    check(found, "converged")
    assert_allclose(found.x, 0.0, atol=1e-6)


@pytest.mark.sampled(2)
@OTHERS
def test_precision_where_rounding_ends_the_run(method: str) -> None:
    """Whether a step at the floor is taken depends on the last bit of sums, so on the processor."""
    rounding_steps = 0
    for seed in range(5, 10):
        generator = np.random.default_rng(seed)
        A = generator.normal(size=(6, 6))
        H = A @ A.T + np.eye(6)
        b = generator.normal(size=6)
        found = solve(off_zero(H, b), np.zeros(6), method=method, gtol=0.0, max_iter=20_000)
        check(found, "precision")
        assert found.gradient_norm < 1e-12
        assert_allclose(found.x, np.linalg.solve(H, b), atol=1e-12)
        rounding_steps += found.rounding_steps
    assert rounding_steps > 0


def off_zero(H: Vector, b: Vector) -> Functions:
    """½ x·Hx − b·x + 1000, whose values resolve 1e-13 at best."""
    return Functions(lambda x: 0.5 * float(x @ H @ x) - float(b @ x) + 1e3, lambda x: H @ x - b, 6)


@BALLS
def test_a_kink_stalls(method: str) -> None:
    found = solve(elementwise(np.abs, np.sign, 2), [1, -0.3], method=method, max_iter=5000)
    check(found, "line_search_stalled")
    assert found.violations > 30


@OTHERS
def test_a_wrong_gradient_stalls(method: str) -> None:
    wrong = Functions(
        lambda x: float(np.sum((x - 1.0) ** 2 + 3.0 * np.sin(x))), lambda x: 2.0 * (x - 1.0), 2
    )
    found = solve(wrong, [3.0, -0.7], method=method, max_iter=5000)
    check(found, "line_search_stalled")
    assert "check_gradient" in found.message


@OTHERS
@pytest.mark.parametrize("x0", [5.0, 1e-3, -2e4])
def test_gradient_of_the_wrong_sign(x0: float, method: str) -> None:
    wrong = Functions(parabola(1.0, n=1).fun, lambda x: -2.0 * (x - 1.0), 1)
    found = solve(wrong, [x0], method=method, max_iter=5000)
    check(found, "not_descent")
    assert_allclose(found.x, x0, rtol=1e-10)


@pytest.mark.sampled(3)
@EVERY
@pytest.mark.parametrize(
    ("fun", "jac", "x0"),
    [
        (np.negative, lambda x: -np.ones_like(x), 0.0),
        (lambda x: -(x**2), lambda x: -2.0 * x, 1.0),
        (lambda x: -(x**2), lambda x: -2.0 * x, 1e6),
        (lambda x: x - np.exp(x), lambda x: 1.0 - np.exp(x), 1.0),
    ],
    ids=["-x", "-x^2", "-x^2 from 1e6", "x-exp(x)"],
)
def test_unbounded(fun: object, jac: object, x0: float, method: str) -> None:
    found = solve(elementwise(fun, jac, 1), [x0], method=method, max_iter=500)
    check(found, "unbounded")


@EVERY
def test_nonfinite_start(method: str) -> None:
    found = solve(elementwise(np.log, lambda x: 1.0 / x, 1), [-1.0], method=method)
    check(found, "nonfinite_start")
    assert found.njev == 1


@EVERY
@pytest.mark.parametrize("limit", [1, 2, 17])
def test_max_nfev_is_never_passed(limit: int, method: str) -> None:
    counted = Counting(rosenbrock())
    found = solve(counted, X0, method=method, max_nfev=limit)
    check(found, "max_nfev")
    assert found.nfev == counted.values == limit
    assert found.njev == counted.gradients
    assert found.fun == rosenbrock().value(found.x)


@BALLS
def test_max_time_holds_while_sampling(method: str) -> None:
    def slow(x: Vector) -> Vector:
        time.sleep(0.01)
        return rosenbrock().jac(x)

    found = solve(
        Functions(rosenbrock().fun, slow, 2), X0, method=method, samples=10_000, max_time=0.1
    )
    check(found, "max_time")
    assert found.njev <= 11  # gradients that fit into the time, and the one that ends it
    assert (found.nit, found.epochs) == (0, ())


@EVERY
def test_callback_sees_every_point_and_stops(method: str) -> None:
    seen: list[State] = []

    def stop(state: State) -> bool:
        seen.append(state)
        return state.k == 6

    found = solve(rosenbrock(), X0, method=method, callback=stop)
    check(found, "user_stopped")
    assert [state.k for state in seen] == list(range(7))
    assert_array_equal([state.fun for state in seen], found.history.fun)
    assert_array_equal([state.epoch for state in seen], found.history.epoch)
    assert_array_equal(seen[-1].x, found.x)
    plain = solve(rosenbrock(), X0, method=method, max_iter=6)
    assert_array_equal(plain.x, found.x)


@EVERY
def test_interrupted(method: str) -> None:
    def interrupt(state: State) -> None:
        if state.k == 4:
            raise KeyboardInterrupt

    found = solve(rosenbrock(), X0, method=method, callback=interrupt)
    check(found, "interrupted")
    assert found.nit == 4
    assert found.fun == found.history.fun.min()


@EVERY
def test_max_iter_zero_and_a_start_that_is_stationary(method: str) -> None:
    check(solve(rosenbrock(), X0, method=method, max_iter=0), "max_iter")
    check(solve(parabola(1.0), [1.0, 1.0], method=method, max_iter=0), "converged")
    check(solve(parabola(n=0), np.zeros(0), method=method), "converged")


@pytest.mark.parametrize("scale", [1e-200, 1e-20])
def test_a_fixed_interval_too_short_for_the_units_is_not_precision(scale: float) -> None:
    found = solve(parabola(3.0, scale=scale), [0, 0], method="std-armijo")
    check(found, "line_search_stalled")
    assert "With delta_bar = 1 the steps are too short" in found.message
    longer = solve(parabola(3.0, scale=scale), [0, 0], method="std-armijo", delta_bar=1.0 / scale)
    check(longer, "converged")
