"""Messages without CuPy, a driver or a device."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest

import slomodel
from slomodel.errors import TargetLimit

TEXT = "dim n\nvar x[n]\nminimize sumsq(x)"


def cupy(answer: Callable[[], int]) -> ModuleType:
    """A CuPy that finds no device: what it says when it is asked for their number."""
    made = ModuleType("cupy")
    made.is_available = lambda: False
    runtime = SimpleNamespace(getDeviceCount=answer, CUDARuntimeError=RuntimeError)
    made.cuda = SimpleNamespace(runtime=runtime)
    return made


def failing(said: str) -> Callable[[], int]:
    def answer() -> int:
        raise RuntimeError(said)

    return answer


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (None, r"needs CuPy, which cannot be imported (.|\n)*pip install 'slomodel\[cuda12\]'"),
        (
            cupy(failing("cudaErrorInsufficientDriver: CUDA driver version is insufficient")),
            r"needs NVIDIA's driver, .*\(cudaErrorInsufficientDriver\)\n help: install",
        ),
        (cupy(failing("cudaErrorNoDevice: no CUDA-capable device")), "needs a CUDA device"),
        (cupy(lambda: 0), "needs a CUDA device, and there is none here\n help: run on"),
    ],
    ids=["no CuPy", "no driver", "no device", "no devices"],
)
def test_what_is_missing_is_said(
    module: ModuleType | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", module)
    with pytest.raises(TargetLimit, match=words):
        slomodel.compile(TEXT, dims={"n": 3}, backend="cupy")
    # The text needs none of them.
    assert "cp.RawModule" in slomodel.compile(TEXT, dims={"n": 3}).source("cupy")
