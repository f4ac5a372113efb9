"""Compares a method with L-BFGS-B of SciPy on twenty published problems.

    python benchmarks/solvers.py [--solver NAME ...] [--seconds S] [--markdown] [--json]
    python benchmarks/solvers.py --profile [FILE] [--quick] [--copies [K]] [--seconds S]

NAME is a direction of norm-armijo (default lbfgs), a method, or `all`. Both stop where the gradient
is below 1e-9 times the scale of the problem. An evaluation of L-BFGS-B is a value with its
gradient; ours are values and, fewer, gradients. `to f*` counts the evaluations until f is within
1e-8 of the recorded value, relative, absolute where that is 0; a ratio is ours / theirs. Times are
those of the processor. `--profile` compares `auto` with methods of SciPy on more problems, by
performance and data profiles (solvers_profile.py), and draws them into FILE.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import solvers_profile
from benchmarks.evaluate import in_columns
from benchmarks.machine import description
from benchmarks.problems import Problem, published
from benchmarks.runs import PEERS, SOLVERS, Outcome, measured

PEER = "L-BFGS-B"


@dataclass(frozen=True, slots=True)
class Row:
    """One problem: the recorded value that ours is nearest to, and what both found."""

    problem: str
    recorded: float
    ours: Outcome
    theirs: Outcome
    reached: bool

    @property
    def ratio(self) -> float:
        """Ratio of evaluations to the end, slomodel / SciPy."""
        return self.ours.cost.values / self.theirs.cost.values

    @property
    def ratio_reached(self) -> float:
        """The same until the recorded value; inf or 0 if one of the two never reaches it."""
        if self.ours.reached is None:
            return np.inf
        return self.ours.reached.values / self.theirs.reached.values if self.theirs.reached else 0.0


def row_of(problem: Problem, solver: str, seconds: float) -> Row | None:
    """The row of a solver; None if it does not apply."""
    ours = measured(SOLVERS[solver], problem, seconds)
    theirs = measured(PEERS[PEER], problem, seconds)
    if ours is None or theirs is None:
        return None
    reached = problem.reached(ours.fun)
    return Row(problem.name, problem.nearest(ours.fun), ours, theirs, reached)


HEADS = (
    *("problem", "f", "f*", "reached", "gradient", "status"),
    *("values", "gradients", "products", "L-BFGS-B", "ratio"),
    *("to f*", "L-BFGS-B to f*", "ratio to f*", "ms", "L-BFGS-B ms"),
)


def cells(row: Row) -> tuple[str, ...]:
    ours, theirs = row.ours.cost, row.theirs.cost
    first = [str(end.values) if end else "-" for end in (row.ours.reached, row.theirs.reached)]
    return (
        *(row.problem, f"{row.ours.fun:.10g}", f"{row.recorded:.10g}"),
        *("yes" if row.reached else "no", f"{row.ours.gradient_norm:.1e}", row.ours.status),
        *(str(ours.values), str(ours.gradients), str(ours.products), str(theirs.values)),
        *(f"{row.ratio:.2f}", *first, f"{row.ratio_reached:.2f}"),
        *(f"{1e3 * ours.seconds:.3g}", f"{1e3 * theirs.seconds:.3g}"),
    )


def summary(rows: Sequence[Row]) -> str:
    """The number of problems solved, and the medians of the ratios."""
    reached = sum(row.reached for row in rows)
    peer = sum(row.theirs.reached is not None for row in rows)
    whole = float(np.median([row.ratio for row in rows]))
    first = float(np.median([row.ratio_reached for row in rows]))
    return (
        f"A recorded value is reached on {reached} of {len(rows)} ({PEER}: {peer}). Median of the "
        f"ratios of values: {whole:.2f} to the end, {first:.2f} to f*."
    )


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=f"Compare a method with {PEER} of SciPy.")
    parser.add_argument(
        "--solver", nargs="+", choices=[*SOLVERS, "all"], default=["lbfgs"], metavar="NAME"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="most for a run (default 10)")
    parser.add_argument("--profile", nargs="?", const="", metavar="FILE", help="profiles of auto")
    parser.add_argument("--quick", action="store_true", help="without the slow models")
    parser.add_argument(
        "--copies",
        nargs="?",
        type=int,
        const=1,
        metavar="K",
        help="every K-th problem (default 1) in other units of f and x and in single precision too",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="everything as json")
    form.add_argument("--markdown", action="store_true", help="a table for a document")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Print a table for each solver."""
    options = parsed(arguments)
    if options.profile is not None:
        with threadpool_limits(1):
            tables, report = solvers_profile.profile(
                quick=options.quick, kept=None, seconds=options.seconds, part=options.copies
            )
        details = solvers_profile.details(tables["originals"])
        print(f"{report}\n\n## Work until solved\n\n{details}")
        if options.profile:
            solvers_profile.picture(tables, Path(options.profile))
        return 0
    names = list(SOLVERS) if "all" in options.solver else options.solver
    tables: dict[str, list[Row]] = {}
    with threadpool_limits(1):
        machine = description(1)
        problems = list(published())
        for name in names:
            found = (row_of(problem, name, options.seconds) for problem in problems)
            tables[name] = [row for row in found if row]
    if options.json:
        rows = {name: [asdict(row) for row in found] for name, found in tables.items()}
        print(json.dumps({"machine": machine, "rows": rows}, indent=1))
        return 0
    print("\n".join(f"- {key}: {value}" for key, value in machine.items()))
    for name, rows in tables.items():
        table = in_columns([HEADS, *(cells(row) for row in rows)], options.markdown)
        print(f"\n## {name}\n\n{table}\n\n{summary(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
