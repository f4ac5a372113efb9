"""The protocol of the tables: every method from the same starts, for the same time.

A run has its own process with one thread, and ends after a given CPU time, so that a busy machine
gives the same table as an idle one. Each run is stored as a file; repeating the command only makes
the missing runs.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

import slomodel

Array = NDArray[np.float64]
Options = Mapping[str, object]

MODELS = Path(__file__).parents[2] / "models"
PAPER_METHODS: dict[str, Options] = {
    "std-armijo": {"method": "std-armijo"},
    "bpg": {"method": "bpg"},
    "norm-armijo": {"method": "norm-armijo", "delta_bar": 1.0, "initial_step": "full"},
    "tgd": {"method": "tgd", "lipschitz": "sampled"},
    "pgd": {"method": "pgd", "lipschitz": "sampled"},
}
"""As in Section 6: σ = 0.3, D = δ̄ = 1, constants from random pairs of points of the ball."""
OUR_METHODS: dict[str, Options] = {
    "tgd proved": {"method": "tgd", "lipschitz": "analytic"},
    "tgd certified": {"method": "tgd", "lipschitz": "analytic", "D": "auto"},
    "agp": {"method": "agp"},
    "certified": {"method": "norm-armijo", "delta_bar": 1.0, "line_search": "certified"},
    "lbfgs certified": {
        "method": "norm-armijo",
        "direction": "lbfgs",
        "line_search": "certified",
    },
    "lbfgs exact": {"method": "norm-armijo", "direction": "lbfgs", "line_search": "exact"},
    "auto": {"method": "auto"},
}
METHODS = PAPER_METHODS | OUR_METHODS
TOLERANCE = 1e-15
# agp depends on its tolerance from the first step: C1 and C2 are powers of it.
TOLERANCES = {"agp": 1e-12}
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
# Wall-clock seconds per second of CPU time, on a busy machine, after which a run is cut.
PATIENCE = 30.0
CURVE_POINTS = 300


@dataclass(frozen=True, slots=True)
class Case:
    """A model with data, starts uniform in [low, high], and its least value, None if unknown.

    `replace` maps parts of the model's text to other text.
    """

    name: str
    model: str
    start: tuple[float, float]
    least: float | None = 0.0
    data: Mapping[str, Array] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    replace: tuple[str, str] | None = None

    def compile(self) -> slomodel.Model:
        """The model with its data."""
        path = MODELS / f"{self.model}.slo"
        text = path.read_text(encoding="utf-8")
        if self.replace is None:
            return slomodel.compile(path, data=dict(self.data), dims=dict(self.dims))
        assert self.replace[0] in text
        text = text.replace(*self.replace).replace(' from "data/ijcnn1_6000.npz"', "")
        return slomodel.compile(text, data=dict(self.data), dims=dict(self.dims))

    def x0(self, n: int, round_: int) -> Array:
        """The start (n,) of a round, the same for every method."""
        return np.random.default_rng([round_, n]).uniform(*self.start, n)


@dataclass(frozen=True, slots=True)
class Run:
    """Result of a run of `seconds`, with curves (k,) against CPU time.

    For a method that cannot run (bpg without a constant) `status` holds the reason.
    """

    case: str
    method: str
    round_: int
    seconds: float
    status: str
    fun: float = np.nan
    gradient_norm: float = np.nan
    nfev: int = 0
    violations: int = 0
    times: Sequence[float] = ()
    funs: Sequence[float] = ()
    norms: Sequence[float] = ()

    @property
    def refused(self) -> bool:
        return self.nfev == 0


class Watch:
    """A callback that records the curve and stops the run after a given CPU time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.begin = time.process_time()
        self.rows: list[tuple[float, float, float]] = []

    def __call__(self, state: object) -> bool:
        spent = time.process_time() - self.begin
        self.rows.append((spent, state.fun, state.gradient_norm))  # type: ignore[attr-defined]
        return spent > self.seconds

    def curves(self) -> dict[str, list[float]]:
        """At most `CURVE_POINTS` of the points, close together at the start as on a log axis."""
        last = len(self.rows) - 1
        shown = np.unique(np.geomspace(1, last + 1, CURVE_POINTS).astype(int)) - 1
        table = np.array([self.rows[k] for k in shown])
        return dict(zip(("times", "funs", "norms"), table.T.tolist(), strict=True))


_compiled: dict[str, slomodel.Model] = {}


def execute(case: Case, method: str, round_: int, seconds: float) -> Run:
    """One run, in a process that caches compiled models."""
    if case.name not in _compiled:
        _compiled[case.name] = case.compile()
    model = _compiled[case.name]
    x0 = case.x0(model.n, round_)
    model.value_and_gradient(x0)
    about = {"case": case.name, "method": method, "round_": round_, "seconds": seconds}
    watch = Watch(seconds)
    try:
        solution = model.solve(
            x0=x0,
            gtol=TOLERANCES.get(method, TOLERANCE),
            scaled=False,
            max_iter=10**9,
            max_time=PATIENCE * seconds,
            callback=watch,
            threads=1,
            **METHODS[method],
        )
    except slomodel.SlomodelError as refusal:
        return Run(**about, status=str(refusal).splitlines()[0])
    return Run(
        **about,
        status=str(solution.status),
        fun=solution.fun,
        gradient_norm=solution.gradient_norm,
        nfev=solution.nfev,
        violations=solution.violations,
        **watch.curves(),
    )


def kept(folder: Path, case: Case, method: str, round_: int, seconds: float) -> Run:
    """The run from its file; a missing file is computed and written atomically."""
    path = run_path(folder, case, method, round_, seconds)
    if path.exists():
        return Run(**json.loads(path.read_text(encoding="utf-8")))
    run = execute(case, method, round_, seconds)
    if run.status == "interrupted":
        raise KeyboardInterrupt
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_path = path.with_suffix(".part")
    partial_path.write_text(json.dumps(asdict(run)), encoding="utf-8")
    partial_path.replace(path)
    return run


def run_path(folder: Path, case: Case, method: str, round_: int, seconds: float) -> Path:
    """A file name that encodes everything that the run depends on, except the program."""
    plain = "".join(c if c.isalnum() or c in ".-" else "_" for c in case.name)
    return folder / plain / f"{method.replace(' ', '_')}-{round_}-{seconds:g}s.json"


def all_runs(
    folder: Path,
    cases: Sequence[Case],
    methods: Sequence[str],
    rounds: int,
    seconds: float,
    workers: int,
) -> list[Run]:
    """All runs, over `workers` processes, with a progress bar; Ctrl-C preserves finished runs."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    jobs = [(case, m, k) for k in range(rounds) for case in cases for m in methods]
    with Progress() as progress, ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        task = progress.add_task("runs", total=len(jobs))
        work = partial(kept, folder)
        futures = [pool.submit(work, case, m, k, seconds) for case, m, k in jobs]
        try:
            for done in as_completed(futures):
                run = done.result()
                progress.update(task, advance=1, description=f"{run.case}: {run.method}")
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            progress.console.print("Stopped; the same command continues from here.")
            raise
    return [future.result() for future in futures]


def of_case(runs: Sequence[Run], case: Case) -> Iterator[tuple[str, list[Run]]]:
    """(method, its successful runs), in the order requested."""
    for method in dict.fromkeys(run.method for run in runs):
        yield (
            method,
            [
                run
                for run in runs
                if (run.case, run.method) == (case.name, method) and not run.refused
            ],
        )
