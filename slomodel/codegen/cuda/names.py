"""How kernels and the host call arrays: `x`, `v`, `g`, data `d0 …`, results `b0 …`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from slomodel.codegen.layout import Layout, plain
from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.loops.fusion import Fusion
from slomodel.codegen.loops.workspace import Memory
from slomodel.codegen.native.names import Names
from slomodel.codegen.program import Form
from slomodel.ir.dims import concrete, show_shape
from slomodel.ir.expr import Const, Expr, Input


@dataclass(frozen=True, slots=True)
class Array:
    """An array of the device: its name in kernels and on the host, its type and length."""

    name: str
    kind: str
    size: int


class DeviceNames(Names):
    """The names of an entry; `taken` are the arrays that were named since `begin`."""

    def __init__(
        self,
        regions: Fusion,
        memory: Memory,
        layout: Layout,
        directions: Sequence[Input],
        numbers: Numbers,
    ) -> None:
        super().__init__(regions, memory, layout, directions, numbers)
        self.numbers = numbers
        self.n = self._begin[-1]
        self.single = layout.precision == "float32"
        self.taken: dict[str, Array] = {}
        self.buffers: dict[tuple[int, int], str] = {}
        self.remarks: dict[str, str] = {}
        self._sizes = {f"d{k}": _elements(node, numbers) for k, node in enumerate(layout.data)}

    def begin(self) -> None:
        """Forget which arrays were named."""
        self.taken = {}

    def base(self, node: Expr) -> str:
        """The address of the first element, which is marked as named."""
        text = super().base(node)
        if not isinstance(node, Input) and self._memory.places[node].output is None:
            return self._buffer(node)
        return self.marked(text)

    def located(self, node: Expr) -> tuple[str, int]:
        """The array that a node lies in, and at which place it begins."""
        name, _, offset = self.base(node).partition(" + ")
        return name, int(offset or 0)

    def marked(self, text: str) -> str:
        """An address in a vector or in data, marked as named."""
        name = text.split(" ", 1)[0]
        self.taken[name] = Array(name, "real", self._sizes.get(name, self.n))
        return text

    def _buffer(self, node: Expr) -> str:
        start, size = self._memory.places[node].start, max(1, _elements(node, self.numbers))
        name = self.buffers.setdefault((start, size), f"b{len(self.buffers)}")
        shape = plain(show_shape(node.shape))
        shapes = self.remarks.setdefault(name, shape)
        if shape not in shapes.split("; "):
            self.remarks[name] = f"{shapes}; {shape}"
        self.taken[name] = Array(name, "real", size)
        return name

    def table(self, name: str, size: int) -> str:
        """A list of positions, marked as named."""
        self.taken[name] = Array(name, "long long", size)
        return name

    def partial(self, size: int) -> str:
        """The array for sums over parts, marked as named."""
        self.taken["q"] = Array("q", "double", size)
        return "q"

    def scalar(self, node: Expr) -> str:
        """The value of a node of rank 0, of the type of the others: a double would widen them."""
        text = super().scalar(node)
        is_bool = isinstance(node, Const) and isinstance(node.value, bool)
        is_number = isinstance(node, Const) or self._regions.forms[node] is Form.ONES
        return f"(real){text}" if self.single and is_number and not is_bool else text


def _elements(node: Expr, numbers: Numbers) -> int:
    return prod(concrete(node.shape, numbers))
