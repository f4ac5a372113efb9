"""Names of arrays in kernels and on the host: `x`, `v`, `g`, data `d0 …`, results `b0 …`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from slomodel.codegen.layout import Layout, plain
from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.loops.names import at, constant, input_texts, is_stored, starts
from slomodel.codegen.loops.nest import IndexArray, IndexTable, Integers, Output
from slomodel.codegen.loops.workspace import Memory
from slomodel.codegen.python.views import flat_positions
from slomodel.ir.dims import number_of_elements, show_shape
from slomodel.ir.expr import Const, Expr, Input


@dataclass(frozen=True, slots=True)
class Array:
    """An array on the device: its name in kernels and on the host, its type and length."""

    name: str
    kind: str
    size: int


@final
class DeviceNames:
    """The names of an entry; `taken` are the arrays that were named since `begin`.

    `tables` are the index arrays, each with the host's expression for it; `last` is a number that
    follows the gradient in `g`, if any.
    """

    def __init__(
        self,
        memory: Memory,
        layout: Layout,
        directions: Sequence[Input],
        numbers: Numbers,
        last: Expr | None = None,
    ) -> None:
        self.numbers = numbers
        self.begins = starts(layout.variables, numbers)
        self.n = self.begins[-1]
        self.single = layout.precision == "float32"
        self.taken: dict[str, Array] = {}
        self.buffers: dict[tuple[int, int], str] = {}
        self.remarks: dict[str, str] = {}
        self.tables: dict[IndexArray, tuple[str, str]] = {}
        self._memory = memory
        self._last = last
        self._dims = layout.sizes
        self._inputs = input_texts(layout, directions, numbers)
        self._sizes = {f"d{k}": self.size(node) for k, node in enumerate(layout.data)}
        self._sizes["g"] = self.n + (last is not None)
        self._scalars: dict[Expr, str] = {}

    def begin(self) -> None:
        """Forget which arrays were named."""
        self.taken = {}

    def size(self, node: Expr) -> int:
        """The number of elements of a node."""
        return number_of_elements(node.shape, self.numbers)

    def base(self, array: Expr | Output) -> str:
        """The address of the first element; the kernel takes the array as an argument."""
        if isinstance(array, Output):
            return self._marked(at("g", self.begins[array.k]))
        if isinstance(array, Input):
            return self._marked(self._inputs[array])
        if array is self._last:
            return self._marked(at("g", self.n))
        place = self._memory.places[array]
        if place.output is not None:
            return self._marked(at("g", self.begins[place.output]))
        return self._buffer(array, place.start)

    def located(self, node: Expr) -> tuple[str, int]:
        """The array that a node lies in, and its offset there."""
        name, _, offset = self.base(node).partition(" + ")
        return name, int(offset or 0)

    def _marked(self, text: str) -> str:
        name = text.split(" ", 1)[0]
        self.taken[name] = Array(name, "real", self._sizes.get(name, self.n))
        return text

    def _buffer(self, node: Expr, start: int) -> str:
        size = max(1, self.size(node))
        name = self.buffers.setdefault((start, size), f"b{len(self.buffers)}")
        shape = plain(show_shape(node.shape))
        shapes = self.remarks.setdefault(name, shape)
        if shape not in shapes.split("; "):
            self.remarks[name] = f"{shapes}; {shape}"
        self.taken[name] = Array(name, "real", size)
        return name

    def integers(self, integers: Integers) -> str:
        """The name of an index array, which the kernel takes as an argument."""
        assert not isinstance(integers, IndexTable), "tables of a text are printed with it"
        if isinstance(integers, Expr):
            name, _ = self.located(integers)
            self.taken[name] = Array(name, "long long", self.size(integers))
            return name
        if integers not in self.tables:
            self.tables[integers] = (f"l{len(self.tables) + 1}", self._table(integers))
        name = self.tables[integers][0]
        self.taken[name] = Array(name, "long long", integers.size)
        return name

    def _table(self, one: IndexArray) -> str:
        own = (one.iterated, one.indexed, self._dims.text, _on_host)
        positions = flat_positions(one.index, *own)
        text = f"np.ravel({positions})"
        if one.kind == "order":
            return f'np.argsort({text}, kind="stable")'
        if one.kind == "starts":
            return f"np.searchsorted(np.sort({text}), np.arange({one.size}))"
        return text

    def partial(self, size: int) -> str:
        """The array for sums over parts, which the kernel takes as an argument."""
        self.taken["q"] = Array("q", "double", size)
        return "q"

    def number(self, node: Expr) -> str:
        """The text of a scalar node's value, as `real`: a double would widen other operands."""
        known = constant(node, self.numbers)
        if known is not None:
            is_bool = isinstance(node, Const) and isinstance(node.value, bool)
            return f"(real){known}" if self.single and not is_bool else known
        if is_stored(node, self._memory):
            return f"({self.base(node)})[0]"
        return self._scalars.setdefault(node, f"s{len(self._scalars)}")

    def is_stored(self, node: Expr) -> bool:
        """Whether a scalar lies in memory; other scalars are variables of one kernel."""
        return is_stored(node, self._memory)


def _on_host(table: Expr) -> str:
    """The host's expression for the array that holds a table."""
    if not isinstance(table, Input):
        raise TypeError("tables of indices are prepared before the device works")
    return f"data[{table.name!r}]"
