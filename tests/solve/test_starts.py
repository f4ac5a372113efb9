"""Runs from several starts: order, processes, and the common summary."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from solve.objectives import parabola

from slomodel.errors import DomainError
from slomodel.solve import Solution, State, solve
from slomodel.solve.run.multistart import many
from slomodel.solve.run.processes import Pool
from slomodel.solve.run_options import RunOptions
from slomodel.solve.status import Status

VALUES = [3.0, 1.0, math.nan, 1.0 + 1e-9, 7.0, -math.inf]


def ended(seed: int, fun: float, status: Status = Status.converged) -> Solution:
    plain = solve(parabola(), [3.0, 4.0], seed=seed)
    return replace(plain, fun=fun, status=status)


@dataclass(frozen=True)
class Valued:
    """A run with one of VALUES by its seed, after something else."""

    before: Callable[[int], object] = field(default=lambda seed: None)

    def __call__(self, *, seed: int, max_time: float | None) -> Solution:
        self.before(seed)
        return ended(seed, VALUES[seed % len(VALUES)])


def seeds(solution: Solution) -> list[int]:
    return [one.seed for one in solution.runs]


@pytest.mark.parametrize("workers", [1, 2, 9])
def test_the_best_is_first_and_runs_without_a_number_last(workers: int) -> None:
    found = many(Valued(), 6, workers, RunOptions())
    assert seeds(found) == [5, 1, 3, 0, 4, 2]
    assert (found.seed, found.fun, found.starts) == (5, -math.inf, 6)
    highest = many(Valued(), 6, workers, RunOptions(sense="maximize"))
    assert seeds(highest) == [4, 0, 3, 1, 5, 2]
    assert seeds(many(Valued(), 2, workers, RunOptions(seed=3))) == [3, 4]


def test_the_summary_counts_endings_and_objectives() -> None:
    lines = many(Valued(), 6, 1, RunOptions()).summary.splitlines()
    assert lines[0] == "6 starts: 6 converged"
    assert [line.split() for line in lines[1:4]] == [
        ["objective", "-inf", "1", "of", "seed", "5"],
        ["objective", "1", "2", "of", "seed", "1,", "3"],
        ["objective", "3", "1", "of", "seed", "0"],
    ]


@pytest.mark.parametrize("workers", [1, 2])
def test_time_is_that_of_all(workers: int) -> None:
    given: list[float | None] = []

    def run(*, seed: int, max_time: float | None) -> Solution:
        given.append(max_time)
        time.sleep(0.05)
        return ended(seed, float(seed))

    found = many(run, 100, workers, RunOptions(max_time=0.12))
    assert 1 <= len(found.runs) <= 3 * workers
    assert f"{100 - len(found.runs)} not made" in found.summary
    if workers == 1:
        left = [one for one in given if one is not None]
        assert left == sorted(left, reverse=True)
        assert left[0] <= 0.12


def test_an_error_of_one_is_that_of_all() -> None:
    def fail(seed: int) -> None:
        if seed == 2:
            raise DomainError("no start there")

    for workers in (1, 2):
        with pytest.raises(DomainError, match="no start there"):
            many(Valued(fail), 6, workers, RunOptions())


def test_a_process_that_dies_costs_its_run_alone() -> None:
    def die(seed: int) -> None:
        if seed == 1:
            os._exit(9)

    found = many(Valued(die), 6, 2, RunOptions())
    assert seeds(found) == [5, 3, 0, 4, 2]
    assert "1 not made" in found.summary
    with pytest.raises(DomainError, match="every process died"):
        many(Valued(lambda seed: os._exit(9)), 6, 2, RunOptions())


def test_a_display_receives_every_state() -> None:
    class Display:
        def __init__(self) -> None:
            self.states: list[State] = []
            self.closed = 0

        def update(self, state: State) -> None:
            self.states.append(state)

        def close(self) -> None:
            self.closed += 1

    display = Display()
    many(Valued(), 3, 1, RunOptions(), display=display)
    assert [state.k for state in display.states] == [1, 2, 3]
    assert [state.fun for state in display.states] == [3.0, 1.0, 1.0]
    assert display.closed == 1


def test_ctrl_c_reaches_the_tasks_and_begins_no_other() -> None:
    def task(k: int) -> str:
        try:
            time.sleep(60.0 if k else 0.0)
        except KeyboardInterrupt:
            return f"{k} interrupted"
        return f"{k} done"

    found = []
    before = signal.getsignal(signal.SIGINT)
    with Pool(task, 2) as pool:
        for k, result in pool.results(range(50)):
            found.append(result)
            if k == 0:
                time.sleep(0.2)
                signal.raise_signal(signal.SIGINT)
    assert found[0] == "0 done"
    assert sorted(found[1:], key=str) == ["1 interrupted", "2 interrupted"]
    assert signal.getsignal(signal.SIGINT) is before


class StrikesAsItIsSent:
    """A result in whose sending Ctrl-C comes; what arrives is a text."""

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        signal.raise_signal(signal.SIGINT)
        return str, ("sent",)


@pytest.mark.parametrize("place", ["in the task", "in the sending", "at the start"])
def test_ctrl_c_costs_no_result_that_was_there(
    place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def task(k: int) -> object:
        if place == "in the task":
            signal.raise_signal(signal.SIGINT)
        return StrikesAsItIsSent() if place == "in the sending" else "there"

    STRIKES_CHILDREN.append(place == "at the start")
    with Pool(task, 1) as pool:
        found = list(pool.results(range(3)))
    STRIKES_CHILDREN.clear()
    first = "sent" if place == "in the sending" else None
    assert found == [(0, first), (1, None), (2, None)]
    assert capfd.readouterr().err == ""


STRIKES_CHILDREN: list[bool] = []
os.register_at_fork(
    after_in_child=lambda: any(STRIKES_CHILDREN) and signal.raise_signal(signal.SIGINT)
)


def test_a_second_ctrl_c_gives_the_tasks_up() -> None:
    def task(k: int) -> int:
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline:
            try:
                time.sleep(60.0)
            except KeyboardInterrupt:
                continue
        return k

    began = time.monotonic()
    with Pool(task, 1) as pool:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert list(pool.results(range(5))) == []
    assert time.monotonic() - began < 5.0


def test_ctrl_c_in_one_process_keeps_what_there_is() -> None:
    def strike(seed: int) -> None:
        if seed == 2:
            raise KeyboardInterrupt

    assert seeds(many(Valued(strike), 6, 1, RunOptions())) == [1, 0]

    def run(*, seed: int, max_time: float | None) -> Solution:
        return ended(seed, float(seed), Status.interrupted if seed == 1 else Status.converged)

    assert seeds(many(run, 6, 1, RunOptions())) == [0, 1]
    assert np.isfinite(many(run, 1, 1, RunOptions()).fun)
