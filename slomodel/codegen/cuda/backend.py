"""Targets `cupy`, a Python module that runs kernels of our own, and `cuda`, the kernels alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slomodel.codegen.cuda.module import cuda_text, module_text
from slomodel.codegen.cuda.unit import unit
from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout
from slomodel.codegen.load import load
from slomodel.codegen.target import Maker
from slomodel.errors import Diagnostic, TargetLimit


@dataclass(frozen=True, slots=True)
class CupyTarget:
    """Runs on a CUDA device through CuPy; TargetLimit says what is missing where it cannot."""

    name: str = "cupy"

    def source(
        self, name: str, entries: Sequence[Entry], layout: Layout, numbers: Mapping[str, int]
    ) -> str:
        """A Python module of its own, with the CUDA C that it compiles."""
        return module_text(name, [unit(e, layout, numbers) for e in entries], layout, numbers)

    def maker(self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]) -> Maker:
        """`make_NAME` of the module of one entry."""
        text = self.source(name, [entry], layout, numbers)
        space = load(text, f"{name} {entry.name} cupy")
        made: Maker = space[f"make_{entry.name}"]  # type: ignore[assignment]
        return made


@dataclass(frozen=True, slots=True)
class CudaTarget:
    """The CUDA C of a model as text, for programs of one's own."""

    name: str = "cuda"

    def source(
        self, name: str, entries: Sequence[Entry], layout: Layout, numbers: Mapping[str, int]
    ) -> str:
        """One CUDA C file with the kernels of all entries, without headers."""
        units = [unit(entry, layout, numbers) for entry in entries]
        kernels = [kernel for one in units for kernel in one.kernels]
        return cuda_text(name, kernels, layout, numbers)

    def maker(self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]) -> Maker:
        message = "target 'cuda' is text alone"
        raise TargetLimit(Diagnostic("E801", message, help="use backend='cupy' to run it"))


CUPY, CUDA = CupyTarget(), CudaTarget()
