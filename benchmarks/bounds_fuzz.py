"""Search for a bound that does not hold, on random graphs.

    python benchmarks/bounds_fuzz.py [--cases 100000] [--seed 0] [--steps 4] [--slow-every 4]
    python benchmarks/bounds_fuzz.py --quick [--cases 100000] [--seed 0]

A case is a graph with a centre and a radius. Its bound is compared with the best points that
Lanczos, ascents and random pairs find; if they come close, 60 digits decide. At the end the worst
cases are decided in 60 digits in any case. A graph is identified by its number and kind:
`throw(default_rng(number), kind, steps)` constructs it again. Every exceeded bound is printed with
these, and every exception; the exit status is then 1. The slow rules run on one graph in
`--slow-every`. At some radii the bound of 2^k f(2^l x) is tested too, |k| and |l| up to 400.
`--kinds` selects the kinds of graphs, by default all, and `--rule` one rule, which runs alone on
every graph. `--quick` takes bounds of quick effort over
all radii of each graph, against a few points of each ball: many times as many cases a minute.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappush, heappushpop
from itertools import count
from pathlib import Path

if __package__ in (None, ""):  # run as a script; its folder has a bounds.py of another kind
    sys.path.pop(0)
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import numpy as np
from bounds.fuzz import Case, cases, part_of
from bounds.witness import glance, seek
from random_graphs import KINDS, WITH_LITERALS, throw

from slomodel.bounds import pipeline
from slomodel.bounds.effort import DEFAULT, Effort, effort_of
from slomodel.bounds.rules.interval_entries import interval_entries
from slomodel.bounds.rules.layered_networks import layered_networks
from slomodel.bounds.rules.linear_predictors import linear_predictors
from slomodel.bounds.rules.table import BoundRule

RADII = (0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 10.0, 100.0, 1e3)
RADII_A_GRAPH = 12
RADII_IN_OTHER_UNITS = 2
ALL_KINDS = (*KINDS, *WITH_LITERALS)
EVERY = pipeline.RULES
SLOW = (interval_entries, linear_predictors, layered_networks)
MORE_OFTEN = {"rows": 3, "long rows": 1, "layers": 3, "layers of classes": 3}
"""Kinds of graphs that slow rules are for."""
RARE = {
    "long rows": (20, "rows"),
    "layers": (3, "smooth"),
    "layers of classes": (3, "smooth"),
    "chains": (3, "polynomial"),
}
"""Kinds of graphs that take longer, which are used once in this many times; other kinds replace the
others.
"""
SECONDS_BETWEEN = 30.0


@dataclass(frozen=True, slots=True)
class Origin:
    """Identification of a graph, from which it can be constructed again."""

    number: int
    kind: str
    steps: int


@dataclass(slots=True)
class Worst:
    """The cases whose bounds were most nearly exceeded, and counts."""

    size: int
    total: int = 0
    finite: int = 0
    passed: int = 0
    kept: list[tuple[float, int, Case, str, Origin]] = field(default_factory=list)
    raised: Counter[str] = field(default_factory=Counter)
    number: Iterator[int] = field(default_factory=count)

    def add(self, case: Case, which: str, origin: Origin) -> None:
        if case.bound[which] == float("inf"):
            return
        self.finite += 1
        if case.violates(which):
            self.passed += 1
            print(f"PASSED {which}: {describe(case, which, origin)}", flush=True)
        entry = (case.ratio(which), next(self.number), case, which, origin)
        if len(self.kept) < self.size:
            heappush(self.kept, entry)
        else:
            heappushpop(self.kept, entry)

    def fail(self, error: Exception, origin: Origin) -> None:
        """Record an exception, which bounds must not raise; once per line of code."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{last.filename}:{last.lineno}"
        self.raised[place] += 1
        if self.raised[place] == 1:
            print(f"RAISED {error!r} at {place}: {origin}", flush=True)

    def recheck(self) -> int:
        """The number of worst cases that are exceeded in 60 digits."""
        found = [entry for entry in self.kept if entry[2].exactly_above(entry[3])]
        for _, _, case, which, origin in found:
            print(f"PASSED IN 60 DIGITS {which}: {describe(case, which, origin)}", flush=True)
        return len(found)


