"""One entry for CUDA: its kernels, and what the host does before and at every call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from slomodel.codegen.cuda.kernel import Kernel
from slomodel.codegen.cuda.loops import LoopKernels
from slomodel.codegen.cuda.moves import Mover
from slomodel.codegen.cuda.names import DeviceNames
from slomodel.codegen.cuda.products import Call, call
from slomodel.codegen.cuda.scalars import scalar_kernel
from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout
from slomodel.codegen.loops.fusion import Fusion
from slomodel.codegen.loops.workspace import Memory
from slomodel.codegen.native.names import starts
from slomodel.codegen.native.planning import planned
from slomodel.codegen.program import Stage
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Const, Einsum, Expr
from slomodel.ir.walk import inputs

Work = Kernel | Call


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array in the workspace, by its place and what lies there."""

    name: str
    start: int
    size: int
    remark: str


@dataclass(frozen=True, slots=True)
class Unit:
    """What an entry needs on the device.

    `work` is what runs in each stage, `data` the names of the data by its number, `tables` the
    texts of lists of positions, `partial` the length of the array for sums over parts, `n` that of
    the vectors, `value` the text of the scalar that is returned.
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

    @property
    def kernels(self) -> list[Kernel]:
        every = [one for works in self.work.values() for one in works]
        return [one for one in every if isinstance(one, Kernel)]


def unit(entry: Entry, layout: Layout, numbers: Mapping[str, int]) -> Unit:
    """The kernels and calls of an entry for some sizes."""
    program, arrays = planned(entry, layout, numbers)
    roots = program.roots
    regions = Fusion(program, numbers, in_order=False)
    memory = Memory(regions, arrays)
    names = DeviceNames(regions, memory, layout, entry.directions, numbers)
    writer = _Writer(entry.name, regions, names, layout)
    work: dict[Stage, tuple[Work, ...]] = {
        stage: tuple(writer.stage(stage)) for stage in ("data", "centre", "call")
    }
    begin = starts(layout.variables, numbers)
    left = [
        writer.copied(root, f"g + {begin[k]}" if begin[k] else "g")
        for k, root in enumerate(arrays)
        if k not in memory.given
    ]
    work["call"] += tuple(one for one in left if one is not None)
    used = {node.name for node in inputs(*roots)}
    data = {f"d{k}": node.name for k, node in enumerate(layout.data) if node.name in used}
    value = None if entry.scalar is None else _scalar(roots[0], regions, names)
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
    return Unit(
        entry, work, data, buffers, memory.size, tuple(writer.tables), partial, names.n, value
    )


def _scalar(root: Expr, regions: Fusion, names: DeviceNames) -> str:
    """The host's text for the value of a root."""
    access = regions.accesses.of(root)
    base = access.base
    if isinstance(base, Const):
        return f"float({str(float(base.value))!r})"  # a text, which may be nan or inf
    if isinstance(base, Einsum) and not base.operands:
        return f"{float(prod(concrete(base.dims, names.numbers)))!r}"
    name, begin = names.located(base)
    return f"{name}.reshape(-1)[{begin + access.offset}].item()"


class _Writer:
    """The kernels and calls of an entry, numbered in order."""

    def __init__(self, name: str, regions: Fusion, names: DeviceNames, layout: Layout) -> None:
        self._name = name
        self._regions = regions
        self._names = names
        self._mover = Mover(regions, names, layout.sizes)
        self._count = 0
        self.tables: list[tuple[str, str]] = []

    def stage(self, stage: Stage) -> list[Work]:
        work: list[Work] = []
        for place, region in enumerate(self._regions.regions):
            if region.stage == stage:
                work += self._region(place)
        return work

    def copied(self, root: Expr, target: str) -> Kernel | None:
        """A root that has not been computed right into the result."""
        return self._mover.copied(self._next(), root, target)

    def _next(self) -> str:
        self._count += 1
        return f"{self._name}_{self._count}"

    def _region(self, place: int) -> Sequence[Work]:
        region = self._regions.regions[place]
        if not region.alone:
            if not region.shape:
                return scalar_kernel(self._next(), region, self._regions, self._names)
            loop = LoopKernels(region, self._regions, self._names)
            return loop.kernels(self._next(), self._regions.regions[place].kept)
        (node,) = region.nodes
        if self._regions.is_matrix_product(node):
            assert isinstance(node, Einsum)
            made = call(node, self._regions, self._names)
            return [made] if made else []
        moved = self._mover.moved(self._next(), node)
        self.tables += moved.tables
        return moved.kernels
