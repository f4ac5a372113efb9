"""Every kernel of the models compiles for real devices, without one: PTX and machine code."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from codegen.cuda import nvrtc
from codegen.test_standalone import MODELS, with_data

import slomodel

ARCHITECTURES = ("compute_75", "sm_80", "sm_90")

pytestmark = pytest.mark.skipif(
    nvrtc.library() is None, reason="no NVRTC: pip install 'slomodel[gpucheck]'"
)


@cache
def text(name: str, dtype: str) -> str:
    path = next(one for one in MODELS if one.stem == name)
    dims, data = with_data(path)
    return slomodel.compile(path, dims=dims, data=data, dtype=dtype).source("cuda")


@pytest.mark.sampled(10)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", [path.stem for path in MODELS])
def test_every_kernel_compiles_and_keeps_its_numbers_in_registers(name: str, arch: str) -> None:
    kernels = set(re.findall(r"__launch_bounds__\(\d+\) (\w+)\(", text(name, "float64")))
    assert kernels
    code, log = nvrtc.compiled(text(name, "float64"), arch)
    assert all(kernel.encode() in code for kernel in kernels)
    # 177: the text has functions that no kernel of the model calls.
    assert set(re.findall(r"warning #(\d+)", log)) <= {"177"}, log
    if arch.startswith("sm_"):
        spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
        assert spills == [("0", "0")] * len(kernels)


def test_single_precision_computes_in_it_and_adds_up_in_double() -> None:
    code, _ = nvrtc.compiled(text("softplus_net", "float32"), "compute_75")
    ptx = code.decode()
    assert re.search(r"\badd(\.rn)?\.f64\b", ptx)
    assert not re.search(r"\b(div|sqrt|rcp|mul)(\.rn)?\.f64\b", ptx)
    both, _ = nvrtc.compiled(text("softplus_net", "float64"), "compute_75")
    assert not re.search(r"\b(add|mul|div|fma|cvt)\S*\.f32\b", both.decode())


def test_a_text_that_is_not_cuda_is_refused() -> None:
    wrong = text("rosenbrock", "float64").replace("__syncthreads()", "__sync_threads()")
    with pytest.raises(SyntaxError, match="__sync_threads"):
        nvrtc.compiled(wrong, "compute_75")


def test_the_text_needs_no_header() -> None:
    root = Path(slomodel.__file__).parent / "codegen" / "cuda"
    assert all("#include" not in one.read_text(encoding="utf-8") for one in root.glob("*.py"))
