"""What a terminal shows while compiling takes long, and Ctrl-C in the middle of it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pty = pytest.importorskip("pty")

STEPS = 30_000
LONG = """
import slomodel
lets = "".join(f"let p{k} = sin(p{k - 1}) + x\\n" for k in range(1, STEPS))
text = f"var x\\nlet p0 = x\\n{lets}minimize p{STEPS - 1}^2"
"""
COMPILE = f"{LONG}slomodel.compile(text, backend='numexpr')\n".replace("STEPS", str(STEPS))
GRADIENT = (f"{LONG}slomodel.compile(text, backend='numexpr').gradient([1.0])\n").replace(
    "STEPS", str(STEPS // 20)
)
HURRIED = "import slomodel.model.waiting as w\nw.PATIENCE = 0.05\n"


def read_until(terminal: int, wanted: str, seconds: float = 120.0) -> str:
    """What the terminal shows, up to `wanted`."""
    seen, deadline = "", time.monotonic() + seconds
    while wanted not in seen:
        assert time.monotonic() < deadline, seen
        if select.select([terminal], [], [], 1.0)[0]:
            seen += os.read(terminal, 4096).decode(errors="replace")
    return seen


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("program", "line"),
    [
        (COMPILE, "compiling: 2 s"),
        (HURRIED + GRADIENT, "compiling value_and_gradient of model"),
    ],
    ids=["compile", "kernels"],
)
def test_a_long_compilation_is_shown_and_obeys_ctrl_c(program: str, line: str) -> None:
    terminal, end = pty.openpty()
    process = subprocess.Popen((sys.executable, "-c", program), stderr=end)
    try:
        shown = read_until(terminal, line)
        process.send_signal(signal.SIGINT)
        told = read_until(terminal, "KeyboardInterrupt")
        process.wait(timeout=60)
    finally:
        process.kill()
        process.wait()
        os.close(end)
        os.close(terminal)
    assert "Traceback" not in shown
    # The line is erased before anything else is written.
    assert told.split("Traceback")[0].endswith(" \r")
    assert process.returncode in (1, -signal.SIGINT, 130)


def test_nothing_is_shown_where_nobody_watches(tmp_path: Path) -> None:
    program = f"{HURRIED}{GRADIENT}".replace(str(STEPS // 20), "300")
    done = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert (done.stdout, done.stderr) == ("", "")
