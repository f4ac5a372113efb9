"""Long loops and products cut into parts for several threads; no result depends on their number.

The parts depend on sizes alone, each has totals of its own, and these are combined in the order of
the parts. Neighbouring parts of a loop may overlap in arrays that it initialises on the way; the
iterations of a part that write to the overlap are postponed until all parts are done. Parts of
products are calls of BLAS on one thread: where rows or columns of the result are cut it copies the
other operand for each part; where sums are cut each part leaves a result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from slomodel.codegen.loops.nest import Apply, Element, Reduce, Store
from slomodel.codegen.loops.pointers import Pointer
from slomodel.codegen.loops.text import indented
from slomodel.codegen.native.loops import BlockedLoop
from slomodel.codegen.native.passes import BLOCK

LONG = 4_000_000
"""Scalar operations that take some hundred microseconds; starting threads takes about ten."""
_COSTLY = 8
_PART = 32 * BLOCK
_MOST = 64

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

    The iterations left over are further parts, numbered after the others.
    """

    step: int
    number: int
    overlap: int

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
    """The statements of a loop and, if it is cut, the function that computes one part."""

    lines: list[str]
    function: list[str]


def shared_lines(loop: BlockedLoop, name: str, heads: Sequence[str]) -> Shared:
    """A loop cut into parts, if that pays: calls of function `name`, which begins with `heads`."""
    parts = _parts(loop) if loop.is_loop and loop.axes else None
    if parts is None:
        return Shared(loop.lines(), [])
    nest = loop.loops(("lo", "hi"))
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
        *again,
        f"for (long k = 0; k < {places if loop.totals else 0}; k++) {{",
        *indented([line for one in loop.totals for line in one.joining(width)]),
        "}",
        *(one.end for one in loop.totals),
        *after,
    ]
    function = _function(loop, name, nest, scalars, [*heads, *ends])
    return Shared([*loop.fills(), "{", *indented(lines), "}"], function)


def _parts(loop: BlockedLoop) -> Parts | None:
    """The parts of a loop; None if there would be too few or if they cannot be separated."""
    axes, work = loop.axes, 0
    for statement in loop.nest.statements:
        if not isinstance(statement, Store):
            costly = (
                isinstance(statement, Apply)
                and statement.function is not None
                and statement.function.costly
            )
            work += _COSTLY if costly else 1
    overlap = _overlap(loop)
    if prod(loop.nest.shape) * work < LONG or overlap is None:
        return None
    end = axes[loop.divided][0]
    inner = prod(size for size, _ in axes) // end
    step = max(1, -(-_PART // inner), -(-end // _MOST))
    if len(axes) == 1 or loop.turned:
        step = -(-step // loop.block) * loop.block
    number = -(-end // step)
    return Parts(step, number, overlap) if number > 1 and overlap <= step else None


def _overlap(loop: BlockedLoop) -> int | None:
    """The number of elements in which neighbouring parts overlap; None if parts may mix freely."""
    rolled = {id(one) for own in loop.rolling.values() for _, one in own}
    targets: list[Pointer] = []
    for statement in loop.nest.statements:
        if (
            isinstance(statement, Reduce)
            and isinstance(statement.target, Element)
            and id(statement) not in rolled
        ):
            targets.append(loop.pointers.of(statement.target))
    if any(one.lookups or one.starts for one in targets):
        return None
    bases = [target.base for target in targets]
    if len(set(bases)) < len(bases) or not all(_is_apart(one, loop) for one in targets):
        return None
    return max((own[0][0] - own[-1][0] for own in loop.rolling.values()), default=0)


def _is_apart(pointer: Pointer, loop: BlockedLoop) -> bool:
    """Whether different indices along the axis that is cut always give different elements."""
    sizes = [size for size, _ in loop.axes]
    reach = sum((size - 1) * abs(step) for size, step in zip(sizes, pointer.steps, strict=True))
    own = abs(pointer.steps[loop.divided])
    return reach - (sizes[loop.divided] - 1) * own < own


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
