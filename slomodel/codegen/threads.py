"""The number of threads of kernels: one setting for numexpr, target `c` and the BLAS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numexpr
from threadpoolctl import threadpool_limits

from slomodel.errors import Diagnostic, DomainError


@contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Use `number` threads inside the block; None changes nothing.

    The setting is global: simultaneous blocks in two threads would undo each other's. Raises
    DomainError for less than one, or for more than numexpr reserved at its start (the environment
    variable NUMEXPR_MAX_THREADS).
    """
    if number is None:
        yield
        return
    most = numexpr.MAX_THREADS
    if type(number) is not int or not 1 <= number <= most:
        message = f"threads must be a whole number from 1 to {most}, not {number!r}"
        remedy = (
            "leave it away for all cores; NUMEXPR_MAX_THREADS, set before the start, is the most"
        )
        raise DomainError(Diagnostic("E602", message, help=remedy))
    before = numexpr.set_num_threads(number)
    try:
        with threadpool_limits(limits=number, user_api="blas"):
            yield
    finally:
        numexpr.set_num_threads(before)
