"""Worst errors of all scalar functions on each target, against ball arithmetic.

    python -m benchmarks.ulps [NAME …] [--points 1000000] [--write]

Points are drawn as in `tests/functions/test_ulps.py`: over plain magnitudes, over the whole range
of doubles, and at both ends, until `--points` have a finite value. Each value is compared with
that of the record's definition, which the library Arb (the package python-flint) encloses at as
many bits as 64 correct ones take. An error is the distance from the double nearest to that value,
in units in the last place of the value or, where the record states the magnitude of its largest
term, of that. A point counts if its value is finite and less than the largest double by a factor of
1,000, as quotients such as sinh(x)/x overflow where sinh(x) does. `--write` puts the table in
results/ulps.md; with names it replaces their rows. The exit status is 1 if an error is above the
one that the record states.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.evaluate import in_columns
from benchmarks.exact_balls import Rule, UnreadableDefinition
from benchmarks.machine import description
from slomodel.functions import symbols
from slomodel.functions.compound import graph_values
from slomodel.ir.build import variable
from slomodel.ir.function import ScalarFunction
from tests.functions.exact_values import columns
from tests.functions.test_ulps import MEASURED, on_target, operands

RESULT = Path(__file__).parent / "results" / "ulps.md"
TARGETS = ("numpy", "numexpr", "c")
CHUNK = 100_000
"""Points that are evaluated at once."""
MOST_DRAWS = 40
"""Draws for a function of few points: one of two numbers in [-1, 1] keeps a tenth of each."""
LARGEST = np.finfo(float).max / 1000.0

Rows = NDArray[np.float64]


def _is_defined(function: ScalarFunction, rows: Rows) -> NDArray[np.bool_]:
    """Where the value is defined for operands in their domains."""
    if function.undefined is None:
        return np.ones(len(rows), dtype=bool)
    inputs = [variable(f"v{k}", ()) for k in range(function.arity)]
    at = dict(zip(inputs, rows.T, strict=True))
    return np.asarray(graph_values(function.undefined(*inputs), at) == 0.0)


def worst(function: ScalarFunction, rows: Rows, want: Rows, target: str) -> tuple[float, Rows]:
    """The largest error in units in the last place, and where."""
    got = on_target(function, rows, target)
    scale: Rows | float = 0.0
    with np.errstate(all="ignore"):
        if function.error_scale is not None:
            scale = np.asarray(function.error_scale(*columns(function, [*map(tuple, rows)])))
        units = np.abs(got - want) / np.spacing(np.maximum(np.abs(want), scale))
    edge = np.abs(want) > LARGEST
    units = np.where((got == want) | np.isnan(want) | edge, 0.0, units)
    place = int(np.argmax(np.where(np.isnan(units), np.inf, units)))
    return float(units[place]), rows[place]


def drawn(function: ScalarFunction, count: int) -> Iterator[Rows]:
    """Points where the function is defined, in chunks, from samples of about `count`."""
    for k in range(MOST_DRAWS):
        rows = operands(function, count + k)
        if bounded := [k for k, ends in enumerate(function.domain) if np.isfinite(ends).all()]:
            rows = np.concatenate([rows, _between(function, rows, bounded)])
        rows = rows[_is_defined(function, rows)]
        for at in range(0, len(rows), CHUNK):
            yield rows[at : at + CHUNK]


def _between(function: ScalarFunction, rows: Rows, bounded: list[int]) -> Rows:
    """As many points, of which these operands are anywhere in their domain or near an end."""
    rng, moved = np.random.default_rng(len(rows)), rows.copy()
    for k in bounded:
        low, high = function.domain[k]
        near = 10.0 ** rng.uniform(-16.0, 0.0, len(rows)) * (high - low)
        choice = rng.integers(3, size=len(rows))
        inside = rng.uniform(low, high, len(rows))
        moved[:, k] = np.choose(choice, [inside, low + near, high - near])
    return moved


def row(function: ScalarFunction, count: int) -> tuple[tuple[str, ...], bool]:
    """A line of the table, and whether all errors are at most those stated."""
    start = time.perf_counter()
    errors, places, tried = [-1.0] * len(TARGETS), [np.zeros(1)] * len(TARGETS), 0
    own = symbols(function)
    try:
        rule = Rule(function.definition(*own), own)
    except UnreadableDefinition as reason:
        return (function.name, "0", *["-"] * 3, f"no rule for {reason}"), True
    for some in drawn(function, count):
        want = rule.values(some)
        for k, target in enumerate(TARGETS):
            error, place = worst(function, some, want, target)
            if not error <= errors[k]:
                errors[k], places[k] = error, place
        tried += int(np.isfinite(want).sum())
        if tried >= count:
            break
    place = places[int(np.argmax(errors))]
    stated = [function.worst_ulps(target) for target in TARGETS]
    cells = [f"{error:.3g} ({most})" for error, most in zip(errors, stated, strict=True)]
    at = ", ".join(f"{x:.17g}" for x in place)
    line = (function.name, f"{tried:,}", *cells, at)
    print(*line, f"{time.perf_counter() - start:.0f} s", flush=True)
    return line, all(error <= most for error, most in zip(errors, stated, strict=True))


def earlier() -> dict[str, tuple[str, ...]]:
    """The rows of the table as written, by function."""
    lines = RESULT.read_text(encoding="utf-8").splitlines() if RESULT.exists() else []
    rows = [tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in lines if "|" in line]
    return {cells[0]: cells for cells in rows[2:]}


def main(arguments: list[str] | None = None) -> int:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description="Measure the worst errors of scalar functions.")
    parser.add_argument("names", nargs="*", help="functions, by default all")
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--write", action="store_true", help=f"write results/{RESULT.name}")
    options = parser.parse_args(arguments)
    selected = [f for f in MEASURED if not options.names or f.name in options.names]
    found = {f.name: row(f, options.points) for f in selected}
    if options.write:
        rows = earlier() | {name: cells for name, (cells, _) in found.items()}
        lines = in_columns(
            [
                ("function", "points", *TARGETS, "worst at"),
                *(rows[f.name] for f in MEASURED if f.name in rows),
            ],
            True,
        )
        facts = "\n".join(f"- {key}: {value}" for key, value in description(1).items())
        told = "Printed by `python -m benchmarks.ulps --write`; the module explains it."
        count = "In brackets the error that the record states."
        RESULT.write_text(
            f"# Errors of scalar functions\n\n{told} {count}\n\n{facts}\n\n{lines}\n",
            encoding="utf-8",
        )
    return 0 if all(fine for _, fine in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
