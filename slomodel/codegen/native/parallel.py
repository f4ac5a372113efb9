"""Long loops and products cut into parts for several threads; no result depends on their number.

The parts depend on sizes alone, each has totals of its own, and these are combined in the order of
the parts. Neighbouring parts of a loop may overlap in arrays to which they add; the iterations of a
part that write to the overlap are postponed until all parts are done. Small arrays to which all
parts add, such as sums over the axis that is cut or at places of index data, have a copy for each
part; the copies are added in the order of the parts. Parts of
products are calls of BLAS on one thread: where rows or columns of the result are cut it copies the
other operand for each part; where sums are cut each part leaves a result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from slomodel.codegen.loops.nest import Apply, Copy, Element, Fill, Reduce, Store
from slomodel.codegen.loops.pointers import Pointer
from slomodel.codegen.loops.text import indented
from slomodel.codegen.native.loops import BlockedLoop
from slomodel.codegen.native.passes import BLOCK
from slomodel.codegen.native.plain import fill_line

LONG = 4_000_000
"""Scalar operations that take some hundred microseconds; starting threads takes about ten."""
_COSTLY = 8
_MOVED = 2
"""Operations that take as long as reading or writing an element of an array outside the cache."""
_PART = 32 * BLOCK
_MOST = 64
_OVERLAPS = 32
"""The iterations of a part are this many times those left over, which one thread computes."""
_COPIES = 8
"""Parts of a loop whose arrays are copied for each, at most."""
_COST_OF_COPIES = 64
"""The operations of a loop are at least this many times those that zero and add the copies, which a
single thread computes too: with 20 a loop of 0.3 ms took 15 % longer on one thread."""

Axis = Literal[0, 1, 2]
"""Rows of the result, its columns, terms of its sums, in the order of columns that BLAS uses."""

_MOST_CALLS = 16
_MULTIPLICATIONS = 2_000_000
"""Multiplications of a part of a product of matrices, at least: they take about 50 us, starting
a thread about 10."""
_LEAST = 256
"""Rows, columns or terms of a part, at least: copies and additions then take 6 % of its time."""
_COLUMNS = 4
"""Columns are cut unless another axis is this many times as long: halves of 600 rows take 12 %
more than the whole, halves of columns 4 %."""
_ELEMENTS = 1 << 17
"""Elements of a matrix that a part multiplies by a vector, at least: 1 MB in double precision."""
_ALIGNED = 16
"""Lengths of parts are multiples of this number: tiles of BLAS are not cut."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Division of one axis: `number` parts of `step`, without their last `overlap`.

    The iterations left over are further parts, numbered after the others. `copied` are the
    addresses of arrays of which parts have copies, with their sizes. `filled` are those that each
    part initialises where it is the first to write, with size, value, first place and stride.
    """

    step: int
    number: int
    overlap: int
    copied: tuple[tuple[str, int], ...] = ()
    filled: tuple[tuple[str, Fill, int, int], ...] = ()

    @property
    def copies(self) -> int:
        """The number of elements of all copies: the first part has the array itself."""
        return (self.number - 1) * sum(size for _, size in self.copied)

    def ends(self, end: int) -> list[str]:
        """The bounds of part k, written with constants so that the compiler knows the lengths."""
        step, number, over = self.step, self.number, self.overlap
        low, high = f"k * {step}", f"k + 1 < {number} ? lo + {step - over} : {end}"
        if over:
            low = f"k < {number} ? {low} : (k - {number - 1}) * {step} - {over}"
            high = f"k < {number} ? ({high}) : lo + {over}"
        return [f"const long lo = {low};", f"const long hi = {high};"]


@dataclass(frozen=True, slots=True)
class Shared:
    """The statements of a loop and, if it is cut, the function that computes one part.

    `copies` is the number of elements that it needs in the workspace.
    """

    lines: list[str]
    function: list[str]
    copies: int = 0


def shared_lines(loop: BlockedLoop, name: str, heads: Sequence[str], start: int) -> Shared:
    """A loop cut into parts, if that pays: calls of function `name`, which begins with `heads`.

    Copies of arrays lie in the workspace from `start` on.
    """
    parts = _parts(loop) if loop.is_loop and loop.axes else None
    if parts is None:
        return Shared(loop.lines(), [])
    own, joins = _copies(loop, parts, start)
    nest = [*own, *_filling(parts), *loop.loops(("lo", "hi"))]
    scalars = sorted(set(re.findall(r"\bs\d+\b", "\n".join(loop.body))))
    before, after = loop.ends()
    width = max(1, 2 * len(loop.totals))
    ends = [*parts.ends(loop.axes[loop.divided][0]), f"out += k * {width};"]
    places = 2 * parts.number - 1 if parts.overlap else parts.number
    edges, again = _edges(loop, parts, name)
    lines = [
        *(total.start for total in loop.totals),
        *before,
        *edges,
        f"const real in[] = {{{', '.join(scalars) or '0'}}};",
        f"double out[{places * width}];",
        f"const slo_job job = {{{name}, c, in, out, {parts.number}, 0, 0, 1}};",
        "static _Thread_local slo_times known;",
        "slo_share(job, (long)blas[2], &known);",
        *joins,
        *again,
        f"for (long k = 0; k < {places if loop.totals else 0}; k++) {{",
        *indented([line for one in loop.totals for line in one.joining(width)]),
        "}",
        *(one.end for one in loop.totals),
        *after,
    ]
    function = _function(loop, name, nest, scalars, [*heads, *ends])
    by_parts = {base for base, *_ in parts.filled}
    return Shared([*loop.fills(by_parts), "{", *indented(lines), "}"], function, parts.copies)


def _parts(loop: BlockedLoop) -> Parts | None:
    """The parts of a loop; None if there would be too few or if they cannot be separated."""
    axes, work = loop.axes, _MOVED * sum(any(one.steps) for one in loop.pointers)
    for statement in loop.nest.statements:
        if not isinstance(statement, Store):
            costly = (
                isinstance(statement, Apply)
                and statement.function is not None
                and statement.function.costly
            )
            work += _COSTLY if costly else 1
    total = prod(loop.nest.shape) * work
    meeting = _meeting(loop) if total >= LONG else None
    if meeting is None:
        return None
    overlap, copied, filled = meeting
    end = axes[loop.divided][0]
    inner = prod(size for size, _ in axes) // end
    step = max(1, -(-_PART // inner), -(-end // _MOST), _OVERLAPS * overlap)
    if copied:
        elements = sum(size for _, size in copied)
        most = min(_COPIES, total // (_COST_OF_COPIES * max(1, elements)))
        if most < 2:
            return None
        step = max(step, -(-end // most))
    if len(axes) == 1 or loop.turned:
        step = -(-step // loop.block) * loop.block
    number = -(-end // step)
    is_cut = number > 1 and not (overlap and copied)
    return Parts(step, number, overlap, copied, filled) if is_cut else None


def _meeting(
    loop: BlockedLoop,
) -> tuple[int, tuple[tuple[str, int], ...], tuple[tuple[str, Fill, int, int], ...]] | None:
    """The iterations in which parts overlap, arrays to be copied, and arrays that parts fill.

    None if there is an array that can be neither cut nor copied.
    """
    rolled = {id(one) for own in loop.rolling.values() for _, one in own}
    targets: dict[str, list[Pointer]] = {}
    extremes: set[str] = set()
    for statement in loop.nest.statements:
        if (
            isinstance(statement, Reduce)
            and isinstance(statement.target, Element)
            and id(statement) not in rolled
        ):
            pointer = loop.pointers.of(statement.target)
            targets.setdefault(pointer.base, []).append(pointer)
            if statement.op != "sum":
                extremes.add(pointer.base)
    fills = {loop.names.base(fill.array): fill for fill in loop.nest.fills}
    overlap = max((own[0][0] - own[-1][0] for own in loop.rolling.values()), default=0)
    copied, filled = [], []
    for base, pointers in targets.items():
        shared, fill = _shared_iterations(pointers, loop), fills.get(base)
        if shared is not None:
            overlap = max(overlap, shared[0])
            if isinstance(fill, Fill) and pointers[0].steps[loop.divided] > 0:
                filled.append((base, fill, shared[1], pointers[0].steps[loop.divided]))
        elif fill is not None and base not in extremes:
            copied.append((base, _size(fill)))
        else:
            return None
    return overlap, tuple(copied), tuple(filled)


def _size(fill: Fill | Copy) -> int:
    return fill.size if isinstance(fill, Fill) else prod(fill.shape)


def _shared_iterations(pointers: Sequence[Pointer], loop: BlockedLoop) -> tuple[int, int] | None:
    """In how many iterations along the axis that is cut one part writes where the next begins.

    The second number is the first place that the loop writes. None if parts meet everywhere, or
    at places of index data.
    """
    if any(one.lookups or one.starts for one in pointers):
        return None
    own = {one.steps[loop.divided] for one in pointers}
    if len(own) > 1 or min(own) == 0:
        return None
    axes = [size - 1 for size, _ in loop.axes]
    axes[loop.divided] = 0
    lows, highs = [], []
    for one in pointers:
        moves = [size * step for size, step in zip(axes, one.steps, strict=True)]
        lows.append(one.position.offset + sum(min(move, 0) for move in moves))
        highs.append(one.position.offset + sum(max(move, 0) for move in moves))
    shared = (max(highs) - min(lows)) // abs(min(own))
    return (shared, min(lows)) if _OVERLAPS * shared < loop.axes[loop.divided][0] else None


def _filling(parts: Parts) -> list[str]:
    """The initialisation of what a part is the first to write."""
    lines = []
    last = parts.number - 1
    for base, fill, first, own in parts.filled:
        low = f"k ? {first} + lo * {own} : 0"
        high = f"k < {last} ? {first} + (k + 1) * {parts.step * own} : {fill.size}"
        line = fill_line(f"({base}) + ({low})", f"({high}) - ({low})", fill.value)
        lines.append(f"if (k < {parts.number}) {line}")
    return lines


def _copies(loop: BlockedLoop, parts: Parts, start: int) -> tuple[list[str], list[str]]:
    """Declarations of a part's copies of arrays, and the statements that add all of them."""
    own, joins, names = [], [], {}
    last = parts.number - 1
    for j, (base, size) in enumerate(parts.copied):
        names[base] = f"y{j}"
        copy = f"w + {start} + (k - 1) * {size}"
        own.append(f"real *const y{j} = k ? {copy} : {base};")
        own.append(f"if (k) slo_fill(y{j}, {size}, 0.0);")
        joins.append(f"for (long k = 1; k <= {last}; k++) slo_join({base}, {copy}, {size});")
        start += last * size
    for pointer in loop.pointers:
        pointer.base = names.get(pointer.base, pointer.base)
    return own, joins


