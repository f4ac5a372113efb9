"""Processes of the C compiler: those that do not end, those that run beside this one."""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import slomodel
from slomodel import user_cache
from slomodel.codegen.native import compiler
from slomodel.errors import TargetLimit
from slomodel.solve.compiled.library import library


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache directory of the test's own, and no compilation that was begun before."""
    monkeypatch.setattr(compiler, "_begun", {})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    user_cache.directory.cache_clear()
    yield tmp_path / "slomodel" / "kernels"
    compiler._end_all()
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
    with pytest.raises(TargetLimit, match=r"took more than 1\.0 s"):
        compiler.library("double f(void) { return 1.0; }", single=False)
    end = time.monotonic() + 10
    while is_running(child.read_text()) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_running(child.read_text())
    assert not list(cache.iterdir())


TEXT = "double f(void) { return %s.0; }"


def test_a_compilation_that_was_begun_is_waited_for(cache: Path) -> None:
    texts = [TEXT % k for k in (1, 2)]
    for text in (*texts, texts[0]):
        compiler.begin(text, single=False)
    assert len(compiler._begun) == 2
    for k, text in enumerate(texts, 1):
        function = compiler.library(text, single=False).f
        function.restype = ctypes.c_double
        assert function() == k
    assert not compiler._begun
    compiler.begin(texts[0], single=False)
    assert not compiler._begun
    assert len(list(cache.iterdir())) == 2


def test_what_was_begun_and_failed_is_reported_when_it_is_needed(cache: Path) -> None:
    compiler.begin("double f(void) { return ; x", single=False)
    with pytest.raises(TargetLimit, match="failed"):
        compiler.library("double f(void) { return ; x", single=False)
    assert not list(cache.iterdir())


def test_what_was_begun_and_is_not_needed_ends_with_the_process(cache: Path) -> None:
    compiler.begin(TEXT % 3, single=False)
    (begun,) = compiler._begun.values()
    compiler._end_all()
    assert begun.process.returncode is not None
    assert not list(cache.iterdir())


def test_a_run_compiles_its_kernels_at_a_time(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    # That of the solvers is begun once per process, also by a call that ends before it is loaded.
    library()
    begin, compiled = compiler.begin, compiler._compile

    def noted(text: str, single: bool) -> None:
        seen.append(re.findall(r"^double (\w+)\(void \*\*c\)", text, re.M)[0])
        begin(text, single)

    def alone(command: str, flags: tuple[str, ...], text: str, path: Path) -> None:
        seen.append("alone")
        compiled(command, flags, text, path)

    monkeypatch.setattr("slomodel.codegen.native.target.begin", noted)
    monkeypatch.setattr(compiler, "_compile", alone)
    model = slomodel.compile("var x[2]\nminimize sum(x .^ 4 - x)", backend="c")
    assert model.solve(x0=[1.0, 2.0], max_iter=1).nit == 1
    assert seen == ["value", "value_and_gradient", "hvp"]
