"""Real clusters of `dask.distributed`: killed workers and schedulers, limits on memory, sweeps."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import slomodel
from slomodel.cli import main
from slomodel.model.cluster import connected

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    # Connections that a killed process leaves open are closed when they are collected.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

TEXT = (
    "dim N, p data A[N, p], y[N] var w[p] init 0 "
    "minimize mean(softplus(-y .* (A @ w))) + 0.001 * sumsq(w)"
)
RNG = np.random.default_rng(7)
A = RNG.normal(size=(8_000, 10))
Y = np.sign(A @ RNG.normal(size=10) + RNG.normal(size=8_000))
BLOCKS = {"A": np.array_split(A, 12), "y": np.array_split(Y, 12)}
OPTIONS: dict[str, Any] = {"gtol": 1e-9, "max_iter": 5, "x0": np.zeros(10)}


@pytest.fixture(scope="module")
def expected() -> Any:
    return slomodel.over_blocks(slomodel.compile(TEXT), BLOCKS).solve(**OPTIONS)


def test_a_worker_killed_at_a_random_moment_changes_no_bit(expected: Any) -> None:
    waiting = slomodel.compile(TEXT)
    rng = np.random.default_rng(3)
    with connected("local:2") as client:
        assert client is not None
        duration = 0.0
        for _ in range(2):  # the second time the workers have their kernels
            began = time.perf_counter()
            slomodel.over_blocks(waiting, BLOCKS, client=client).solve(**OPTIONS)
            duration = time.perf_counter() - began
        for _ in range(10):
            blocked = slomodel.over_blocks(waiting, BLOCKS, client=client)
            pids = list(client.run(os.getpid).values())
            victim, moment = int(rng.choice(pids)), float(rng.uniform(0.0, 0.8 * duration))
            killer = threading.Timer(moment, os.kill, (victim, signal.SIGKILL))
            killer.start()
            found = blocked.solve(**OPTIONS)
            killer.cancel()
            killer.join()
            assert (found.fun, found.nit) == (expected.fun, expected.nit)
            np.testing.assert_array_equal(found.x, expected.x)
            client.wait_for_workers(1)


@contextmanager
def cluster(folder: Path, workers: int = 1) -> Iterator[tuple[str, Any]]:
    """The address of a scheduler in a process of its own, with workers, and that process."""
    where = folder / "scheduler.json"
    alone = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"]
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    options = ["--port", "0", "--host", "127.0.0.1", "--scheduler-file", str(where)]
    scheduler = subprocess.Popen([*alone, *options], env=own, **quiet)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1"]
    command += ["--no-dashboard", "--scheduler-file", str(where), "--death-timeout", "30"]
    running = [subprocess.Popen(command, env=own, **quiet) for _ in range(workers)]
    try:
        with distributed.Client(scheduler_file=str(where), timeout="60s") as client:
            client.wait_for_workers(workers, timeout=60)
            address = client.scheduler.address
        yield address, scheduler
    finally:
        for process in (scheduler, *running):
            process.kill()
            process.wait()


def test_a_killed_scheduler_leaves_the_best_point_and_a_checkpoint(
    tmp_path: Path, expected: Any
) -> None:
    saved = tmp_path / "run.npz"
    waiting = slomodel.compile(TEXT)
    with cluster(tmp_path) as (address, scheduler):
        client = distributed.Client(address, timeout="30s")
        blocked = slomodel.over_blocks(waiting, BLOCKS, client=client)

        def kill(state: Any) -> None:
            if state.k == 3:
                scheduler.kill()

        found = blocked.solve(**OPTIONS, callback=kill, checkpoint=saved)
        client.close(timeout=5)
    assert found.status == "interrupted"
    assert "the cluster does not answer any more" in found.message
    assert np.isfinite(found.fun)
    assert found.fun < slomodel.over_blocks(waiting, BLOCKS).value(np.zeros(10))
    here = slomodel.over_blocks(waiting, BLOCKS)
    again = here.solve(resume=saved, gtol=1e-9, max_iter=5)
    np.testing.assert_array_equal(again.x, expected.x)


def test_the_command_line_with_a_scheduler(tmp_path: Path) -> None:
    (tmp_path / "m.slo").write_text(TEXT)
    for name, parts in BLOCKS.items():
        (tmp_path / name).mkdir()
        for k, part in enumerate(parts):
            np.save(tmp_path / name / f"{k}.npy", part)
    out = tmp_path / "run.npz"
    command = ["solve", str(tmp_path / "m.slo"), "--gtol", "1e-9", "--out", str(out)]
    command += ["--data", f"A={tmp_path / 'A'}", "--data", f"y={tmp_path / 'y'}"]
    found = []
    with cluster(tmp_path, workers=2) as (address, _):
        for options in ([], ["--dask", address], ["--dask", "local:2"]):
            result = CliRunner().invoke(main, [*command, *options])
            assert result.exit_code == 0, result.output
            found.append(slomodel.load_solution(out).x)
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def test_memory_stays_below_the_limit_of_the_workers(tmp_path: Path) -> None:
    for name, rows in (("A", 20), ("y", None)):
        (tmp_path / name).mkdir()
        for k in range(12):
            rng = np.random.default_rng([k, len(name)])
            shape = 200_000 if rows is None else (200_000, rows)
            np.save(tmp_path / name / f"{k}.npy", np.sign(rng.normal(size=shape)))
    waiting = slomodel.compile(TEXT)
    given = {name: tmp_path / name for name in ("A", "y")}
    x = RNG.normal(size=20)
    local = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit="500MB", dashboard_address=":0"
    )
    with local, distributed.Client(local) as client:
        pids = set(client.run(os.getpid).values())
        there = slomodel.over_blocks(waiting, given, client=client, memory=10**8)
        found = [there.value_and_gradient(x) for _ in range(2)]
        assert max(client.run(_peak).values()) < 500
        assert set(client.run(os.getpid).values()) == pids
    value, gradient = slomodel.over_blocks(waiting, given, memory=0).value_and_gradient(x)
    for one in found:
        assert one[0] == value
        np.testing.assert_array_equal(one[1], gradient)


def test_sweeps_and_starts_survive_a_killed_worker() -> None:
    text = TEXT.replace("0.001", "lam").replace("var", ", lam = 1 var", 1)
    model = slomodel.compile(text, data={"A": A, "y": Y})
    grid = {"lam": [10.0, 1.0, 0.1, 0.01]}
    here = slomodel.sweep(model, grid, warm=False, threads=1)
    several = slomodel.compile("var x[4] minimize sum(x^4 - x^2) + x[0] / 8")
    with connected("local:2") as client:
        assert client is not None
        victim = next(iter(client.run(os.getpid).values()))
        killer = threading.Timer(1.0, os.kill, (victim, signal.SIGKILL))
        killer.start()
        there = slomodel.sweep(model, grid, warm=False, client=client, threads=1)
        killer.join()
        best = several.solve(starts=6, seed=3, client=client)
    for one, other in zip(here, there, strict=True):
        np.testing.assert_array_equal(one.solution.x, other.solution.x)
    assert len(best.runs) == 6
    assert best.fun == several.solve(starts=6, seed=3).fun


def test_ctrl_c_keeps_the_runs_of_a_sweep_so_far() -> None:
    model = slomodel.compile(
        TEXT.replace("0.001", "lam").replace("var", ", lam = 1 var", 1), data={"A": A, "y": Y}
    )
    seen: list[int] = []

    class Display:
        def update(self, state: Any) -> None:
            seen.append(state.k)
            if len(seen) == 2:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1.0)

        def close(self) -> None:
            pass

    with connected("local:2") as client:
        runs = slomodel.sweep(
            model, {"lam": list(np.geomspace(1, 0.01, 8))}, client=client, progress=Display()
        )
    status = [row["status"] for row in runs.rows()]
    assert status.count("not run") >= 4
    assert "converged" in status
    assert runs.best.solution is not None
