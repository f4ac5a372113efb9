"""Kernels that only move numbers: copies, parts put together, listed positions, recurrences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from slomodel.codegen.cuda.kernel import Kernel, decoded, grid, index_type, kernel, over, place
from slomodel.codegen.cuda.names import DeviceNames
from slomodel.codegen.cuda.prelude import THREADS
from slomodel.codegen.layout import Sizes
from slomodel.codegen.loops.access import Access, c_order
from slomodel.codegen.loops.fusion import Fusion
from slomodel.codegen.native.passes import indented
from slomodel.codegen.program import Form
from slomodel.codegen.python.views import flat_positions
from slomodel.ir.expr import Affine, Einsum, Expr, Gather, Index, Input, Scan, Scatter, affine


@dataclass(frozen=True, slots=True)
class Moved:
    """Kernels, and the host's texts for the tables of positions that they take."""

    kernels: tuple[Kernel, ...] = ()
    tables: tuple[tuple[str, str], ...] = ()


def _on_host(table: Expr) -> str:
    """The array of the host with the elements of a table."""
    if not isinstance(table, Input):
        raise TypeError("tables of indices are prepared before the device works")
    return f"data[{table.name!r}]"


class Mover:
    """Printer of the nodes that have their own kernels."""

    def __init__(self, regions: Fusion, names: DeviceNames, sizes: Sizes) -> None:
        self._regions = regions
        self._names = names
        self._sizes = sizes
        self._tables = 0

    def moved(self, name: str, node: Expr) -> Moved:
        """The kernel of a node that no loop takes."""
        self._names.begin()
        if not prod(self._shape(node)):
            return Moved()
        if node in self._regions.copied:
            return Moved((self._copy(name, self._regions.accesses.viewed(node), node),))
        if self._regions.collects(node):
            return Moved((self._collect(name, node),))
        if isinstance(node, Scan):
            return Moved((self._scan(name, node),))
        if isinstance(node, Gather):
            return self._take(name, node)
        if isinstance(node, Scatter):
            return self._put(name, node)
        text = "(real)i"
        if self._regions.forms[node] is Form.ONES:
            assert isinstance(node, Einsum)
            numbers = self._names.numbers
            every = [d.size(numbers) for k, d in enumerate(node.dims) if k not in node.output]
            text = f"{float(prod(every))!r}"
        return Moved((self._filled(name, node, text),))

    def copied(self, name: str, node: Expr, target: str) -> Kernel | None:
        """The kernel that copies the elements of a node in C order to `target`."""
        self._names.begin()
        if not prod(self._shape(node)):
            return None
        self._names.marked(target)
        return self._copying(name, self._regions.accesses.of(node), self._shape(node), target)

    def _shape(self, node: Expr) -> tuple[int, ...]:
        return self._regions.accesses.shape(node)

    def _filled(self, name: str, node: Expr, text: str) -> Kernel:
        shape = self._shape(node)
        target = self._names.base(node)
        lines = over(prod(shape), index_type(shape), [f"({target})[i] = {text};"])
        return self._kernel(name, target, prod(shape), lines)

    def _kernel(self, name: str, target: str, elements: int, lines: Sequence[str]) -> Kernel:
        written = [target.split(" ", 1)[0]]
        blocks = grid(elements, THREADS)
        return kernel(name, self._names.taken, written, blocks, THREADS, lines)

    def _copy(self, name: str, access: Access, node: Expr) -> Kernel:
        return self._copying(name, access, self._shape(node), self._names.base(node))

    def _copying(self, name: str, access: Access, shape: tuple[int, ...], target: str) -> Kernel:
        kind = index_type(shape)
        axes = [f"i{k}" for k in range(len(shape))]
        text = self._element(access, axes)
        index = decoded("i", axes, shape, kind) if shape else []
        lines = over(prod(shape), kind, [*index, f"({target})[i] = {text};"])
        return self._kernel(name, target, prod(shape), lines)

    def _element(self, access: Access, axes: Sequence[str]) -> str:
        if not access.base.rank:
            return self._names.scalar(access.base)
        inside = place(axes, access.strides, access.offset)
        return f"({self._names.base(access.base)})[{inside}]"

    def _collect(self, name: str, node: Expr) -> Kernel:
        """Each element of the result adds up what is put there."""
        shape = self._shape(node)
        kind = index_type(shape)
        axes = [f"i{k}" for k in range(len(shape))]
        target = self._names.base(node)
        lines = [*decoded("i", axes, shape, kind), "real t = 0;"]
        for k, (term, index) in enumerate(self._regions.terms(node)):
            access = self._regions.accesses.of(term)
            if index is None:
                lines.append(f"t += {self._element(access, axes)};")
            else:
                lines += self._part(k, term, access, affine(index), kind)
        lines.append(f"({target})[i] = t;")
        return self._kernel(name, target, prod(shape), over(prod(shape), kind, lines))

    def _part(
        self, k: int, term: Expr, access: Access, index: Sequence[Affine], kind: str
    ) -> list[str]:
        """One array that reaches a part of the result: which element of it is put here, if any."""
        shape = self._shape(term)
        own = [f"k{k}_{axis}" for axis in range(len(shape))]
        lines, conditions = [], []
        for axis, one in enumerate(index):
            offset = self._number(one)
            runs = [(a, c) for a, c in enumerate(one.coefficients) if c]
            if not runs:
                conditions.append(f"i{axis} == {offset}")
                continue
            ((along, step),) = runs
            moved = f"i{axis} - {offset}" if offset >= 0 else f"i{axis} + {-offset}"
            moved = f"i{axis}" if not offset else moved
            if abs(step) > 1:
                conditions.append(f"({moved}) % {step} == 0")
            moved = moved if step == 1 else f"({moved}) / {step}"
            lines.append(f"const {kind} {own[along]} = {moved};")
            conditions.append(f"{own[along]} >= 0")
            conditions.append(f"{own[along]} < {shape[along]}")
        text = self._element(access, own)
        return [*lines, f"if ({' && '.join(conditions) or '1'}) t += {text};"]

    def _number(self, one: Affine) -> int:
        numbers = self._names.numbers
        return one.offset.const + sum(c * numbers[name] for name, c in one.offset.terms)

    def _positions(
        self, index: Sequence[Index], iterated: Expr, indexed: Expr
    ) -> tuple[str, Sequence[int]]:
        own = (iterated.shape, indexed.shape, self._sizes.text, _on_host)
        text = flat_positions(index, *own)
        return f"np.ravel({text})", self._shape(iterated)

    def _table(self, size: int) -> str:
        self._tables += 1
        return self._names.table(f"l{self._tables}", size)

    def _take(self, name: str, node: Gather) -> Moved:
        """Elements at listed positions."""
        operand = node.operands[0]
        text, shape = self._positions(node.index, node, operand)
        table, target = self._table(prod(shape)), self._names.base(node)
        kind = index_type(self._shape(operand), prod(shape))
        lines = [*self._found(f"{table}[i]", operand, kind)]
        lines = over(prod(shape), kind, [*lines[:-1], f"({target})[i] = {lines[-1]};"])
        made = self._kernel(name, target, prod(shape), lines)
        return Moved((made,), ((table, text),))

    def _found(self, flat: str, node: Expr, kind: str) -> list[str]:
        """Lines, and at last the text, of the element at a flat position of a node."""
        access, shape = self._regions.accesses.of(node), self._shape(node)
        if access.base.rank and access.strides == c_order(shape):
            inside = f"{flat} + {access.offset}" if access.offset else flat
            return [f"({self._names.base(access.base)})[{inside}]"]
        axes = [f"j{k}" for k in range(len(shape))]
        head = f"const {kind} j = {flat};"
        index = decoded("j", axes, shape, kind) if shape else []
        return [head, *index, self._element(access, axes)]

    def _put(self, name: str, node: Scatter) -> Moved:
        """Each element of the result adds up, in order, the elements that are listed for it."""
        operand = node.operands[0]
        text, shape = self._positions(node.index, operand, node)
        total = prod(self._shape(node))
        order, starts = self._table(prod(shape)), self._table(total + 1)
        target = self._names.base(node)
        kind = index_type(shape, total)
        *heads, element = self._found(f"{order}[k]", operand, kind)
        inside = [
            "double t = 0.0;",
            f"for ({kind} k = {starts}[i]; k < {starts}[i + 1]; k++) {{",
            *indented([*heads, f"t += {element};"]),
            "}",
            f"({target})[i] = t;",
        ]
        made = self._kernel(name, target, total, over(total, kind, inside))
        tables = (
            (order, f'np.argsort({text}, kind="stable")'),
            (starts, f"np.searchsorted(np.sort({text}), np.arange({total} + 1))"),
        )
        return Moved((made,), tables)

    def _scan(self, name: str, node: Scan) -> Kernel:
        """`y[i] = a[i] * y[i - 1] + b[i]`, one thread for each place of the other axes."""
        shape = self._shape(node)
        others = [axis for axis in range(len(shape)) if axis != node.axis]
        sizes, kind = [shape[axis] for axis in others], index_type(shape)
        axes = [f"i{k}" for k in range(len(shape))]
        target, along = self._names.base(node), axes[node.axis]
        a, b = (
            self._element(self._regions.accesses.of(operand), axes) for operand in node.operands
        )
        factor = f"({along} ? {a} : (real)0)"
        inside = [
            *(decoded("i", [axes[k] for k in others], sizes, kind) if others else []),
            "real t = 0;",
            f"for ({kind} {along} = 0; {along} < {shape[node.axis]}; {along}++) {{",
            f"    t = {factor} * t + {b};",
            f"    ({target})[{place(axes, c_order(shape))}] = t;",
            "}",
        ]
        elements = prod(sizes)
        return self._kernel(name, target, elements, over(elements, kind, inside))
