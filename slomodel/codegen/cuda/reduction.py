"""Division of a sum among the threads of a block and among blocks, whose parts are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slomodel.codegen.cuda.kernel import Kernel, grid, kernel, place
from slomodel.codegen.cuda.names import DeviceNames
from slomodel.codegen.cuda.prelude import THREADS
from slomodel.codegen.loops.nest import Output, Reduction
from slomodel.codegen.loops.plain import start_of
from slomodel.codegen.loops.text import indented
from slomodel.ir.expr import Expr

_MOST_PARTS = 2**13
"""Blocks that work on parts: ten times as many as a device runs at once leave few of them idle."""
_EACH = 8
"""Least number of terms per thread: a sum with fewer is not cut into further parts."""
_MANY = 2**16
RESIDENT = 2**18
"""The number of threads that a device runs at once, about."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Division of the sums over `reduced` terms for each of `kept` elements.

    A block works on `across` elements; each sum is cut into `parts`, one block each.
    """

    kept: int
    reduced: int
    across: int
    parts: int

    @property
    def lane(self) -> str:
        """The element of its block that a thread works on, as text."""
        return f"threadIdx.x % {self.across}" if self.across > 1 else "0"

    @property
    def first(self) -> str:
        """The index of the first term that a thread adds, as text."""
        depth = THREADS // self.across
        own = "threadIdx.x" if self.across == 1 else f"threadIdx.x / {self.across}"
        return own if self.parts == 1 else f"blockIdx.y * {depth} + {own}"

    @property
    def step(self) -> int:
        """The stride between the terms of a thread."""
        return THREADS // self.across * self.parts

    @property
    def blocks(self) -> tuple[int, int]:
        return grid(self.kept, self.across)[0], self.parts


def cut(kept: int, reduced: int, along_kept: bool) -> Cut:
    """A division with threads along the contiguous axis, and parts enough to fill a device."""
    if kept == 1:
        across = 1
    elif along_kept:
        across = THREADS if kept >= _MANY else min(32, _power(kept))
        across = max(across, THREADS // _power(reduced))
    else:
        enough = max(-(-reduced // _EACH), RESIDENT // kept)
        across = THREADS // min(_power(reduced), _power(enough))
    depth = THREADS // across
    blocks = grid(kept, across)[0]
    wanted = min(-(-reduced // (depth * _EACH)), _MOST_PARTS // blocks)
    return Cut(kept, reduced, across, max(1, wanted))


def _power(size: int) -> int:
    """The least power of two that is not below a size, at most the threads of a block."""
    return min(THREADS, 1 << max(0, size - 1).bit_length())


def joining(
    name: str, chunk: Cut, results: Sequence[tuple[Reduction, Expr | Output]], names: DeviceNames
) -> Kernel:
    """The kernel that combines the parts of reductions: one block per element of each result."""
    names.begin()
    size = chunk.parts * chunk.kept
    q = names.partial(len(results) * size)
    inside: list[str] = []
    for k, (op, result) in enumerate(results):
        part = f"{q}[{place('ro', (chunk.kept, 1), k * size)}]"
        inside += [
            f"double a{k} = {start_of(op)};",
            f"for (int r = threadIdx.x; r < {chunk.parts}; r += {THREADS})",
            f"    a{k} = {JOINS[op]}(a{k}, {part});",
            f"a{k} = slo_{op}_block(shared, a{k}, 1);",
            f"if (threadIdx.x == 0) ({names.base(result)})[o] = a{k};",
        ]
    lines = [
        f"__shared__ double shared[{THREADS}];",
        f"for (int o = blockIdx.x; o < {chunk.kept}; o += gridDim.x) {{",
        *indented(inside),
        "}",
    ]
    written = [one for one in names.taken if one != "q"]
    return kernel(f"{name}_join", names.taken, written, grid(chunk.kept, 1), THREADS, lines)


JOINS: dict[Reduction, str] = {"sum": "slo_plus", "max": "slo_larger", "min": "slo_smaller"}
"""The device functions that combine two values of a reduction."""
