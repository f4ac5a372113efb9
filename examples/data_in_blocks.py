"""Fit an autoencoder to data in blocks on disk: streamed, on local workers, and compressed.

python examples/data_in_blocks.py
python examples/data_in_blocks.py --samples 20000000 --blocks 200 --workers 2 --backend c
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import slomodel
from slomodel.solve import Solution

TEXT = """
dim d, N
data X[d, N]
var W[4, d], V[d, 4] init normal(0, 0.3)
minimize sumsq(X - V @ W @ X) / N
"""
D, FACTORS = 22, 6


def write_blocks(folder: Path, samples: int, blocks: int) -> list[Path]:
    """Files with samples of six factors and noise, each drawn from a seed of its own."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"x_{k:03d}.npy" for k in range(blocks)]
    directions = np.random.default_rng(0).normal(size=(D, FACTORS))
    for k, path in enumerate(paths):
        rng = np.random.default_rng([1, k])
        factors = rng.normal(size=(FACTORS, samples // blocks))
        np.save(path, directions @ factors + 0.3 * rng.normal(size=(D, samples // blocks)))
    return paths


def fit(label: str, model: Any, **options: Any) -> Solution:
    """Solve, and report the run."""
    began = time.perf_counter()
    found: Solution = model.solve(direction="lbfgs", seed=3, **options)
    print(
        f"{label}: {found.status.value}, objective {found.fun:.10f}, {found.nit} iterations,"
        f" {found.nfev} values, {found.njev} gradients, {time.perf_counter() - began:.1f} s",
        flush=True,
    )
    return found


def difference(a: Solution, b: Solution) -> float:
    """The largest relative difference of two runs, in the objective and in x."""
    in_x = float(np.abs(a.x - b.x).max() / np.abs(b.x).max())
    return max(in_x, abs(a.fun - b.fun) / abs(b.fun))


def peak() -> float:
    """The largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextmanager
def local_workers(count: int, memory: str) -> Iterator[Any]:
    """A client of local workers, each with a limit on its memory; None for 0 of them."""
    if not count:
        yield None
        return
    from distributed import Client, LocalCluster

    own: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        LocalCluster(n_workers=count, memory_limit=memory, **own) as local,
        Client(local) as client,
    ):
        before = set(client.run(os.getpid).values())
        yield client
        peaks = ", ".join(f"{one:.0f}" for one in client.run(peak).values())
        same = set(client.run(os.getpid).values()) == before
        print(f"memory of the workers: {peaks} MB; none was started again: {same}", flush=True)


def run(paths: list[Path], workers: int, memory: str, gtol: float, backend: str) -> None:
    """Start from a solution for a twentieth of the data, which the others improve."""
    waiting = slomodel.compile(TEXT, backend=backend)
    few = paths[: max(1, len(paths) // 20)]
    sample = {"X": np.hstack([np.load(one) for one in few])}
    inside = slomodel.compile(TEXT, data=sample, backend=backend)
    first = {"max_iter": 30, "gtol": 1e-9}
    in_memory = fit("subsample in memory", inside, **first)
    own = fit("subsample in blocks", slomodel.over_blocks(waiting, {"X": few}), **first)
    print(f"difference: {difference(own, in_memory):.1e}", flush=True)
    start = fit("subsample in memory", inside, gtol=1e-6)
    given = {"X": paths}
    with local_workers(workers, memory) as client:
        there = None
        if client is not None:
            there = fit(
                *("on workers", slomodel.over_blocks(waiting, given, client=client)),
                **{"x0": start, "gtol": gtol},
            )
        began = time.perf_counter()
        small = slomodel.over_blocks(waiting, given, client=client, compress=True)
        print(f"compressed in {time.perf_counter() - began:.1f} s", flush=True)
        best = fit("compressed", small, x0=start)
    streamed = slomodel.over_blocks(waiting, given)
    print(f"gradient there: {np.linalg.norm(streamed.gradient(best)):.1e}", flush=True)
    found = fit("streamed", streamed, x0=start, gtol=gtol)
    print(f"memory of this process: {peak():.0f} MB", flush=True)
    if there is not None:
        print("the same bits on workers:", np.array_equal(found.x, there.x), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--workers", type=int, default=0, help="local workers of Dask [0]")
    parser.add_argument("--memory", default="1GB", help="limit of each worker [1GB]")
    parser.add_argument("--gtol", type=float, default=1e-3, help="tolerance over all blocks [1e-3]")
    parser.add_argument("--backend", default="numpy", help="numpy or c, for long runs [numpy]")
    parser.add_argument("--folder", type=Path, help="keep the files there")
    given, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as scratch:
        paths = write_blocks(given.folder or Path(scratch), given.samples, given.blocks)
        run(paths, given.workers, given.memory, given.gtol, given.backend)


if __name__ == "__main__":
    main()
