"""Times from `slomodel.compile` to the first gradient, for every model and target.

    python benchmarks/compile_time.py [--quick] [--markdown]

CPU seconds of this process and of the C compiler that it starts, with an empty cache of compiled
kernels. The grammar is loaded before, and data are in memory. Targets:
at most 2 s with target c and 0.5 s with numexpr for every model; and for one model of many sizes
at most twice the time of its smallest (evaluation of the first gradient left out of that).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.cases import Case, cases, standardised_case
from benchmarks.evaluate import in_columns
from benchmarks.machine import description
from benchmarks.measure import cpu_seconds
from slomodel.codegen.native import compiler

MOST = {"c": 2.0, "numexpr": 0.5}
MOST_GROWTH = 2.0
REPEATS = 3
LEAST = 0.1
"""Times below count as this: a loop of one element has no blocks, large arrays a first touch."""


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds to the first gradient of one model on one target, and of a second gradient."""

    model: str
    size: str
    n: int
    target: str
    seconds: float
    evaluation: float

    @property
    def made(self) -> float:
        """Seconds of compilation."""
        return self.seconds - self.evaluation

    @property
    def is_missed(self) -> bool:
        return self.seconds > MOST[self.target]


def measured(case: Case, target: str) -> Row:
    """The shortest of a few times, since disturbances only add."""
    times = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_CACHE_HOME"] = folder
            compiler._directory.cache_clear()
            began = cpu_seconds()
            model = slomodel.compile(case.source, data=case.data, dims=case.dims, backend=target)
            x = model.x0()
            model.gradient(x)
            first = cpu_seconds()
            model.gradient(x)
            times.append((first - began, cpu_seconds() - first))
    return Row(
        *(case.model, case.size or "file", model.n, target),
        *(min(times)[0], min(second for _, second in times)),
    )


def growth(rows: list[Row]) -> dict[str, float]:
    """For each model of several sizes and each target the longest time over the shortest."""
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(f"{row.model} on {row.target}", []).append(row.made)
    return {
        name: max(times) / max(min(times), LEAST) for name, times in found.items() if len(times) > 1
    }


def table(rows: list[Row], markdown: bool) -> str:
    heads = ("model", "size", "n", "target", "seconds", "of it evaluation", "missed")
    cells = [
        (
            *(row.model, row.size, str(row.n), row.target, f"{row.seconds:.3f}"),
            *(f"{row.evaluation:.3f}", "yes" if row.is_missed else "-"),
        )
        for row in rows
    ]
    return in_columns([heads, *cells], markdown)


def summary(rows: list[Row]) -> str:
    lines = []
    for target, most in MOST.items():
        longest = max(row.seconds for row in rows if row.target == target)
        told = "met" if longest <= most else "missed"
        lines.append(f"{target}: longest {longest:.2f} s, target {most} s {told}")
    grown = growth(rows)
    worst = max(grown, key=grown.__getitem__)
    told = "met" if grown[worst] <= MOST_GROWTH else "missed"
    lines.append(
        f"sizes of one model: at most {grown[worst]:.1f} times ({worst}), "
        f"target {MOST_GROWTH} {told}"
    )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time compiling to the first gradient.")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--markdown", action="store_true", help="a table for a document")
    options = parser.parse_args(arguments)
    slomodel.compile("var x\nminimize x^2", backend="numexpr").value_and_gradient(np.ones(1))
    rows = []
    for case in (*cases(options.quick), standardised_case()):
        rows += [measured(case, target) for target in MOST]
        print(f"{case.model} {case.size}", file=sys.stderr, flush=True)
    facts = [f"- {key}: {value}" for key, value in description(1).items()]
    print("\n\n".join(["\n".join(facts), table(rows, options.markdown), summary(rows)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
