"""Bounds of large objectives: cost of one centre, of a further radius, and memory.

Each case runs in its own process, which measures its peak of memory. Targets, reported but not
enforced: 1 s of CPU time at 40,000 unknowns and 10 s at a million, with the first radius.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.random import Generator

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.cases import MODELS

HEADS = ("case", "n", "first s", "target", "next s", "MB before", "MB most", "L1", "L2")
TARGETS = {40_000: 1.0, 1_000_000: 10.0}
SIZES = tuple(TARGETS)
RADIUS, NEXT = 0.1, 1.0
MOST_SECONDS = 900.0

FACTORS = "dim p, q, k data M[p, q] var U[p, k], V[k, q] minimize sumsq(U @ V - M)"
ROBUST = "dim N, n data A[N, n], y[N] var x[n] minimize sum(log(1 + (A @ x - y).^2))"
DENOISING = (
    "dim n data y[n] var x[n] minimize sum(log(1 + (x[i] - y[i])^2) for i in n) "
    "+ sum(sqrt(1 + (x[i+1] - x[i])^2) for i in range(n - 1))"
)


def _rosenbrock(n: int, rng: Generator) -> slomodel.Model:
    return slomodel.compile(MODELS / "rosenbrock.slo", dims={"n": n})


def _completion(n: int, rng: Generator) -> slomodel.Model:
    """A square matrix of which 30 % of the entries are known."""
    side, rank = _square(n)
    M = rng.standard_normal((side, side))
    data = {"M": M, "Omega": (rng.random(M.shape) < 0.3).astype(float)}
    return slomodel.compile(MODELS / "matrix_completion.slo", data=data, dims={"r": rank})


def _factorization(n: int, rng: Generator) -> slomodel.Model:
    side, rank = _square(n)
    return slomodel.compile(
        FACTORS, data={"M": rng.standard_normal((side, side))}, dims={"k": rank}
    )


def _square(n: int) -> tuple[int, int]:
    """The side and the rank of a matrix with n unknowns in its two factors: 10⁶ and 4·10⁶ data."""
    rank = 20 if n <= 40_000 else 250
    return n // (2 * rank), rank


def _robust(n: int, rng: Generator) -> slomodel.Model:
    data = {"A": rng.standard_normal((10, n)), "y": rng.standard_normal(10)}
    return slomodel.compile(ROBUST, data=data)


def _denoising(n: int, rng: Generator) -> slomodel.Model:
    return slomodel.compile(DENOISING, data={"y": rng.standard_normal(n)})


CASES: dict[str, Callable[[int, Generator], slomodel.Model]] = {
    "rosenbrock": _rosenbrock,
    "matrix completion": _completion,
    "factorization": _factorization,
    "robust regression, 10 rows": _robust,
    "robust denoising": _denoising,
}


def measure(case: str, n: int) -> tuple[str, ...]:
    """One line of the table."""
    rng = np.random.default_rng(0)
    model = CASES[case](n, rng)
    centre = model.x0() + 0.1 * rng.standard_normal(model.n)
    before = _megabytes()
    began = time.process_time()
    found = model.bounds(centre, RADIUS)
    first = time.process_time() - began
    began = time.process_time()
    found.at(NEXT)
    following = time.process_time() - began
    target = f"{TARGETS[n]:g}" if first <= TARGETS[n] else f"{TARGETS[n]:g} missed"
    return (
        *(case, str(model.n), f"{first:.2f}", target, f"{following:.2f}"),
        *(f"{before:.0f}", f"{_megabytes():.0f}", f"{found.L1:.4g}", f"{found.L2:.4g}"),
    )


def _megabytes() -> float:
    """Peak memory of the process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def large_table(only: str | None, sizes: Sequence[int] = SIZES) -> list[tuple[str, ...]]:
    """Heads and a line for each case and size; failures and timeouts are reported."""
    lines: list[tuple[str, ...]] = [HEADS]
    for n in sizes:
        for case in CASES:
            if only is not None and only not in case:
                continue
            lines.append(_in_a_process(case, n))
            print("  ".join(lines[-1]), file=sys.stderr, flush=True)
    return lines


def _in_a_process(case: str, n: int) -> tuple[str, ...]:
    command = [sys.executable, __file__, case, str(n)]
    try:
        ended = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True, timeout=MOST_SECONDS
        )
    except subprocess.SubprocessError as error:
        told = f"no answer in {MOST_SECONDS:g} s"
        if isinstance(error, subprocess.CalledProcessError):
            told = f"ended with {error.returncode}"
        return (case, str(n), told, *[""] * (len(HEADS) - 3))
    return tuple(json.loads(ended.stdout))


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
