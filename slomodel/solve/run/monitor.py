"""The user's view of a run: history, callback, progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol, runtime_checkable

import numpy as np

from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.options import bad_value
from slomodel.solve.run.history import Recorder
from slomodel.solve.subroutine import Iterate

PROGRESS_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class State:
    """The run after step k, for a callback; `x` (n,) is a copy, `fun` as the model states it."""

    k: int
    x: Vector
    fun: float
    gradient_norm: float
    step: float
    epoch: int
    time: float
    nfev: int
    njev: int
    nhev: int


Callback = Callable[[State], bool | None]


@runtime_checkable
class Progress(Protocol):
    """A display; `update` is called at k = 0, then at most ten times per second, and at the end."""

    def update(self, state: State) -> None: ...

    def close(self) -> None: ...


class Monitor:
    """Records every accepted point and reports it to callback and display. `k` counts the steps.

    `user` maps a point to the x that is reported, if that differs.
    """

    def __init__(
        self,
        evaluate: Evaluator,
        callback: Callback | None,
        progress: Progress | None,
        user: Callable[[Vector], Vector] | None = None,
    ) -> None:
        self.k = -1
        self.recorder = Recorder()
        self._evaluate = evaluate
        self._callback = callback
        self._progress = progress
        self._user = user
        self._now = 0.0
        self._next_update = 0.0

    @property
    def reports(self) -> bool:
        """Whether there is a callback or a display."""
        return self._callback is not None or self._progress is not None

    def record(self, point: Iterate, step: float, epoch: int) -> None:
        """Record the next point, x0 first."""
        self._now = perf_counter()
        evaluate = self._evaluate
        time = self._now - evaluate.started
        self.recorder.add(time, evaluate.sign * point.f, point.gnorm, step, epoch)
        self.k += 1

    def extend(self, rows: Vector) -> None:
        """Record several points by their rows (k, 5)."""
        self.recorder.extend(rows)
        self.k += len(rows)

    def restore(self, rows: Vector) -> None:
        """Continue after the rows (k, 5) of an earlier run."""
        self.recorder.restore(rows)
        self.k = len(rows) - 1

    def report(self, point: Iterate, step: float, epoch: int) -> bool:
        """Report the point just recorded; True if the callback requests a stop."""
        if self._progress is not None and self._now >= self._next_update:
            self._progress.update(self._state(point, step, epoch))
            self._next_update = self._now + PROGRESS_SECONDS
        if self._callback is None:
            return False
        return wants_stop(self._callback, self._state(point, step, epoch))

    def close(self, last: Iterate, step: float, epoch: int) -> None:
        """Display the last point and close the display."""
        if self._progress is None:
            return
        try:
            self._now = perf_counter()
            self._progress.update(self._state(last, step, epoch))
        finally:
            self._progress.close()

    def _state(self, point: Iterate, step: float, epoch: int) -> State:
        evaluate = self._evaluate
        return State(
            k=max(self.k, 0),
            x=point.x.copy() if self._user is None else self._user(point.x),
            fun=evaluate.sign * point.f,
            gradient_norm=point.gnorm,
            step=step,
            epoch=epoch,
            time=self._now - evaluate.started,
            nfev=evaluate.nfev,
            njev=evaluate.njev,
            nhev=evaluate.nhev,
        )


def check_callback(callback: object) -> None:
    """Raise DomainError for a callback that is not callable."""
    if callback is not None and not callable(callback):
        raise bad_value("callback", "a function of the run's state", callback)


def wants_stop(callback: Callback, state: State) -> bool:
    """Whether the callback ends the run, by True or StopIteration. May raise TypeError."""
    try:
        answer: object = callback(state)
    except StopIteration:
        return True
    if answer is None:
        return False
    if isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise TypeError(
        f"the callback returned {type(answer).__name__}: return True to stop, "
        "None or False to go on"
    )
