"""Long loops in parts that several threads take, with the same bits for any number of them.

The parts depend on sizes alone, each has totals of its own, and these are joined in the order of
the parts. What the loop fills as it goes crosses from part to part: the last elements of a part, as
many as its places overlap with those of the next, are left for the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.loops.fusion import Fusion, Region
from slomodel.codegen.native.fills import rolling
from slomodel.codegen.native.loops import Axes, LoopPrinter
from slomodel.codegen.native.names import Names
from slomodel.codegen.native.passes import BLOCK, indented
from slomodel.codegen.program import Form
from slomodel.ir.expr import Map

LONG = 4_000_000
"""Operations on numbers that take some hundred microseconds, and threads some ten to start."""
_COSTLY = 8
_PART = 32 * BLOCK
_MOST = 64


@dataclass(frozen=True, slots=True)
class Parts:
    """How the outermost axis is cut: `number` parts of `step`, their last `overlap` left over.

    What is left of them is counted on as further parts.
    """

    step: int
    number: int
    overlap: int

    def ends(self, end: int) -> list[str]:
        """Where part k begins and ends; from constants the compiler sees what divides lengths."""
        step, number, over = self.step, self.number, self.overlap
        low, high = f"k * {step}", f"k + 1 < {number} ? lo + {step - over} : {end}"
        if over:
            low = f"k < {number} ? {low} : (k - {number - 1}) * {step} - {over}"
            high = f"k < {number} ? ({high}) : lo + {over}"
        return [f"const long lo = {low};", f"const long hi = {high};"]


class SharedPrinter(LoopPrinter):
    """Prints one region; `function` is that of a part, called `name`, where the loop is cut."""

    def __init__(
        self,
        region: Region,
        regions: Fusion,
        names: Names,
        numbers: Numbers,
        name: str,
        heads: Sequence[str],
    ) -> None:
        LoopPrinter.__init__(self, region, regions, names, numbers)
        self.name = name
        self.heads = heads
        self.function: list[str] = []

    def _framed(self, axes: Axes, body: list[str]) -> list[str]:
        parts = self._parts(axes)
        if parts is None:
            return LoopPrinter._framed(self, axes, body)
        nest = self._nest(axes, body, ("lo", "hi"))
        scalars = sorted(set(re.findall(r"\bs\d+\b", "\n".join(body))))
        before, after = self._ends(axes)
        width = max(1, 2 * len(self.totals))
        self._print_function(nest, scalars, [*parts.ends(axes[0][0]), f"out += k * {width};"])
        places = 2 * parts.number - 1 if parts.overlap else parts.number
        edges, again = self._edges(parts)
        lines = [
            *(one.start for one in self.totals),
            *before,
            *edges,
            f"const real in[] = {{{', '.join(scalars) or '0'}}};",
            f"double out[{places * width}];",
            f"const slo_job job = {{{self.name}, c, in, out, {parts.number}, 0, 0, 1}};",
            "slo_share(job, (long)blas[2]);",
            *again,
            f"for (long k = 0; k < {places if self.totals else 0}; k++) {{",
            *indented([line for one in self.totals for line in one.joining(width)]),
            "}",
            *(one.end for one in self.totals),
            *after,
        ]
        return ["{", *indented(lines), "}"]

    def _parts(self, axes: Axes) -> Parts | None:
        """The parts of a loop; None where they would be too few or would meet."""
        costs = [
            _COSTLY if isinstance(node, Map) and node.function.costly else 1
            for node in self.region.nodes
        ]
        overlap = self._overlap()
        short = prod(self.region.shape) * sum(costs) < LONG
        if self.region.stage != "call" or short or overlap is None or not axes:
            return None
        inner, end = prod(size for size, _ in axes[1:]), axes[0][0]
        step = max(1, -(-_PART // inner), -(-end // _MOST))
        if len(axes) == 1:
            step = -(-step // BLOCK) * BLOCK
        number = -(-end // step)
        return Parts(step, number, overlap) if number > 1 and overlap <= step else None

    def _overlap(self) -> int | None:
        """By how many elements the places of neighbouring parts overlap; None where they mix."""
        filled = rolling(self.region, self.regions)
        rolled = {node for nodes in filled.values() for _, node in nodes}
        for node in self.region.nodes:
            if self.regions.is_value(node) or not node.rank or node in rolled:
                continue
            steps = self.target(node).steps
            if self.regions.forms[node] in (Form.PUT, Form.ACCUMULATE) or not steps or not steps[0]:
                return None
        return max((nodes[0][0] - nodes[-1][0] for nodes in filled.values()), default=0)

    def _edges(self, parts: Parts) -> tuple[list[str], list[str]]:
        """Zeros where parts meet, and the elements there that are left over."""
        if not parts.overlap:
            return [], []
        size = parts.overlap
        places = [
            f"{self.names.base(node)} + {nodes[0][0] - size} + k * {parts.step}"
            for node, nodes in rolling(self.region, self.regions).items()
        ]
        loop = f"for (long k = 1; k < {parts.number}; k++) {{"
        swaps = [f"real kept{j}[{size}];" for j in range(len(places))]
        swaps += [f"slo_copy(kept{j}, {place}, {size});" for j, place in enumerate(places)]
        adds = [f"slo_join({place}, kept{j}, {size});" for j, place in enumerate(places)]
        run = f"{self.name}(c, in, {parts.number - 1} + k, out);"
        fills = [f"slo_fill({place}, {size}, 0.0);" for place in places]
        return [loop, *indented(fills), "}"], [loop, *indented([*swaps, run, *adds]), "}"]

    def _print_function(self, nest: list[str], scalars: list[str], heads: list[str]) -> None:
        given = [f"const real {name} = in[{k}];" for k, name in enumerate(scalars)]
        ends = [line for one in self.totals for line in one.handing_on()]
        arguments = "void *const *c, const real *in, long k, double *out"
        lines = [*self.heads, *heads, *given, *(one.start for one in self.totals), *nest, *ends]
        self.function = [
            f"static void {self.name}({arguments}) {{",
            *indented(["(void)in, (void)out;", *lines]),
            "}",
            "",
        ]
