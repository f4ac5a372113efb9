"""Checkpoints: a resumed run has the same trajectory, bit for bit."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from solve.objectives import parabola, rosenbrock
from solve.test_second_derivatives import Rosenbrock

from slomodel.errors import DomainError
from slomodel.solve import METHODS, Objective, Solution, State, solve
from slomodel.solve.directions.table import DIRECTIONS
from slomodel.solve.run.saved_classes import SAVED
from slomodel.solve.run.snapshot import Freezer

X0 = np.full(6, -1.2)
# What a method cannot do without on an objective of which nothing but values is known.
NEEDED: dict[str, dict[str, object]] = {
    "pgd": {"lipschitz": "sampled"},
    "tgd": {"lipschitz": "sampled"},
    "bpg": {"L": 3e3, "p": 4},
    "agp": {"lipschitz": lambda centre, radius: (3e3, 5e3)},
    "gd": {"L": 3e3},
    "ngd": {"d": 1e-2},
}
RUNS = [
    *(
        ("norm-armijo", {"direction": name})
        for name, rule in DIRECTIONS.items()
        if not rule.squares
    ),
    *(("norm-armijo", {"initial_step": name}) for name in ("full", "memory")),
    *((name, NEEDED.get(name, {})) for name in METHODS if name != "norm-armijo"),
]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint at every step."""
    monkeypatch.setattr("slomodel.solve.run.checkpoint.SECONDS", 0.0)
    monkeypatch.setattr("slomodel.solve.run.checkpoint.FRACTION", 1e9)