def _edges(loop: BlockedLoop, parts: Parts, name: str) -> tuple[list[str], list[str]]:
    """Statements that zero the overlaps of parts, and those that add the iterations left over."""
    if not parts.overlap:
        return [], []
    size = parts.overlap
    places = [
        f"{base} + {own[0][0] - size} + k * {parts.step}" for base, own in loop.rolling.items()
    ]
    head = f"for (long k = 1; k < {parts.number}; k++) {{"
    swaps = [f"real kept{j}[{size}];" for j in range(len(places))]
    swaps += [f"slo_copy(kept{j}, {place}, {size});" for j, place in enumerate(places)]
    adds = [f"slo_join({place}, kept{j}, {size});" for j, place in enumerate(places)]
    run = f"{name}(c, in, {parts.number - 1} + k, out);"
    fills = [f"slo_fill({place}, {size}, 0.0);" for place in places]
    return [head, *indented(fills), "}"], [head, *indented([*swaps, run, *adds]), "}"]


def _function(
    loop: BlockedLoop, name: str, nest: list[str], scalars: list[str], heads: Sequence[str]
) -> list[str]:
    given = [f"const real {scalar} = in[{k}];" for k, scalar in enumerate(scalars)]
    ends = [line for total in loop.totals for line in total.handing_on()]
    arguments = "void *const *c, const real *in, long k, double *out"
    lines = [*heads, *given, *(one.start for one in loop.totals), *nest, *ends]
    return [
        f"static void {name}({arguments}) {{",
        *indented(["(void)in, (void)out;", *lines]),
        "}",
        "",
    ]


def gemm_parts(m: int, n: int, k: int) -> tuple[Axis, int] | None:
    """The axis that is cut and the length of its parts; None for a product that is not cut."""
    sizes, weights = (m, n, k), (m, _COLUMNS * n, k)
    axis: Axis = max((0, 1, 2), key=weights.__getitem__)
    return _cut(axis, sizes[axis], min(m * n * k // _MULTIPLICATIONS, sizes[axis] // _LEAST))


def gemv_parts(result: int, terms: int) -> tuple[Axis, int] | None:
    """The same for a matrix and a vector."""
    axis: Axis = 0 if result >= terms else 2
    return _cut(axis, max(result, terms), result * terms // _ELEMENTS)


def _cut(axis: Axis, size: int, most: int) -> tuple[Axis, int] | None:
    parts = min(_MOST_CALLS, most)
    if parts < 2:
        return None
    step = -(-size // parts)
    step = -(-step // _ALIGNED) * _ALIGNED
    return (axis, step) if step < size else None
