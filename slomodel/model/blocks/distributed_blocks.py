"""Blocks on the workers of a `dask.distributed` cluster; results come back in the blocks' order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from slomodel.errors import Diagnostic, DomainError
from slomodel.model.blocks.evaluate import BlockKernels, NumberedBlock, Quantity, Result, Vector
from slomodel.model.cluster import Client

_RETRIES = 5
"""How often a task is run again after the worker that ran it died."""
_LOST = (
    *("KilledWorker", "CancelledError", "FutureCancelledError", "FutureLostError"),
    *("CommClosedError", "TimeoutError"),
)
"""Names of the exceptions of a lost worker, or of data that only it had."""
_SMALL = 2**16
"""Points up to so many bytes go along with each task; larger ones are sent to all workers once."""
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
        if not callable(getattr(client, "submit", None)) or not hasattr(client, "scatter"):
            message = f"client= takes a client of dask.distributed, not {type(client).__name__}"
            raise DomainError(Diagnostic("E602", message, help="pass distributed.Client(address)"))
        self._kernels = kernels
        self._blocks = blocks
        self._client = client
        self._sent: Any = None
        self._homes: dict[int, str] = {}

    def results(self, quantity: Quantity, x: Vector, v: Vector | None) -> Iterator[Result]:
        found: dict[int, Result] = {}
        for round_ in range(_ROUNDS):
            try:
                self._collect(quantity, x, v, found)
                break
            except Exception as error:
                if not _is_lost(error) or round_ == _ROUNDS - 1:
                    raise
                self._sent = None
                self._homes = {}
        for k in range(len(self._blocks)):
            yield found[k]

    def _collect(
        self, quantity: Quantity, x: Vector, v: Vector | None, found: dict[int, Result]
    ) -> None:
        """Evaluate the blocks that are not in `found` yet, and put their results there."""
        client = self._client
        if self._sent is None:
            self._sent = client.scatter(self._kernels, broadcast=True, hash=False)
        point: Any = (x, v)
        if x.nbytes > _SMALL:
            point = client.scatter(point, broadcast=True, hash=False)
        tasks = {}
        for block in self._blocks:
            if block.number not in found:
                home = self._homes.get(block.number)
                tasks[block.number] = client.submit(
                    *(_evaluated, self._sent, quantity, block, point),
                    pure=False,
                    retries=_RETRIES,
                    **({} if home is None else {"workers": [home], "allow_other_workers": True}),
                )
        try:
            for k, (result, home) in zip(tasks, client.gather(list(tasks.values())), strict=True):
                found[k], self._homes[k] = result, home
        finally:
            for task in tasks.values():
                task.release()


def _evaluated(
    kernels: BlockKernels,
    quantity: Quantity,
    block: NumberedBlock,
    point: tuple[Vector, Vector | None],
) -> tuple[Result, str]:
    """The task of a worker: a quantity of a block, and the worker's address."""
    x, v = point
    return kernels(quantity, block, x, v), _address()


def _address() -> str:
    from distributed import get_worker

    return str(get_worker().address)


def _is_lost(error: Exception) -> bool:
    """Whether an error says that a worker or its data are gone, and not that a task failed."""
    names = {type(one).__name__ for one in (error, error.__cause__) if one is not None}
    return not names.isdisjoint(_LOST)
