"""Targets `cupy`, a Python module that runs generated kernels, and `cuda`, the kernels alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slomodel.codegen.cuda.module import cuda_text, module_text
from slomodel.codegen.cuda.source import unit
from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout
from slomodel.codegen.runtime import load
from slomodel.codegen.target import Maker
from slomodel.errors import Diagnostic, TargetLimit


@dataclass(frozen=True, slots=True)
class CupyTarget:
    """Runs on a CUDA device through CuPy; TargetLimit says what is missing if it cannot run."""

    name: str = "cupy"
    on_device: bool = True
    instead: str = ""

    def require(self) -> None:
        """Raises TargetLimit that says which is missing: CuPy, a driver, or a device."""
        require_device()

    def source(
        self, name: str, entries: Sequence[Entry], layout: Layout, numbers: Mapping[str, int]
    ) -> str:
        """A self-contained Python module, with the CUDA C that it compiles."""
        return module_text(name, [unit(e, layout, numbers) for e in entries], layout, numbers)

    def maker(self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]) -> Maker:
        """`make_NAME` of the module of one entry."""
        text = self.source(name, [entry], layout, numbers)
        space = load(text, f"{name} {entry.name} cupy")
        result: Maker = space[f"make_{entry.name}"]  # type: ignore[assignment]
        return result


@dataclass(frozen=True, slots=True)
class CudaTarget:
    """The CUDA C of a model as text, for use in other programs."""

    name: str = "cuda"
    on_device: bool = True
    instead: str = "backend='cupy'"

    def require(self) -> None:
        """Raises TargetLimit: this target only produces text."""
        raise self._limit()

    def source(
        self, name: str, entries: Sequence[Entry], layout: Layout, numbers: Mapping[str, int]
    ) -> str:
        """One CUDA C file with the kernels of all entries, without headers."""
        units = [unit(entry, layout, numbers) for entry in entries]
        kernels = [kernel for one in units for kernel in one.kernels]
        return cuda_text(name, kernels, layout, numbers)

    def maker(self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]) -> Maker:
        raise self._limit()

    def _limit(self) -> TargetLimit:
        message = f"target {self.name!r} is text alone"
        return TargetLimit(Diagnostic("E801", message, help=f"use {self.instead} to run it"))


CUPY, CUDA = CupyTarget(), CudaTarget()


_INSTALL = "pip install 'slomodel[cuda12]', or 'slomodel[cuda13]' for a driver of CUDA 13"
_UPDATE = (
    "install or update the driver of this system, or take the CuPy that fits it (cuda12 or cuda13)"
)
_ELSEWHERE = (
    "run on a machine with an NVIDIA GPU that CUDA_VISIBLE_DEVICES does not hide, "
    "or use backend='c'"
)


def require_device() -> None:
    """Raises TargetLimit that says which is missing: CuPy, a driver, or a device."""
    try:
        import cupy
    except ImportError as error:
        message = f"backend 'cupy' needs CuPy, which cannot be imported ({error})"
        raise _limit(message, f"install it with {_INSTALL}") from None
    if cupy.is_available():
        return
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if "NoDevice" not in str(error):
            said = str(error).split(":")[0]
            message = f"backend 'cupy' needs NVIDIA's driver, which CuPy cannot use ({said})"
            raise _limit(message, _UPDATE) from None
    raise _limit("backend 'cupy' needs a CUDA device, and there is none here", _ELSEWHERE)


def _limit(message: str, remedy: str) -> TargetLimit:
    return TargetLimit(Diagnostic("E801", message, help=remedy))
