"""The C text of a loop over time: the blocks of one step inside one loop, without any calls."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import final

from slomodel.codegen.loops.access import Numbers, c_order
from slomodel.codegen.loops.names import Names, at, constant
from slomodel.codegen.loops.nest import (
    Axis,
    Begin,
    Block,
    Copy,
    Element,
    Integers,
    Moving,
    Nest,
    Output,
    Passage,
    Position,
    Reduce,
    Scalar,
    TimeLoop,
)
from slomodel.codegen.loops.text import indented
from slomodel.codegen.native.names import EntryNames
from slomodel.codegen.native.plain import copy_lines, fill_line
from slomodel.ir.expr import Expr, Input

Lines = list[str]


@final
class StepNames:
    """The names in one passage of a step: places of its inputs and targets move with the step.

    Its arrays lie in the workspace from `start` on.
    """

    def __init__(self, passage: Passage, outer: EntryNames, start: int, numbers: Numbers) -> None:
        self._passage = passage
        self._outer = outer
        self._start = start
        self._numbers = numbers

    def base(self, array: Expr | Output) -> str:
        """The address of the first element of an array at this step."""
        if isinstance(array, Output):
            return self._address(self._passage.targets[array.k])
        if array in self._passage.reads:
            return self._address(self._passage.reads[array])
        place = self._passage.memory.places[array]
        if place.output is not None:
            return self._address(self._passage.targets[place.output])
        return at("w", self._start + place.start)

    def _address(self, one: Moving) -> str:
        if isinstance(one.first, Scalar):
            return f"&(const real){{{self._outer.number(one.first.node)}}}"
        text = self._outer.base(one.first.array)
        offset = one.first.position.offset
        text += f" + {offset}" if offset > 0 else f" - {-offset}" if offset < 0 else ""
        if not one.stride:
            return text
        return f"{text} + step" if one.stride == 1 else f"{text} + step * {one.stride}"

    def number(self, node: Expr) -> str:
        """The value of a node of rank 0 that is not a view."""
        known = constant(node, self._numbers)
        if known is not None:
            return known
        read = self._passage.reads.get(node)
        if read is not None and isinstance(read.first, Scalar):
            return self._outer.number(read.first.node)
        if read is not None or node in self._passage.memory.places:
            return f"({self.base(node)})[0]"
        return self._outer.variable(node)

    def element(self, one: Element | Scalar) -> str:
        """The single element of an access without axes."""
        if isinstance(one, Scalar):
            return self.number(one.node)
        return f"({self.base(one.array)})[{one.position.offset}]"

    def integers(self, integers: Integers) -> str:
        """The address of index data at this step."""
        assert isinstance(integers, Input), "index arrays of a loop in order are in the text"
        return f"({self.base(integers)})"


def time_lines(
    loop: TimeLoop,
    names: EntryNames,
    start: int,
    numbers: Numbers,
    block_lines: Callable[[Block, Names], Lines],
) -> Lines:
    """The statements of a loop over time; its own arrays lie in the workspace from `start` on."""
    lines = [line for one in loop.begins for line in _begin_lines(one, names)]
    body: Lines = []
    for one in loop.passages:
        own = StepNames(one, names, start, numbers)
        start += one.memory.size
        lines += [line for block in one.once for line in block_lines(block, own)]
        inner = [line for block in one.blocks for line in block_lines(block, own)]
        for k in range(len(one.values)):
            inner += _target_lines(one, k, own, block_lines)
        if one.start > loop.first:
            inner = [f"if (step >= {one.start}) {{", *indented(inner), "}"]
        body += inner
    if not body or loop.first >= loop.length:
        return lines
    head = f"for (long step = {loop.first}; step < {loop.length}; step++) {{"
    if loop.backwards:
        head = f"for (long step = {loop.length - 1}; step >= {loop.first}; step--) {{"
    return [*lines, head, *indented(body), "}"]


def scratch_of(loop: TimeLoop) -> int:
    """The length of the workspace that the passages of a loop need."""
    return sum(one.memory.size for one in loop.passages)


def _begin_lines(one: Begin, names: EntryNames) -> Lines:
    lines: Lines = []
    if one.source is not None:
        lines += copy_lines(Copy(one.array, (one.count, *one.shape[1:]), one.source), names)
    stride = prod(one.shape[1:])
    done, total = one.count * stride, one.shape[0] * stride
    if one.cleared and done < total:
        lines.append(fill_line(at(names.base(one.array), done), total - done, 0.0))
    return lines


def _target_lines(
    one: Passage, k: int, names: StepNames, block_lines: Callable[[Block, Names], Lines]
) -> Lines:
    """The statements that store a value of a passage in its target, or add it."""
    value, shape = one.values[k], one.shapes[k]
    if value is None:
        return []
    if not shape:
        sign = "+=" if k in one.adds else "="
        return [f"({names.base(Output(k))})[0] {sign} {names.element(value)};"]
    if k not in one.adds:
        return copy_lines(Copy(Output(k), shape, value), names)
    target = Element(Output(k), Position(0, c_order(shape)))
    nest = Nest(tuple(map(Axis.of, shape)), (Reduce("sum", (value,), target),))
    return block_lines(nest, names)
