"""The record of a run: one row per point, and one entry per sequence of like epochs."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from slomodel.solve.norms import Vector, norm
from slomodel.solve.subroutine import EpochRegion


@dataclass(frozen=True, slots=True)
class History:
    """Columns (nit + 1,): seconds since the start, f, ‖g‖, ‖x_k − x_{k−1}‖, epoch.

    Row 0 is x0, with step 0; `epoch` is the one whose step produced the point, from 1.
    """

    time: Vector
    fun: Vector
    gradient_norm: Vector
    step: Vector
    epoch: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """`count` epochs in a row, from number `first`, with the same radius and constants.

    `centre_norm` is that of the first; `iterations` is the number in each. L1 and L2, as used
    at the epoch's end, are None where the method asks for none; `source` is none, number,
    function or sampled. `violations` counts the steps that showed L1 to be too small: refused
    and L1 doubled, or taken where L1 is the user's.
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
    """Grows the history; 40 bytes a row."""

    def __init__(self) -> None:
        self._rows = array("d")

    def add(self, time: float, fun: float, gradient_norm: float, step: float, epoch: int) -> None:
        # One call, so that Ctrl-C cannot leave half a row.
        self._rows.extend((time, fun, gradient_norm, step, epoch))

    def rows(self) -> Vector:
        """All rows so far (k, 5), a copy."""
        return np.array(self._rows).reshape(-1, len(fields(History)))

    def restore(self, rows: Vector) -> None:
        """Take up rows (k, 5) of an earlier run in place of what there is."""
        self._rows = array("d", rows.ravel().tolist())

    def history(self) -> History:
        table = self.rows()
        time, fun, gradient_norm, step, epoch = (np.ascontiguousarray(c) for c in table.T)
        return History(time, fun, gradient_norm, step, epoch.astype(np.int64))


class EpochLog:
    """Grows the list of epochs; those of one step without constants share one record."""

    def __init__(self) -> None:
        self._records: list[EpochRecord] = []
        self._count = 0

    def add(self, region: EpochRegion, iterations: int, violations: int) -> None:
        single = region.ends_every_step and region.L1 is None
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
