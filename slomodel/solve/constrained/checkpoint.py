"""Checkpoints of runs with constraints: the state at the beginning of a subproblem."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slomodel.solve.constrained.primal_dual import PrimalDual
from slomodel.solve.constrained.record import COUNTS, RunRecord
from slomodel.solve.norms import Vector
from slomodel.solve.run.checkpoint import Saved, Trajectory, refused, write_checkpoint
from slomodel.solve.subroutine import Iterate

STATE = ("tolerance", "penalty", "wanted", "gap", "best", "penalised", "idle", "restored")
"""The fields of a run that are saved as numbers; inf is saved as null."""
_INFINITE = ("gap", "best")


@dataclass(frozen=True, slots=True)
class SavedRun:
    """Writes the state of a run from x0 (n,) to a file before each subproblem."""

    path: str | os.PathLike[str]
    trajectory: Trajectory
    x0: Vector

    def keep(self, at: PrimalDual, y: Vector, state: Mapping[str, Any], record: RunRecord) -> None:
        """Write a point with its multipliers y (m,) as the model states the constraints."""
        finite = {k: None if v == math.inf else v for k, v in state.items()}
        code = {"constrained": {**finite, "outer": record.outer, "counts": record.counts}}
        counts = {name: record.counts[name] for name in ("nfev", "njev", "nhev")}
        write_checkpoint(
            self.path,
            self.trajectory,
            self.x0,
            Iterate(at.x, at.f, at.g, at.stationarity),
            record.table(),
            record.seconds,
            counts,
            code,
            [y],
        )


def saved_state(saved: Saved, m: int) -> dict[str, Any]:
    """The state in a checkpoint of a run with m constraints; DomainError for another one."""
    code: Any = saved.code
    if not isinstance(code, dict) or "constrained" not in code:
        raise refused(saved.path, "it is of a run without constraints")
    state: dict[str, Any] = dict(code["constrained"])
    fits = {*STATE, "outer", "counts"} <= state.keys() and set(COUNTS) <= state["counts"].keys()
    if not fits or len(saved.arrays) != 1 or saved.arrays[0].shape != (m,):
        raise refused(saved.path, "it is of another model, of another version, or damaged")
    return state | {k: math.inf for k in _INFINITE if state[k] is None}
