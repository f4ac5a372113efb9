"""Several runs of one objective from different starts, the best one first."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Protocol, TypeAlias

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.run.monitor import Progress, State
from slomodel.solve.run.solution import Solution
from slomodel.solve.run_options import RunOptions
from slomodel.solve.status import Status


class RunFrom(Protocol):
    """A run from the start of a given seed, within a given time in seconds."""

    def __call__(self, *, seed: int, max_time: float | None) -> Solution: ...


@dataclass(frozen=True, slots=True)
class StartTask:
    """Run k of several, within the remaining time; None if no time is left."""

    run: RunFrom
    seed: int
    deadline: float | None

    def __call__(self, k: int) -> Solution | None:
        if self.deadline is None:
            return self.run(seed=self.seed + k, max_time=None)
        left = max(0.0, self.deadline - perf_counter())
        return self.run(seed=self.seed + k, max_time=left) if left or k == 0 else None


@dataclass(frozen=True, slots=True)
class _Within:
    """A run with a limit of its own on the time."""

    run: RunFrom
    limit: float | None

    def __call__(self, *, seed: int, max_time: float | None) -> Solution:
        return self.run(seed=seed, max_time=self.limit)


Spread: TypeAlias = Callable[[StartTask, int], Iterator[Solution]]
"""(task, count): performs runs of a task elsewhere, and yields them in order of completion."""


def many(
    run: RunFrom,
    starts: int,
    workers: int,
    options: RunOptions,
    display: Progress | None = None,
    spread: Spread | None = None,
) -> Solution:
    """The best of the runs from seeds seed, seed + 1, …, with all completed ones as its `runs`.

    `max_time` of the options limits the total time. Ctrl-C ends the runs in progress and starts no
    other. Raises DomainError if no run was completed. `spread` executes the runs elsewhere, each
    with the whole time.
    """
    began = perf_counter()
    deadline = None if options.max_time is None else began + options.max_time
    task = StartTask(run, options.seed, deadline)
    if spread is not None:
        task = StartTask(_Within(run, options.max_time), options.seed, None)
    sign = -1.0 if options.sense == "maximize" else 1.0
    runs: list[Solution] = []
    try:
        here = made(task, starts, min(workers, starts)) if spread is None else spread(task, starts)
        for solution in here:
            insort(runs, solution, key=lambda one: rank(one, sign, options.ctol))
            if display:
                display.update(state_of(runs, starts, perf_counter() - began))
    except KeyboardInterrupt:
        # Interrupted between two runs: the results so far are returned.
        if not runs:
            raise
    finally:
        if display:
            display.close()
    if not runs:
        message = "no run was made: every process died, or was interrupted before it had begun"
        remedy = "take fewer workers: less memory is used"
        raise DomainError(Diagnostic("E707", message, help=remedy))
    return replace(runs[0], runs=tuple(runs), starts=starts)


def made(task: StartTask, starts: int, workers: int) -> Iterator[Solution]:
    """The runs in order of completion, in this process or in several."""
    if workers == 1:
        for k in range(starts):
            solution = task(k)
            if solution is not None:
                yield solution
            if solution is None or solution.status is Status.interrupted:
                return
        return
    # Imported here, since multiprocessing loads slowly and few programs need it.
    from slomodel.solve.run.processes import Pool

    with Pool(task, workers) as pool:
        for _, solution in pool.results(range(starts)):
            if solution is not None:
                yield solution


def rank(solution: Solution, sign: float, ctol: float = 1e-9) -> tuple[bool, bool, float, int]:
    """Sort key of a run: lowest objective first, ties by seed.

    Runs that end with a violated constraint come after the others, and NaN last.
    """
    known = not math.isnan(solution.fun)
    violated = solution.violation > ctol
    return not known, violated, sign * solution.fun if known else 0.0, solution.seed


def state_of(runs: Sequence[Solution], starts: int, time: float) -> State:
    """The best run so far as a State for the display; k is the number of runs so far."""
    best = runs[0]
    counts = (sum(getattr(run, name) for run in runs) for name in ("nfev", "njev", "nhev"))
    return State(len(runs), best.x, best.fun, best.gradient_norm, 0.0, starts, time, *counts)
