"""The text of any nest, with one loop per axis; bounds may depend on outer indices."""

from __future__ import annotations

from slomodel.codegen.loops.names import Names
from slomodel.codegen.loops.nest import (
    Apply,
    Axis,
    Computed,
    Count,
    IndexTable,
    Integers,
    Nest,
    Operand,
    Position,
    Reduce,
    Reduction,
    Scalar,
    Store,
    depth,
)
from slomodel.codegen.loops.text import indented


def start_of(op: Reduction) -> str:
    """The result of an empty reduction."""
    return {"sum": "0.0", "max": "-INFINITY", "min": "INFINITY"}[op]


class PlainLoops:
    """Prints one nest; `kind` is the C type of an index.

    `tables` are the lines that define the index arrays of the text. A reduction accumulates a total
    inside the axes that its target depends on; `fresh` says that this total is stored as the
    result and not combined with an earlier one.
    """

    def __init__(self, nest: Nest, names: Names, kind: str, *, fresh: bool) -> None:
        self.nest = nest
        self.tables: list[str] = []
        self._tables: dict[IndexTable, str] = {}
        self._names = names
        self._kind = kind
        self._fresh = fresh
        self._depths = {
            k: depth(one.target)
            for k, one in enumerate(nest.statements)
            if isinstance(one, Reduce) and depth(one.target) < len(nest.axes)
        }

    def lines(self, level: int) -> list[str]:
        """The statements of the loop of this number and of the loops inside it."""
        own = [k for k, outer in self._depths.items() if outer == level]
        inner = self.statements() if level == len(self.nest.axes) else self._loop(level)
        return [*map(self._start, own), *inner, *map(self._end, own)]

    def _loop(self, level: int) -> list[str]:
        axis = self.nest.axes[level]
        i, (start, stop) = f"i{level}", self.bounds(axis)
        head = f"for ({self._kind} {i} = {start}; {i} < {stop}; {i}++) {{"
        return [head, *indented(self.lines(level + 1)), "}"]

    def bounds(self, axis: Axis) -> tuple[str, str]:
        """The bounds of an axis: the first index, and the one after the last."""
        return self._position(axis.start), self._position(axis.stop)

    def statements(self) -> list[str]:
        """The statements at one index of all axes."""
        lines: list[str] = []
        # An array may take the memory of one that a later statement reads at the same index.
        last: list[str] = []
        for k, one in enumerate(self.nest.statements):
            if isinstance(one, Store):
                stores = lines if isinstance(one.target, Scalar) else last
                stores.append(f"{self._operand(one.target)} = {self._operand(one.value)};")
                continue
            texts = [self._operand(operand) for operand in one.operands]
            if isinstance(one, Apply):
                text = one.function.spelling["c"].format(*texts) if one.function else texts[0]
                lines.append(f"const real t{k} = {text};")
            else:
                target = f"a{k}" if k in self._depths else self._operand(one.target)
                lines.append(_taken_along(one, target, " * ".join(texts)))
        return lines + last

    def _start(self, k: int) -> str:
        one = self.nest.statements[k]
        assert isinstance(one, Reduce)
        return f"{'double' if one.op == 'sum' else 'real'} a{k} = {start_of(one.op)};"

    def _end(self, k: int) -> str:
        one = self.nest.statements[k]
        assert isinstance(one, Reduce)
        target = self._operand(one.target)
        if self._fresh or isinstance(one.target, Scalar):
            return f"{target} = a{k};"
        return _taken_along(one, target, f"a{k}")

    def _operand(self, operand: Operand) -> str:
        if isinstance(operand, Scalar):
            return self._names.number(operand.node)
        if isinstance(operand, Computed):
            return f"t{operand.statement}"
        if isinstance(operand, Count):
            return f"(real)i{operand.axis}"
        return f"({self._names.base(operand.array)})[{self._position(operand.position)}]"

    def _position(self, position: Position) -> str:
        terms = [
            f"i{k}" if step == 1 else f"i{k} * {step}"
            for k, step in enumerate(position.strides)
            if step
        ]
        for lookup in position.lookups:
            factor = "" if lookup.stride == 1 else f" * {lookup.stride}"
            terms.append(
                f"{self._integers(lookup.integers)}[{self._position(lookup.position)}]{factor}"
            )
        if position.offset or not terms:
            terms.append(str(position.offset))
        return " + ".join(terms)

    def _integers(self, integers: Integers) -> str:
        if not isinstance(integers, IndexTable):
            return self._names.integers(integers)
        if integers not in self._tables:
            values = ", ".join(map(str, integers.values))
            self._tables[integers] = f"l{len(self._tables)}"
            self.tables.append(f"static const long {self._tables[integers]}[] = {{{values}}};")
        return self._tables[integers]


def _taken_along(one: Reduce, target: str, text: str) -> str:
    if one.op == "sum":
        return f"{target} += {text};"
    return f"{target} = slo_{one.op}({target}, {text});"
