"""One run of several parts: a form of the problem, the problem itself, a form once more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from slomodel.solve.norms import Vector, norm
from slomodel.solve.run.history import History
from slomodel.solve.run.monitor import Callback, State, wants_stop
from slomodel.solve.run.solution import Solution
from slomodel.solve.status import Sense, Status

COUNTS = ("nit", "nfev", "njev", "nhev")
Options = dict[str, Any]
Part = Callable[[Options], Solution]
BUDGETS = (
    *(Status.max_iter, Status.max_time, Status.max_nfev),
    *(Status.user_stopped, Status.interrupted),
)
"""How a run ends that would go on otherwise."""


class RunParts:
    """What the parts of a run have spent so far, and their history.

    A part gets what is left of the budgets, and reports its steps as those of the whole run. A
    return to an earlier point is a step of its own. The whole run is at the point of `last`, and
    the last part has `ended` so.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._counts: dict[str, Any] = dict.fromkeys(COUNTS, 0)
        self._history: History | None = None
        self._seconds = 0.0
        self._asked = False
        self.last: Solution | None = None
        self.ended: Status | None = None

    def run(self, part: Part, start: Vector | None = None, kept: int = 0) -> Solution:
        """The Solution of the next part.

        It starts where the last one has ended, or at `start` (n,). So many of the iterations are
        `kept` for later.
        """
        options, away = dict(self._options), None
        if self.last is not None:
            away = None if start is None else self._distance(start)
            options |= self._left(kept + (start is not None))
            options |= {"callback": self._reporting(away), "resume": None}
            # A run that is resumed takes the parts after its end again.
            options["checkpoint"] = None if start is None else options.get("checkpoint")
        if callable(options.get("callback")):
            options["callback"] = self._noting(options["callback"])
        began = perf_counter()
        found = part(options)
        self._seconds += perf_counter() - began
        for name in COUNTS:
            self._counts[name] += getattr(found, name)
        if self._history is None:
            self._history = found.history
        else:
            self._counts["nit"] += away is not None
            self._history = self._history.followed_by(found.history, away)
        # A part may come to its end at the step at which its callback asks to stop.
        self.last, self.ended = found, Status.user_stopped if self._asked else found.status
        return found

    def spent(self, wanted: int = 1) -> Status | None:
        """The budget that leaves no further part with so many iterations; None if there is none."""
        options, counts = self._options, self._counts
        if self._asked:
            return Status.user_stopped
        most = options.get("max_iter")
        if most is not None and counts["nit"] + wanted > most:
            return Status.max_iter
        if options.get("max_time") is not None and self._seconds >= options["max_time"]:
            return Status.max_time
        most = options.get("max_nfev")
        return Status.max_nfev if most is not None and counts["nfev"] >= most else None

    def back_to(self, found: Solution) -> Solution:
        """The Solution of an earlier part, after a step back to its point."""
        assert self._history is not None
        fun, gnorm, away = found.fun, found.gradient_norm, self._distance(point_of(found))
        time, epoch = self._seconds, int(self._history.epoch[-1]) + 1
        row = zip(self._history.columns, (time, fun, gnorm, away, epoch), strict=True)
        self._history = History(*(np.append(one, last) for one, last in row))
        self._counts["nit"] += 1
        self.last = found
        callback: Callback | None = self._options.get("callback")
        if callback is not None and self.ended not in (Status.user_stopped, Status.interrupted):
            k, *counts = (self._counts[name] for name in COUNTS)
            now = State(k, found.x.copy(), fun, gnorm, away, epoch, time, *counts)
            if wants_stop(callback, now):
                self.ended = Status.user_stopped
        return self.whole(found)

    def _distance(self, x: Vector) -> float:
        """The distance of x (n,) from the end of the last part, which may have more unknowns."""
        assert self.last is not None
        return norm(point_of(self.last)[: len(x)] - x)

    def whole(self, found: Solution) -> Solution:
        """The Solution with the counts and the history of all parts."""
        if found.history is self._history:
            return found
        assert self._history is not None
        return replace(found, history=self._history, **self._counts)

    def _left(self, kept: int) -> Options:
        options, counts, left = self._options, self._counts, {}
        if options.get("max_iter") is not None:
            left["max_iter"] = max(0, options["max_iter"] - counts["nit"] - kept)
        if options.get("max_time") is not None:
            left["max_time"] = max(0.0, options["max_time"] - self._seconds)
        if options.get("max_nfev") is not None:
            left["max_nfev"] = max(1, options["max_nfev"] - counts["nfev"])
        return left

    def _noting(self, callback: Callback) -> Callback:
        def report(now: State) -> bool:
            self._asked = wants_stop(callback, now)
            return self._asked

        return report

    def _reporting(self, returned: float | None) -> Callback | None:
        callback: Callback | None = self._options.get("callback")
        if callback is None or self._history is None:
            return None
        counts, seconds, epoch = dict(self._counts), self._seconds, int(self._history.epoch[-1])

        def report(now: State) -> bool | None:
            if now.k == 0 and returned is None:
                return None
            own = {name: getattr(now, name) + counts[name] for name in COUNTS[1:]}
            k = now.k + counts["nit"] + (returned is not None)
            step = now.step if now.k or returned is None else returned
            time = now.time + seconds
            return callback(replace(now, k=k, step=step, epoch=now.epoch + epoch, time=time, **own))

        return report


def solved(
    solve: Callable[..., Solution],
    objective: object,
    start: Vector | None,
    options: Options,
    **own: Any,
) -> Solution:
    """The Solution of a part by `solve`, with options of its `own`."""
    return solve(objective, start, **options, **own)


def point_of(found: Solution) -> Vector:
    """The point of a Solution in the solver's variables (n,)."""
    return found.x if found.unconstrained is None else found.unconstrained


def stopped(found: Solution, status: Status, sense: Sense) -> Solution:
    """The Solution of a run that a budget or the user has ended before it went on."""
    message = f"{status.sentence_of(sense)} {status.remedy_of(sense)}"
    return replace(found, status=status, message=message)
