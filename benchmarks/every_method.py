"""Compares `auto` with every single method on published problems, regressions and the models.

    python benchmarks/every_method.py [--group NAME ...] [--solver NAME ...] [--peers]
                                      [--seconds S] [--keep FILE] [--markdown]

A cost is that until f is a recorded value to eight digits; on the models, which have none, until
the run ends in success (gradient below 1e-6 times the scale). Times are those of the processor.
Evaluations are values, gradients and products with the Hessian, one each. `x` marks a run without
that, within S seconds (default 5), and `-` a method that does not apply to the problem; both count
as 100 times the best. A name of a direction stands for norm-armijo along it. FILE holds outcomes of
earlier runs: those of solvers not named are taken from there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.evaluate import in_columns
from benchmarks.machine import description
from benchmarks.problems import GROUPS
from benchmarks.runs import PEERS, SOLVERS, Cost, Outcome, measured

AUTO = "auto"
UNSOLVED = 100.0

Outcomes = dict[str, dict[str, Outcome | None]]
"""Outcomes by problem and solver; None if the solver does not apply."""

Price = Callable[[Cost], float]
PRICES: Mapping[str, Price] = {
    "evaluations": lambda cost: cost.evaluations,
    "milliseconds": lambda cost: 1e3 * cost.seconds,
}


def outcome_of(told: dict[str, object] | None) -> Outcome | None:
    """An outcome that was written as json."""
    if told is None:
        return None
    fields = dict(told)
    fields["cost"] = Cost(**fields["cost"])
    fields["reached"] = fields["reached"] and Cost(**fields["reached"])
    return Outcome(**fields)


def kept(file: Path | None) -> dict[str, Outcomes]:
    """The outcomes of earlier runs by group."""
    if file is None or not file.exists():
        return {}
    told = json.loads(file.read_text(encoding="utf-8"))
    return {
        group: {
            problem: {solver: outcome_of(one) for solver, one in row.items()}
            for problem, row in rows.items()
        }
        for group, rows in told.items()
    }


def keep(file: Path, found: dict[str, Outcomes]) -> None:
    told = {
        group: {
            problem: {solver: one and asdict(one) for solver, one in row.items()}
            for problem, row in rows.items()
        }
        for group, rows in found.items()
    }
    file.write_text(json.dumps(told), encoding="utf-8")


def price(outcome: Outcome | None, of: Price) -> float | None:
    """The cost of a run that solved its problem."""
    return of(outcome.reached) if outcome and outcome.reached else None


def ratios(outcomes: Outcomes, of: Price) -> dict[str, dict[str, float]]:
    """Cost relative to that of the best single method, by solver and problem.

    Problems that no method solves are omitted.
    """
    found: dict[str, dict[str, float]] = {}
    for problem, row in outcomes.items():
        prices = {solver: price(outcome, of) for solver, outcome in row.items()}
        single = [p for s, p in prices.items() if p is not None and s in SOLVERS and s != AUTO]
        if not single:
            continue
        for solver, own in prices.items():
            ratio = UNSOLVED if own is None else own / min(single)
            found.setdefault(solver, {})[problem] = ratio
    return found


def table(outcomes: Outcomes, of: Price, markdown: bool) -> str:
    """One line per problem, one column per solver; the best single method is named."""
    solvers = list(dict.fromkeys(solver for row in outcomes.values() for solver in row))
    lines = [("problem", *solvers, "best", "auto / best")]
    against = ratios(outcomes, of).get(AUTO, {})
    for problem, row in outcomes.items():
        single = {
            solver: own
            for solver, outcome in row.items()
            if solver in SOLVERS and solver != AUTO and (own := price(outcome, of)) is not None
        }
        best = min(single, key=lambda solver: single[solver]) if single else "none"
        ratio = f"{against[problem]:.2f}" if problem in against else "-"
        lines.append((problem, *(_cell(row, solver, of) for solver in solvers), best, ratio))
    return in_columns(lines, markdown)


def _cell(row: dict[str, Outcome | None], solver: str, of: Price) -> str:
    if row.get(solver) is None:
        return "-"
    own = price(row[solver], of)
    return "x" if own is None else f"{own:.4g}"


def summary(outcomes: Outcomes, markdown: bool) -> str:
    """By solver: problems solved, geometric mean and largest of the ratios to the best."""
    lines = [("solver", "for", "solved", "mean evaluations", "worst", "mean time", "worst")]
    by_price = [ratios(outcomes, of) for of in PRICES.values()]
    for solver in by_price[0]:
        suited = [row[solver] for row in outcomes.values() if row.get(solver)]
        solved = sum(outcome.reached is not None for outcome in suited)
        cells = [solver, str(len(suited)), str(solved)]
        for found in by_price:
            numbers = list(found[solver].values())
            cells += [f"{np.exp(np.mean(np.log(numbers))):.2f}", f"{max(numbers):.3g}"]
        lines.append(tuple(cells))
    return in_columns(lines, markdown)


def run(options: argparse.Namespace) -> dict[str, Outcomes]:
    """All named solvers on all problems of the groups, with stored outcomes."""
    every = {**SOLVERS, **(PEERS if options.peers else {})}
    names: Sequence[str] = options.solver or list(every)
    found = kept(options.keep)
    for group in options.group:
        outcomes = found.setdefault(group, {})
        for problem in GROUPS[group]():
            row = outcomes.setdefault(problem.name, {})
            for name in names:
                row[name] = measured({**SOLVERS, **PEERS}[name], problem, options.seconds)
            order = [*SOLVERS, *PEERS]
            outcomes[problem.name] = dict(sorted(row.items(), key=lambda one: order.index(one[0])))
            print(f"{group}: {problem.name}", file=sys.stderr, flush=True)
        if options.keep:
            keep(options.keep, found)
    return found


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare auto with every single method.")
    parser.add_argument("--group", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--solver", nargs="+", choices=[*SOLVERS, *PEERS], help="only these")
    parser.add_argument("--peers", action="store_true", help="methods of SciPy too")
    parser.add_argument("--seconds", type=float, default=5.0, help="most for a run (default 5)")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="outcomes of earlier runs")
    parser.add_argument("--markdown", action="store_true", help="tables for a document")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Print the tables of each group and the summary of all."""
    options = parsed(arguments)
    with threadpool_limits(1):
        print("\n".join(f"- {key}: {value}" for key, value in description(1).items()))
        found = run(options)
    for group in options.group:
        for name, of in PRICES.items():
            print(f"\n## {group}: {name}\n\n{table(found[group], of, options.markdown)}")
        print(f"\n{summary(found[group], options.markdown)}")
    together = {
        f"{group} {problem}": row
        for group in options.group
        for problem, row in found[group].items()
    }
    print(f"\n## All\n\n{summary(together, options.markdown)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
