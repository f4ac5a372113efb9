"""Blocks on the workers of a `dask.distributed` cluster; results come back in the blocks' order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from slomodel.errors import Diagnostic, DomainError
from slomodel.model.blocks.evaluate import BlockKernels, NumberedBlock, Quantity, Result, Vector
from slomodel.model.cluster import RETRIES, Client, is_closed, sent
from slomodel.solve.objective import EvaluationLost

if TYPE_CHECKING:
    from slomodel.bounds.term_sums import TermBounds

_LOST = (
    *("KilledWorker", "CancelledError", "FutureCancelledError", "FutureLostError"),
    *("CommClosedError", "TimeoutError"),
)
"""Names of the exceptions of a lost worker, or of data that only it had."""
_SMALL = 2**16
"""Points up to so many bytes go along with each task; larger ones are sent to all workers once."""
_MOST_BOUNDS = 64
"""Number of blocks whose bounds are computed at a time."""
_ROUNDS = 3
"""How often lost data are sent again in an evaluation."""


class Distributed:
    """Blocks on the workers of a cluster: kernels are sent once, and x at each evaluation.

    The scheduler runs tasks of a lost worker again on others. If data that only the lost worker had
    are gone, they are sent again. Each block goes to the worker that had it before, if possible.
    """

    def __init__(
        self, kernels: BlockKernels, blocks: Sequence[NumberedBlock], client: Client
    ) -> None:
        if not callable(getattr(client, "submit", None)):
            message = f"client= takes a client of dask.distributed, not {type(client).__name__}"
            raise DomainError(Diagnostic("E602", message, help="pass distributed.Client(address)"))
        self._kernels = kernels
        self._blocks = blocks
        self._client = client
        self._sent: Any = None
        self._homes: dict[int, str] = {}
        self._given: dict[int, Any] = {}

    def results(self, quantity: Quantity, x: Vector, v: Vector | None) -> Iterator[Result]:
        yield from self._all(partial(_evaluated, quantity), (x, v), self._blocks)

    def bounds(self, x: Vector, radius: float, effort: str) -> Iterator[TermBounds]:
        # Results of all blocks at once might not fit in memory.
        for at in range(0, len(self._blocks), _MOST_BOUNDS):
            some = self._blocks[at : at + _MOST_BOUNDS]
            yield from self._all(partial(_bounded, radius, effort), (x, None), some)

    def _all(self, task: Any, point: Point, blocks: Sequence[NumberedBlock]) -> Iterator[Any]:
        """The results of a task for all blocks, in their order."""
        found: dict[int, Any] = {}
        for round_ in range(_ROUNDS):
            try:
                self._collect(
                    task, point, [one for one in blocks if one.number not in found], found
                )
                break
            except Exception as error:
                if not (_is_lost(error) or is_closed(self._client)):
                    raise
                if round_ == _ROUNDS - 1 or is_closed(self._client):
                    raise _no_cluster(error) from error
                self._sent = None
                self._homes, self._given = {}, {}
        for one in blocks:
            yield found[one.number]

    def _collect(
        self, task: Any, point: Any, blocks: Sequence[NumberedBlock], found: dict[int, Any]
    ) -> None:
        """Run a task for blocks, and put the results into `found`."""
        client = self._client
        if self._sent is None:
            self._sent = sent(client, self._kernels)
        if point[0].nbytes > _SMALL:
            point = sent(client, point)
        tasks = {}
        for block in blocks:
            home = self._homes.get(block.number)
            tasks[block.number] = client.submit(
                *(task, self._sent, self._on_cluster(block), point),
                pure=False,
                retries=RETRIES,
                **({} if home is None else {"workers": [home], "allow_other_workers": True}),
            )
        try:
            for k, (result, home) in zip(tasks, client.gather(list(tasks.values())), strict=True):
                found[k], self._homes[k] = result, home
        finally:
            for one in tasks.values():
                one.release()

    def _on_cluster(self, block: NumberedBlock) -> Any:
        """The block for a task: data in memory are sent once, and names of files with each task."""
        if block.data.is_in_files:
            return block
        if block.number not in self._given:
            self._given[block.number] = sent(self._client, block)
        return self._given[block.number]


Point: TypeAlias = tuple[Vector, Vector | None]
"""A point x (n,), and v (n,) for a product."""


def _evaluated(
    quantity: Quantity, kernels: BlockKernels, block: NumberedBlock, point: Point
) -> tuple[Result, str]:
    """The task of a worker: a quantity of a block, and the worker's address."""
    x, v = point
    return kernels(quantity, block, x, v), _address()


def _bounded(
    radius: float, effort: str, kernels: BlockKernels, block: NumberedBlock, point: Point
) -> tuple[TermBounds, str]:
    """The task of a worker: the bounds of a block, and the worker's address."""
    return kernels.bounds(block, point[0], radius, effort), _address()


def _address() -> str:
    from distributed import get_worker

    return str(get_worker().address)


def _no_cluster(error: Exception) -> EvaluationLost:
    reason = str(error).partition("\n")[0][:200] or type(error).__name__
    message = f"the cluster does not answer any more ({reason})"
    remedy = "start it again; a run with a checkpoint continues with resume"
    return EvaluationLost(Diagnostic("E801", message, help=remedy))


def _is_lost(error: Exception) -> bool:
    """Whether an error says that a worker or its data are gone, and not that a task failed."""
    names = {type(one).__name__ for one in (error, error.__cause__) if one is not None}
    return not names.isdisjoint(_LOST)
