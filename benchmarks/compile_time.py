"""Times from `slomodel.compile` to the first gradient, for every model and target.

    python benchmarks/compile_time.py [--quick] [--markdown]
    python benchmarks/compile_time.py --chains [NODES …] [--only NAME] [--seconds 100] [--markdown]

CPU seconds of this process and of the C compiler that it starts, with an empty cache of compiled
kernels. The grammar is loaded before, and data are in memory. Targets:
at most 2 s with target c and 0.5 s with numexpr for every model; and for one model of many sizes
at most twice the time of its smallest (evaluation of the first gradient left out of that).

With `--chains` it is the long chains of `chains.py` instead, of 10², 10³, … nodes: seconds for the
problem (text to graph), and from there to the first gradient on each target, to the first
Hessian-vector product on numexpr, and to the text for CUDA, of all three functions. A row is
printed as soon as it is measured. The exponent of growth is the slope between the two longest that
were measured: 1 is in proportion. A length that by that slope would take more than `--seconds` is
left out, and so is one whose statements exceed the language's limit, or that the C compiler does
not finish.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.cases import Case, cases, standardised_case
from benchmarks.chains import CHAINS, chain
from benchmarks.evaluate import in_columns
from benchmarks.machine import description
from benchmarks.measure import cpu_seconds
from slomodel import user_cache

MOST = {"c": 2.0, "numexpr": 0.5}
MOST_GROWTH = 2.0
LENGTHS = [100, 1_000, 10_000, 100_000]
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
            user_cache.directory.cache_clear()
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


@dataclass(frozen=True, slots=True)
class Growth:
    """Seconds of one stage for chains of one kind, by the number of nodes."""

    seconds: dict[int, float]

    @property
    def exponent(self) -> float:
        """The slope in logarithms between the two longest; nan with fewer."""
        pairs = sorted(self.seconds.items())[-2:]
        if len(pairs) < 2:
            return math.nan
        (shorter, quick), (longer, slow) = pairs
        return math.log(slow / quick) / math.log(longer / shorter)

    def expected(self, nodes: int) -> float:
        """Seconds for so many nodes, by the slope so far, which is taken for at least 1."""
        if not self.seconds:
            return 0.0
        longest = max(self.seconds)
        slope = 1.0 if math.isnan(self.exponent) else max(1.0, self.exponent)
        return self.seconds[longest] * (nodes / longest) ** slope


STAGES: dict[str, Callable[[slomodel.Model], object]] = {
    "numpy": lambda model: model.gradient(np.ones(model.n)),
    "numexpr": lambda model: model.gradient(np.ones(model.n)),
    "numexpr hvp": lambda model: model.hvp(np.ones(model.n), np.ones(model.n)),
    "c": lambda model: model.gradient(np.ones(model.n)),
    "cuda text": lambda model: model.source("cuda"),
}
"""What is timed after the problem is there; the first word is the backend."""


def chain_rows(name: str, lengths: Sequence[int], most: float) -> Iterator[tuple[str, ...]]:
    """A row of seconds for each length of one kind of chain, then one of exponents of growth."""
    grown = {stage: Growth({}) for stage in ("problem", *STAGES)}
    for nodes in lengths:
        if grown["problem"].expected(nodes) > most:
            break
        made = chain(name, nodes)
        for stage, act in STAGES.items():
            if grown[stage].expected(nodes) > most:
                continue
            with tempfile.TemporaryDirectory() as folder:
                os.environ["XDG_CACHE_HOME"] = folder
                user_cache.directory.cache_clear()
                backend = stage.split()[0].replace("cuda", "numpy")
                began = cpu_seconds()
                try:
                    model = slomodel.compile(made.source, data=made.data, backend=backend)
                except slomodel.ModelSyntaxError:  # a statement beyond the language's limit
                    break
                compiled = cpu_seconds()
                with suppress(slomodel.TargetLimit):  # the C compiler was stopped
                    act(model)
                    grown[stage].seconds[nodes] = cpu_seconds() - compiled
            before = grown["problem"].seconds.get(nodes, math.inf)
            grown["problem"].seconds[nodes] = min(before, compiled - began)
        times = (one.seconds.get(nodes) for one in grown.values())
        yield (name, f"{nodes:,}", *("-" if t is None else f"{t:.2f}" for t in times))
    exponents = (one.exponent for one in grown.values())
    yield (name, "exponent", *("-" if math.isnan(e) else f"{e:.2f}" for e in exponents))


def print_growth(names: Sequence[str], lengths: Sequence[int], most: float, markdown: bool) -> None:
    """Print the rows of each chain as they are measured, in columns of fixed width."""
    heads = ("chain", "nodes", "problem", *STAGES)
    widths = [max(map(len, CHAINS)), len("exponent"), *(max(6, len(one)) for one in heads[2:])]

    def show(cells: Sequence[str]) -> None:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
        line = f"| {' | '.join(padded)} |" if markdown else "  ".join(padded)
        print(line, flush=True)

    show(heads)
    if markdown:
        show(["-" * (width - 1) + ":" for width in widths])
    for name in names:
        for cells in chain_rows(name, lengths, most):
            show(cells)


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time compiling to the first gradient.")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--markdown", action="store_true", help="a table for a document")
    parser.add_argument("--chains", nargs="*", type=int, metavar="NODES", help="long chains")
    parser.add_argument("--only", choices=CHAINS, help="chains of this kind")
    parser.add_argument("--seconds", type=float, default=100.0, help="the most for a measurement")
    options = parser.parse_args(arguments)
    slomodel.compile("var x\nminimize x^2", backend="numexpr").value_and_gradient(np.ones(1))
    facts = "\n".join(f"- {key}: {value}" for key, value in description(1).items())
    if options.chains is not None:
        lengths = options.chains or LENGTHS[: 2 if options.quick else None]
        print(f"{facts}\n", flush=True)
        names = [options.only] if options.only else list(CHAINS)
        print_growth(names, lengths, options.seconds, options.markdown)
        return 0
    rows = []
    for case in (*cases(options.quick), standardised_case()):
        rows += [measured(case, target) for target in MOST]
        print(f"{case.model} {case.size}", file=sys.stderr, flush=True)
    print("\n\n".join([facts, table(rows, options.markdown), summary(rows)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
