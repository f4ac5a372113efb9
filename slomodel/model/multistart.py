"""Several starts of one model: checks and preparation before the first run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.points import Vector
from slomodel.solve import Solution
from slomodel.solve.options import whole
from slomodel.solve.run.live import display_of
from slomodel.solve.run.multistart import StartTask, many
from slomodel.solve.run_options import RunOptions


class RunOf(Protocol):
    """`Model.solve` with the options that all runs share."""

    def __call__(
        self, *, seed: int, max_time: float | None = None, max_iter: int = 100_000
    ) -> Solution: ...


@dataclass(frozen=True, slots=True)
class Starts:
    """Number of starts and of processes, a cluster, the options of every run, and the display."""

    starts: object
    workers: object
    client: object
    options: RunOptions
    progress: object


def from_starts(
    run: RunOf, x0: Callable[[int], Vector], how: Starts, alone: Mapping[str, object]
) -> Solution:
    """Best of the runs from x0(seed), x0(seed + 1), …; `alone` holds options of single runs.

    Raises DomainError for options that cannot be combined, or if all starts would be equal.
    """
    if how.starts is None:
        what = "workers are" if how.client is None else "a cluster is"
        message = f"{what} for several starts or for data in blocks, and there is one start"
        raise _refused(message, "give starts as well")
    count = whole("starts", how.starts, 1)
    if how.client is not None and how.workers is not None:
        raise _refused("client and workers are two places for the runs", "leave workers out")
    workers = 1 if how.workers is None else whole("workers", how.workers, 1)
    for name, value in alone.items():
        alone_here = name == "callback" and workers == 1 and how.client is None
        if value is not None and not alone_here:
            others = "workers" if name == "callback" else "starts"
            raise _refused(f"{name} does not go with several {others}", f"leave {name} out")
    if count > 1 and np.array_equal(x0(how.options.seed), x0(how.options.seed + 1), equal_nan=True):
        raise _refused(
            "every start would be the same: the model draws no variable at random",
            "write an init such as `var x[n] init normal(0, 1)`, or leave starts out",
        )
    display = display_of(how.progress, how.options.max_time, f"of {count} starts")
    if workers > 1 or how.client is not None:
        # Errors are raised here, before the first run; and forked processes share the imported
        # modules.
        run(seed=how.options.seed, max_iter=1)
    spread = None if how.client is None else partial(_on_cluster, how.client)
    return many(run, count, workers, how.options, display, spread)


def _on_cluster(client: Any, task: StartTask, starts: int) -> Iterator[Solution]:
    """The runs on the workers of a cluster, in order of completion; those of lost workers again."""
    from slomodel.model.cluster import RETRIES, completed, sent

    own = sent(client, task)
    tasks = [client.submit(_start, own, k, pure=False, retries=RETRIES) for k in range(starts)]
    for _, solution in completed(client, tasks):
        if isinstance(solution, DomainError):
            raise solution
        if isinstance(solution, Solution):
            yield solution


def _start(task: StartTask, k: int) -> Solution:
    solution = task(k)
    assert solution is not None
    return replace(solution, model=None)


def _refused(message: str, remedy: str) -> DomainError:
    return DomainError(Diagnostic("E604", message, help=remedy))
