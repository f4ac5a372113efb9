"""The default backend: `c` if a compiler works, else numexpr with a warning."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import slomodel
from slomodel import user_cache
from slomodel.codegen import automatic
from slomodel.codegen.native import compiler

TEXT = "dim n\nvar x[n]\nminimize sum(exp(x[i]) * x[i] + x[i]^2 for i in range(n))"
X = np.array([0.5, -1.0, 2.0])
VALUE = float(np.sum(np.exp(X) * X + X**2))
GRADIENT = np.exp(X) * (X + 1) + 2 * X
PRODUCT = (np.exp(X) * (X + 2) + 2) * X


@pytest.fixture(autouse=True)
def chosen_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is chosen for `auto`, the cache is empty, and nothing has been told."""
    monkeypatch.delenv("SLOMODEL_BACKEND", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    automatic._reported.clear()
    for one in (user_cache.directory, compiler.compilers):
        one.cache_clear()
    yield
    for one in (user_cache.directory, compiler.compilers):
        one.cache_clear()


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """`only(script)` leaves one compiler on PATH: a shell script. Without text there is none."""

    def left(script: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        if script:
            (folder / "cc").write_text(f"#!/bin/sh\n{script}\n")
            (folder / "cc").chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        monkeypatch.delenv("CC", raising=False)
        compiler.compilers.cache_clear()
        return folder

    return left


def model(**options: object) -> slomodel.Model:
    return slomodel.compile(TEXT, dims={"n": 3}, **options)


def check(found: slomodel.Model) -> None:
    value, gradient = found.value_and_gradient(X)
    assert value == pytest.approx(VALUE, rel=1e-14)
    np.testing.assert_allclose(gradient, GRADIENT, rtol=1e-14)
    np.testing.assert_allclose(found.hvp(X, X), PRODUCT, rtol=1e-14)
    assert found.solve(x0=X).success


def test_a_compiler_is_used_where_there_is_one() -> None:
    found = model()
    check(found)
    assert found.backend == "c"
    assert found.explain().splitlines()[-1] == "backend    c"
    assert "double value_and_gradient(void **c)" in found.source()
    assert found.bind().backend == "c"


def test_without_a_compiler_there_is_one_line(only: Callable[[str], Path]) -> None:
    only("")
    with pytest.warns(slomodel.BackendWarning, match=r"^numexpr .* install gcc .*$") as told:
        found = model()
    assert len(told) == 1
    assert "\n" not in str(told[0].message)
    check(found)
    assert found.backend == "numexpr"
    assert "backend    numexpr: no C compiler was found" in found.explain()
    # Once a process: the next models are quiet.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(model())


@pytest.mark.parametrize("script", ["exit 1", "kill -9 $$", "exit 0"])
def test_a_compile_that_fails_or_is_killed(script: str, only: Callable[[str], Path]) -> None:
    only(script)
    found = model()
    with pytest.warns(slomodel.BackendWarning, match="the C compiler .*/cc"):
        found.value(X)
    check(found)
    assert found.backend == "numexpr"
    assert "the C compiler" in found.explain().splitlines()[-1]


def test_the_compiler_is_lost_between_two_entries(only: Callable[[str], Path]) -> None:
    found = model()
    assert found.value(X) == pytest.approx(VALUE, rel=1e-14)
    only("exit 1")
    with pytest.warns(slomodel.BackendWarning):
        found.gradient(X)
    check(found)


@pytest.mark.parametrize("evaluations", [0, 10**9])
def test_compiling_for_seconds_is_weighed(
    evaluations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By how often the kernels are expected to run; either choice is told."""
    monkeypatch.setattr(automatic, "QUICK", 0.0)
    monkeypatch.setattr(automatic, "EVALUATIONS", evaluations)
    found = model()
    if evaluations:
        check(found)
    else:
        with pytest.warns(slomodel.BackendWarning, match=r"numexpr runs the kernels: compiling"):
            check(found)
    assert found.backend == ("c" if evaluations else "numexpr")
    assert f"backend    {found.backend}: compiling its" in found.explain()
    assert model(backend="c").value(X) == pytest.approx(VALUE, rel=1e-14)


def test_a_text_in_the_cache_is_not_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    check(model(backend="c"))
    monkeypatch.setattr(automatic, "QUICK", 0.0)
    monkeypatch.setattr(automatic, "EVALUATIONS", 0)
    found = model()
    check(found)
    assert (found.backend, found.explain().splitlines()[-1]) == ("c", "backend    c")


def test_a_recurrence_of_many_definitions_runs_on_c() -> None:
    steps = 300
    lets = "".join(f"let p{k} = tanh(0.7*p{k - 1} + x[{k % 3}])\n" for k in range(1, steps))
    text = f"var x[3]\nlet p0 = x[0]\n{lets}minimize p{steps - 1}^2"
    found = slomodel.compile(text)
    found.gradient(X)
    assert found.backend == "c"


def test_an_estimate_is_near_the_time_of_a_call() -> None:
    """To a factor of five, on a machine that others use too."""
    lets = "".join(f"let p{k} = tanh(0.7*p{k - 1} + x[{k % 3}])\n" for k in range(1, 200))
    found = slomodel.compile(f"var x[3]\nlet p0 = x[0]\n{lets}minimize p199^2", backend="numexpr")
    found.gradient(X)
    compiled = found._compiled
    entry = compiled.derivatives.entry("value_and_gradient")
    told = automatic._PYTHON.seconds(entry, compiled._layout, {})
    began = time.process_time()
    for _ in range(50):
        found.gradient(X)
    measured = (time.process_time() - began) / 50
    assert told / 5 < measured < 5 * told


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    user_cache.directory.cache_clear()
    check(model())
    assert user_cache.directory("kernels") != tmp_path


def test_the_environment_names_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOMODEL_BACKEND", "numpy")
    assert model().backend == "numpy"
    assert model(backend="numexpr").backend == "numexpr"
    monkeypatch.setenv("SLOMODEL_BACKEND", "abacus")
    with pytest.raises(slomodel.DomainError, match="abacus"):
        model()


def test_a_process_without_a_compiler_says_so_on_standard_error(tmp_path: Path) -> None:
    (tmp_path / "m.slo").write_text(TEXT)
    command = [sys.executable, "-m", "slomodel", "solve", str(tmp_path / "m.slo"), "--set", "n=3"]
    done = subprocess.run(
        command, env={**os.environ, "PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    lines = [line for line in done.stderr.splitlines() if line]
    assert len(lines) == 1
    assert lines[0].startswith("warning: numexpr runs the kernels: no C compiler was found")
