"""The command line on a terminal: the live line, Ctrl-C, and a pipe that closes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slomodel import load_solution

MODEL = "var x[50] init -1.2 minimize sum(100 * (x[i+1] - x[i]^2)^2 + (1 - x[i])^2 for i in 49)"
COMMAND = (sys.executable, "-c", "from slomodel.cli import main; main()")
# No gradient descent solves this before a person can press Ctrl-C.
ENDLESS = (
    "solve",
    "rosen.slo",
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
    (tmp_path / "rosen.slo").write_text(MODEL)
    return tmp_path


def read_until(terminal: int, wanted: str, seconds: float = 60.0) -> str:
    """What the terminal shows up to `wanted`."""
    seen, deadline = "", time.monotonic() + seconds
    while wanted not in seen:
        assert time.monotonic() < deadline, seen
        seen += os.read(terminal, 4096).decode()
    return seen


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
        shown = read_until(terminal, "s\x1b")
        shown += read_until(terminal, "iteration")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(end)
        os.close(terminal)
    assert "‖∇f‖" in shown
    told = json.loads(output)
    assert (told["status"], process.returncode) == ("interrupted", 130)
    saved = load_solution(folder / "run.npz")
    assert (saved.fun, saved.nit) == (told["fun"], told["nit"])
    assert saved.nit > 0


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


def test_closed_pipe_is_no_traceback(folder: Path) -> None:
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
