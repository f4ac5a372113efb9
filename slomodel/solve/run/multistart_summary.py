"""A summary of several runs of one objective."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from slomodel.solve.run.history import History
from slomodel.solve.status import Status

# Objectives count as equal if they differ by less than this, relative to the larger one; near 0, by
# less than this fraction of the first values.
SAME = 1e-6
SAME_OF_FIRST = 1e-10
MOST_VALUES = 6


class Ended(Protocol):
    """A run that has ended."""

    @property
    def fun(self) -> float: ...

    @property
    def seed(self) -> int: ...

    @property
    def status(self) -> Status: ...

    @property
    def history(self) -> History: ...


def summary_of(runs: Sequence[Ended], starts: int) -> str:
    """How the runs ended, and the distinct objectives with the number of runs that reached each."""
    endings = Counter(str(run.status) for run in runs)
    statuses = ", ".join(f"{count} {status}" for status, count in endings.most_common())
    # Hops keep the minima of several runs that have one start.
    hopped = len(runs) > starts
    what = f"{len(runs)} minima" if hopped else f"{starts} start{'' if starts == 1 else 's'}"
    lines = [f"{what}: {statuses}"]
    if len(runs) < starts:
        lines[0] += f", {starts - len(runs)} not made"
    groups = reached(runs)
    for group in groups[:MOST_VALUES]:
        if hopped:
            lines.append(f"objective {group[0].fun:<18.12g}".rstrip())
            continue
        seeds = ", ".join(map(str, sorted(one.seed for one in group)[:MOST_VALUES]))
        more = ", …" if len(group) > MOST_VALUES else ""
        lines.append(f"objective {group[0].fun:<18.12g} {len(group):>4} of seed {seeds}{more}")
    if len(groups) > MOST_VALUES:
        lines.append(f"and {len(groups) - MOST_VALUES} other objectives")
    return "\n".join(lines)


def reached(runs: Sequence[Ended]) -> list[list[Ended]]:
    """The sorted runs in groups of equal objectives."""
    firsts = sorted(abs(float(run.history.fun[0])) for run in runs)
    floor = SAME_OF_FIRST * firsts[len(firsts) // 2] if firsts else 0.0
    groups: list[list[Ended]] = []
    for one in runs:
        first = groups[-1][0].fun if groups else math.nan
        near = max(SAME * abs(one.fun), floor)
        if one.fun == first or abs(one.fun - first) <= near < math.inf:
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups
