"""The C text of one loop: blocks of elements that stay in the cache, one pass an operation.

Each pass is a loop of its own, without sums or branches, so that the compiler can use vector
instructions and the vector forms of exp, log, sin, …: a sine and a cosine in one loop would become
one scalar call, and a sum in the loop would keep it from being vectorised.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from slomodel.codegen.loops.access import Numbers, merged_axes
from slomodel.codegen.loops.fusion import Fusion, Read, Region, elements
from slomodel.codegen.native.fills import rolling
from slomodel.codegen.native.names import Names
from slomodel.codegen.native.passes import (
    BLOCK,
    Pass,
    append,
    indented,
    share_temporaries,
    write_over,
)
from slomodel.codegen.native.places import Places, Pointer
from slomodel.codegen.program import Form
from slomodel.ir.expr import Expr, Extreme, Map

_LONGEST = 300
"""Characters of an expression that is printed within another one."""


Axes = Sequence[tuple[int, tuple[int, ...]]]
"""Axes of a loop, each a size and the steps of the pointers along it."""


@dataclass(frozen=True, slots=True)
class Total:
    """The total of number k of a loop: a sum with what its roundings lost, or an extreme."""

    k: int
    result: str
    largest: str

    @property
    def start(self) -> str:
        if self.largest:
            return f"real a{self.k} = {'-' if self.largest == 'slo_max' else ''}INFINITY;"
        return f"double a{self.k} = 0.0, e{self.k} = 0.0;"

    def adding(self, text: str) -> str:
        """The statement that takes the total of a part along."""
        if self.largest:
            return f"a{self.k} = {self.largest}(a{self.k}, {text});"
        return f"slo_add(&a{self.k}, &e{self.k}, {text});"

    def handing_on(self) -> list[str]:
        """The statements that end a part of the loop."""
        lost = [] if self.largest else [f"out[{2 * self.k + 1}] = e{self.k};"]
        return [f"out[{2 * self.k}] = a{self.k};", *lost]

    def joining(self, width: int) -> list[str]:
        """The statements that take along what part k of the loop has handed on."""
        place = f"out[k * {width} + {2 * self.k}"
        lost = [] if self.largest else [f"e{self.k} += {place} + 1];"]
        return [self.adding(f"{place}]"), *lost]

    @property
    def end(self) -> str:
        settled = f"slo_settled(a{self.k}, e{self.k})"
        return f"{self.result} = {f'a{self.k}' if self.largest else settled};"


class LoopPrinter(Places):
    """Prints one region."""

    def __init__(self, region: Region, regions: Fusion, names: Names, numbers: Numbers) -> None:
        super().__init__(region, regions, names, numbers)
        self.texts: dict[Expr, str] = {}
        self.temporaries: list[str] = []
        self.totals: list[Total] = []
        self.late: list[tuple[str, Pointer]] = []

    def lines(self) -> list[str]:
        """The whole loop, with what comes before and after it."""
        if not self.rank:
            return self._scalar_lines()
        if 0 in self.region.shape:
            return self._lines_of_nothing()
        pointers = self.reserve()
        axes = merged_axes(self.region.shape, [p.access.strides for p in pointers])
        for k, pointer in enumerate(pointers):
            pointer.steps = tuple(own[k] for _, own in axes)
        return self._framed(axes, self._body())

    def _framed(self, axes: Axes, body: list[str]) -> list[str]:
        """The passes over one block in their loops, with what comes before and after these."""
        before, after = self._ends(axes)
        lines = [*(one.start for one in self.totals), *before, *self._nest(axes, body)]
        return ["{", *indented([*lines, *(one.end for one in self.totals), *after]), "}"]

    def _body(self) -> list[str]:
        """The passes over one block."""
        passes: list[Pass] = []
        filled = rolling(self.region, self.regions)
        last = {node for nodes in filled.values() for _, node in nodes}
        for node in self.region.nodes:
            if self.regions.is_value(node):
                self._add_value(node, passes)
            elif node not in last:
                self._add_sum(node, passes)
        for nodes in filled.values():
            for k, (_, node) in enumerate(nodes):
                text = self._operand(next(self.regions.reads(node)))
                place = self.target(node).element()
                # Those that add meet in one place what others wrote there in another turn.
                append(passes, f"{place} {'+=' if k else '='} {text};", alone=bool(k))
        for temporary, pointer in self.late:
            write_over(passes, temporary, pointer.name, pointer.element())
        self.temporaries = share_temporaries(passes)
        return [line for one in passes for line in one.lines()]

    def _add_value(self, node: Expr, passes: list[Pass]) -> None:
        text = self._value(node)
        costly = isinstance(node, Map) and node.function.costly
        place = self.target(node) if node in self.regions.stored else None
        if place is not None and not place.reads:
            target = place.element()
        elif place is not None:
            target = f"{self._temporary()}[i]"
            self.late.append((self.temporaries[-1], place))
        elif costly or self.uses.get(node, 0) > 1 or len(text) > _LONGEST or self._is_summed(node):
            target = f"{self._temporary()}[i]"
        else:
            self.texts[node] = text
            return
        self.texts[node] = target
        append(passes, f"{target} = {text};", alone=costly)

    def _value(self, node: Expr) -> str:
        texts = [self._operand(read) for read in self.regions.reads(node)]
        if isinstance(node, Map):
            return node.function.spelling["c"].format(*texts)
        return texts[0]

    def _operand(self, read: Read) -> str:
        if self.is_here(read):
            return self.texts[read.node]
        found = self.read(read)
        return found if isinstance(found, str) else found.element()

    def _is_summed(self, node: Expr) -> bool:
        """True where a total over the block is taken of exactly this value."""
        for user in self.region.nodes:
            if not self.regions.is_value(user) and len(list(self.regions.reads(user))) == 1:
                target = self.target(user) if user.rank else None
                whole = target is None or not target.steps or not target.steps[-1]
                if whole and any(read.node is node for read in self.regions.reads(user)):
                    return True
        return False

    def _temporary(self) -> str:
        self.temporaries.append(f"t{len(self.temporaries)}")
        return self.temporaries[-1]

    def _add_sum(self, node: Expr, passes: list[Pass]) -> None:
        texts = [self._operand(read) for read in self.regions.reads(node)]
        text = " * ".join(texts)
        largest = f"slo_{node.which}" if isinstance(node, Extreme) else ""
        target = self.target(node) if node.rank else None
        if target is not None and target.steps and target.steps[-1]:
            place = target.element()
            added = f"{largest}({place}, {text})" if largest else f"{place} + {text}"
            append(passes, f"{place} = {added};", alone=True)
            return
        arrays = [one.removesuffix("[i]") for one in texts]
        plain = all(one.endswith("[i]") for one in texts) and all(map(str.isidentifier, arrays))
        if not plain or len(arrays) > 2:
            arrays = [self._temporary()]
            append(passes, f"{arrays[0]}[i] = {text};", alone=False)
        name = f"{largest}_of" if largest else ("slo_total", "slo_dot")[len(arrays) - 1]
        total = f"{name}({', '.join(arrays)}, m)"
        if target is None:
            statement = self._into_scalar(node, total, largest)
        elif largest:
            statement = f"{target.name}[0] = {largest}({target.name}[0], {total});"
        else:
            statement = f"{target.name}[0] += {total};"
        passes.append(Pass([statement], alone=True, once=True))

    def _into_scalar(self, node: Expr, total: str, largest: str) -> str:
        """The statement that takes the total of a block along."""
        own = Total(len(self.totals), self.names.scalar(node), largest)
        self.totals.append(own)
        return own.adding(total)

    def _nest(self, axes: Axes, body: list[str], part: tuple[str, str] | None = None) -> list[str]:
        """The loops round the passes, and the pointers at the start of each block.

        `part` is where the outermost loop begins and ends, if not with its axis.
        """
        size = axes[-1][0] if axes else 1
        blocked = size > BLOCK or (part is not None and len(axes) == 1)
        ranges = [("0", str(length)) for length, _ in axes]
        ranges[:1] = [part] if part else ranges[:1]
        width = min(BLOCK, size)
        inner = [f"real {name}[{width}] ALIGNED;" for name in self.temporaries]
        if blocked:
            end = ranges[-1][1]
            inner = [f"const long m = {end} - s < {BLOCK} ? {end} - s : {BLOCK};", *inner]
        else:
            inner = [f"const long m = {size};", *inner]
        used = set(re.findall(r"\bp\d+\b", "\n".join(body)))
        for pointer in self.pointers.values():
            if pointer.name in used:
                inner.append(self._declared(pointer, blocked))
        lines = [*inner, *body]
        if blocked:
            first, last = ranges[-1]
            head = f"for (long s = {first}; s < {last}; s += {BLOCK}) {{"
            lines = [head, *indented(lines), "}"]
        for k in reversed(range(len(axes) - 1)):
            first, last = ranges[k]
            head = f"for (long i{k} = {first}; i{k} < {last}; i{k}++) {{"
            lines = [head, *indented(lines), "}"]
        return lines

    def _ends(self, axes: Axes) -> tuple[list[str], list[str]]:
        """Zeros before and after what the loop fills as it goes."""
        before, after = [], []
        size = axes[-1][0] if axes else 1
        for node, nodes in rolling(self.region, self.regions).items():
            base, start = self.names.base(node), nodes[0][0]
            end = elements(self.regions.accesses.shape(node)) - start - size
            before.append(f"slo_fill({base}, {start}, 0.0);")
            after.append(f"slo_fill({base} + {start + size}, {end}, 0.0);")
        return before, after

    def _declared(self, pointer: Pointer, blocked: bool) -> str:
        parts = [pointer.base]
        if pointer.access.offset:
            parts.append(str(pointer.access.offset))
        for k, step in enumerate(pointer.steps[:-1]):
            if step:
                parts.append(f"i{k} * {step}")
        if blocked and pointer.steps[-1]:
            parts.append(f"s * {pointer.steps[-1]}")
        kind = "real" if pointer.writes else "const real"
        return f"{kind} *const {pointer.name} = {' + '.join(parts)};"

    def _lines_of_nothing(self) -> list[str]:
        """Sums of no elements; arrays that are added to have been filled before."""
        lines = []
        for node in self.region.nodes:
            if not node.rank and not self.regions.is_value(node):
                value = "0.0"
                if isinstance(node, Extreme):
                    value = "-INFINITY" if node.which == "max" else "INFINITY"
                lines.append(f"{self.names.scalar(node)} = {value};")
        return lines

    def _scalar_lines(self) -> list[str]:
        """Statements without a loop."""
        lines = []
        for node in self.region.nodes:
            texts = [self._scalar_operand(read) for read in self.regions.reads(node)]
            if isinstance(node, Map) and self.regions.forms[node] is Form.ELEMENTWISE:
                text = node.function.spelling["c"].format(*texts)
                lines.append(f"{self.names.scalar(node)} = {text};")
                continue
            base, (offset, _) = self.names.base(node), self.target_access(node)
            sign = "=" if self.regions.is_value(node) else "+="
            lines.append(f"({base})[{offset}] {sign} {texts[0]};")
        return lines

    def _scalar_operand(self, read: Read) -> str:
        access = self.regions.accesses.of(read.node)
        if not access.base.rank:
            return self.names.scalar(access.base)
        return f"({self.names.base(access.base)})[{access.offset}]"
