"""Whole runs on 10⁴ to 10⁶ unknowns: a valley, total variation, a minimal surface; beside L-BFGS-B.

    python benchmarks/large_runs.py [--seconds S] [--only TEXT]

Each run is a process of its own, which ends at gtol 1e-6 or after S seconds of the processor
(default 15). Times are those of the processor; `vectors` is the largest memory of the process
beyond that before the run, in vectors of n numbers.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.by_hand import Array
from benchmarks.time_limits import SURFACE, VALLEY, VARIATION

NAMES = ("valley", "variation", "surface")
SIZES = (10_000, 100_000, 1_000_000)
SOLVERS = ("auto", "L-BFGS-B")
GTOL = 1e-6


class OutOfTime(Exception):
    """Raised by an evaluation after the limit."""


def problem(name: str, n: int) -> tuple[slomodel.Model, Array]:
    """A model of about n unknowns and its start."""
    rng, k = np.random.default_rng(0), round(n**0.5)
    if name == "valley":
        return slomodel.compile(VALLEY, dims={"n": n}), np.tile([-1.2, 1.0], n // 2)
    if name == "variation":
        u, v = np.sin(np.linspace(0.0, 6.0, k)), np.cos(np.linspace(0.0, 9.0, k))
        y = (np.add.outer(u, v) > 0.0) + 0.1 * rng.standard_normal((k, k))
        return slomodel.compile(VARIATION, data={"y": y, "w": 1e-3}), y.ravel()
    edge = np.sin(np.linspace(0.0, 3.0, k))
    model = slomodel.compile(SURFACE, data={"e": edge}, dims={"n": k})
    return model, 0.1 * rng.standard_normal(k * k)


def memory() -> int:
    """The largest memory of the process so far, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def by_auto(model: slomodel.Model, x0: Array, late: Callable[[], bool]) -> tuple[str, int, float]:
    found = model.solve(x0=x0, gtol=GTOL, callback=lambda state: late())
    work = found.nfev + found.njev + 2 * found.nhev
    return str(found.status), work, found.fun


def by_scipy(model: slomodel.Model, x0: Array, late: Callable[[], bool]) -> tuple[str, int, float]:
    """L-BFGS-B with a bound on the largest element of the gradient that is about that of `auto`."""
    f, g = model.value_and_gradient(x0)
    bound = GTOL * max(abs(f) / (np.linalg.norm(x0) or 1.0), np.linalg.norm(g)) / len(x0) ** 0.5
    seen = [f]

    def evaluate(x: Array) -> tuple[float, Array]:
        if late():
            raise OutOfTime
        result = model.value_and_gradient(x)
        seen.append(result[0])
        return result

    stop = {"gtol": bound, "ftol": 0.0, "maxiter": 10**6, "maxfun": 10**7}
    try:
        found = minimize(evaluate, x0, jac=True, method="L-BFGS-B", options=stop)
    except OutOfTime:
        return "out of time", 2 * len(seen), min(seen)
    return "success" if found.success else "failure", 2 * found.nfev, found.fun


def run(name: str, n: int, solver: str, seconds: float) -> dict[str, float | str]:
    """One run; its end, work (f + g + 2 Hv), f, seconds, those of an evaluation, and vectors."""
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        model, x0 = problem(name, n)
        model.solve(x0=x0, max_iter=0)
        began = time.process_time()
        for _ in range(5):
            model.value_and_gradient(x0)
        each = (time.process_time() - began) / 5
        before, began = memory(), time.process_time()
        solve = by_auto if solver == "auto" else by_scipy
        end, work, f = solve(model, x0, lambda: time.process_time() - began > seconds)
        taken = time.process_time() - began
    vectors = (memory() - before) / (8 * model.n)
    return {
        **{"end": end, "work": work, "f": f, "seconds": taken},
        **{"evaluation": each, "vectors": vectors},
    }


def main(arguments: list[str] | None = None) -> int:
    """Print a row for each problem, size and solver."""
    parser = argparse.ArgumentParser(description="Whole runs on many unknowns.")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--only", default="", help="problems whose names contain this")
    parser.add_argument("--one", nargs=3, metavar=("NAME", "N", "SOLVER"), help="a single run")
    options = parser.parse_args(arguments)
    if options.one:
        name, n, solver = options.one
        print(json.dumps(run(name, int(n), solver, options.seconds)))
        return 0
    print("| problem | n | solver | end | work | f | s | evaluation | per work | vectors |")
    print("| --- | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in (name for name in NAMES if options.only in name):
        for n in SIZES:
            for solver in SOLVERS:
                own = ("--one", name, str(n), solver, "--seconds", str(options.seconds))
                command = [sys.executable, __file__, *own]
                told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                one = json.loads(told.splitlines()[-1])
                cells = (
                    *(name, f"{n:,}", solver, one["end"], f"{one['work']:,}", f"{one['f']:.8g}"),
                    *(f"{one['seconds']:.2f}", f"{1e3 * one['evaluation']:.3g} ms"),
                    *(f"{1e3 * one['seconds'] / one['work']:.3g} ms", f"{one['vectors']:.0f}"),
                )
                print(f"| {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
