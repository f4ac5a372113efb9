"""The kernels of one region: values at each index, and sums or extremes along some axes.

A block of 256 threads works on `across` elements of the result and adds 256 / `across` terms of
each sum at once; the totals of its threads are combined in a tree. If the result has few elements,
the sums are cut into parts for further blocks, and a second kernel combines those. The order of
additions is the same at every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from slomodel.codegen.cuda.kernel import Kernel, decoded, grid, index_type, kernel, over, place
from slomodel.codegen.cuda.names import DeviceNames
from slomodel.codegen.cuda.prelude import THREADS
from slomodel.codegen.cuda.reduction import JOINS, Cut, cut, joining
from slomodel.codegen.loops.access import merged_axes
from slomodel.codegen.loops.nest import (
    Apply,
    Computed,
    Count,
    Element,
    IndexTable,
    Nest,
    Operand,
    Reduce,
    Scalar,
    Store,
    operands,
    places,
)
from slomodel.codegen.loops.plain import start_of
from slomodel.codegen.loops.pointers import Pointer, Pointers
from slomodel.codegen.loops.text import indented
from slomodel.ir.expr import Expr

Axis = tuple[int, tuple[int, ...]]


def is_rectangular(nest: Nest) -> bool:
    """Whether all axes are fixed, and places affine or looked up at affine places."""
    if not all(axis.is_fixed for axis in nest.axes):
        return False
    targets = [one.target for one in nest.statements if not isinstance(one, Apply)]
    if any(isinstance(target, Element) and target.position.lookups for target in targets):
        return False
    for element in (element for one in nest.statements for element in places(one)):
        for read in element.position.lookups:
            if isinstance(read.integers, IndexTable) or not read.position.is_affine:
                return False
    counted = any(
        isinstance(operand, Count)
        for statement in nest.statements
        for operand in operands(statement)
    )
    return not counted or len(nest.axes) == 1


class LoopKernels:
    """Prints one nest with at least one axis, all of them fixed."""

    def __init__(self, nest: Nest, names: DeviceNames) -> None:
        names.begin()
        self.nest = nest
        self.names = names
        self.shape = nest.shape
        self.pointers = Pointers(nest, names)
        self.texts: dict[int, str] = {}
        self.loads: dict[str, str] = {}
        self.steps: dict[str, tuple[int, ...]] = {}
        self.axes: list[str] = []
        self.integers: dict[str, str] = {}
        self.scalars: list[str] = []
        self.sums = [statement for statement in nest.statements if isinstance(statement, Reduce)]

    def kernels(self, name: str) -> list[Kernel]:
        """One kernel, or two where sums are cut into parts."""
        if 0 in self.shape:
            return self._of_nothing(name)
        rank = range(len(self.shape))
        kept = _kept(self.sums[0]) if self.sums else tuple(rank)
        inner = [axis for axis in rank if axis not in kept]
        first, second = self._merged(kept), self._merged(inner)
        # Strides along the merged axes: those of the result, then the summed ones.
        self.axes = [f"i{k}" for k in range(len(first) + len(second))]
        for k, pointer in enumerate(self.pointers):
            self.steps[pointer.name] = tuple(own[k] for _, own in (*first, *second))
        body = self._body()
        if not self.sums:
            return [self._plain(name, first, body)]
        return self._reducing(name, first, second, body)

    def _merged(self, axes: Sequence[int]) -> list[Axis]:
        shape = [self.shape[axis] for axis in axes]
        every = [[pointer.position.strides[axis] for axis in axes] for pointer in self.pointers]
        return merged_axes(shape, every) if every else [(prod(shape), ())]

    def _kind(self) -> str:
        reach = max((_reach(pointer, self.shape) for pointer in self.pointers), default=0)
        looked_up = any(one.lookups for one in self.pointers)
        sizes = (one.size for one in self.names.taken.values()) if looked_up else ()
        return index_type(self.shape, max((reach, *sizes)))

    def _heads(self, used: Sequence[str]) -> list[str]:
        """Definitions of the pointers in these lines, and of loop-invariant values."""
        lines, text = [], "\n".join(used)
        for pointer in self.pointers:
            if f"{pointer.name}[" not in text:
                continue
            offset = f" + {pointer.position.offset}" if pointer.position.offset else ""
            own = "long long" if pointer.integers else "real"
            kind = own if pointer.writes else f"const {own}"
            lines.append(f"{kind} *const {pointer.name} = {pointer.base}{offset};")
        return [*lines, *self.scalars]

    def _written(self) -> list[str]:
        return [p.base.split(" ", 1)[0] for p in self.pointers if p.writes]

    def _element(self, pointer: Pointer, lines: list[str]) -> str:
        """The element that a pointer names at an index; `lines` look up its place first."""
        terms = [
            integer if stride == 1 else f"{integer} * {stride}"
            for table, stride in pointer.lookups
            for integer in [self._integer(table, lines)]
        ]
        inside = place(self.axes, self.steps[pointer.name])
        terms += [inside] if inside != "0" or not terms else []
        return f"{pointer.name}[{' + '.join(terms)}]"

    def _integer(self, table: Pointer, lines: list[str]) -> str:
        if table.name not in self.integers:
            name = f"j{len(self.integers)}"
            self.integers[table.name] = name
            lines.append(f"const {self._kind()} {name} = {self._element(table, lines)};")
        return self.integers[table.name]

    def _body(self) -> list[str]:
        """The statements at one index: load operands, compute values, add to the totals."""
        lines: list[str] = []
        for k, one in enumerate(self.nest.statements):
            if isinstance(one, Store):
                assert isinstance(one.target, Element)
                target = self._element(self.pointers.of(one.target), lines)
                lines.append(f"{target} = {self._operand(one.value, lines)};")
                continue
            texts = [self._operand(operand, lines) for operand in one.operands]
            if isinstance(one, Reduce):
                lines.append(self._taken_along(one, texts))
                continue
            text = one.function.spelling["c"].format(*texts) if one.function else texts[0]
            self.texts[k] = f"t{len(self.texts)}"
            lines.append(f"const real {self.texts[k]} = {text};")
        return lines

    def _operand(self, operand: Operand, lines: list[str]) -> str:
        if isinstance(operand, Computed):
            return self.texts[operand.statement]
        if isinstance(operand, Scalar):
            text = self.names.number(operand.node)
            return self._loaded(text, self.scalars) if "[" in text else text
        if isinstance(operand, Count):
            return f"(real){self.axes[operand.axis]}" if self.axes else "(real)0"
        return self._loaded(self._element(self.pointers.of(operand), lines), lines)

    def _loaded(self, text: str, lines: list[str]) -> str:
        if text not in self.loads:
            self.loads[text] = f"v{len(self.loads)}"
            lines.append(f"const real {self.loads[text]} = {text};")
        return self.loads[text]

    def _taken_along(self, one: Reduce, texts: Sequence[str]) -> str:
        k = self.sums.index(one)
        if one.op != "sum":
            return f"a{k} = {JOINS[one.op]}(a{k}, {texts[0]});"
        first = f"(double){texts[0]}" if self.names.single else texts[0]
        return f"a{k} += {' * '.join([first, *texts[1:]])};"

    def _plain(self, name: str, axes: Sequence[Axis], body: Sequence[str]) -> Kernel:
        size, kind = prod(self.shape), self._kind()
        lines = over(size, kind, [*decoded("i", self.axes, [n for n, _ in axes], kind), *body])
        blocks = grid(size, THREADS)
        lines = [*self._heads(lines), *lines]
        return kernel(name, self.names.taken, self._written(), blocks, THREADS, lines)

    def _reducing(
        self, name: str, first: Sequence[Axis], second: Sequence[Axis], body: Sequence[str]
    ) -> list[Kernel]:
        kept, reduced = (prod(size for size, _ in axes) for axes in (first, second))
        chunk = cut(kept, reduced, self._lies_along_kept(first, second))
        kind = self._kind()
        inner = decoded("r", self.axes[len(first) :], [n for n, _ in second], kind)
        body = [
            f"for ({kind} r = {chunk.first}; r < {reduced}; r += {chunk.step}) {{",
            *indented([*inner, *body]),
            "}",
        ]
        outer = decoded("o", self.axes[: len(first)], [n for n, _ in first], kind)
        totals = self._totals(chunk, outer, body, self._results(chunk, first))
        if kept > 1:
            start = f"blockIdx.x * ({kind}){chunk.across}"
            stride = f"gridDim.x * ({kind}){chunk.across}"
            totals = [
                f"for ({kind} base = {start}; base < {kept}; base += {stride}) {{",
                f"    const {kind} o = base + {chunk.lane};",
                *indented(totals),
                "}",
            ]
        lines = [f"__shared__ double shared[{THREADS}];", *self._heads(totals), *totals]
        written = [*self._written(), *self._scalar_results(), "q"]
        result = kernel(name, self.names.taken, written, chunk.blocks, THREADS, lines)
        if chunk.parts == 1:
            return [result]
        return [
            result,
            joining(name, chunk, [(one.op, _node(one)) for one in self.sums], self.names),
        ]

    def _totals(
        self, chunk: Cut, outer: list[str], body: Sequence[str], results: Sequence[str]
    ) -> list[str]:
        """The sums for a block's elements of the result; all its threads take part in the trees."""
        inside = f"o < {chunk.kept}"
        first = f"threadIdx.x < {chunk.across}" if chunk.across > 1 else "threadIdx.x == 0"
        both = f"{first} && {inside}" if chunk.kept > 1 else first
        guarded = [f"if ({inside}) {{", *indented([*outer, *body]), "}"]
        return [
            *(f"double a{k} = {start_of(one.op)};" for k, one in enumerate(self.sums)),
            *(guarded if chunk.kept > 1 else body),
            *(
                f"a{k} = slo_{one.op}_block(shared, a{k}, {chunk.across});"
                for k, one in enumerate(self.sums)
            ),
            f"if ({both}) {{",
            *indented([*(outer if chunk.kept > 1 else []), *results]),
            "}",
        ]

    def _scalar_results(self) -> list[str]:
        targets = [one.target for one in self.sums]
        return [
            self.names.located(target.node)[0] for target in targets if isinstance(target, Scalar)
        ]

    def _lies_along_kept(self, first: Sequence[Axis], second: Sequence[Axis]) -> bool:
        """Whether more arrays are contiguous along the result than along the summed axes."""
        if not first or not second:
            return False
        ones = [sum(step == 1 for step in axes[-1][1]) for axes in (first, second)]
        return ones[0] > ones[1]

    def _results(self, chunk: Cut, first: Sequence[Axis]) -> list[str]:
        """The statements by which the first threads of a block store the totals."""
        lines = []
        names = self.axes[: len(first)]
        for k, one in enumerate(self.sums):
            steps: tuple[int, ...] = (0,) * len(first)
            pointer = None
            if isinstance(one.target, Element):
                pointer = self.pointers.of(one.target)
                steps = self.steps[pointer.name][: len(first)]
            if chunk.parts > 1:
                size = len(self.sums) * chunk.parts * chunk.kept
                steps = (*steps, chunk.kept)
                inside = place([*names, "blockIdx.y"], steps, k * chunk.parts * chunk.kept)
                lines.append(f"{self.names.partial(size)}[{inside}] = a{k};")
            elif pointer is not None:
                lines.append(f"{pointer.name}[{place(names, steps)}] = a{k};")
            else:
                lines.append(f"({self._result(one)})[0] = a{k};")
        return lines

    def _result(self, one: Reduce) -> str:
        return self.names.base(_node(one))

    def _of_nothing(self, name: str) -> list[Kernel]:
        """Kernels that store the values of empty sums."""
        lines: list[str] = []
        for one in self.sums:
            size = self.names.size(_node(one))
            if size:
                lines += over(size, "int", [f"({self._result(one)})[i] = {start_of(one.op)};"])
        if not lines:
            return []
        return [kernel(name, self.names.taken, [*self.names.taken], (1, 1), THREADS, lines)]


def _reach(pointer: Pointer, shape: Sequence[int]) -> int:
    strides = pointer.position.strides
    return sum((n - 1) * abs(step) for n, step in zip(shape, strides, strict=True))


def _kept(one: Reduce) -> tuple[int, ...]:
    """The axes along which a reduction does not run."""
    if isinstance(one.target, Scalar):
        return ()
    return tuple(k for k, stride in enumerate(one.target.position.strides) if stride)


def _node(one: Reduce) -> Expr:
    node = one.target.node if isinstance(one.target, Scalar) else one.target.array
    assert isinstance(node, Expr)
    return node
