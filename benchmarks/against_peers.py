"""Times `value_and_gradient` against NumPy by hand, JAX, PyTorch, numba and CasADi.

    python benchmarks/against_peers.py [--quick] [--model NAME] [--backend NAME] [--markdown]

Every library has one thread; the clock is the CPU time of the process; all alternate over 20
points. Libraries that are not installed (extra `bench`) are omitted. `by hand` is the careful NumPy
of by_hand.py, which multiplies small matrices first; `by layers` follows the formula. A ratio is
the median over pairs of neighbouring runs, peer / slomodel: above 1 slomodel is faster. NumPy is
timed under both settings of malloc; the others under the one that retains memory, which favours
them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.by_hand import Array
from benchmarks.cases import Case, cases, standardised_case
from benchmarks.libraries import PEERS, installed
from benchmarks.machine import MALLOC, description, run_again
from benchmarks.measure import Call, seconds
from benchmarks.peers import LAYERED
from benchmarks.points import POINTS, pieces, points
from benchmarks.targets import BY_HAND, LAYERS, mean, told

Result = Callable[[int], tuple[float, Array]]

MOST_DEVIATION = 1e-9


@dataclass(frozen=True, slots=True)
class Row:
    """One case under one memory setting: microseconds per call, and the ratio of each peer."""

    model: str
    size: str
    malloc: str
    n: int
    ours_us: float
    ratios: dict[str, float]
    deviation: float

    @property
    def best(self) -> tuple[str, float]:
        """The fastest peer and its ratio."""
        return min(self.ratios.items(), key=lambda item: item[1])


def measured(case: Case, malloc: str, backend: str, quick: bool, names: list[str]) -> Row:
    """One row; every peer's value and gradient are compared with those by hand."""
    model = slomodel.compile(case.source, data=case.data, dims=case.dims, backend=backend)
    xs = points(model)
    unpacked = [pieces(model, x) for x in xs]
    known = {name: np.array(array) for name, array in case.known.items()}
    calls: dict[str, Call] = {
        "ours": lambda k: model.value_and_gradient(xs[k]),
        BY_HAND: lambda k: case.hand(unpacked[k], known),
    }
    results: list[Result] = [lambda k: model.value_and_gradient(xs[k])]
    layers = LAYERED.get(case.model)
    if layers is not None:
        calls[LAYERS] = lambda k: layers(unpacked[k], known)
    for name in names:
        peer = PEERS[name][1](case.model, known)
        if peer is not None:
            results.append(lambda k, run=peer: run(unpacked[k]))
            calls[name] = results[-1]
    clock = time.process_time
    table = seconds(list(calls.values()), POINTS, 2e-3 if quick else 1e-2, clock)
    ratios = np.median(table[:, 1:] / table[:, :1], axis=0)
    found = dict(zip(list(calls)[1:], map(float, ratios), strict=True))
    # After the timing, so that the arrays hold the results of many calls.
    worst = 0.0
    for k in (0, POINTS - 1):
        value, parts = case.hand(unpacked[k], known)
        for result in results:
            worst = max(worst, _deviation(*result(k), value, model.pack(parts)))
    return Row(
        *(case.model, case.size, malloc, model.n, 1e6 * float(np.median(table[:, 0]))),
        found,
        worst,
    )


def _deviation(value: float, gradient: Array, wanted: float, expected: Array) -> float:
    slopes = float(np.abs(gradient - expected).max() / np.abs(expected).max())
    return max(slopes, abs(value - wanted) / abs(wanted))


def rows_here(options: argparse.Namespace) -> list[Row]:
    """The rows under the memory setting of this process."""
    names = installed() if options.here == "kept" else []
    rows = []
    every = list(cases(options.quick, options.model))
    if options.quick and options.model in (None, "student_t"):
        every.append(list(cases(only="student_t"))[-1])
    if options.model in (None, "deep_linear_standardised"):
        every.append(standardised_case())
    for case in every:
        rows.append(measured(case, options.here, options.backend, options.quick, names))
        print(f"{case.model} {case.size} {options.here}", file=sys.stderr, flush=True)
    return rows


def table(rows: list[Row], markdown: bool) -> str:
    """One line per row, one column per peer."""
    names = list(dict.fromkeys(name for row in rows for name in row.ratios))
    heads = ("model", "size", "malloc", "n", "ours us", *names, "best peer")
    cells = [heads]
    for row in rows:
        ratios = (f"{row.ratios[name]:.2f}" if name in row.ratios else "-" for name in names)
        facts = (row.model, row.size or "file", row.malloc, str(row.n), f"{row.ours_us:.4g}")
        cells.append((*facts, *ratios, f"{row.best[1]:.2f} ({row.best[0]})"))
    widths = [max(len(line[k]) for line in cells) for k in range(len(heads))]
    padded = [[cell.rjust(w) for cell, w in zip(line, widths, strict=True)] for line in cells]
    if not markdown:
        return "\n".join("  ".join(line) for line in padded)
    padded.insert(1, ["-" * (width - 1) + ":" for width in widths])
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def summary(rows: list[Row]) -> str:
    """Geometric means and the worst row by peer, and the targets."""
    kept = [row for row in rows if row.malloc == "kept"]
    lines = []
    for name in dict.fromkeys(name for row in kept for name in row.ratios):
        ratios = [row.ratios[name] for row in kept if name in row.ratios]
        lines.append(f"{name}: {_spread(ratios)}")
    targets = told({(row.model, row.size): row.ratios for row in kept})
    return "\n".join([*lines, "", *targets])


def _spread(ratios: list[float]) -> str:
    return f"geometric mean {mean(ratios):.2f}, worst {min(ratios):.2f}"


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time the models against other libraries.")
    parser.add_argument("--quick", action="store_true", help="small sizes, short runs")
    parser.add_argument("--model", help="only this model")
    parser.add_argument("--backend", default="auto", help="our target (default auto)")
    parser.add_argument("--markdown", action="store_true", help="a table for a document")
    parser.add_argument("--here", choices=MALLOC, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 when a gradient is wrong."""
    options = parsed(arguments)
    if options.here:
        print(json.dumps([asdict(row) for row in rows_here(options)]))
        return 0
    chosen = ["--quick"] if options.quick else []
    chosen += ["--model", options.model] if options.model else []
    chosen += ["--backend", options.backend]
    found: list[Row] = []
    for malloc in MALLOC:
        given = run_again(__file__, [*chosen, "--here", malloc], malloc, 1)
        assert isinstance(given, list)
        found += [Row(**one) for one in given]
    place = {(row.model, row.size): k for k, row in reversed(list(enumerate(found)))}
    found.sort(key=lambda row: place[row.model, row.size])
    facts = [f"{key}: {value}" for key, value in description(1).items()]
    print("\n\n".join(["\n".join(facts), table(found, options.markdown), summary(found)]))
    return int(any(row.deviation > MOST_DEVIATION for row in found))


if __name__ == "__main__":
    sys.exit(main())
