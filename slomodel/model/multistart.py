"""Several starts of one model: checks and preparation before the first run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.points import Point, Vector
from slomodel.solve import Solution
from slomodel.solve.options import whole
from slomodel.solve.run.hopping import Hopping
from slomodel.solve.run.live import display_of
from slomodel.solve.run.multistart import StartTask, many
from slomodel.solve.run_options import RunOptions
from slomodel.solve.sets.convex_set import Set


class HoppingModel(Protocol):
    """The parts of a model that hops need."""

    @property
    def unconstrained(self) -> HoppingModel: ...

    @property
    def within(self) -> Set | None: ...

    def start_of_solver(self, x0: Point | Solution | None, seed: int) -> Vector: ...

    def from_unconstrained(self, u: Point) -> Vector: ...

    def unpack(self, x: Point | Solution) -> dict[str, Vector]: ...

    def pack(self, values: Mapping[str, ArrayLike]) -> Vector: ...


class RunOf(Protocol):
    """`Model.solve`, or a walk over minima, with the options that all runs share."""

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


@dataclass(frozen=True, slots=True)
class LocalRuns:
    """Runs of one model from points u (m,) of its unconstrained form, with hops between them."""

    model: HoppingModel
    run: Callable[..., Solution]
    x0: Point | Solution | None

    def __call__(self, u: Vector | None, *, seed: int, max_time: float | None) -> Solution:
        first = self.x0 if u is None else self.model.from_unconstrained(u)
        return self.run(x0=first, seed=seed, max_time=max_time)

    def start(self, seed: int) -> Vector:
        """The first start (m,)."""
        return self.model.start_of_solver(self.x0, seed)

    def scales(self, u: Vector) -> Vector:
        """For each element of u (m,) how far those of its variable spread."""
        inner = self.model.unconstrained
        arrays = inner.unpack(u)
        return inner.pack({name: np.full(a.shape, _spread(a)) for name, a in arrays.items()})

    def inside(self, u: Vector) -> Vector:
        """The point of the closed sets that is nearest to u (m,)."""
        within = self.model.unconstrained.within
        if within is None:
            return u
        nearest = np.empty_like(u)
        within.project(u, nearest)
        return nearest


def _spread(array: Vector) -> float:
    """1.5 times the median distance from the median, which no single element far away changes.

    If that is 0 it is the largest magnitude, or 1.
    """
    if not np.isfinite(array).any():
        return 1.0
    known = array[np.isfinite(array)]
    middle = 1.5 * float(np.median(np.abs(known - np.median(known))))
    return middle or float(np.abs(known).max()) or 1.0


def with_hops(
    runs: LocalRuns, hops: object, options: RunOptions, alone: Mapping[str, object]
) -> Hopping:
    """The walk of `hops` over the ends of runs; DomainError for options that single runs have."""
    count = whole("hops", hops, 1)
    for name, value in alone.items():
        if value is not None:
            raise _refused(f"{name} cannot be combined with hops", f"leave {name} out")
    return Hopping(runs, runs.start, count, runs.scales, runs.inside, options)


def on_display(walk: Hopping, progress: object) -> Solution:
    """The best of the runs of a walk from the seed of its options, with a live line."""
    options = walk.options
    display = display_of(progress, options.max_time, f"of {walk.hops} hops")
    try:
        return replace(walk, display=display)(seed=options.seed, max_time=options.max_time)
    finally:
        if display:
            display.close()


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
            raise _refused(f"{name} cannot be combined with several {others}", f"leave {name} out")
    if count > 1 and np.array_equal(x0(how.options.seed), x0(how.options.seed + 1), equal_nan=True):
        raise _refused(
            "every start would be the same: the model draws no variable at random",
            "write an init such as `var x[n] init normal(0, 1)`, or leave starts out",
        )
    if how.client is not None:
        from slomodel.model.cluster import checked

        checked(how.client)
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
