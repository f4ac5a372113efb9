"""Final gaps of the linear autoencoder from ten starts beside a saddle, for every method.

    python benchmarks/saddle_starts.py [--solver NAME ...] [--starts N] [--seconds S]
                                       [--keep FILE] [--markdown]

Every weight starts in U[0, 1e-3], where the gradient almost vanishes, and so do the Hessian and
all derivatives up to the ninth. The optimum is the sum of the squared singular values of the data
beyond the fourth; a gap is f / optimum − 1. A run has S seconds of the processor (default 10).
Peers use slomodel's kernels; optax, if installed (extra `bench`), uses JAX on the compressed data,
which defines the same objective.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.adam import adam
from benchmarks.by_hand import Array
from benchmarks.evaluate import in_columns
from benchmarks.machine import description
from benchmarks.runs import BUSY, MOST_STEPS, ending
from slomodel.errors import SlomodelError
from slomodel.solve import State
from slomodel.solve.directions.table import DIRECTIONS
from slomodel.solve.methods.table import METHODS

FILE = Path(__file__).parent.parent / "models" / "linear_autoencoder.slo"
NARROWEST = 4
WANTED = 1e-6


@dataclass(frozen=True, slots=True)
class End:
    """The lowest value of a run, seconds of the processor, and how the run ended."""

    fun: float
    seconds: float
    status: str


Solver = Callable[[slomodel.Model, Array, float], End | None]


def beside_saddle() -> tuple[slomodel.Model, float]:
    """The model with weights from U[0, 1e-3], and its least value. Eckart & Young (1936)."""
    text = FILE.read_text(encoding="utf-8").replace("uniform(0, 0.1)", "uniform(0, 0.001)")
    with np.load(FILE.parent / "data" / "ijcnn1_6000.npz", allow_pickle=False) as archive:
        X = archive["X"]
    singular = np.linalg.svd(X, compute_uv=False)
    return slomodel.compile(text, data={"X": X}), float((singular[NARROWEST:] ** 2).sum())


def own(method: str, **options: object) -> Solver:
    """A method of slomodel; None if it does not apply to this model."""

    def run(model: slomodel.Model, x0: Array, seconds: float) -> End | None:
        start = time.process_time()

        def late(state: State) -> bool:
            return time.process_time() - start > seconds

        limits = {"max_iter": MOST_STEPS, "max_time": BUSY * seconds, "gtol": 1e-8}
        try:
            found = model.solve(method, x0, callback=late, **limits, **options)
        except SlomodelError:
            return None
        return End(found.fun, time.process_time() - start, ending(found))

    return run


class _OutOfTime(Exception):
    pass


def scipys(method: str, **options: object) -> Solver:
    """A method of SciPy; the lowest value that it evaluated."""

    def run(model: slomodel.Model, x0: Array, seconds: float) -> End:
        start = time.process_time()
        lowest = np.inf

        def both(x: Array) -> tuple[float, Array]:
            nonlocal lowest
            f, g = model.value_and_gradient(x)
            lowest = min(lowest, f)
            if time.process_time() - start > seconds:
                raise _OutOfTime
            return f, g

        told = {"maxiter": MOST_STEPS, "gtol": 1e-8, **options}
        try:
            found = minimize(both, x0, jac=True, method=method, options=told)
            status = "converged" if found.success else "failed"
        except _OutOfTime:
            status = "max_time"
        return End(lowest, time.process_time() - start, status)

    return run


def optaxs(rate: float) -> Solver:
    """Adam of optax; None without it."""

    def run(model: slomodel.Model, x0: Array, seconds: float) -> End | None:
        with np.load(FILE.parent / "data" / "ijcnn1_6000.npz", allow_pickle=False) as archive:
            R = np.linalg.qr(archive["X"].T, mode="r").T
        start = time.process_time()
        lowest = adam(model.unpack(x0), {"X": R}, rate, seconds)
        return None if lowest is None else End(lowest, time.process_time() - start, "max_time")

    return run


def solvers() -> dict[str, Solver]:
    """Every method and direction with and without `second_order`, and the peers."""
    plain = {name: ("norm-armijo", {"direction": name}) for name in DIRECTIONS}
    plain |= {name: (name, {}) for name in METHODS if name != "norm-armijo"}
    found = {}
    for name, (method, options) in plain.items():
        found[name] = own(method, **options)
        found[f"{name} + second order"] = own(method, second_order=True, **options)
    found["SciPy L-BFGS-B"] = scipys("L-BFGS-B", ftol=0.0, maxfun=MOST_STEPS)
    found["SciPy BFGS"] = scipys("BFGS")
    found["SciPy CG"] = scipys("CG")
    for rate in (1e-3, 1e-2):
        found[f"optax adam {rate:g}"] = optaxs(rate)
    return found


def cells(name: str, ends: Sequence[End], optimum: float) -> tuple[str, ...]:
    gaps = np.array([end.fun / optimum - 1.0 for end in ends])
    near = int(np.sum(gaps < WANTED))
    statuses = ", ".join(
        f"{status} {sum(end.status == status for end in ends)}"
        for status in dict.fromkeys(end.status for end in ends)
    )
    seconds = np.median([end.seconds for end in ends])
    return (
        *(name, f"{near} of {len(ends)}", f"{gaps.min():.1e}", f"{np.median(gaps):.1e}"),
        *(f"{gaps.max():.1e}", f"{seconds:.2f}", statuses),
    )


HEADS = ("method", f"within {WANTED:g}", "least gap", "median", "largest", "seconds", "ended")


def run(options: argparse.Namespace) -> tuple[dict[str, list[End]], float]:
    """The results of all runs by solver, stored ones included, and the optimum."""
    model, optimum = beside_saddle()
    model.hvp(model.x0(0), model.x0(1))
    every = solvers()
    found: dict[str, list[End]] = {}
    if options.keep and options.keep.exists():
        told = json.loads(options.keep.read_text(encoding="utf-8"))
        found = {name: [End(**end) for end in ends] for name, ends in told.items()}
    for name in options.solver or [name for name in every if name not in found]:
        ends = [
            every[name](model, model.x0(seed), options.seconds) for seed in range(options.starts)
        ]
        found[name] = [end for end in ends if end]
        print(name, file=sys.stderr, flush=True)
        if options.keep:
            told = {name: [asdict(end) for end in ends] for name, ends in found.items()}
            options.keep.write_text(json.dumps(told), encoding="utf-8")
    return {name: found[name] for name in every if found.get(name)}, optimum


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Gaps of every method from starts by a saddle.")
    parser.add_argument("--solver", nargs="+", choices=solvers(), metavar="NAME")
    parser.add_argument("--starts", type=int, default=10, help="how many (default 10)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of the processor (default 10)")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="ends of earlier runs")
    parser.add_argument("--markdown", action="store_true", help="a table for a document")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    options = parsed(arguments)
    with threadpool_limits(1):
        print("\n".join(f"- {key}: {value}" for key, value in description(1).items()))
        found, optimum = run(options)
    lines = [cells(name, ends, optimum) for name, ends in found.items()]
    print(f"\n{in_columns([HEADS, *lines], options.markdown)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
