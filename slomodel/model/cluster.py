"""Clients of `dask.distributed`, which is imported only if a cluster is used."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from slomodel.errors import Diagnostic, DomainError

RETRIES = 5
"""How often a task is run again after the worker that ran it died."""

Client: TypeAlias = Any
"""A client of `dask.distributed`."""


def client_of(address: str) -> Client:
    """A client of the scheduler at an address, `tcp://…`, or of local workers, `local:2`.

    Raises DomainError without the package, or for an address that cannot be reached.
    """
    distributed = _distributed()
    kind, _, count = address.partition(":")
    if kind == "local":
        if not count.isdigit() or not int(count):
            message = f"`{address}` does not say how many local workers"
            raise DomainError(Diagnostic("E602", message, help="write --dask local:2"))
        # Any free port: None is the default one, with a warning where another cluster has it.
        cluster = distributed.LocalCluster(
            n_workers=int(count), threads_per_worker=1, dashboard_address=":0"
        )
        return distributed.Client(cluster)
    try:
        return distributed.Client(address, timeout="10s")
    except (OSError, ValueError, TimeoutError) as error:
        message = f"there is no scheduler at `{address}`: {error}".partition("\n")[0]
        raise DomainError(
            Diagnostic("E602", message, help="start one with `dask scheduler`, or use local:2")
        ) from None


def checked(client: object) -> Client:
    """A client, or DomainError for anything else, such as an address."""
    if not callable(getattr(client, "submit", None)):
        message = f"client= takes a client of dask.distributed, not {type(client).__name__}"
        raise DomainError(Diagnostic("E602", message, help="pass distributed.Client(address)"))
    return client


def _distributed() -> Any:
    try:
        import distributed
    except ModuleNotFoundError:
        message = "a cluster needs the package `distributed`"
        remedy = "install it with `pip install slomodel[dask]`"
        raise DomainError(Diagnostic("E801", message, help=remedy)) from None
    return distributed


@contextmanager
def connected(address: str | None) -> Iterator[Client | None]:
    """The client of an address while the block runs; local workers end with it."""
    if address is None:
        yield None
        return
    client = client_of(address)
    try:
        yield client
    finally:
        cluster = client.cluster
        client.close()
        if cluster is not None and address.startswith("local"):
            cluster.close()


def sent(client: Client, value: object) -> Any:
    """A value for the tasks of a cluster, which is sent again where the worker that has it is lost.

    It is the result of a task, which the scheduler runs again, as it does not for scattered data.
    """
    with warnings.catch_warnings():
        # A value of more than 10 MB travels through the scheduler once.
        warnings.filterwarnings("ignore", message="Sending large graph")
        return client.submit(_same, value, pure=False, retries=RETRIES)


def _same(value: object) -> object:
    return value


def is_closed(client: Client) -> bool:
    """Whether a client has lost its scheduler."""
    return getattr(client, "status", "running") in ("closed", "closing")


def completed(client: Client, tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Each task with its result, or the exception it ended with, in order of completion.

    Leaving the loop cancels the others.
    """
    try:
        for task in _distributed().as_completed(tasks):
            error = task.exception() if task.status in ("error", "cancelled", "lost") else None
            yield task, task.result() if error is None else error
    finally:
        client.cancel([task for task in tasks if not task.done()])
