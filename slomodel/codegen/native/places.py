"""What one loop reads and writes: places in memory, and how they move with its index."""

from __future__ import annotations

from dataclasses import dataclass

from slomodel.codegen.loops.access import Access, Numbers, along, c_order
from slomodel.codegen.loops.fusion import Fusion, Read, Region, loop_labels
from slomodel.codegen.native.names import Names
from slomodel.ir.expr import Einsum, Expr, Extreme


@dataclass(slots=True)
class Pointer:
    """A name for a place in memory that moves with the loop."""

    name: str
    base: str
    access: Access
    reads: bool = False
    writes: bool = False
    steps: tuple[int, ...] = ()

    def element(self) -> str:
        step = self.steps[-1] if self.steps else 0
        return f"{self.name}[{'i' if step == 1 else f'i * {step}' if step else '0'}]"


class Places:
    """The pointers of one region, each for a base, an offset and strides."""

    def __init__(self, region: Region, regions: Fusion, names: Names, numbers: Numbers) -> None:
        self.region = region
        self.regions = regions
        self.names = names
        self.numbers = numbers
        self.rank = len(region.shape)
        self.pointers: dict[tuple[str, int, tuple[int, ...]], Pointer] = {}
        self.uses = self._uses()

    def _uses(self) -> dict[Expr, int]:
        """How often each value is read at its place by others of the region."""
        uses: dict[Expr, int] = {}
        for node in self.region.nodes:
            for read in self.regions.reads(node):
                if self.is_here(read):
                    uses[read.node] = uses.get(read.node, 0) + 1
        return uses

    def is_here(self, read: Read) -> bool:
        """True for a value that the loop itself makes at this place."""
        node = read.node
        here = self.regions.region_of.get(node)
        if here is None or self.regions.regions[here] is not self.region:
            return False
        return self.regions.is_value_here(read, self.rank)

    def reserve(self) -> list[Pointer]:
        """Pointers for all that is read and written; their strides decide the shape of the loop."""
        for node in self.region.nodes:
            for read in self.regions.reads(node):
                if not self.is_here(read):
                    self.read(read)
            if node in self.regions.stored or (node.rank and not self.regions.is_value(node)):
                self.target(node)
        return list(self.pointers.values())

    def read(self, read: Read) -> str | Pointer:
        """Where an operand lies at a place of the loop, or the text of a scalar."""
        access = self.regions.accesses.of(read.node)
        if not access.base.rank:
            return self.names.scalar(access.base)
        own = dict(zip(read.axes, access.strides, strict=True))
        strides = tuple(own.get(axis, 0) for axis in range(self.rank))
        found = self._pointer(Access(access.base, access.offset, strides))
        found.reads = True
        return found

    def _pointer(self, access: Access) -> Pointer:
        base = self.names.base(access.base)
        key = (base, access.offset, access.strides)
        if key not in self.pointers:
            self.pointers[key] = Pointer(f"p{len(self.pointers)}", base, access)
        return self.pointers[key]

    def target(self, node: Expr) -> Pointer:
        """Where a stored value, or what a sum adds to, lies at a place of the loop."""
        offset, strides = self.target_access(node)
        found = self._pointer(Access(node, offset, strides))
        found.writes = True
        return found

    def target_access(self, node: Expr) -> tuple[int, tuple[int, ...]]:
        """Offset and strides by the axes of the loop of what a node writes or adds to."""
        if self.regions.is_value(node):
            return 0, c_order(self.region.shape)
        own = c_order(self.regions.accesses.shape(node))
        if isinstance(node, Einsum):
            by_label = dict(zip(node.output, own, strict=True))
            return 0, tuple(by_label.get(label, 0) for label in loop_labels(node))
        if isinstance(node, Extreme):
            kept = iter(own)
            return 0, tuple(0 if k in node.axes else next(kept) for k in range(self.rank))
        return along(self.regions.index(node), own, self.rank, self.numbers)
