"""Targets of proved bounds on random instances: the worst ratio to a strong estimate from below.

For each class and radius the largest bound / lower over all instances and centres is compared with
its target. `lower` is the largest value that many ascents reach in the ball or in a smaller one, so
that ratios overstate looseness. Lower estimates do not depend on the bounds: with `kept` they are
read from a file and added to it, so that an interrupted run continues, and later runs only compute
bounds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np

from benchmarks.bound_targets import RADII, TARGETS, Target
from benchmarks.by_hand import Array
from benchmarks.fresh_instances import SEED, Instance
from benchmarks.strong_ascent import strong_ascent
from slomodel.bounds import Bounds

HEADS = ("class", "instance", "centre", "n", *(f"r = {r:g}" for r in RADII), "s")
SUMMARY = ("class", "cases", *(f"L1 {r:g}" for r in RADII), *(f"L2 {r:g}" for r in RADII))
SUMMARY = (*SUMMARY, "s, n", "verdict")
SAMPLES = 200
RESOLVED = 1e-6
"""Relative accuracy of an estimate from a difference of two Hessians."""


@dataclass(frozen=True, slots=True)
class FreshRow:
    """One centre with all radii: estimates from below, bounds and rules by radius; CPU seconds."""

    target: Target
    instance: str
    centre: str
    n: int
    lower: tuple[tuple[float, float], ...]
    found: tuple[Bounds, ...]
    seconds: float

    def ratios(self, which: int) -> tuple[float, ...]:
        """Bound over estimate by radius, of L1 (0) or L2 (1); 1 where both are 0."""
        return tuple(
            1.0 if (one.L1, one.L2)[which] == low[which] else (one.L1, one.L2)[which] / low[which]
            for one, low in zip(self.found, self.lower, strict=True)
        )

    @property
    def is_passed(self) -> bool:
        """Whether an estimate is above a bound."""
        return min(*self.ratios(0), *self.ratios(1)) < 1.0 - RESOLVED

    def cells(self) -> tuple[str, ...]:
        """A line of the table of all cases, with ratios as L1 / L2."""
        pairs = zip(self.ratios(0), self.ratios(1), strict=True)
        ratios = (f"{first:.3f} / {second:.3f}" for first, second in pairs)
        name = (self.target.name, self.instance, self.centre, str(self.n))
        return (*name, *ratios, f"{self.seconds:.2f}")


class Lower:
    """Estimates from below, stored in a file if one is given."""

    def __init__(self, kept: Path | None) -> None:
        self._kept = kept
        self._known: dict[str, list[float]] = {}
        if kept is not None and kept.exists():
            for line in kept.read_text(encoding="utf-8").splitlines():
                key, *values = json.loads(line)
                self._known[key] = values

    def __call__(self, target: str, one: Instance, name: str) -> tuple[tuple[float, float], ...]:
        """The largest value that ascents reach in each ball or in smaller ones."""
        least, found = (0.0, 0.0), []
        for radius in RADII:
            seen = self._seen(target, one, name, radius)
            least = (max(least[0], seen[0]), max(least[1], seen[1]))
            found.append(least)
        return tuple(found)

    def _seen(self, target: str, one: Instance, name: str, radius: float) -> Sequence[float]:
        centre = one.centres[name]
        key = f"{target}/{one.name}/{name}/{radius:g}/{crc32(centre.tobytes())}"
        if key not in self._known:
            seed = crc32(key.encode())
            L1, L2 = strong_ascent(one.model, centre, radius, np.random.default_rng(seed))
            seen = one.model.sample_bounds(centre, radius, SAMPLES, seed=seed)
            self._known[key] = [max(L1, seen.L1), max(L2, seen.L2)]
            if self._kept is not None:
                with self._kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([key, *self._known[key]]) + "\n")
        return self._known[key]


def fresh_rows(only: str | None, kept: Path | None) -> Iterator[FreshRow]:
    """A row for each class (with `only` in its name), instance and centre."""
    lower = Lower(kept)
    for k, target in enumerate(TARGETS):
        if only is not None and only not in target.name:
            continue
        for one in target.draw(np.random.default_rng(SEED + k)):
            for name, centre in one.centres.items():
                found, seconds = _bounds(one, centre)
                below = lower(target.name, one, name)
                yield FreshRow(target, one.name, name, one.model.n, below, found, seconds)


def _bounds(one: Instance, centre: Array) -> tuple[tuple[Bounds, ...], float]:
    began = time.process_time()
    first = one.model.bounds(centre, RADII[0])
    found = (first, *(first.at(radius) for radius in RADII[1:]))
    return found, time.process_time() - began


def summary(rows: Sequence[FreshRow]) -> list[tuple[str, ...]]:
    """A line for each class: the worst ratios, with missed targets, and the largest cost."""
    lines = [SUMMARY]
    for target in dict.fromkeys(row.target for row in rows):
        own = [row for row in rows if row.target is target]
        cells, missed = [], 0
        for which, bars in ((0, target.L1), (1, target.L2)):
            worst = np.max([row.ratios(which) for row in own], axis=0)
            for ratio, bar in zip(worst, bars, strict=True):
                missed += ratio > bar
                cells.append(f"{ratio:.3f} > {bar:g}" if ratio > bar else f"{ratio:.3f}")
        dearest = max(own, key=lambda row: row.seconds)
        verdict = f"{missed} missed" if missed else "met"
        if not target.gated:
            verdict += ", told only"
        cost = f"{dearest.seconds:.1f}, {dearest.n}"
        lines.append((target.name, str(len(own)), *cells, cost, verdict))
    return lines


def told(row: FreshRow) -> str:
    """One line of progress."""
    return "  ".join(row.cells()) + (" BELOW AN ESTIMATE" if row.is_passed else "")


def fresh_tables(
    only: str | None, kept: Path | None
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]], bool]:
    """The classes, every case, and whether an estimate is above a bound."""
    rows = []
    for row in fresh_rows(only, kept):
        print(told(row), file=sys.stderr, flush=True)
        rows.append(row)
    cases = [HEADS, *(row.cells() for row in rows)]
    return summary(rows), cases, any(row.is_passed for row in rows)
