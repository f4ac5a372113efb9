"""A stand-in for CuPy on the CPU: NumPy's arrays, and kernels run by `cuda_on_cpu.h` and g++.

It has what generated modules call, and no more; arrays are of a type of their own, so that an array
of NumPy given to a kernel is seen.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import math
import re
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np

HEADER = Path(__file__).with_name("cuda_on_cpu.h")
FLAGS = ("-O0", "-std=c++17", "-shared", "-fPIC", "-w", "-ffp-contract=off", "-U_FORTIFY_SOURCE")
TYPES = {"double": np.float64, "float": np.float32, "long long": np.int64}
FAULTS = ("", "a barrier that not all threads reach", "a write beyond the end of an array")
_FOLDER = tempfile.TemporaryDirectory(prefix="cuda-on-cpu-")


class ndarray(np.ndarray):  # noqa: N801
    """An array of the device."""

    __cuda_array_interface__ = property(lambda self: self.__array_interface__)

    def get(self) -> np.ndarray:
        return np.array(self.view(np.ndarray))

    def set(self, array: np.ndarray) -> None:
        assert type(array) is np.ndarray
        assert array.flags.c_contiguous
        assert (array.dtype, array.shape) == (self.dtype, self.shape)
        self[...] = array


class RawModule:
    """Kernels of a CUDA text; `orders` are the seeds of the thread orders that a launch tries."""

    orders: tuple[int, ...] = (0,)
    flags: tuple[str, ...] = FLAGS
    edit = staticmethod(lambda text: text)
    """What a test does to the text before it is compiled."""

    def __init__(self, *, code: str, options: tuple[str, ...]) -> None:
        assert options == ("-std=c++17",)
        text = self.edit(code)
        real = re.search(r"typedef (\w+) real;", text)[1]
        found = re.findall(
            r"__global__ void __launch_bounds__\(\d+\) (\w+)\((.*?)\) (\{.*?\n\})", text, re.S
        )
        self.kernels = {name: _kinds(rest, real) for name, rest, _ in found}
        assert len(self.kernels) == text.count("__global__") == len(found)
        wrappers = [
            _wrapper(name, kinds, "_block(" in body)
            for (name, _, body), kinds in zip(found, self.kernels.values(), strict=True)
        ]
        self._library = _built("\n".join([text, *wrappers]), self.flags)

    def get_function(self, name: str):
        kinds = self.kernels[name]
        call = getattr(self._library, f"run_{name}")

        def launch(blocks, threads, arrays):
            if _recording:
                _recording[-1].append(lambda: launch(blocks, threads, arrays))
                return
            assert len(arrays) == len(kinds)
            for array, kind in zip(arrays, kinds, strict=True):
                assert isinstance(array, ndarray)
                assert array.dtype == TYPES[kind]
                assert array.flags.c_contiguous
            _launch(name, call, (*blocks, 1)[:2], threads[0], arrays, self.orders)

        return launch


_recording: list[list[Callable[[], None]]] = []
"""What the stream that is recording has recorded."""


class CUDARuntimeError(RuntimeError):
    """What the runtime of CUDA refuses."""


class Stream:
    """A stream whose work can be recorded; other work is done at once. `refuses`: it cannot."""

    refuses = False

    def __init__(self, non_blocking: bool) -> None:
        assert non_blocking, "the legacy stream cannot record"

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        _recording.clear()

    def begin_capture(self) -> None:
        if self.refuses:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported")
        _recording.append([])

    def end_capture(self) -> SimpleNamespace:
        recorded = _recording.pop()
        return SimpleNamespace(launch=lambda: [work() for work in recorded])


def _matmul(left: ndarray, right: ndarray, out: ndarray) -> None:
    if _recording:
        raise NotImplementedError("calling cuBLAS API during stream capture is unsupported")
    np.matmul(left, right, out=out)


def _launch(name, call, blocks, threads, arrays, orders) -> None:
    """Run once in each order, from the same arrays; all have to give the same bits."""
    before = [array.copy() for array in arrays]
    results = []
    for seed in orders:
        for array, old in zip(arrays, before, strict=True):
            array[...] = old
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        sizes = (ctypes.c_size_t * len(arrays))(*(a.nbytes for a in arrays))
        fault = call(*blocks, threads, seed, pointers, sizes)
        if fault:
            raise RuntimeError(f"{name}: {FAULTS[fault]}")
        results.append([array.tobytes() for array in arrays])
    if any(result != results[0] for result in results):
        raise RuntimeError(f"{name}: the result depends on the order of threads")


def _kinds(parameters: str, real: str) -> list[str]:
    """The types of the arrays that a kernel takes."""
    every = [one.replace("const ", "").split(" *")[0] for one in parameters.split(", ")]
    return [real if kind == "real" else kind for kind in every]


def _wrapper(name: str, kinds: list[str], barriers: bool) -> str:
    given = ", ".join(f"({kind} *)cpu::arguments[{k}]" for k, kind in enumerate(kinds))
    return (
        f'extern "C" int run_{name}(unsigned gx, unsigned gy, unsigned threads, unsigned seed, '
        f"void **a, size_t *sizes) {{ cpu::body = [] {{ {name}({given}); }}; return cpu::guarded("
        f"a, sizes, {len(kinds)}, gx, gy, threads, seed, {int(barriers)}); }}"
    )


@cache
def _built(text: str, flags: tuple[str, ...]) -> ctypes.CDLL:
    """The compiled text; an equal one is compiled once."""
    key = hashlib.sha256("\0".join([text, *flags]).encode()).hexdigest()[:16]
    source, made = (Path(_FOLDER.name) / f"{key}{end}" for end in (".cpp", ".so"))
    called = sorted(set(re.findall(r"\b[a-z]\w*(?=\()", text)) & set(dir(math)))
    library = "".join(f"using std::{name};\n" for name in called)
    source.write_text(f'#include "{HEADER}"\n{library}{text}\n', encoding="utf-8")
    command = ["g++", *flags, "-o", str(made), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(made))


def _device(array: object, kind: object = None, order: str = "K") -> ndarray:
    """An array of the device with these numbers: itself, or a copy of what lies on the host."""
    copy = None if isinstance(array, ndarray) else True
    return np.array(array, kind, order=order, copy=copy).view(ndarray)


_ON_ARRAYS = ("abs", "broadcast_to", "diagonal", "isnan", "log", "prod", "sign", "sum", "where")


def extension() -> dict[str, ModuleType]:
    """The stand-ins for `cupyx` and the modules in it, by name, over SciPy."""
    from scipy import linalg  # a generated module without matrices runs without SciPy

    def lu_factor(A: ndarray, check_finite: bool) -> tuple[ndarray, ...]:
        return tuple(map(_device, linalg.lu_factor(np.array(A), check_finite=check_finite)))

    def lu_solve(
        factors: tuple[ndarray, ...], B: ndarray, trans: int = 0, *, check_finite: bool
    ) -> ndarray:
        return _device(linalg.lu_solve(factors, B, trans, check_finite=check_finite))

    def solve_triangular(A: ndarray, B: ndarray, trans: int = 0, lower: bool = False) -> ndarray:
        return _device(linalg.solve_triangular(A, B, trans, lower, check_finite=False))

    names = ("cupyx", "cupyx.scipy", "cupyx.scipy.linalg")
    made = {name: ModuleType(name) for name in names}
    made["cupyx"].errstate = lambda linalg: contextlib.nullcontext()
    made["cupyx"].scipy = made["cupyx.scipy"]
    own = made["cupyx.scipy"].linalg = made["cupyx.scipy.linalg"]
    own.lu_factor, own.lu_solve, own.solve_triangular = lu_factor, lu_solve, solve_triangular
    return made


def module() -> ModuleType:
    """The stand-in as a module that can take the place of `cupy`."""
    made = ModuleType("cupy")
    made.ndarray = ndarray
    made.RawModule = RawModule
    made.is_available = lambda: True
    made.empty = lambda shape, kind: _device(np.full(shape, np.nan, kind))
    made.asarray = _device
    made.array = lambda array, kind, order, copy: _device(array, kind, order)
    made.copyto = np.copyto
    made.may_share_memory = np.may_share_memory
    made.matmul = _matmul
    errors = SimpleNamespace(CUDARuntimeError=CUDARuntimeError, CUDADriverError=CUDARuntimeError)
    made.cuda = SimpleNamespace(Stream=Stream, runtime=errors, driver=errors)
    made.get_array_module = lambda x: made if isinstance(x, ndarray) else np
    made.linalg = SimpleNamespace(cholesky=np.linalg.cholesky)
    made.eye = lambda size, dtype: _device(np.eye(size, dtype=dtype))
    made.arange = lambda size: _device(np.arange(size))
    made.full = lambda shape, value, kind: _device(np.full(shape, value, kind))
    for name in _ON_ARRAYS:
        setattr(made, name, getattr(np, name))
    made.lib = SimpleNamespace(stride_tricks=np.lib.stride_tricks)
    return made
