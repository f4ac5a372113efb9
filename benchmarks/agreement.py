"""Agreement of all targets with the reference interpreter, on random graphs and every model.

    python benchmarks/agreement.py [--graphs 10000] [--seed 0] [--flag -O3]

Value, gradient and Hessian-vector product of numpy, numexpr and c may differ from those of the
reference interpreter by 1e-12 relative to the sum of the magnitudes of the terms (measured by
perturbing every intermediate number). A graph is identified by its number:
`throw(default_rng(number), kind, STEPS, largest)` constructs it again. Many graphs share one C
file, which is compiled with `--flag`; slomodel itself uses -O3. The exit status is 1 if anything
differs by more, or raises.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import numpy as np
from agreeing import ALLOWED, Question, asked, expected, in_c, in_python, of_model, worst
from random_graphs import KINDS, throw

import slomodel
from benchmarks.cases import cases, standardised_case
from slomodel.codegen.native import compiler
from slomodel.codegen.native.target import NATIVE

STEPS = 6
TOGETHER = 50
"""Graphs in one C file."""
SIZES = (3, 3, 4, 17)
"""Largest dims, in turn: short loops, and loops of several blocks."""


def graph(number: int) -> Question:
    """The case of this number."""
    rng = np.random.default_rng(number)
    kind = tuple(KINDS)[number % len(KINDS)]
    with np.errstate(all="ignore"):
        return asked(throw(rng, kind, STEPS, SIZES[number % len(SIZES)]), rng)


def models() -> Iterator[tuple[str, Question]]:
    """Every model of the benchmark."""
    for case in (*cases(quick=True), standardised_case()):
        model = slomodel.compile(case.source, data=case.data, dims=case.dims, backend="numpy")
        yield f"{case.model} {case.size}".strip(), of_model(model, np.random.default_rng(0))


class Tally:
    """The largest difference of each target, and the failures."""

    def __init__(self) -> None:
        self.largest = dict.fromkeys(("numpy", "numexpr", "c"), 0.0)
        self.wrong: list[str] = []

    def compare(self, named: list[tuple[str, Question]]) -> None:
        """Evaluate some cases on every target; those of c are compiled together."""
        wanted = [expected(question, np.random.default_rng(1)) for _, question in named]
        questions = [question for _, question in named]
        found = {
            target: [in_python(q, target) for q in questions] for target in ("numpy", "numexpr")
        }
        found["c"] = list(in_c(questions))
        for target, every in found.items():
            for (name, _), answer, right in zip(named, every, wanted, strict=True):
                off = worst(answer, right)
                self.largest[target] = max(self.largest[target], off)
                if off > ALLOWED:
                    self.wrong.append(f"{target} is off by {off:.1e}: {name}")
                    print(self.wrong[-1], flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Print the largest differences; return 1 if one is too large."""
    parser = argparse.ArgumentParser(description="Compare all targets on random graphs.")
    parser.add_argument("--graphs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first graph")
    parser.add_argument("--flag", default="-O3", help="of the C compiler [-O3]")
    options = parser.parse_args(arguments)
    compiler.FLAGS = tuple(options.flag if f == "-O3" else f for f in compiler.FLAGS)
    tally, began = Tally(), time.perf_counter()
    for name, question in models():
        tally.compare([(name, question)])
        print(f"{name}: {tally.largest}", flush=True)
    end = options.seed + options.graphs
    for first in range(options.seed, end, TOGETHER):
        numbers = range(first, min(first + TOGETHER, end))
        tally.compare([(f"graph {number}", graph(number)) for number in numbers])
        if first // TOGETHER % 10 == 0:
            print(f"{numbers.stop - options.seed} graphs: {tally.largest}", flush=True)
    shown = ", ".join(f"{target} {off:.1e}" for target, off in tally.largest.items())
    print(
        f"{options.graphs} graphs from {options.seed} on and every model, {NATIVE.name} with "
        f"{options.flag}: largest difference over the terms {shown}; "
        f"{len(tally.wrong)} above {ALLOWED:.0e}; {time.perf_counter() - began:.0f} s"
    )
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
