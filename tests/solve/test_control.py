"""Budgets, callback, progress, Ctrl-C: a run stops as requested, at its best point."""

import signal
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from solve.objectives import Counting, Vector, parabola, rosenbrock

from slomodel.solve import Functions, State, solve

X0 = [-1.2, 1.0]


def test_max_iter_zero_returns_the_start() -> None:
    found = solve(rosenbrock(), X0, max_iter=0)
    assert (found.status, found.nit, found.nfev, found.njev) == ("max_iter", 0, 1, 1)
    assert_array_equal(found.x, X0)


def test_the_gradient_test_comes_before_max_iter() -> None:
    assert solve(parabola(1.0), [1.0, 1.0], max_iter=0).status == "converged"


@pytest.mark.parametrize("limit", [1, 2, 5, 17])
def test_max_nfev_is_never_passed(limit: int) -> None:
    counted = Counting(rosenbrock())
    found = solve(counted, X0, max_nfev=limit, initial_step="full")
    assert found.status == "max_nfev"
    assert found.nfev == counted.values == limit
    assert found.fun == rosenbrock().value(found.x)


def test_counters_are_the_calls() -> None:
    counted = Counting(rosenbrock())
    found = solve(counted, X0)
    assert (found.nfev, found.njev) == (counted.values, counted.gradients)


def test_max_time() -> None:
    def slow(x: Vector) -> float:
        time.sleep(0.01)
        return rosenbrock().fun(x)

    found = solve(Functions(slow, rosenbrock().jac, 2), X0, max_time=0.1)
    assert found.status == "max_time"
    assert found.nfev <= 11  # values that fit into the time, and the one that ends it


def test_callback_sees_every_accepted_point_once() -> None:
    seen: list[State] = []
    found = solve(rosenbrock(), X0, max_iter=20, callback=seen.append)
    assert [state.k for state in seen] == list(range(21))
    assert_array_equal([state.fun for state in seen], found.history.fun)
    assert_array_equal([state.gradient_norm for state in seen], found.history.gradient_norm)
    assert_array_equal([state.step for state in seen], found.history.step)
    assert_array_equal([state.epoch for state in seen], found.history.epoch)
    assert_array_equal(seen[0].x, X0)
    assert_array_equal(seen[-1].x, found.x)
    for state in seen:
        assert state.fun == rosenbrock().value(state.x)


def test_callback_cannot_change_the_run() -> None:
    def spoil(state: State) -> None:
        state.x[:] = np.nan

    spoilt, plain = (solve(rosenbrock(), X0, callback=c) for c in (spoil, None))
    assert_array_equal(spoilt.x, plain.x)


def stop_iteration(state: State) -> None:
    if state.k == 3:
        raise StopIteration


@pytest.mark.parametrize(
    "callback",
    [lambda state: state.k == 3, lambda state: np.bool_(state.k == 3), stop_iteration],
)
def test_true_and_stop_iteration_stop(callback: object) -> None:
    found = solve(rosenbrock(), X0, callback=callback)
    assert found.status == "user_stopped"
    assert not found.success
    assert found.nit == 3
    assert found.fun == found.history.fun[3] == rosenbrock().value(found.x)


@pytest.mark.parametrize("answer", [0, 1, "stop", np.array([1.0])])
def test_other_answers_are_type_errors(answer: object) -> None:
    with pytest.raises(TypeError, match="return True to stop"):
        solve(rosenbrock(), X0, callback=lambda state: answer)


def interrupt(state: State) -> None:
    if state.k == 4:
        raise KeyboardInterrupt


def test_keyboard_interrupt_returns_the_best_point() -> None:
    found = solve(rosenbrock(), X0, callback=interrupt)
    assert (found.status, found.nit) == ("interrupted", 4)
    assert found.fun == rosenbrock().value(found.x)


@pytest.mark.parametrize("inside", ["value", "gradient"])
def test_a_signal_inside_the_objective(inside: str) -> None:
    inner = rosenbrock()
    calls = {"value": 0, "gradient": 0}

    def strike(kind: str) -> None:
        calls[kind] += 1
        if kind == inside and calls[kind] == 9:
            signal.raise_signal(signal.SIGINT)

    def fun(x: Vector) -> float:
        strike("value")
        return inner.fun(x)

    def jac(x: Vector) -> Vector:
        strike("gradient")
        return inner.jac(x)

    class Both:
        n = 2

        def value(self, x: Vector) -> float:
            return fun(x)

        def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
            return 0.0, jac(x)

    found = solve(Both(), X0)
    assert found.status == "interrupted"
    assert found.nit > 0
    assert found.fun == inner.value(found.x) == found.history.fun.min()
    assert_array_equal(found.jac, inner.jac(found.x))


def test_interrupt_before_the_first_value() -> None:
    def fun(x: Vector) -> float:
        raise KeyboardInterrupt

    found = solve(Functions(fun, rosenbrock().jac, 2), X0)
    assert (found.status, found.nit) == ("interrupted", 0)
    assert_array_equal(found.x, X0)
    assert np.isnan(found.fun)


class Display:
    def __init__(self) -> None:
        self.states: list[State] = []
        self.closed = 0

    def update(self, state: State) -> None:
        self.states.append(state)

    def close(self) -> None:
        self.closed += 1


def test_progress_gets_the_first_and_the_last_point() -> None:
    display = Display()
    found = solve(rosenbrock(), X0, progress=display)
    assert display.closed == 1
    assert display.states[0].k == 0
    assert display.states[-1].k == found.nit
    assert display.states[-1].fun == found.fun
    assert len(display.states) < found.nit


def test_progress_is_closed_when_the_callback_fails() -> None:
    display = Display()
    with pytest.raises(TypeError):
        solve(rosenbrock(), X0, progress=display, callback=lambda state: 1)
    assert display.closed == 1


def test_runs_repeat_to_the_bit() -> None:
    first, second = (solve(rosenbrock(), X0, method="auto") for _ in range(2))
    assert_array_equal(first.x, second.x)
    assert_array_equal(first.history.fun, second.history.fun)
    assert (first.nfev, first.njev) == (second.nfev, second.njev)
