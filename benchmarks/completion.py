"""Completion of a matrix of 10⁵ × 10⁵ from 10⁶ entries, against loops for numba.

    python benchmarks/completion.py [--bounds]

Value and gradient of `slomodel` and of the loops as one writes them by hand, without `fastmath`, in
alternating runs: seconds of the processor, one thread. `--bounds` adds proved bounds at r = 0.1.
Needs numba.
"""

from __future__ import annotations

import argparse
import resource
import sys
from pathlib import Path
from time import process_time

import numpy as np
import scipy.sparse as sp
from numba import njit

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.machine import description
from benchmarks.measure import seconds

N, ENTRIES, RANK, WEIGHT = 10**5, 10**6, 5, 0.1
MODEL = f"""dim m, n
data R[m, n] sparse
var U[m, {RANK}], V[n, {RANK}] init normal(0, 0.3)
minimize sum((R[i, j] - dot(U[i, :], V[j, :]))^2 for i, j in R) + {WEIGHT} * (sumsq(U) + sumsq(V))
"""
ROUNDS = 15
BLOCK = 0.2
"""Seconds of one timed block."""


@njit
def by_hand(  # type: ignore[no-untyped-def]
    u, v, rows, columns, values, weight, gradient_u, gradient_v
):
    """The objective; its gradient is written into the last two arrays, (m, r) and (n, r)."""
    total = 0.0
    for k in range(u.size):
        total += weight * u.flat[k] ** 2
        gradient_u.flat[k] = 2.0 * weight * u.flat[k]
    for k in range(v.size):
        total += weight * v.flat[k] ** 2
        gradient_v.flat[k] = 2.0 * weight * v.flat[k]
    for k in range(len(values)):
        i, j = rows[k], columns[k]
        residual = values[k]
        for q in range(u.shape[1]):
            residual -= u[i, q] * v[j, q]
        total += residual * residual
        for q in range(u.shape[1]):
            gradient_u[i, q] -= 2.0 * residual * v[j, q]
            gradient_v[j, q] -= 2.0 * residual * u[i, q]
    return total


def memory() -> float:
    """The most memory that the process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Complete a sparse matrix.")
    parser.add_argument("--bounds", action="store_true", help="also bound the derivatives")
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(0)
    places = rng.integers(0, N, ENTRIES), rng.integers(0, N, ENTRIES)
    table = sp.coo_array((rng.normal(size=ENTRIES), places), shape=(N, N)).tocsr().tocoo()
    began = process_time()
    model = slomodel.compile(MODEL, data={"R": table})
    x = model.x0(0)
    value, gradient = model.value_and_gradient(x)
    compiling = process_time() - began
    parts = model.unpack(x)
    rows, columns = (places.astype(np.int32) for places in table.coords)
    out = np.empty((N, RANK)), np.empty((N, RANK))

    def loops() -> float:
        return by_hand(parts["U"], parts["V"], rows, columns, table.data, WEIGHT, *out)

    other = loops()
    deviation = np.abs(np.concatenate([one.ravel() for one in out]) - gradient).max()
    assert abs(other - value) <= 1e-12 * value, (other, value)
    assert deviation <= 1e-12 * np.abs(gradient).max(), deviation
    calls = [lambda _: model.value_and_gradient(x), lambda _: loops()]
    own, peer = np.median(seconds(calls, ROUNDS, BLOCK, process_time), axis=0)
    print(f"{description(1)}\n")
    print(f"compiling and the first value with gradient: {compiling:.2f} s, {memory():.0f} MB")
    print(f"value and gradient: {own:.4f} s, numba {peer:.4f} s, ratio {own / peer:.2f}")
    if options.bounds:
        began = process_time()
        found = model.bounds(x, 0.1)
        print(f"bounds at r = 0.1: L1 {found.L1:.6g}, L2 {found.L2:.6g}, ", end="")
        print(f"{process_time() - began:.1f} s, {memory():.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
