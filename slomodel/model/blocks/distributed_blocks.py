"""Blocks on the workers of a `dask.distributed` cluster; results come back in the blocks' order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic
from slomodel.model.blocks.evaluate import (
    GROUP,
    BlockKernels,
    NumberedBlock,
    Quantity,
    Result,
    Vector,
    added,
)
from slomodel.model.cluster import RETRIES, Client, checked, is_closed, sent
from slomodel.solve.objective import EvaluationLost

if TYPE_CHECKING:
    from slomodel.bounds.data_blocks import TermBounds

_LOST = (
    *("KilledWorker", "CancelledError", "FutureCancelledError", "FutureLostError"),
    *("CommClosedError", "TimeoutError"),
)
"""Names of the exceptions of a lost worker, or of data that only it had."""
_SMALL = 2**16
"""Bytes up to which a point travels with each task; a larger one is sent to all workers once."""
_MOST_BOUNDS = 64
"""Number of blocks whose bounds are computed at a time."""
_FEWEST_GROUPS = 4
"""Fewest tasks for each worker when blocks are joined into tasks of several."""
_ROUNDS = 3
"""How often lost data are sent again in an evaluation."""


class ClusterTasks:
    """Tasks over blocks on the workers of a cluster; an object that all of them use is sent once.

    The scheduler runs tasks of a lost worker again on others. If data that only the lost worker had
    are gone, they are sent again. Each block goes to the worker that had it before, if possible.
    """

    def __init__(self, shared: object, client: Client) -> None:
        self._shared = shared
        self._client = checked(client)
        self._sent: Any = None
        self._homes: dict[int, str] = {}
        self._given: dict[int, Any] = {}

    def run(self, task: Any, point: object, groups: Sequence[Group]) -> Iterator[Any]:
        """The results of task(shared, point, *blocks) for all groups of blocks, in their order."""
        result: dict[int, Any] = {}
        for round_ in range(_ROUNDS):
            try:
                self._collect(
                    task, point, [group for group in groups if _key(group) not in result], result
                )
                break
            except Exception as error:
                if not (_is_lost(error) or is_closed(self._client)):
                    raise
                if round_ == _ROUNDS - 1 or is_closed(self._client):
                    raise _no_cluster(error) from error
                self._sent = None
                self._homes, self._given = {}, {}
        for one in groups:
            yield result[_key(one)]

    def _collect(
        self, task: Any, point: Any, groups: Sequence[Group], by_group: dict[int, Any]
    ) -> None:
        """Run a task for groups of blocks, and put the results into `by_group`."""
        client = self._client
        if self._sent is None:
            self._sent = sent(client, self._shared)
        if sum(one.nbytes for one in point if one is not None) > _SMALL:
            point = sent(client, point)
        tasks = {}
        for group in groups:
            home = self._homes.get(_key(group))
            tasks[_key(group)] = client.submit(
                *(partial(_at_home, task), self._sent, point, *map(self._on_cluster, group)),
                pure=False,
                retries=RETRIES,
                **({} if home is None else {"workers": [home], "allow_other_workers": True}),
            )
        try:
            results = client.gather(list(tasks.values()))
        finally:
            for one in tasks.values():
                one.release()
        for group, (result, home) in zip(groups, results, strict=True):
            by_group[_key(group)] = result
            self._homes.update((block.number, home) for block in group)

    def _on_cluster(self, block: NumberedBlock) -> Any:
        """The block for a task: data in memory are sent once, and names of files with each task.

        Arrays of Dask are computed as tasks of their own: a task that waited for others would
        occupy the worker that has to run them.
        """
        if block.data.is_in_files:
            return block
        if block.number not in self._given:
            client, lazy = self._client, block.data.lazy
            if lazy:
                alone = replace(block, data=block.data.with_blocks(dict.fromkeys(lazy)))
                arrays = [client.compute(one) for one in lazy.values()]
                task = partial(_with_arrays, alone, tuple(lazy))
                self._given[block.number] = client.submit(
                    task, *arrays, pure=False, retries=RETRIES
                )
            else:
                self._given[block.number] = sent(client, block)
        return self._given[block.number]

    def grouped(self, blocks: Sequence[NumberedBlock]) -> list[Group]:
        """Groups of consecutive blocks whose results are added first, or each block by itself.

        A task costs the scheduler some milliseconds, whatever it computes; but each worker should
        have several tasks, and blocks in memory would be with one worker all at once.
        """
        groups = [tuple(blocks[at : at + GROUP]) for at in range(0, len(blocks), GROUP)]
        in_files = all(block.data.is_in_files for block in blocks)
        if in_files and len(groups) >= _FEWEST_GROUPS * len(self._client.nthreads()):
            return groups
        return each(blocks)


Group: TypeAlias = tuple[NumberedBlock, ...]
"""Consecutive blocks of one task."""


def _key(group: Group) -> int:
    return group[0].number


def each(blocks: Sequence[NumberedBlock]) -> list[Group]:
    """Each block as a task of its own."""
    return [(block,) for block in blocks]


class Distributed:
    """The kernels of blocks on the workers of a cluster; x is sent at each evaluation."""

    def __init__(
        self, kernels: BlockKernels, blocks: Sequence[NumberedBlock], client: Client
    ) -> None:
        self._tasks = ClusterTasks(kernels, client)
        self._blocks = blocks

    def results(self, quantity: Quantity, x: Vector, v: Vector | None) -> Iterator[Result]:
        groups = self._tasks.grouped(self._blocks)
        yield from self._tasks.run(partial(_evaluated, quantity), (x, v), groups)

    def bounds(self, x: Vector, radius: float, effort: str) -> Iterator[TermBounds]:
        # Results of all blocks at once might not fit in memory.
        for at in range(0, len(self._blocks), _MOST_BOUNDS):
            some = each(self._blocks[at : at + _MOST_BOUNDS])
            yield from self._tasks.run(partial(_bounded, radius, effort), (x,), some)


def _with_arrays(
    block: NumberedBlock, names: tuple[str, ...], *arrays: NDArray[np.float64]
) -> NumberedBlock:
    """A block with arrays that the cluster has computed."""
    return replace(block, data=block.data.with_blocks(dict(zip(names, arrays, strict=True))))


def _at_home(task: Any, shared: object, point: object, *blocks: NumberedBlock) -> tuple[Any, str]:
    """The result of a task on a worker, and the worker's address."""
    return task(shared, point, *blocks), _address()


def _address() -> str:
    from distributed import get_worker

    return str(get_worker().address)


def _evaluated(
    quantity: Quantity,
    kernels: BlockKernels,
    point: tuple[Vector, Vector | None],
    *blocks: NumberedBlock,
) -> Result:
    """The sum of a quantity over the blocks of a group at x (n,), with v (n,) for a product."""
    return added(kernels(quantity, block, *point) for block in blocks)


def _bounded(
    radius: float, effort: str, kernels: BlockKernels, point: tuple[Vector], block: NumberedBlock
) -> TermBounds:
    """The bounds of a block."""
    return kernels.bounds(block, point[0], radius, effort)


def _no_cluster(error: Exception) -> EvaluationLost:
    reason = str(error).partition("\n")[0][:200] or type(error).__name__
    message = f"the cluster does not answer any more ({reason})"
    remedy = "start it again; a run with a checkpoint continues with resume"
    return EvaluationLost(Diagnostic("E801", message, help=remedy))


def _is_lost(error: Exception) -> bool:
    """Whether an error says that a worker or its data are gone, and not that a task failed."""
    names = {type(one).__name__ for one in (error, error.__cause__) if one is not None}
    return not names.isdisjoint(_LOST)
