"""The command line on a terminal: the live line, Ctrl-C, and a pipe that closes."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from slomodel import load_solution

MODEL = "var x[50] init 1 minimize 1 / log(3 + sumsq(x))"
COMMAND = (sys.executable, "-m", "slomodel")
# Falls for ever, ever more slowly, towards a least value that no point has.
ENDLESS = (
    "solve",
    "slow.slo",
    "--direction",
    "gradient",
    "--gtol",
    "0",
    "--max-iter",
    "1000000000",
)

pty = pytest.importorskip("pty")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "slow.slo").write_text(MODEL)
    return tmp_path


def read_until(terminal: int, wanted: str, seconds: float = 60.0) -> str:
    """What the terminal shows, up to `wanted` and a little more."""
    seen, deadline = b"", time.monotonic() + seconds
    while wanted.encode() not in seen:
        assert time.monotonic() < deadline, seen
        # A read alone would wait for ever for a process that has died.
        if select.select([terminal], [], [], 1.0)[0]:
            seen += os.read(terminal, 4096)
    return seen.decode(errors="replace")


def rest_of(terminal: int) -> str:
    """What the terminal has shown since it was read last."""
    seen = b""
    while select.select([terminal], [], [], 0.0)[0]:
        seen += os.read(terminal, 4096)
    return seen.decode(errors="replace")


def test_live_line_and_interrupt(folder: Path) -> None:
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        (*COMMAND, *ENDLESS, "--json", "--out", "run.npz"),
        cwd=folder,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=end,
    )
    try:
        shown = read_until(terminal, "‖∇f‖")
        read_until(terminal, "iteration")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
        os.close(end)
        os.close(terminal)
    assert "iteration 0 " in shown
    told = json.loads(output)
    assert (told["status"], process.returncode) == ("interrupted", 130)
    saved = load_solution(folder / "run.npz")
    assert (saved.fun, saved.nit) == (told["fun"], told["nit"])
    assert saved.nit > 0


def children_of(pid: int) -> list[int]:
    """Processes that a process has begun, where the system tells."""
    told = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in told.read_text().split()] if told.exists() else []


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("workers", "kill"),
    [("1", os.killpg), ("2", os.killpg), ("2", os.kill)],
    ids=["alone", "workers", "workers not told by the terminal"],
)
def test_interrupt_of_many_runs_keeps_those_that_ended(
    folder: Path, workers: str, kill: Callable[[int, int], None]
) -> None:
    (folder / "slow.slo").write_text(MODEL.replace("init 1", "init uniform(1, 2)"))
    terminal, end = pty.openpty()
    many = ("--starts", "100000", "--workers", workers, "--max-iter", "500")
    process = subprocess.Popen(
        (*COMMAND, *ENDLESS, *many, "--json", "--out", "run.npz"),
        cwd=folder,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=end,
        start_new_session=True,
    )
    try:
        read_until(terminal, "of 100000 starts")
        read_until(terminal, "of 100000 starts")
        children = children_of(process.pid)
        # A terminal tells the workers too, with killpg.
        kill(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        shown = rest_of(terminal)
    finally:
        process.kill()
        process.wait()
        os.close(end)
        os.close(terminal)
    told = json.loads(output)
    assert process.returncode == 130
    assert "Traceback" not in shown
    assert not [child for child in children if Path(f"/proc/{child}").exists()]
    statuses = [run["status"] for run in told["runs"]]
    assert statuses.count("interrupted") <= int(workers)
    assert "max_iter" in statuses
    assert len(load_solution(folder / "run.npz").runs) == len(statuses)


LOADING = """
import signal
import sys
from importlib.abc import MetaPathFinder

class Strike(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Strike())
sys.argv = ["slomodel", "check", "slow.slo"]
from slomodel.__main__ import main
main()
"""


@pytest.mark.parametrize("name", ["slomodel.cli", "numpy", "sympy", "slomodel.solve.entry"])
def test_interrupt_while_loading(folder: Path, name: str) -> None:
    done = subprocess.run(
        (sys.executable, "-c", LOADING.format(name=name)),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_progress_of_a_python_run(folder: Path) -> None:
    code = (
        "import slomodel\n"
        "model = slomodel.compile('slow.slo')\n"
        "model.solve(gtol=0, direction='gradient', max_time=0.3, progress=True)"
    )
    command = (sys.executable, "-c", code)
    quiet = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=True
    )
    assert (quiet.stdout, quiet.stderr) == ("", "")
    terminal, end = pty.openpty()
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, "TERM": "xterm"}, stderr=end)
    try:
        assert "iteration 0 " in read_until(terminal, "‖∇f‖")
        read_until(terminal, "of 0.3 s")
    finally:
        process.kill()
        process.wait()
        os.close(end)
        os.close(terminal)


def test_nothing_live_in_a_pipe(folder: Path) -> None:
    done = subprocess.run(
        (*COMMAND, *ENDLESS, "--max-time", "0.3", "--progress"),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "max_time (not solved)" in done.stdout


def test_a_closed_pipe_leaves_no_traceback(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        (*COMMAND, *ENDLESS, "--max-iter", "5", "--out", "run.npz"),
        cwd=folder,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert done.stderr == ""
    assert load_solution(folder / "run.npz").nit == 5


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_full_disk_under_standard_output(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            (*COMMAND, *ENDLESS, "--max-nfev", "5", "--json"),
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.stderr.startswith("error: cannot write the output: No space left on device")
    assert "Traceback" not in done.stderr
    assert done.returncode != 0