def assert_same(one: Solution, other: Solution) -> None:
    assert one.x.tobytes() == other.x.tobytes()
    assert one.jac.tobytes() == other.jac.tobytes()
    for name in ("fun", "nit", "nfev", "njev", "nhev", "status", "message", "epochs", "parameters"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("fun", "gradient_norm", "step", "epoch"):
        assert getattr(one.history, name).tobytes() == getattr(other.history, name).tobytes()
    assert np.all(np.diff(other.history.time) >= 0.0)


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(
    ("method", "options"), RUNS, ids=[f"{k}-{m}" for k, (m, _) in enumerate(RUNS)]
)
def test_a_run_left_at_any_step_goes_on_to_the_same_bits(
    method: str, options: dict[str, object], tmp_path: Path
) -> None:
    generator = np.random.default_rng(7)
    left = {int(k) for k in generator.integers(1, 40, size=3)}
    path = tmp_path / "run.npz"

    def leave(state: State) -> None:
        if state.k in left:
            shutil.copy(path, tmp_path / f"{state.k}.npz")

    asked: dict[str, object] = {"method": method, "gtol": 1e-8, "max_iter": 60, **options}
    whole = solve(Rosenbrock(), X0, checkpoint=path, callback=leave, **asked)
    copies = sorted(tmp_path.glob("[0-9]*.npz"))
    assert copies
    for copy in copies:
        assert_same(whole, solve(Rosenbrock(), None, resume=copy, **asked))


@pytest.mark.parametrize(
    ("method", "options"), RUNS, ids=[f"{k}-{m}" for k, (m, _) in enumerate(RUNS)]
)
def test_every_class_with_state_has_a_saved_name(
    method: str, options: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    freeze, omitted = Freezer.freeze, set()

    def watched(freezer: Freezer, value: object) -> object:
        code = freeze(freezer, value)
        if code == ["kept"] and type(value).__module__.startswith("slomodel."):
            omitted.add(type(value).__name__)
        return code

    monkeypatch.setattr(Freezer, "freeze", watched)
    verify = method != "auto"
    path = tmp_path / "run.npz"
    solve(Rosenbrock(), X0, method=method, max_iter=3, checkpoint=path, verify=verify, **options)
    assert omitted <= {"RunOptions", "Evaluator"}


def test_saved_names_are_unique_among_classes_made_from_the_file() -> None:
    made = [entry.name for entry in SAVED.values() if entry.created]
    others = [entry.name for entry in SAVED.values() if not entry.created]
    assert len(made) == len({*made} - {*others})


@pytest.mark.usefixtures("often")
def test_more_is_allowed_than_before(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    whole = solve(Rosenbrock(), X0, direction="lbfgs", max_iter=40, gtol=0.0)
    part = solve(Rosenbrock(), X0, direction="lbfgs", max_iter=10, gtol=0.0, checkpoint=path)
    assert part.status == "max_iter"
    assert_same(whole, solve(Rosenbrock(), None, resume=path, max_iter=40, method="auto"))
    again = solve(Rosenbrock(), None, resume=path, max_iter=10, method="auto", max_time=1e3)
    assert again.x.tobytes() == part.x.tobytes()


@pytest.mark.usefixtures("often")
def test_time_and_values_count_on(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    part = solve(Rosenbrock(), X0, max_iter=10, checkpoint=path)
    found = solve(Rosenbrock(), None, resume=path, method="auto", max_nfev=part.nfev + 5)
    assert found.status == "max_nfev"
    assert found.nfev == part.nfev + 5
    spent = solve(Rosenbrock(), None, resume=path, method="auto", max_time=1e-9)
    assert spent.status == "max_time"
    assert spent.nit == 10


def test_one_is_written_at_the_start_and_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    times: list[float] = []
    solve(
        Rosenbrock(),
        X0,
        checkpoint=path,
        callback=lambda state: times.append(path.stat().st_mtime_ns if path.exists() else 0),
        max_iter=20,
    )
    assert times[0] == 0
    assert len(set(times[1:])) == 1
    assert path.stat().st_mtime_ns > times[1]
    assert [one.name for one in tmp_path.iterdir()] == ["run.npz"]


def refused(path: Path, objective: Objective | None = None, **asked: object) -> str:
    with pytest.raises(DomainError) as caught:
        solve(objective or Rosenbrock(), None, resume=path, **{"method": "auto", **asked})
    return str(caught.value)


def test_what_is_requested_has_to_agree(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    solve(Rosenbrock(), X0, checkpoint=path, max_iter=3, theta=0.4, gtol=1e-7)
    assert "theta was 0.4 in the run to resume, and 0.3 is asked for" in refused(path, theta=0.3)
    assert "sigma was not given" in refused(path, sigma=0.2)
    assert "method was 'norm-armijo'" in refused(path, method="std-armijo")
    assert "gtol was 1e-07" in refused(path, gtol=1e-5)
    assert "at its point n = 6 there, n = 2 here" in refused(path, rosenbrock())
    assert "is of another objective" in refused(path, parabola(n=6))
    assert_same(
        *(
            solve(Rosenbrock(), None, resume=path, method="auto", **more)
            for more in (
                {"max_iter": 9},
                {"max_iter": 9, "theta": 0.4, "gtol": 1e-7},
            )
        )
    )


def test_a_function_is_given_again(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"

    def constants(centre: object, radius: float) -> float:
        return 3e3

    asked: dict[str, object] = {"method": "pgd", "lipschitz": constants}
    whole = solve(Rosenbrock(), X0, max_iter=20, **asked)
    solve(Rosenbrock(), X0, checkpoint=path, max_iter=4, **asked)
    assert "give lipschitz again" in refused(path)
    assert_same(whole, solve(Rosenbrock(), None, resume=path, max_iter=20, **asked))


def test_files_that_are_not_checkpoints(tmp_path: Path) -> None:
    found = solve(Rosenbrock(), X0, max_iter=3, checkpoint=tmp_path / "run.npz")
    found.save(tmp_path / "solution.npz")
    assert "is not a checkpoint: it holds" in refused(tmp_path / "solution.npz")
    assert "cannot read" in refused(tmp_path / "missing.npz")
    whole = (tmp_path / "run.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    assert "it is not a valid npz file" in refused(tmp_path / "half.npz")
    with np.load(tmp_path / "run.npz") as archive:
        arrays = dict(archive)
    for old, new in (("checkpoint 1", "checkpoint 0"), ("NormArmijoRun", "Popen")):
        text = np.array(str(arrays["text"]).replace(old, new))
        np.savez(tmp_path / "other.npz", **(arrays | {"text": text}))
        assert "of another version, or damaged" in refused(tmp_path / "other.npz")
    with pytest.raises(DomainError, match="cannot write"):
        solve(Rosenbrock(), X0, checkpoint=tmp_path / "missing" / "run.npz")


def test_another_x0_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    part = {"direction": "lbfgs", "max_iter": 5, "gtol": 0.0}
    solve(Rosenbrock(), X0, checkpoint=path, **part)
    whole = solve(Rosenbrock(), X0, **part | {"max_iter": 20})
    assert_same(whole, solve(Rosenbrock(), X0, resume=path, **part | {"max_iter": 20}))
    with pytest.raises(DomainError, match="x0 is not the one that the run in"):
        solve(Rosenbrock(), X0 + 1.0, resume=path)


SCRIPT = """
import sys
import numpy as np
import slomodel.solve.run.checkpoint as checkpoint
from solve.test_checkpoint import killed_run
checkpoint.SECONDS, checkpoint.FRACTION = 0.0, 1e9
killed_run(checkpoint=sys.argv[1], callback=lambda state: print(state.k, flush=True))
"""


def killed_run(**more: object) -> Solution:
    asked: dict[str, object] = {"direction": "lbfgs", "gtol": 0.0, "max_iter": 400, **more}
    return solve(Rosenbrock(), None if "resume" in more else X0, initial_step="full", **asked)


@pytest.mark.sampled(3)
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL")
@pytest.mark.parametrize("seed", range(3))
def test_a_killed_run_goes_on_to_the_same_bits(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    generator = np.random.default_rng(seed)
    command = [sys.executable, "-c", SCRIPT, str(path)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        for _ in range(int(generator.integers(2, 40))):
            process.stdout.readline()
        time.sleep(generator.uniform(0.0, 0.005))
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert_same(killed_run(), killed_run(resume=path))
