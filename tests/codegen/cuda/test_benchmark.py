"""The benchmark for devices: a message without a device, and a whole run on the stand-in."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from benchmarks import gpu


def test_without_cupy_it_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    with pytest.raises(SystemExit, match=r"needs CuPy, (.|\n)*pip install"):
        gpu.main()


@pytest.mark.usefixtures("cupy_on_cpu")
def test_it_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    runtime = SimpleNamespace(
        deviceSynchronize=lambda: None, getDeviceProperties=lambda k: {"name": b"a CPU"}
    )
    monkeypatch.setattr(
        sys.modules["cupy"], "cuda", SimpleNamespace(runtime=runtime), raising=False
    )
    monkeypatch.setattr(gpu, "CALLS", 1)
    few = [case for case in gpu.cases(quick=True) if case.model in ("rosenbrock", "student_t")]
    monkeypatch.setattr(gpu, "cases", lambda quick: few)
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--quick", "--json"])
    gpu.main()
    told = json.loads(capsys.readouterr().out)
    assert told["card"] == "a CPU"
    assert [row["share"] is not None for row in told["rows"]] == [True] * 3 + [False] * len(few)
    rows = [gpu.Row(**row) for row in told["rows"]]
    assert all(row.microseconds > 0.0 for row in rows)
    assert gpu.report(told["bandwidth"], rows).count("\n") == 3 + len(rows)
