"""Several starts of one objective: all runs, the best one first."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Protocol

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.run.monitor import Progress, State
from slomodel.solve.run.solution import Solution
from slomodel.solve.run_options import RunOptions
from slomodel.solve.status import Status


class RunFrom(Protocol):
    """The run from the start of a seed, in so many seconds."""

    def __call__(self, *, seed: int, max_time: float | None) -> Solution: ...


@dataclass(frozen=True, slots=True)
class StartTask:
    """Run k of several, in the remaining time; None if there is none."""

    run: RunFrom
    seed: int
    deadline: float | None

    def __call__(self, k: int) -> Solution | None:
        if self.deadline is None:
            return self.run(seed=self.seed + k, max_time=None)
        left = max(0.0, self.deadline - perf_counter())
        return self.run(seed=self.seed + k, max_time=left) if left or k == 0 else None


def many(
    run: RunFrom,
    starts: int,
    workers: int,
    options: RunOptions,
    display: Progress | None = None,
) -> Solution:
    """The best of the runs from seeds seed, seed + 1, …, with all that were made as its `runs`.

    `max_time` of the options is for all of them together. Ctrl-C ends those in progress, and no
    other begins. Raises DomainError where not one run was made.
    """
    began = perf_counter()
    deadline = None if options.max_time is None else began + options.max_time
    task = StartTask(run, options.seed, deadline)
    sign = -1.0 if options.sense == "maximize" else 1.0
    runs: list[Solution] = []
    try:
        for solution in made(task, starts, min(workers, starts)):
            insort(runs, solution, key=lambda one: rank(one, sign))
            if display:
                display.update(state_of(runs, starts, perf_counter() - began))
    except KeyboardInterrupt:
        # Between two runs; what came of those before it is kept.
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
    """The runs as they end: in this process, or in several."""
    if workers == 1:
        for k in range(starts):
            solution = task(k)
            if solution is not None:
                yield solution
            if solution is None or solution.status is Status.interrupted:
                return
        return
    # Here, since multiprocessing takes a while to load and few programs need it.
    from slomodel.solve.run.processes import Pool

    with Pool(task, workers) as pool:
        for _, solution in pool.results(range(starts)):
            if solution is not None:
                yield solution


def rank(solution: Solution, sign: float) -> tuple[bool, float, int]:
    """The sort key: lowest objective first, NaN last, ties by seed."""
    known = not math.isnan(solution.fun)
    return not known, sign * solution.fun if known else 0.0, solution.seed


def state_of(runs: Sequence[Solution], starts: int, time: float) -> State:
    """The best of the runs so far as a display shows it: k is how many there are."""
    best = runs[0]
    counts = (sum(getattr(one, name) for one in runs) for name in ("nfev", "njev", "nhev"))
    return State(len(runs), best.x, best.fun, best.gradient_norm, 0.0, starts, time, *counts)