def describe(case: Case, which: str, origin: Origin) -> str:
    witness = case.witness(which)
    return (
        f"{origin}, radius {case.radius!r}, units {case.units}, bound {case.bound[which]!r}, "
        f"value {witness.value!r} at {witness.x!r} along {witness.v!r}, outside "
        f"{case.witnesses.outside is not None}; centre {case.graph.centre!r}\n"
        f"{case.graph.setting.objective!r:.2000}"
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """Which graphs are drawn, how often the slow rules run on them, and with which effort.

    `is_quick`: the points of a ball are few.
    """

    steps: int = 4
    slow_every: int = 4
    kinds: Sequence[str] = ALL_KINDS
    is_quick: bool = False
    rule: str = ""

    def rules(self, slow: bool) -> tuple[BoundRule, ...]:
        """The rules for a graph on which the slow ones run, or do not."""
        if self.rule:
            return tuple(one for one in EVERY if one.name == self.rule)
        return EVERY if slow else tuple(one for one in EVERY if one.bound not in SLOW)

    @property
    def effort(self) -> Effort:
        return effort_of("quick") if self.is_quick else DEFAULT


def search(worst: Worst, number: int, plan: Plan) -> None:
    """The cases of one graph."""
    kinds = plan.kinds
    kind = kinds[number % len(kinds)]
    every, instead = RARE.get(kind, (1, kind))
    origin = Origin(number, kind if number // len(kinds) % every == 0 else instead, plan.steps)
    often = min(plan.slow_every, MORE_OFTEN.get(origin.kind, plan.slow_every))
    slow = number // len(kinds) % often == 0
    pipeline.RULES = plan.rules(slow)
    rng = np.random.default_rng(number)
    with np.errstate(all="ignore"):
        example = throw(rng, origin.kind, plan.steps)
    count = len(RADII) if plan.is_quick else RADII_A_GRAPH
    radii = tuple(float(r) for r in rng.choice(RADII, count, replace=False))
    own = replace(part_of(example), effort=plan.effort)
    by = glance if plan.is_quick else seek
    try:
        found = cases(own, rng, radii, other_units=RADII_IN_OTHER_UNITS, search=by)
    except Exception as error:
        worst.fail(error, origin)
        return
    for case in found:
        worst.total += 1
        for which in ("L1", "L2"):
            worst.add(case, which, origin)


def run(number_of_cases: int, seed: int, size: int, plan: Plan) -> int:
    """Search, report, and return the exit status."""
    worst, began = Worst(size), time.perf_counter()
    told = began
    for number in count(seed):
        if worst.total >= number_of_cases:
            break
        search(worst, number, plan)
        if time.perf_counter() - told > SECONDS_BETWEEN:
            told = time.perf_counter()
            print(
                f"{worst.total} cases with a bound, {worst.finite} bounds, {worst.passed} passed, "
                f"{sum(worst.raised.values())} raised, {told - began:.0f} s",
                flush=True,
            )
    exactly = worst.recheck()
    ratios = sorted((ratio for ratio, *_ in worst.kept), reverse=True) or [0.0]
    print(f"{worst.total} cases, {worst.finite} bounds, {worst.passed} passed")
    print(f"worst {len(worst.kept)} reach {ratios[-1]:.6f} to {ratios[0]:.6f} of their bound")
    print(f"passed in 60 digits: {exactly}")
    print(f"raised: {sum(worst.raised.values())}")
    return int(bool(worst.passed or exactly or worst.raised))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--worst", type=int, default=100)
    parser.add_argument("--slow-every", type=int, default=4)
    parser.add_argument("--kinds", nargs="+", choices=ALL_KINDS, default=ALL_KINDS)
    parser.add_argument("--quick", action="store_true", help="quick bounds, few points")
    parser.add_argument("--rule", choices=[one.name for one in EVERY], default="")
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    plan = Plan(asked.steps, asked.slow_every, asked.kinds, asked.quick, asked.rule)
    return run(asked.cases, asked.seed, asked.worst, plan)


if __name__ == "__main__":
    raise SystemExit(main())
