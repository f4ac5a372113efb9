"""Checkpoints: a run is stored every few seconds, and can be resumed bit for bit."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import DomainError
from slomodel.solve.files import archive, no_such_file, written
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.options import file_path
from slomodel.solve.run.monitor import Monitor
from slomodel.solve.run.snapshot import Code, Freezer, Thawer
from slomodel.solve.run_options import RunOptions
from slomodel.solve.subroutine import Iterate

FORMAT = "slomodel checkpoint 1"
SECONDS = 5.0
# Limit on the fraction of the run time that is spent on writing.
FRACTION = 0.05
_COUNTS = ("nfev", "njev", "nhev")
_NAMED = ("x0", "rows", "point", "gradient")


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The choices that the iterates depend on besides the objective: method and options.

    In a trajectory read from a checkpoint, `options` holds the method's options that are numbers or
    strings, `not_held` names the others, and the budgets in `run` are the defaults.
    """

    method: str
    options: Mapping[str, object]
    run: RunOptions
    not_held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Saved:
    """The content of a checkpoint file; `point` is the last point of the run."""

    path: str
    trajectory: Trajectory
    x0: Vector
    point: Iterate
    rows: Vector
    seconds: float
    counts: Mapping[str, int]
    code: Code
    arrays: tuple[NDArray[np.float64], ...]


class Keeper:
    """Checkpoints of one run: written to `path`, and restored from `saved` at its start."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        trajectory: Trajectory,
        x0: Vector,
        saved: Saved | None = None,
    ) -> None:
        self.saved = saved
        self._path = None if path is None else file_path("checkpoint", path)
        self._trajectory = trajectory
        self._x0 = x0
        self._parts: dict[str, object] = {}
        self._due = 0.0

    def follow(self, evaluate: Evaluator, monitor: Monitor, parts: dict[str, object]) -> None:
        """Register the objects that a run consists of, and restore their saved state.

        An object that replaces another one later has to be put into `parts`.

        Raises DomainError for a checkpoint that does not fit them.
        """
        self._parts = parts
        saved = self.saved
        if saved is None:
            return
        try:
            Thawer(saved.arrays).thaw(saved.code, parts)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            raise refused(saved.path, "it is of another version, or damaged") from None
        evaluate.go_on(saved.seconds, *(saved.counts[name] for name in _COUNTS))
        monitor.restore(saved.rows)

    def keep(self, evaluate: Evaluator, monitor: Monitor, at: Iterate, at_end: bool) -> None:
        """Write a checkpoint if one is due: at the start, every few seconds, and at the end."""
        now = perf_counter()
        if self._path is None or not (at_end or now >= self._due):
            return
        freezer = Freezer()
        code = freezer.freeze(self._parts)
        write_checkpoint(
            *(self._path, self._trajectory, self._x0, at, monitor.recorder.rows()),
            now - evaluate.started,
            {name: getattr(evaluate, name) for name in _COUNTS},
            code,
            freezer.arrays,
        )
        spent = perf_counter() - now
        self._due = now + spent + max(SECONDS, spent / FRACTION)


def write_checkpoint(
    path: str | os.PathLike[str],
    trajectory: Trajectory,
    x0: Vector,
    at: Iterate,
    rows: Vector,
    seconds: float,
    counts: Mapping[str, int],
    code: Code,
    arrays: Sequence[NDArray[np.generic]],
) -> None:
    """Write the state of a run from x0 (n,) at a point, with its history `rows` (k, 5)."""
    text = {
        "format": FORMAT,
        "asked": _plain(trajectory),
        "f": at.f,
        "gnorm": at.gnorm,
        "seconds": seconds,
        "counts": dict(counts),
        "code": code,
    }
    numbered = {f"array_{k}": one for k, one in enumerate(arrays)}
    named = dict(zip(_NAMED, (x0, rows, at.x, at.g), strict=True))
    with written(path) as partial, partial.open("wb") as file:
        np.savez(file, allow_pickle=False, text=np.array(json.dumps(text)), **named, **numbered)


def read_checkpoint(path: str | os.PathLike[str]) -> Saved:
    """Read a checkpoint that a run with `checkpoint=` wrote; DomainError for any other file."""
    arrays = archive(path, "a checkpoint", "a run with checkpoint=")
    if not {"text", *_NAMED} <= arrays.keys():
        raise refused(os.fspath(path), f"it holds {', '.join(sorted(arrays)) or 'nothing'}")
    try:
        text = json.loads(str(arrays["text"]))
        if text["format"] != FORMAT:
            raise ValueError(text["format"])
        count = sum(name.startswith("array_") for name in arrays)
        x, g = arrays["point"], arrays["gradient"]
        return Saved(
            path=os.fspath(path),
            trajectory=_trajectory(text["asked"]),
            x0=arrays["x0"],
            point=Iterate(x, float(text["f"]), g, float(text["gnorm"])),
            rows=arrays["rows"],
            seconds=float(text["seconds"]),
            counts={name: int(text["counts"][name]) for name in _COUNTS},
            code=text["code"],
            arrays=tuple(arrays[f"array_{k}"] for k in range(count)),
        )
    except (KeyError, ValueError, TypeError):
        raise refused(os.fspath(path), "it is of another version, or damaged") from None


def _plain(trajectory: Trajectory) -> dict[str, object]:
    """The trajectory as JSON values: `method`, `options`, `not_held` and the run options."""
    given = {k: _number(v) for k, v in trajectory.options.items() if v is not None}
    held = {k: v for k, v in given.items() if isinstance(v, str | bool | int | float)}
    return {
        "method": trajectory.method,
        "options": held,
        **{name: _number(value) for name, value in trajectory.run.trajectory().items()},
        "not_held": sorted(given.keys() - held.keys()),
    }


def _number(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _trajectory(saved: Mapping[str, object]) -> Trajectory:
    """The trajectory from its JSON values; run options may be among those of the method."""
    flat = dict(saved)
    method, options, not_held = (flat.pop(name) for name in ("method", "options", "not_held"))
    if not (isinstance(options, dict) and isinstance(not_held, list)):
        raise TypeError(options)
    run, others = RunOptions.of({**flat, **options})
    if others.keys() & flat.keys():
        raise KeyError(*others)
    return Trajectory(str(method), others, run, tuple(map(str, not_held)))


def refused(path: str, reason: str) -> DomainError:
    return no_such_file(path, "a checkpoint", "a run with checkpoint=", reason)
