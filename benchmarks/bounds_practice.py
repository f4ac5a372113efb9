"""Tightness of the bounds on the models of practice, round their starts and round their solutions.

Two lines a model, in unconstrained variables: bound / lower for L1 and L2 by radius, where `lower`
is the most that ascents from several seeds reach, so that a ratio overstates looseness. Starts are
those of the model; solutions are where the default solver ends from the first recorded point.
Estimates and solutions do not depend on the bounds: with `kept` they are read from a file and
added to it.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import slomodel
from benchmarks.by_hand import Array
from benchmarks.practice import DATA, arrays, compiled, records
from slomodel.bounds import Bounds

RADII = (0.1, 1.0)
SEEDS = 2
MOST_SECONDS = 20.0
RESOLVED = 1e-6
"""Relative accuracy of an estimate from a difference of two Hessians."""
BARS = (3.0, 10.0)
"""The targets of L1 by radius, for 90 % and 80 % of the lines."""
SHARES = (0.9, 0.8)
HEADS = ("model", "centre", "n", *(f"{which} {r:g}" for r in RADII for which in ("L1", "L2")))
HEADS = (*HEADS, "s", "rule of L1 at 0.1", "reason")


@dataclass(frozen=True, slots=True)
class PracticeRow:
    """One centre with all radii: estimates from below and bounds by radius; CPU seconds."""

    model: str
    centre: str
    n: int
    lower: tuple[tuple[float, float], ...]
    found: tuple[Bounds, ...]
    seconds: float

    def ratio(self, radius: int, which: int) -> float:
        """Bound over estimate of L1 (0) or L2 (1) at a radius of `RADII`; 1 where both are 0."""
        bound = (self.found[radius].L1, self.found[radius].L2)[which]
        low = self.lower[radius][which]
        return 1.0 if bound == low else bound / low if low else np.inf

    @property
    def is_passed(self) -> bool:
        """Whether an estimate is above a bound."""
        pairs = ((radius, which) for radius in range(len(RADII)) for which in (0, 1))
        return min(self.ratio(*pair) for pair in pairs) < 1.0 - RESOLVED

    def cells(self) -> tuple[str, ...]:
        ratios = (f"{self.ratio(k, which):.3g}" for k in range(len(RADII)) for which in (0, 1))
        first = self.found[0]
        mark = "BELOW AN ESTIMATE " if self.is_passed else ""
        named = (self.model, self.centre, str(self.n))
        told = (first.rule, mark + (first.reason or self.found[-1].reason)[:60].replace("|", "/"))
        return (*named, *ratios, f"{self.seconds:.1f}", *told)


class Known:
    """Lists of numbers by name, kept in a file if one is given."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._known: dict[str, list[float]] = {}
        if file is not None and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                key, *values = json.loads(line)
                self._known[key] = values

    def solution(self, name: str, model: slomodel.Model) -> Array:
        """Where the default solver ends from the first recorded point (n,)."""
        if name not in self._known:
            start = arrays(DATA / f"{name}.npz")["x"][0]
            self._keep(name, model.solve(x0=start, max_time=MOST_SECONDS).x.tolist())
        return np.array(self._known[name])

    def lower(self, model: slomodel.Model, key: str, x: Array) -> tuple[tuple[float, float], ...]:
        """The most that ascents reach for L1 and L2 in each ball or in smaller ones."""
        most, found = np.zeros(2), []
        for radius in RADII:
            name = f"{key}/{radius:g}"
            if name not in self._known:
                with np.errstate(all="ignore"):
                    seen = [model.sample_bounds(x, radius, seed=seed) for seed in range(SEEDS)]
                self._keep(name, [max(one.L1 for one in seen), max(one.L2 for one in seen)])
            most = np.maximum(most, self._known[name])
            found.append((float(most[0]), float(most[1])))
        return tuple(found)

    def _keep(self, name: str, values: list[float]) -> None:
        self._known[name] = values
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, *values]) + "\n")


def practice_rows(only: str | None, kept: Path | None) -> Iterator[PracticeRow]:
    """Two rows for each model with `only` in its name."""
    known = Known(kept)
    for name in sorted(records()):
        if only is not None and only not in name:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", slomodel.errors.ModelWarning)
            model = compiled(name, "c")
        for centre, x in (("start", model.x0()), ("solution", known.solution(name, model))):
            model = model.bind()
            began = time.process_time()
            first = model.bounds(x, RADII[0])
            found = (first, *(first.at(radius) for radius in RADII[1:]))
            seconds = time.process_time() - began
            lower = known.lower(model, f"{name}/{centre}", x)
            yield PracticeRow(name, centre, model.n, lower, found, seconds)


def summary(rows: Sequence[PracticeRow]) -> str:
    """How many lines meet the targets of L1, and how many bounds there are."""
    lines = []
    for k, radius in enumerate(RADII):
        ratios = np.array([row.ratio(k, 0) for row in rows])
        finite = int(np.isfinite(ratios).sum())
        close = int((ratios <= BARS[k]).sum())
        far = int((ratios > 100.0).sum())
        lines.append(
            f"- r = {radius:g}: finite on {finite} of {len(rows)}, at most {BARS[k]:g} times the "
            f"estimate on {close} (target {SHARES[k]:.0%}), above 100 times on {far}"
        )
    slow = [row for row in rows if row.seconds > 1.0]
    lines.append(
        f"- more than 1 s for both radii: {len(slow)}, the longest "
        f"{max(row.seconds for row in rows):.1f} s"
    )
    return "\n".join(lines)


def table_of(rows: Iterable[PracticeRow]) -> tuple[list[tuple[str, ...]], str, bool]:
    """The lines of the table, its summary, and whether an estimate is above a bound."""
    found = []
    for row in rows:
        found.append(row)
        print(" ".join(row.cells()), file=sys.stderr, flush=True)
    cells = [HEADS, *(row.cells() for row in found)]
    return cells, summary(found), any(row.is_passed for row in found)
