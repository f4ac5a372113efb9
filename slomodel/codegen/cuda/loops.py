"""The kernels of one region: values at each place, and sums or extremes along some axes.

A block of 256 threads works on `across` elements of the result and takes 256 / `across` places of
the sum at once; the totals of its threads are joined in a tree. Where there are few elements, the
sum is cut into parts that further blocks take, and a second kernel joins those: all in an order
that is the same at every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from slomodel.codegen.cuda.kernel import Kernel, decoded, grid, index_type, kernel, over, place
from slomodel.codegen.cuda.names import DeviceNames
from slomodel.codegen.cuda.prelude import THREADS
from slomodel.codegen.cuda.reduction import Cut, cut
from slomodel.codegen.loops.access import merged_axes
from slomodel.codegen.loops.fusion import Fusion, Read, Region
from slomodel.codegen.native.passes import indented
from slomodel.codegen.native.places import Places, Pointer
from slomodel.ir.expr import Expr, Extreme, Map

Axis = tuple[int, tuple[int, ...]]


class LoopKernels(Places):
    """Prints one region with at least one axis."""

    regions: Fusion
    names: DeviceNames

    def __init__(self, region: Region, regions: Fusion, names: DeviceNames) -> None:
        super().__init__(region, regions, names, names.numbers)
        self.texts: dict[Expr, str] = {}
        self.loads: dict[str, str] = {}
        self.steps: dict[str, tuple[int, ...]] = {}
        self.axes: list[str] = []
        self.scalars: list[str] = []
        self.sums = [node for node in region.nodes if not regions.is_value(node)]

    def kernels(self, name: str, kept: Sequence[int] | None) -> list[Kernel]:
        """One kernel, or two where sums are cut into parts."""
        self.names.begin()
        if 0 in self.region.shape:
            return self._of_nothing(name)
        pointers = self.reserve()
        rank = range(self.rank)
        outer = list(rank) if kept is None else list(kept)
        inner = [axis for axis in rank if axis not in outer]
        first, second = self._merged(outer, pointers), self._merged(inner, pointers)
        # Steps follow the merged axes: those of the result, then those summed along.
        self.axes = [f"i{k}" for k in range(len(first) + len(second))]
        for k, pointer in enumerate(pointers):
            self.steps[pointer.name] = tuple(own[k] for _, own in (*first, *second))
        body = self._body()
        if kept is None:
            return [self._plain(name, first, body)]
        return self._reducing(name, first, second, body)

    def _merged(self, axes: Sequence[int], pointers: Sequence[Pointer]) -> list[Axis]:
        shape = [self.region.shape[axis] for axis in axes]
        every = [[p.access.strides[axis] for axis in axes] for p in pointers]
        return merged_axes(shape, every) if pointers else [(prod(shape), ())]

    def _kind(self) -> str:
        reach = max((_reach(p, self.region.shape) for p in self.pointers.values()), default=0)
        return index_type(self.region.shape, reach)

    def _heads(self, used: Sequence[str]) -> list[str]:
        """Pointers that these lines use, and numbers that are the same at every place."""
        lines, text = [], "\n".join(used)
        for pointer in self.pointers.values():
            if f"{pointer.name}[" not in text:
                continue
            offset = f" + {pointer.access.offset}" if pointer.access.offset else ""
            kind = "real" if pointer.writes else "const real"
            lines.append(f"{kind} *const {pointer.name} = {pointer.base}{offset};")
        return [*lines, *self.scalars]

    def _written(self) -> list[str]:
        return [p.base.split(" ", 1)[0] for p in self.pointers.values() if p.writes]

    def _element(self, pointer: Pointer) -> str:
        return f"{pointer.name}[{place(self.axes, self.steps[pointer.name])}]"

    def _body(self) -> list[str]:
        """The statements at one place: operands are read, values made, sums taken along."""
        lines: list[str] = []
        for node in self.region.nodes:
            texts = [self._operand(read, lines) for read in self.regions.reads(node)]
            if not self.regions.is_value(node):
                lines.append(self._taken_along(node, texts))
                continue
            text = texts[0]
            if isinstance(node, Map):
                text = node.function.spelling["c"].format(*texts)
            self.texts[node] = f"t{len(self.texts)}"
            lines.append(f"const real {self.texts[node]} = {text};")
            if node in self.regions.stored:
                lines.append(f"{self._element(self.target(node))} = {self.texts[node]};")
        return lines

    def _operand(self, read: Read, lines: list[str]) -> str:
        if self.is_here(read):
            return self.texts[read.node]
        found = self.read(read)
        text = found if isinstance(found, str) else self._element(found)
        if isinstance(found, str) and "[" not in text:
            return text
        if text not in self.loads:
            self.loads[text] = f"v{len(self.loads)}"
            read_here = self.scalars if isinstance(found, str) else lines
            read_here.append(f"const real {self.loads[text]} = {text};")
        return self.loads[text]

    def _taken_along(self, node: Expr, texts: Sequence[str]) -> str:
        k = self.sums.index(node)
        if isinstance(node, Extreme):
            return f"a{k} = {_join(node)}(a{k}, {texts[0]});"
        first = f"(double){texts[0]}" if self.names.single else texts[0]
        return f"a{k} += {' * '.join([first, *texts[1:]])};"

    def _plain(self, name: str, axes: Sequence[Axis], body: Sequence[str]) -> Kernel:
        size, kind = prod(self.region.shape), self._kind()
        lines = over(size, kind, [*decoded("i", self.axes, [n for n, _ in axes], kind), *body])
        blocks = grid(size, THREADS)
        lines = [*self._heads(lines), *lines]
        return kernel(name, self.names.taken, self._written(), blocks, THREADS, lines)

    def _reducing(
        self, name: str, first: Sequence[Axis], second: Sequence[Axis], body: Sequence[str]
    ) -> list[Kernel]:
        kept, reduced = (prod(size for size, _ in axes) for axes in (first, second))
        share = cut(kept, reduced, self._lies_along_kept(first, second))
        kind = self._kind()
        inner = decoded("r", self.axes[len(first) :], [n for n, _ in second], kind)
        body = [
            f"for ({kind} r = {share.first}; r < {reduced}; r += {share.step}) {{",
            *indented([*inner, *body]),
            "}",
        ]
        outer = decoded("o", self.axes[: len(first)], [n for n, _ in first], kind)
        totals = self._totals(share, outer, body, self._results(share, first))
        if kept > 1:
            start = f"blockIdx.x * ({kind}){share.across}"
            stride = f"gridDim.x * ({kind}){share.across}"
            totals = [
                f"for ({kind} base = {start}; base < {kept}; base += {stride}) {{",
                f"    const {kind} o = base + {share.lane};",
                *indented(totals),
                "}",
            ]
        lines = [f"__shared__ double shared[{THREADS}];", *self._heads(totals), *totals]
        written = [*self._written(), *self._scalar_results(), "q"]
        made = kernel(name, self.names.taken, written, share.blocks, THREADS, lines)
        return [made, self._joining(name, share)] if share.parts > 1 else [made]

    def _totals(
        self, share: Cut, outer: list[str], body: Sequence[str], results: Sequence[str]
    ) -> list[str]:
        """What a block does for its elements of the result; all its threads join the trees."""
        inside = f"o < {share.kept}"
        first = f"threadIdx.x < {share.across}" if share.across > 1 else "threadIdx.x == 0"
        both = f"{first} && {inside}" if share.kept > 1 else first
        guarded = [f"if ({inside}) {{", *indented([*outer, *body]), "}"]
        return [
            *(f"double a{k} = {_start(node)};" for k, node in enumerate(self.sums)),
            *(guarded if share.kept > 1 else body),
            *(
                f"a{k} = {_tree(node)}(shared, a{k}, {share.across});"
                for k, node in enumerate(self.sums)
            ),
            f"if ({both}) {{",
            *indented([*(outer if share.kept > 1 else []), *results]),
            "}",
        ]

    def _scalar_results(self) -> list[str]:
        return [self.names.located(node)[0] for node in self.sums if not node.rank]

    def _lies_along_kept(self, first: Sequence[Axis], second: Sequence[Axis]) -> bool:
        """True where neighbours in memory are neighbours along the result."""
        if not first or not second:
            return False
        ones = [sum(step == 1 for step in axes[-1][1]) for axes in (first, second)]
        return ones[0] > ones[1]

    def _results(self, share: Cut, first: Sequence[Axis]) -> list[str]:
        """What the first threads of a block do with the totals."""
        lines = []
        for k, node in enumerate(self.sums):
            steps = self._result_steps(node, len(first))
            names = self.axes[: len(first)]
            if share.parts > 1:
                size = len(self.sums) * share.parts * share.kept
                steps = (*steps, share.kept)
                inside = place([*names, "blockIdx.y"], steps, k * share.parts * share.kept)
                lines.append(f"{self.names.partial(size)}[{inside}] = a{k};")
            elif node.rank:
                pointer = self.target(node)
                lines.append(f"{pointer.name}[{place(names, steps)}] = a{k};")
            else:
                lines.append(f"({self.names.base(node)})[0] = a{k};")
        return lines

    def _result_steps(self, node: Expr, axes: int) -> tuple[int, ...]:
        if not node.rank:
            return (0,) * axes
        return self.steps[self.target(node).name][:axes]

    def _joining(self, name: str, share: Cut) -> Kernel:
        """The kernel that joins the parts: one block an element."""
        self.names.begin()
        size = len(self.sums) * share.parts * share.kept
        q = self.names.partial(size)
        inside: list[str] = []
        for k, node in enumerate(self.sums):
            one = f"{q}[{place('ro', (share.kept, 1), k * share.parts * share.kept)}]"
            inside += [
                f"double a{k} = {_start(node)};",
                f"for (int r = threadIdx.x; r < {share.parts}; r += {THREADS})",
                f"    a{k} = {_double_join(node)}(a{k}, {one});",
                f"a{k} = {_tree(node)}(shared, a{k}, 1);",
                f"if (threadIdx.x == 0) ({self.names.base(node)})[o] = a{k};",
            ]
        lines = [
            f"__shared__ double shared[{THREADS}];",
            f"for (int o = blockIdx.x; o < {share.kept}; o += gridDim.x) {{",
            *indented(inside),
            "}",
        ]
        written = [one for one in self.names.taken if one != "q"]
        blocks = grid(share.kept, 1)
        return kernel(f"{name}_join", self.names.taken, written, blocks, THREADS, lines)

    def _of_nothing(self, name: str) -> list[Kernel]:
        """Sums of no elements."""
        lines: list[str] = []
        for node in self.sums:
            size = prod(self.regions.accesses.shape(node))
            if size:
                target = f"({self.names.base(node)})[i]"
                lines += over(size, "int", [f"{target} = {_start(node)};"])
        if not lines:
            return []
        return [kernel(name, self.names.taken, [*self.names.taken], (1, 1), THREADS, lines)]


def _reach(pointer: Pointer, shape: Sequence[int]) -> int:
    strides = pointer.access.strides
    return sum((n - 1) * abs(step) for n, step in zip(shape, strides, strict=True))


def _start(node: Expr) -> str:
    if isinstance(node, Extreme):
        return "-INFINITY" if node.which == "max" else "INFINITY"
    return "0.0"


def _join(node: Extreme) -> str:
    return "slo_larger" if node.which == "max" else "slo_smaller"


def _double_join(node: Expr) -> str:
    return _join(node) if isinstance(node, Extreme) else "slo_plus"


def _tree(node: Expr) -> str:
    return f"slo_{node.which}_block" if isinstance(node, Extreme) else "slo_sum_block"
