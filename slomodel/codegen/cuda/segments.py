"""Kernels of sums over ranges whose lengths are data, as those of the rows of each group.

Threads are divided as for rectangular sums, by the mean length of a range; where there are few
ranges, more threads share one, since some may be much longer than others. The order of additions
is the same at every call.
"""

from __future__ import annotations

from math import prod

from slomodel.codegen.cuda.kernel import Kernel, decoded, index_type, kernel
from slomodel.codegen.cuda.names import DeviceNames
from slomodel.codegen.cuda.prelude import THREADS
from slomodel.codegen.cuda.reduction import RESIDENT, cut, joining
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
    if any(isinstance(one, Reduce) for one in nest.statements[:-1]) or not isinstance(last, Reduce):
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
    for one in nest.statements:
        for element in places(one):
            names.base(element.array)
    kept = prod(shape)
    if not kept:
        return []
    terms = max(_size(one, names) for one in _read_along(nest))
    chunk = cut(kept, max(-(-terms // kept), min(_SHARING, RESIDENT // kept)), False)
    kind = index_type(shape, max((terms, *(one.size for one in names.taken.values()))))
    printer = PlainLoops(nest, names, kind, fresh=True)
    start, stop = printer.bounds(nest.axes[-1])
    i, a = f"i{len(shape)}", f"a{len(nest.statements) - 1}"
    target = names.base(reduce.target.array)
    result = f"({target})[o]"
    if chunk.parts > 1:
        result = f"{names.partial(chunk.parts * kept)}[blockIdx.y * {kept} + o]"
    terms_of_range = [
        *decoded("o", [f"i{k}" for k in range(len(shape))], shape, kind),
        f"const {kind} stop = {stop};",
        f"for ({kind} {i} = {start} + {chunk.first}; {i} < stop; {i} += {chunk.step}) {{",
        *indented(printer.statements()),
        "}",
    ]
    begin, step = (f"{one}.x * ({kind}){chunk.across}" for one in ("blockIdx", "gridDim"))
    lines = [
        *printer.tables,
        f"__shared__ double shared[{THREADS}];",
        f"for ({kind} base = {begin}; base < {kept}; base += {step}) {{",
        f"    const {kind} o = base + {chunk.lane};",
        f"    double {a} = {start_of(reduce.op)};",
        f"    if (o < {kept}) {{",
        *indented(indented(terms_of_range)),
        "    }",
        f"    {a} = slo_{reduce.op}_block(shared, {a}, {chunk.across});",
        f"    if (threadIdx.x < {chunk.across} && o < {kept}) {result} = {a};",
        "}",
    ]
    written = ["q", target.split(" ", 1)[0]]
    made = kernel(name, names.taken, written, chunk.blocks, THREADS, lines)
    if chunk.parts == 1:
        return [made]
    return [made, joining(name, chunk, [(reduce.op, reduce.target.array)], names)]


def _read_along(nest: Nest) -> list[Integers | Output]:
    """The arrays that a nest reads one element after another along its last axis."""
    last = len(nest.axes) - 1
    found: list[Integers | Output] = []
    for element in (element for one in nest.statements for element in places(one)):
        reads = [(read.position, read.integers) for read in element.position.lookups]
        for position, array in ((element.position, element.array), *reads):
            if position.strides[last:] == (1,):
                found.append(array)
    return found


def _size(array: Integers | Output, names: DeviceNames) -> int:
    """The number of elements of an array of numbers or of integers."""
    if isinstance(array, Output):
        return names.n
    if isinstance(array, IndexTable):
        return len(array.values)
    return array.size if isinstance(array, IndexArray) else names.size(array)
