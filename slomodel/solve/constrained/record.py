"""The record of a run in several parts: counts, budgets, history, and the user's view of it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from slomodel.solve.norms import Vector
from slomodel.solve.run.checkpoint import Saved
from slomodel.solve.run.history import EpochRecord, History
from slomodel.solve.run.monitor import Callback, Progress, State, wants_stop
from slomodel.solve.run.solution import Solution
from slomodel.solve.run_options import RunOptions
from slomodel.solve.status import Status

COUNTS = ("nit", "nfev", "njev", "nhev", "rounding_steps", "violations")


@dataclass(slots=True)
class RunRecord:
    """Counts and time of the minimisations of subproblems and of the Newton steps so far.

    `outer` numbers the subproblems from 1, which are the epochs of the history. The fields of the
    history are those of the augmented Lagrangian.
    """

    options: RunOptions
    callback: Callback | None = None
    display: Progress | None = None
    user: Callable[[Vector], Vector] | None = None
    outer: int = 1
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    rows: array[float] = field(default_factory=lambda: array("d"))
    epochs: list[EpochRecord] = field(default_factory=list)
    calls: list[dict[str, float | str]] = field(default_factory=list)
    started: float = field(default_factory=perf_counter)
    stopped: bool = False

    def resume(self, saved: Saved, state: Mapping[str, Any]) -> None:
        """Continue the record of a saved run."""
        self.started = perf_counter() - saved.seconds
        self.rows = array("d", saved.rows.ravel().tolist())
        self.outer = int(state["outer"])
        self.counts.update({name: int(state["counts"][name]) for name in COUNTS})

    @property
    def sign(self) -> float:
        return -1.0 if self.options.sense == "maximize" else 1.0

    @property
    def seconds(self) -> float:
        return perf_counter() - self.started

    @property
    def spent(self) -> Status | None:
        """The budget that is exhausted, if any."""
        options = self.options
        if self.stopped:
            return Status.user_stopped
        if options.max_time is not None and self.seconds >= options.max_time:
            return Status.max_time
        if options.max_nfev is not None and self.counts["nfev"] >= options.max_nfev:
            return Status.max_nfev
        return Status.max_iter if self.counts["nit"] >= options.max_iter else None

    def remaining(self) -> dict[str, object]:
        """The budgets of the next subproblem."""
        options, counts = self.options, self.counts
        time, nfev = options.max_time, options.max_nfev
        return {
            "max_iter": options.max_iter - counts["nit"],
            "max_time": None if time is None else max(0.0, time - self.seconds),
            "max_nfev": None if nfev is None else max(1, nfev - counts["nfev"]),
        }

    def took(self, x: Vector, fun: float, stationarity: float, step: float) -> None:
        """Record and report a step to x (n,) that belongs to no subproblem, or the start."""
        self.rows.extend((self.seconds, self.sign * fun, stationarity, step, float(self.outer)))
        now = State(0, x.copy(), fun, stationarity, step, 0, 0.0, 0, 0, 0)
        if self.callback is not None:
            self.stopped = wants_stop(self.callback, self.state(now))

    def add(self, run: Solution, began: float) -> None:
        """Add the run of a subproblem, which began at `began` seconds."""
        for name in COUNTS:
            self.counts[name] += getattr(run, name)
        history = run.history
        # A row for the start of the subproblem would repeat the last one.
        for k in range(1, len(history.time)):
            numbers = (self.sign * history.fun[k], history.gradient_norm[k], history.step[k])
            self.rows.extend((began + history.time[k], *numbers, float(self.outer)))
        self.epochs += [replace(epoch, first=self.outer) for epoch in run.epochs]
        self.calls += run.calls

    def state(self, inner: State) -> State:
        """The state of the whole run, from that of the current subproblem."""
        counts = self.counts
        return replace(
            inner,
            x=inner.x if self.user is None else self.user(inner.x),
            fun=self.sign * inner.fun,
            k=inner.k + counts["nit"],
            epoch=self.outer,
            time=self.seconds,
            nfev=inner.nfev + counts["nfev"],
            njev=inner.njev + counts["njev"],
            nhev=inner.nhev + counts["nhev"],
        )

    def report(self, inner: State) -> bool:
        """Report a step of a subproblem to the user's callback; True if it requests a stop."""
        if self.callback is not None and inner.k > 0:
            self.stopped = wants_stop(self.callback, self.state(inner))
        return self.stopped

    def table(self) -> Vector:
        """The rows of the history (k, 5)."""
        return np.array(self.rows).reshape(-1, 5)

    def history(self) -> History:
        table = self.table()
        time, fun, gradient_norm, step, epoch = (np.ascontiguousarray(c) for c in table.T)
        return History(time, fun, gradient_norm, step, epoch.astype(np.int64))


@dataclass(slots=True)
class SharedDisplay:
    """A display of the whole run, which the runs of its subproblems update and do not close."""

    record: RunRecord
    display: Progress

    def update(self, state: State) -> None:
        self.display.update(self.record.state(state))

    def close(self) -> None:
        """Do nothing: the display is closed at the end of the last subproblem."""
