"""A C compiler that does not terminate."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slomodel import user_cache
from slomodel.codegen.native import compiler
from slomodel.errors import TargetLimit


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache directory of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    user_cache.directory.cache_clear()
    yield tmp_path / "slomodel" / "kernels"
    user_cache.directory.cache_clear()


def is_running(process: str) -> bool:
    """Whether a process is there that has not ended."""
    state = Path(f"/proc/{int(process)}/stat")
    try:
        return state.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks the system by /proc")
def test_what_takes_too_long_leaves_nothing_running(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, child = tmp_path / "slow", tmp_path / "child"
    slow.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {child}\nwait\n")
    slow.chmod(0o755)
    monkeypatch.setattr(compiler, "_SECONDS", 1.0)
    monkeypatch.setattr(compiler, "_LEVELS", (0,))
    monkeypatch.setattr(compiler, "compilers", lambda: (str(slow),))
    with pytest.raises(TargetLimit, match=r"took over 1\.0 s"):
        compiler.library("double f(void) { return 1.0; }", single=False)
    end = time.monotonic() + 10
    while is_running(child.read_text()) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_running(child.read_text())
    assert not list(cache.iterdir())
