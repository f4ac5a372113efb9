"""One entry for CUDA: its kernels, and the work of the host before and in every call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from slomodel.codegen.cuda.kernel import Kernel
from slomodel.codegen.cuda.loops import LoopKernels, is_rectangular
from slomodel.codegen.cuda.matrices import matrix_call
from slomodel.codegen.cuda.moves import (
    collection_kernel,
    copy_kernel,
    fill_kernel,
    recurrence_kernel,
)
from slomodel.codegen.cuda.names import DeviceNames
from slomodel.codegen.cuda.plain import plain_kernel, scalar_kernel
from slomodel.codegen.cuda.products import SMALL_PRODUCT, Call, as_nest, call
from slomodel.codegen.cuda.segments import is_segmented, segment_kernels
from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout
from slomodel.codegen.loops.construct import blocks, copied_output
from slomodel.codegen.loops.fusion import Fusion
from slomodel.codegen.loops.names import starts
from slomodel.codegen.loops.nest import (
    Block,
    Collection,
    Contraction,
    Copy,
    Fill,
    MatrixCall,
    Nest,
    TimeLoop,
)
from slomodel.codegen.loops.planning import planned
from slomodel.codegen.loops.workspace import Memory
from slomodel.codegen.program import Stage
from slomodel.errors import Diagnostic, TargetLimit
from slomodel.ir.dims import number_of_elements
from slomodel.ir.expr import Const, Einsum, Expr
from slomodel.ir.walk import inputs

Work = Kernel | Call

DIRECT = 65536
"""From this many unknowns on kernels work in a caller's CuPy arrays: copying would cost more."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array in the workspace: its place and its elements."""

    name: str
    start: int
    size: int
    remark: str


@dataclass(frozen=True, slots=True)
class DeviceUnit:
    """The kernels, calls and arrays of an entry on the device.

    `work` are the kernels and calls of each stage, `data` the names of the data by number, `tables`
    the texts of index arrays, `partial` the length of the array for sums over parts, `n` that of
    the vectors, `value` the text of the scalar that is returned; `is_joined`: it follows the
    gradient in one array, which is transferred at once.
    """

    entry: Entry
    work: Mapping[Stage, tuple[Work, ...]]
    data: Mapping[str, str]
    buffers: tuple[Buffer, ...]
    workspace: int
    tables: tuple[tuple[str, str], ...]
    partial: int
    n: int
    value: str | None
    is_joined: bool

    @property
    def kernels(self) -> list[Kernel]:
        every = [work for works in self.work.values() for work in works]
        return [one for one in every if isinstance(one, Kernel)]


def unit(entry: Entry, layout: Layout, numbers: Mapping[str, int]) -> DeviceUnit:
    """The kernels and calls of an entry for the given sizes."""
    program, arrays = planned(entry, layout, numbers, in_order=False)
    roots = program.roots
    fusion = Fusion(program, numbers, in_order=False)
    memory = Memory(fusion, arrays)
    last = _last(entry, roots[0], memory)
    joined = last is not None and starts(layout.variables, numbers)[-1] < DIRECT
    names = DeviceNames(memory, layout, entry.directions, numbers, last if joined else None)
    writer = _KernelWriter(entry.name, fusion, names)
    work: dict[Stage, tuple[Work, ...]] = {
        stage: tuple(writer.stage(stage)) for stage in ("data", "centre", "call")
    }
    for k, root in enumerate(arrays):
        if k not in memory.given:
            work["call"] += tuple(writer.block(copied_output(root, k, fusion)))
    used = {node.name for node in inputs(*roots)}
    data = {f"d{k}": node.name for k, node in enumerate(layout.data) if node.name in used}
    value = None if entry.scalar is None else _scalar(roots[0], fusion, names)
    partial = max(
        (
            a.size
            for works in work.values()
            for one in works
            if isinstance(one, Kernel)
            for a in one.arrays
            if a.name == "q"
        ),
        default=0,
    )
    buffers = tuple(
        Buffer(name, start, size, names.remarks[name])
        for (start, size), name in names.buffers.items()
    )
    return DeviceUnit(
        entry,
        work,
        data,
        buffers,
        memory.size,
        tuple(names.tables.values()),
        partial,
        names.n,
        value,
        joined,
    )


def _last(entry: Entry, root: Expr, memory: Memory) -> Expr | None:
    """The value that may follow the gradient of the same entry: one that a kernel stores."""
    both = entry.scalar is not None and entry.arrays
    return root if both and memory.places.get(root) is not None else None


def _scalar(root: Expr, fusion: Fusion, names: DeviceNames) -> str:
    """The host's text for the value of a root."""
    access = fusion.accesses.of(root)
    base = access.base
    if isinstance(base, Const):
        return f"float({str(float(base.value))!r})"  # a text, which may be nan or inf
    if isinstance(base, Einsum) and not base.operands:
        return f"{float(number_of_elements(base.dims, names.numbers))!r}"
    name, begin = names.located(base)
    return f"{name}.reshape(-1)[{begin + access.offset}].item()"


class _KernelWriter:
    """The kernels and calls of an entry, numbered in order."""

    def __init__(self, name: str, fusion: Fusion, names: DeviceNames) -> None:
        self._name = name
        self._fusion = fusion
        self._names = names
        self._count = 0

    def stage(self, stage: Stage) -> list[Work]:
        work: list[Work] = []
        for region in self._fusion.regions:
            if region.stage == stage:
                for block in blocks(region, self._fusion):
                    work += self.block(block)
        return work

    def block(self, block: Block) -> Sequence[Work]:
        """The kernels and calls that compute a block; empty if it has no elements."""
        names = self._names
        if isinstance(block, TimeLoop):
            message = "a recurrence runs step by step, and not on a device"
            raise TargetLimit(
                Diagnostic(
                    "E801", message, help="use backend `c`, whose steps are one compiled loop"
                )
            )
        if isinstance(block, MatrixCall):
            return [matrix_call(block, names)]
        if isinstance(block, Contraction):
            if prod(block.sizes) > SMALL_PRODUCT:
                return [call(block, names)]
            block = as_nest(block)
        self._count += 1
        name = f"{self._name}_{self._count}"
        if isinstance(block, Nest):
            if not block.axes:
                return scalar_kernel(name, block, names)
            if is_rectangular(block):
                return LoopKernels(block, names).kernels(name)
            if is_segmented(block):
                return segment_kernels(name, block, names)
            return plain_kernel(name, block, names)
        if isinstance(block, Fill):
            return fill_kernel(name, block, names)
        if isinstance(block, Copy):
            return copy_kernel(name, block, names)
        if isinstance(block, Collection):
            return collection_kernel(name, block, names)
        return recurrence_kernel(name, block, names)
