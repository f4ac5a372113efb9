"""The benchmark for devices: a message without a device, and a whole run on the stand-in."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from codegen.cuda import standin

from benchmarks import gpu


def test_without_cupy_it_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(SystemExit, match=r"needs CuPy, (.|\n)*pip install"):
        gpu.main([])


def test_it_runs(cupy_on_cpu: type[standin.RawModule], monkeypatch: pytest.MonkeyPatch) -> None:
    cupy_on_cpu.orders = (0,)
    runtime = sys.modules["cupy"].cuda.runtime
    runtime.deviceSynchronize = lambda: None
    runtime.getDeviceProperties = lambda k: {"name": b"CPU"}
    monkeypatch.setattr(gpu, "CALLS", 1)
    rows = gpu.rows_here(
        ["log(1 + x²)", "sym_tensor", "transport_dual", "coupled_phases"], quick=True
    )
    assert [row.model for row in rows][:3] == ["copy", "log(1 + x²)", "sym_tensor"]
    assert [row.model for row in rows][-2:] == ["coupled_phases", "transport_dual"]
    assert [row.share is not None for row in rows] == [True] * 2 + [False] * (len(rows) - 2)
    assert all(row.microseconds > 0.0 for row in rows if row.model != "coupled_phases")
    told = gpu.page([replace(rows[0], jax_microseconds=3.0), *rows[1:]])
    assert told.count("\n") == 5 + len(rows)
    assert "On one CPU" in told
    assert "refused" in told.splitlines()[-2]
