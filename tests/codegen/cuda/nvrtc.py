"""NVRTC through ctypes: CUDA text to PTX and machine code, without a driver or a device."""

from __future__ import annotations

import ctypes
import importlib.metadata
from functools import cache

DISTRIBUTIONS = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc-cu13")


@cache
def library() -> ctypes.CDLL | None:
    """The library of an installed package; None where there is none."""
    for name in DISTRIBUTIONS:
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name.startswith("libnvrtc.so"):
                return ctypes.CDLL(str(file.locate()))
    return None


def compiled(text: str, arch: str) -> tuple[bytes, str]:
    """PTX for `compute_…`, machine code for `sm_…`, and what the compiler says of it.

    Raises SyntaxError with the compiler's log.
    """
    lib = library()
    assert lib is not None
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    made = lib.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"k.cu", 0, None, None)
    assert not made
    real = arch.startswith("sm_")
    options = [f"-arch={arch}", "-std=c++17", *(["-Xptxas=-v"] if real else [])]
    given = (ctypes.c_char_p * len(options))(*(one.encode() for one in options))
    try:
        fault = lib.nvrtcCompileProgram(program, len(options), given)
        lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetProgramLog(program, log)
        if fault:
            raise SyntaxError(log.value.decode())
        kind = "CUBIN" if real else "PTX"
        assert not getattr(lib, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        assert not getattr(lib, f"nvrtcGet{kind}")(program, code)
        return code.raw, log.value.decode()
    finally:
        lib.nvrtcDestroyProgram(ctypes.byref(program))
