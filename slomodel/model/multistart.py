"""Several starts of one model: checks and preparation before the first run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.points import Vector
from slomodel.solve import Solution
from slomodel.solve.options import whole
from slomodel.solve.run.live import display_of
from slomodel.solve.run.multistart import many
from slomodel.solve.run_options import RunOptions


class RunOf(Protocol):
    """`Model.solve` with the options that all runs share."""

    def __call__(
        self, *, seed: int, max_time: float | None = None, max_iter: int = 100_000
    ) -> Solution: ...


@dataclass(frozen=True, slots=True)
class Starts:
    """Number of starts and of processes, the options of every run, and the display."""

    starts: object
    workers: object
    options: RunOptions
    progress: object


def from_starts(
    run: RunOf, x0: Callable[[int], Vector], how: Starts, alone: Mapping[str, object]
) -> Solution:
    """Best of the runs from x0(seed), x0(seed + 1), …; `alone` holds options of single runs.

    Raises DomainError for options that cannot be combined, or if all starts would be equal.
    """
    if how.starts is None:
        raise _refused("workers are for several starts, and there is one", "give starts as well")
    count = whole("starts", how.starts, 1)
    workers = 1 if how.workers is None else whole("workers", how.workers, 1)
    for name, value in alone.items():
        if value is not None and (name != "callback" or workers > 1):
            others = "workers" if name == "callback" else "starts"
            raise _refused(f"{name} does not go with several {others}", f"leave {name} out")
    if count > 1 and np.array_equal(x0(how.options.seed), x0(how.options.seed + 1), equal_nan=True):
        raise _refused(
            "every start would be the same: the model draws no variable at random",
            "write an init such as `var x[n] init normal(0, 1)`, or leave starts out",
        )
    display = display_of(how.progress, how.options.max_time, f"of {count} starts")
    if workers > 1:
        # Errors are raised here, before the first run; and forked processes share the imported
        # modules.
        run(seed=how.options.seed, max_iter=1)
    return many(run, count, workers, how.options, display)


def _refused(message: str, remedy: str) -> DomainError:
    return DomainError(Diagnostic("E604", message, help=remedy))
