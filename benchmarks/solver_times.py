"""Times of whole runs of `auto` and of solvers of SciPy on small problems, on the same kernels.

    python benchmarks/solver_times.py [--repeats N] [--python]

Problems of solvers_profile.py with at most 60 unknowns whose value and gradient take at most 30 µs.
A run ends by its solver's own test, with gtol = 1e-9, and counts if its value is solved as there.
Times are those of the processor, the least of N alternating runs (default 5); `--python` takes the
steps of `auto` without compiled loops.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares, minimize
from threadpoolctl import threadpool_limits

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.problems import published
from benchmarks.solvers_classical import classical
from benchmarks.solvers_profile import TAU, Case, reached
from slomodel.solve.compiled import steps
from tests import nist_problems

GTOL = 1e-9
LARGEST, SLOWEST = 60, 3e-5
# Seconds above which a run is not repeated.
LONG = 0.2
Run = Callable[[], float]
"""A whole run; the value at its end."""


def cases() -> Iterator[Case]:
    """Published and classical problems, and those of NIST from their first starts."""
    for problem in published():
        yield Case(problem.name, problem.model, problem.x0, problem.recorded)
    for name in nist_problems.NAMES:
        recorded = nist_problems.recorded(name)
        start = np.array(recorded["starts"][0]["b"])
        minimum = float(recorded["recomputed"]["rss"])
        yield Case(name, nist_problems.model_of(name), start, (minimum,))
    for one in classical():
        yield Case(*one)


def peers(case: Case) -> dict[str, Run]:
    """The runs of SciPy's solvers."""
    model, x0 = case.model, case.x0
    f, g = model.value_and_gradient(x0)
    gtol = GTOL * (min(1.0, max(abs(f), float(np.linalg.norm(g)))) or 1.0)

    def scipys(method: str, stop: Mapping[str, float], **more: Any) -> Run:
        options = {"maxiter": 2_000, **stop}
        return lambda: float(
            minimize(
                model.value_and_gradient, x0, jac=True, method=method, options=options, **more
            ).fun
        )

    known: dict[str, Run] = {
        "L-BFGS-B": scipys("L-BFGS-B", {"gtol": gtol, "ftol": 0.0, "maxfun": 20_000}),
        "BFGS": scipys("BFGS", {"gtol": gtol}),
        "CG": scipys("CG", {"gtol": gtol}),
        "Newton-CG": scipys("Newton-CG", {"xtol": 1e-10}, hessp=model.hvp),
        "trust-ncg": scipys("trust-ncg", {"gtol": gtol}, hessp=model.hvp),
        "trust-krylov": scipys("trust-krylov", {"gtol": gtol}, hessp=model.hvp),
    }
    objective: Any = model._objective()
    if objective.has_residuals():
        known["least_squares"] = lambda: model.value(
            least_squares(
                objective.residuals,
                x0,
                jac=lambda x: objective.jacobian(x)[1],
                x_scale="jac",
                **dict.fromkeys(("ftol", "xtol"), 1e-15),
                gtol=gtol,
                max_nfev=2_000,
            ).x
        )
    return known


def timed(run: Run) -> tuple[float, float]:
    start = time.process_time()
    value = run()
    return time.process_time() - start, value


def row_of(case: Case, repeats: int) -> dict[str, float]:
    """The seconds of each solver that solves a case; empty for cases that are left out."""
    model, x0 = case.model, case.x0
    model.value_and_gradient(x0)
    took, _ = timed(lambda: sum(model.value_and_gradient(x0)[0] for _ in range(100)))
    if len(x0) > LARGEST or took > 100 * SLOWEST:
        return {}
    runs = {"auto": lambda: model.solve(x0=x0, gtol=GTOL).fun, **peers(case)}
    first = model.value(x0)
    best: dict[str, float] = {}
    runs["auto"]()
    for _ in range(repeats):
        for name, run in runs.items():
            if best.get(name, 0.0) > LONG:
                continue
            try:
                seconds, value = timed(run)
            except (ValueError, np.linalg.LinAlgError):
                best[name] = np.inf
                continue
            solved = reached(case, value, first, TAU)
            best[name] = min(seconds, best.get(name, np.inf)) if solved else np.inf
    return {name: seconds for name, seconds in best.items() if seconds < np.inf}


def report(rows: Mapping[str, Mapping[str, float]]) -> str:
    """A table of the solvers, and a line for each case."""
    names = dict.fromkeys(name for row in rows.values() for name in row)
    lines = ["| solver | solved | median ratio | to best peer | fastest | <= 2 |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in names:
        least = [min(row.values()) for row in rows.values()]
        own = np.array([row.get(name, np.inf) for row in rows.values()])
        others = np.array(
            [
                min([v for k, v in row.items() if k != "auto"], default=np.inf)
                for row in rows.values()
            ]
        )
        with np.errstate(invalid="ignore"):
            ratio, peer = own / least, np.nan_to_num(own / others, nan=np.inf)
        lines.append(
            f"| {name} | {np.isfinite(own).sum()} of {len(rows)} | {np.median(ratio):.2f} "
            f"| {np.median(peer):.2f} | {100 * (ratio <= 1.0).mean():.0f} % "
            f"| {100 * (ratio <= 2.0).mean():.0f} % |"
        )
    lines += ["", "| case | auto, ms | best peer | ms |", "| --- | ---: | --- | ---: |"]
    for case, row in rows.items():
        peer, seconds = min(
            ((k, v) for k, v in row.items() if k != "auto"),
            key=lambda one: one[1],
            default=("-", 0.0),
        )
        lines.append(
            f"| {case} | {1e3 * row.get('auto', np.nan):.2f} | {peer} | {1e3 * seconds:.2f} |"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(description="Times of whole runs on small problems.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--python", action="store_true", help="auto without compiled loops")
    options = parser.parse_args(arguments)
    if options.python:
        steps.library = lambda: None  # type: ignore[assignment]
    rows = {}
    with threadpool_limits(1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for case in cases():
            if row := row_of(case, options.repeats):
                rows[case.name] = row
    print(report(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
