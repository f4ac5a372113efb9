"""Searches for a bound that does not hold, on random graphs.

    python benchmarks/bounds_fuzz.py [--cases 100000] [--seed 0] [--steps 8] [--worst 100]

A case is a graph with a centre and one radius of six. Its bound is set against the best points
that Lanczos, ascents and random pairs find; where they come near it, 60 digits decide. At the end
the worst cases are decided in 60 digits, however near they came. Every bound that is passed is
printed, and every exception; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from heapq import heappush, heappushpop
from itertools import count
from pathlib import Path

if __package__ in (None, ""):  # run as a script; its folder has a bounds.py of another kind
    sys.path.pop(0)
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import hypothesis
import numpy as np
from bounds.fuzz import Case, cases, setting_of
from hypothesis import strategies as st
from strategies import Example, graphs

BATCH = 200


class Worst:
    """The cases whose bounds came nearest to being passed, and how many there were."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.total = self.finite = 0
        self.passed: list[tuple[Case, str]] = []
        self.kept: list[tuple[float, int, Case, str]] = []
        self.raised: Counter[str] = Counter()
        self._number = count()

    def add(self, case: Case, which: str) -> None:
        if case.bound[which] == float("inf"):
            return
        self.finite += 1
        if case.violates(which):
            self.passed.append((case, which))
            print(f"PASSED {which}: {describe(case, which)}", flush=True)
        entry = (case.ratio(which), next(self._number), case, which)
        if len(self.kept) < self.size:
            heappush(self.kept, entry)
        else:
            heappushpop(self.kept, entry)

    def fail(self, error: Exception, example: Example) -> None:
        """Note an exception, which a question for bounds must not raise; each place once."""
        place = traceback.extract_tb(error.__traceback__)[-1]
        self.raised[f"{place.filename}:{place.lineno}"] += 1
        if self.raised[f"{place.filename}:{place.lineno}"] == 1:
            print(f"RAISED {error!r} at {place.filename}:{place.lineno}: {example}", flush=True)

    def recheck(self) -> int:
        """How many of the worst are passed in 60 digits."""
        found = [(case, which) for _, _, case, which in self.kept if case.exactly_above(which)]
        for case, which in found:
            print(f"PASSED IN 60 DIGITS {which}: {describe(case, which)}", flush=True)
        return len(found)


def describe(case: Case, which: str) -> str:
    witness = case.witness(which)
    return (
        f"radius {case.radius:g}, bound {case.bound[which]!r}, value {witness.value!r} at "
        f"{witness.x!r} along {witness.v!r}; centre {case.graph.centre!r}\n"
        f"{case.graph.setting.objective!r}"
    )


def batch(worst: Worst, seed: int, steps: int, smooth: bool) -> None:
    """BATCH graphs with all their radii."""

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=BATCH,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(graphs(smooth=smooth, max_steps=steps), st.integers(0, 2**32))
    def one(example: Example, points: int) -> None:
        try:
            found = cases(setting_of(example), np.random.default_rng(points))
        except Exception as error:
            worst.fail(error, example)
            return
        for case in found:
            worst.total += 1
            for which in ("L1", "L2"):
                worst.add(case, which)

    one()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--worst", type=int, default=100)
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    worst, began = Worst(asked.worst), time.perf_counter()
    for number in count():
        if worst.total >= asked.cases:
            break
        batch(worst, asked.seed + number, asked.steps, smooth=number % 2 == 0)
        seconds = time.perf_counter() - began
        print(
            f"{worst.total} cases with a bound, {worst.finite} bounds, {len(worst.passed)} passed, "
            f"{seconds:.0f} s",
            flush=True,
        )
    exactly = worst.recheck()
    ratios = sorted((ratio for ratio, *_ in worst.kept), reverse=True)
    print(f"worst {len(ratios)} reach {ratios[-1]:.6f} to {ratios[0]:.6f} of their bound")
    print(f"passed in 60 digits: {exactly}")
    print(f"raised: {sum(worst.raised.values())}")
    return int(bool(worst.passed or exactly or worst.raised))


if __name__ == "__main__":
    sys.exit(main())
