"""The stand-in for CuPy, for tests that request it."""

from __future__ import annotations

import shutil
import sys

import pytest
from codegen.cuda import standin


@pytest.fixture
def cupy_on_cpu(monkeypatch: pytest.MonkeyPatch) -> type[standin.RawModule]:
    """`import cupy` gives the stand-in; its class of modules, whose settings a test may change."""
    if shutil.which("g++") is None:
        pytest.skip("no g++ to run CUDA text on the CPU")
    monkeypatch.setitem(sys.modules, "cupy", standin.module())
    for name, made in standin.extension().items():
        monkeypatch.setitem(sys.modules, name, made)
    monkeypatch.setattr(standin.RawModule, "orders", (0, 1, 2))
    return standin.RawModule
