"""The record of a run: one row per point, and one entry per sequence of equal epochs."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slomodel.solve.norms import Vector, norm
from slomodel.solve.subroutine import EpochRegion


@dataclass(frozen=True, slots=True)
class History:
    """Columns (nit + 1,): seconds since the start, f, ‖g‖, ‖x_k − x_{k−1}‖, epoch.

    Row 0 is x0, with step 0; `epoch` numbers, from 1, the epoch whose step produced the point.
    """

    time: Vector
    fun: Vector
    gradient_norm: Vector
    step: Vector
    epoch: NDArray[np.int64]

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """All columns, in their order."""
        return tuple(getattr(self, one.name) for one in fields(self))

    def followed_by(self, later: History, returned: float | None = None) -> History:
        """The history of a run and of a later one from its end, without the start of that.

        With a start at a distance `returned` from the end, that start is a step.
        """
        first = 1 if returned is None else 0
        later = History(*(one[first:].copy() for one in later.columns))
        if returned is not None:
            later.step[0] = returned
        later.time[:] += self.time[-1]
        later.epoch[:] += self.epoch[-1]
        both = zip(self.columns, later.columns, strict=True)
        return History(*(np.append(*one) for one in both))


COLUMNS = len(fields(History))


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """`count` consecutive epochs from number `first`, with the same radius and constants.

    `centre_norm` is that of the first; `iterations` is the number in each. L1 and L2, as used at
    the end of the epoch, are None if the method needs none; `source` is none, number, function or
    sampled. `violations` counts the steps that showed L1 to be too small: they were refused and L1
    doubled, or accepted if L1 is user-supplied.
    """

    first: int
    count: int
    centre_norm: float
    D: float
    L1: float | None
    L2: float | None
    source: str
    iterations: int
    violations: int = 0


class Recorder:
    """The rows of the history, appended one by one; 40 bytes per row."""

    def __init__(self) -> None:
        self._rows = array("d")

    def add(self, time: float, fun: float, gradient_norm: float, step: float, epoch: int) -> None:
        # A single call, so that Ctrl-C cannot leave half a row.
        self._rows.extend((time, fun, gradient_norm, step, epoch))

    def extend(self, rows: Vector) -> None:
        """Append several rows (k, 5)."""
        self._rows.frombytes(rows.tobytes())

    def rows(self) -> Vector:
        """A copy of all rows so far (k, 5)."""
        return np.frombuffer(self._rows).reshape(-1, COLUMNS).copy()

    def value(self, k: int) -> float:
        """f after step k."""
        return self._rows[COLUMNS * k + 1]

    def restore(self, rows: Vector) -> None:
        """Replace the rows by those of an earlier run (k, 5)."""
        self._rows = array("d", rows.ravel().tolist())

    def history(self) -> History:
        rows = np.frombuffer(self._rows).reshape(-1, COLUMNS)
        time, fun, gradient_norm, step, epoch = rows.T.copy()
        return History(time, fun, gradient_norm, step, epoch.astype(np.int64))


class EpochLog:
    """The list of epochs so far; one-step epochs without constants have one common record."""

    def __init__(self) -> None:
        self._records: list[EpochRecord] = []
        self._count = 0

    def add_single(self, count: int) -> None:
        """Count more epochs of a single step, equal to the one before."""
        self._count += count

    def add(self, region: EpochRegion, iterations: int, violations: int) -> None:
        single = region.is_one_free_step
        if single and not iterations:
            return
        self._count += 1
        if single and self._records:
            return
        self._records.append(
            EpochRecord(
                first=self._count,
                count=1,
                centre_norm=norm(region.centre),
                D=region.D,
                L1=region.L1,
                L2=region.L2,
                source=region.source,
                iterations=iterations,
                violations=violations,
            )
        )

    def records(self) -> tuple[EpochRecord, ...]:
        """All epochs so far; a method whose epochs are single steps has one record."""
        if len(self._records) == 1:
            return (replace(self._records[0], count=self._count),)
        return tuple(self._records)
