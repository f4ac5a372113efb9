"""Kernels of sums over ranges whose lengths are data, as those of the rows of each group.

Threads are divided as for rectangular sums, by the mean length of a range; where there are few
ranges, more threads share one. A range that is far longer than the others of its block is summed by
the whole block. The order of additions is the same at every call.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from slomodel.codegen.cuda.kernel import Kernel, decoded, index_type, kernel
from slomodel.codegen.cuda.names import DeviceNames
from slomodel.codegen.cuda.prelude import THREADS
from slomodel.codegen.cuda.reduction import RESIDENT, Cut, cut, joining
from slomodel.codegen.loops.access import c_order
from slomodel.codegen.loops.nest import (
    Element,
    IndexArray,
    IndexTable,
    Integers,
    Nest,
    Output,
    Reduce,
    places,
)
from slomodel.codegen.loops.plain import PlainLoops, start_of
from slomodel.codegen.loops.text import indented

_FAR = 64
"""A thread adds at most this many terms of a range; blocks add those of longer ones."""
_SHARING = 64
"""So many threads share a range of any length where that does not make more threads than that."""


def is_segmented(nest: Nest) -> bool:
    """Whether each element of an array in C order is one sum over a range that data give."""
    *outer, inner = nest.axes
    if not outer or inner.is_fixed or not all(axis.is_fixed for axis in outer):
        return False
    if not _read_along(nest):
        return False
    (*_, last) = nest.statements
    if any(isinstance(statement, Reduce) for statement in nest.statements[:-1]) or not isinstance(
        last, Reduce
    ):
        return False
    target = last.target
    if not isinstance(target, Element) or not target.position.is_affine or target.position.offset:
        return False
    shape = [axis.size for axis in outer]
    return target.position.strides[: len(shape)] == c_order(shape)


def segment_kernels(name: str, nest: Nest, names: DeviceNames) -> list[Kernel]:
    """One kernel, or two where ranges are cut into parts."""
    names.begin()
    shape = [axis.size for axis in nest.axes[:-1]]
    (*_, reduce) = nest.statements
    assert isinstance(reduce, Reduce)
    assert isinstance(reduce.target, Element)
    for statement in nest.statements:
        for element in places(statement):
            names.base(element.array)
    kept = prod(shape)
    if not kept:
        return []
    terms = max(_size(one, names) for one in _read_along(nest))
    chunk = cut(kept, max(-(-terms // kept), min(_SHARING, RESIDENT // kept)), False)
    kind = index_type(shape, max((terms, *(one.size for one in names.taken.values()))))
    result = f"({names.base(reduce.target.array)})[o]"
    if chunk.parts > 1:
        result = f"{names.partial(chunk.parts * kept)}[blockIdx.y * {kept} + o]"
    printer = PlainLoops(nest, names, kind, fresh=True)
    ranges = _Ranges(printer, nest, kind, chunk, result)
    body = ranges.whole() if chunk.across == 1 else ranges.several()
    lines = [*printer.tables, f"__shared__ double shared[{THREADS}];", *body]
    written = ["q", names.base(reduce.target.array).split(" ", 1)[0]]
    made = kernel(name, names.taken, written, chunk.blocks, THREADS, lines)
    if chunk.parts == 1:
        return [made]
    return [made, joining(name, chunk, [(reduce.op, reduce.target.array)], names)]


@dataclass(frozen=True, slots=True)
class _Ranges:
    """The text of the sums over ranges; `result` is that of the element for range `o`."""

    printer: PlainLoops
    nest: Nest
    kind: str
    chunk: Cut
    result: str

    def whole(self) -> list[str]:
        """A range after another for each block, all of whose threads add its terms."""
        return [
            f"for ({self.kind} o = blockIdx.x; o < {self.chunk.kept}; o += gridDim.x) {{",
            *indented([*self._bounds(""), *self._sum("start", self.chunk.first, self.chunk.step)]),
            *indented(self._total(1, "threadIdx.x == 0")),
            "}",
        ]

    def several(self) -> list[str]:
        """Some ranges at once for each block; all its threads share those that are far longer."""
        kind, kept, across = self.kind, self.chunk.kept, self.chunk.across
        begin, step = (f"{one}.x * ({kind}){across}" for one in ("blockIdx", "gridDim"))
        most = _FAR * self.chunk.step
        alone = [
            *self._bounds(""),
            f"if (stop - start <= {most}) continue;",
            *self._sum("start", "threadIdx.x", THREADS),
            *self._total(1, "threadIdx.x == 0"),
        ]
        inside = [
            f"const {kind} o = base + {self.chunk.lane};",
            *self._bounds(f"o >= {kept} ? 0 : "),
            f"const bool is_long = stop - start > {most};",
            *self._sum("(is_long ? stop : start)", self.chunk.first, self.chunk.step),
            *self._total(across, f"threadIdx.x < {across} && o < {kept} && !is_long"),
            "if (__syncthreads_or(is_long)) {",
            f"    for ({kind} o = base; o < {kept} && o < base + {across}; o++) {{",
            *indented(indented(alone)),
            "    }",
            "}",
        ]
        head = f"for ({kind} base = {begin}; base < {kept}; base += {step}) {{"
        return [head, *indented(inside), "}"]

    def _bounds(self, unless: str) -> list[str]:
        shape = [axis.size for axis in self.nest.axes[:-1]]
        start, stop = self.printer.bounds(self.nest.axes[-1])
        return [
            *decoded("o", [f"i{k}" for k in range(len(shape))], shape, self.kind),
            f"const {self.kind} start = {unless}{start};",
            f"const {self.kind} stop = {unless}{stop};",
        ]

    def _sum(self, start: str, first: str, step: int) -> list[str]:
        i = f"i{len(self.nest.axes) - 1}"
        return [
            f"double {self._a} = {start_of(self._reduce.op)};",
            f"for ({self.kind} {i} = {start} + {first}; {i} < stop; {i} += {step}) {{",
            *indented(self.printer.statements()),
            "}",
        ]

    def _total(self, width: int, condition: str) -> list[str]:
        return [
            f"{self._a} = slo_{self._reduce.op}_block(shared, {self._a}, {width});",
            f"if ({condition}) {self.result} = {self._a};",
        ]

    @property
    def _a(self) -> str:
        return f"a{len(self.nest.statements) - 1}"

    @property
    def _reduce(self) -> Reduce:
        (*_, reduce) = self.nest.statements
        assert isinstance(reduce, Reduce)
        return reduce


def _read_along(nest: Nest) -> list[Integers | Output]:
    """The arrays that a nest reads one element after another along its last axis."""
    last = len(nest.axes) - 1
    result: list[Integers | Output] = []
    for element in (element for statement in nest.statements for element in places(statement)):
        reads = [(read.position, read.integers) for read in element.position.lookups]
        for position, array in ((element.position, element.array), *reads):
            if position.strides[last:] == (1,):
                result.append(array)
    return result


def _size(array: Integers | Output, names: DeviceNames) -> int:
    """The number of elements of an array of numbers or of integers."""
    if isinstance(array, Output):
        return names.n
    if isinstance(array, IndexTable):
        return len(array.values)
    return array.size if isinstance(array, IndexArray) else names.size(array)
