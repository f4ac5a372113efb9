"""C source of a loop over time: the blocks of one step in one loop, without function calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import final

from slomodel.codegen.loops.access import Numbers, c_order
from slomodel.codegen.loops.names import Names, at, constant, element_text
from slomodel.codegen.loops.nest import (
    Axis,
    Begin,
    Block,
    Copy,
    Element,
    Integers,
    MovingPosition,
    Nest,
    Output,
    Position,
    Reduce,
    Scalar,
    StatePlace,
    StepBody,
    TimeLoop,
)
from slomodel.codegen.loops.text import indented
from slomodel.codegen.native.log_products import log_product_lines
from slomodel.codegen.native.log_sums import log_sum_lines
from slomodel.codegen.native.names import EntryNames
from slomodel.codegen.native.plain import copy_lines, fill_line
from slomodel.codegen.native.vector_calls import vector_call_lines
from slomodel.ir.expr import Expr, Input

Lines = list[str]


@final
class StepNames:
    """The names in one body of a step; positions of its inputs and targets depend on the step.

    Its arrays lie in the workspace from `start` on. `held` are variables that hold inputs. The loop
    is inside `depth` others.
    """

    def __init__(
        self,
        body: StepBody,
        outer: EntryNames | StepNames,
        start: int,
        numbers: Numbers,
        held: Mapping[Expr, str],
    ) -> None:
        self._body = body
        self._outer = outer
        self._start = start
        self._numbers = numbers
        self._held = held
        self._depth = depth_of(outer)

    @property
    def depth(self) -> int:
        return self._depth

    def base(self, array: Expr | Output) -> str:
        """The address of the first element of an array at this step."""
        if isinstance(array, Output):
            return self.address(self._body.targets[array.k])
        if array in self._body.reads:
            return self.address(self._body.reads[array])
        place = self._body.memory.places[array]
        if place.output is not None:
            return self.address(self._body.targets[place.output])
        return at("w", self._start + place.start)

    def address(self, one: MovingPosition, step: str = "") -> str:
        """The address of a position at a step, by default the current one."""
        step = step or _named("step", self._depth)
        if isinstance(one.first, Scalar):
            return f"&(const real){{{self._outer.number(one.first.node)}}}"
        text = self._outer.base(one.first.array)
        offset = one.first.position.offset
        text += f" + {offset}" if offset > 0 else f" - {-offset}" if offset < 0 else ""
        if not one.stride:
            return text
        return f"{text} + {step}" if one.stride == 1 else f"{text} + {step} * {one.stride}"

    def number(self, node: Expr) -> str:
        """The value of a node of rank 0 that is not a view."""
        known = self._held.get(node) or constant(node, self._numbers)
        if known is not None:
            return known
        read = self._body.reads.get(node)
        if read is not None and isinstance(read.first, Scalar):
            return self._outer.number(read.first.node)
        if read is not None or node in self._body.memory.places:
            return f"({self.base(node)})[0]"
        return self.variable(node)

    def variable(self, node: Expr, depth: int = 0) -> str:
        """The variable that holds a number, inside `depth` further loops."""
        return self._outer.variable(node, depth + 1)

    def element(self, one: Element | Scalar) -> str:
        """The single element of an access without axes."""
        if isinstance(one, Scalar):
            return self.number(one.node)
        if not isinstance(one.array, Output) and one.array in self._held:
            return self._held[one.array]
        return f"({self.base(one.array)})[{one.position.offset}]"

    def integers(self, integers: Integers) -> str:
        """The address of index data at this step."""
        assert isinstance(integers, Input), "index arrays of a loop in order are in the text"
        read = self._body.reads.get(integers)
        if read is not None and isinstance(read.first, Scalar):
            return f"(&(const long){{{self._outer.number(read.first.node)}}})"
        return f"({self.base(integers)})"


def depth_of(names: EntryNames | StepNames) -> int:
    """The number of loops over time around a loop whose surroundings have these names."""
    return names.depth + 1 if isinstance(names, StepNames) else 0


def _named(name: str, depth: int) -> str:
    """The name of a variable of a loop that is inside `depth` others."""
    return f"{name}_{depth}" if depth else name


Printer = Callable[[Block, Names], Lines]
"""(block, names of its arrays) -> the statements of the block."""


def time_lines(
    loop: TimeLoop,
    names: EntryNames | StepNames,
    start: int,
    numbers: Numbers,
    printer: Printer,
) -> Lines:
    """The statements of a loop over time; its own arrays lie in the workspace from `start` on.

    Between two successive starts of bodies every step executes the same bodies: each such
    segment is a loop without conditions.
    """
    lines = [line for begin in loop.begins for line in _begin_lines(begin, names)]
    if loop.log_sums is not None and isinstance(names, EntryNames):
        return [*lines, *log_sum_lines(loop, loop.log_sums, names)]
    if loop.log_products is not None and isinstance(names, EntryNames):
        return [*lines, *log_product_lines(loop, loop.log_products, names)]
    starts = [start]
    for one in loop.bodies:
        starts.append(starts[-1] + _scratch_of_body(one))
        own = StepNames(one, names, starts[-2], numbers, {})
        lines += _body_lines(one, one.once, own, starts[-2], numbers, printer)
    edges = sorted({min(body.start, loop.length) for body in loop.bodies} | {loop.length})
    segments = list(pairwise(edges))
    for low, high in reversed(segments) if loop.backwards else segments:
        active = [k for k, one in enumerate(loop.bodies) if one.start <= low]
        segment = _Segment(loop, active, low, high, depth_of(names))
        lines += segment.lines(names, starts, numbers, printer)
    return lines


def _body_lines(
    body: StepBody,
    blocks: Sequence[Block],
    names: StepNames,
    start: int,
    numbers: Numbers,
    printer: Printer,
) -> Lines:
    """The statements of blocks of a body; arrays of loops inside it lie after its own."""
    inner = start + body.memory.size
    lines: Lines = []
    for block in (*body.once, *body.blocks):
        if isinstance(block, TimeLoop):
            if any(block is one for one in blocks):
                lines += time_lines(block, names, inner, numbers, printer)
            inner += scratch_of(block)
        elif any(block is one for one in blocks):
            lines += printer(block, names)
    return lines


class _Segment:
    """The steps low, …, high - 1 of a loop, each of which executes the `active` bodies.

    An element of a state that is read one step after it was written, or at the same step by a
    later body, is held in a variable, so that the next step does not wait for memory.
    """

    def __init__(
        self, loop: TimeLoop, active: Sequence[int], low: int, high: int, depth: int
    ) -> None:
        self.loop = loop
        self.depth = depth
        self.active = active
        self.low, self.high = low, high
        self.writers = self._last_writers()
        self.carried: dict[StatePlace, str] = {}
        self.made: dict[tuple[int, int], str] = {}

    def _last_writers(self) -> dict[tuple[int, int], tuple[int, int, int]]:
        """For each element of a state, the write that completes it: its body, target, shift.

        A state to which a body writes as an array has none: it is read from memory.
        """
        bodies = [self.loop.bodies[p] for p in self.active]
        arrays = {state for body in bodies for state, k, _ in body.written_places if k is None}
        result: dict[tuple[int, int], tuple[int, int, int]] = {}
        for p in self.active:
            for k, (state, element, shift) in enumerate(self.loop.bodies[p].written_places):
                if element is None or state in arrays:
                    continue
                before = result.get((state, element))
                later = before is None or (
                    shift >= before[2] if self.loop.backwards else shift <= before[2]
                )
                if later:
                    result[state, element] = (p, k, shift)
        return result

    def held(self, p: int) -> dict[Expr, str]:
        """The variables that hold inputs of a body."""
        names: dict[Expr, str] = {}
        behind = -1 if not self.loop.backwards else 1
        for one, place in self.loop.bodies[p].read_places.items():
            state, element, shift = place
            writer = self.writers.get((state, element))
            if writer is None:
                continue
            if shift == writer[2] and writer[0] < p:
                names[one] = self._made(writer[:2])
            elif shift == writer[2] + behind:
                name = _named(f"c{len(self.carried)}", self.depth)
                names[one] = self.carried.setdefault(place, name)
                self._made(writer[:2])
        return names

    def _made(self, target: tuple[int, int]) -> str:
        """The variable that holds what a body writes."""
        return self.made.setdefault(target, _named(f"u{len(self.made)}", self.depth))

    def lines(
        self,
        names: EntryNames | StepNames,
        starts: Sequence[int],
        numbers: Numbers,
        printer: Printer,
    ) -> Lines:
        """The loop over the steps of the segment."""
        own = {
            p: StepNames(self.loop.bodies[p], names, starts[p], numbers, self.held(p))
            for p in self.active
        }
        statements: Lines = []
        for p in self.active:
            one = self.loop.bodies[p]
            lines = vector_call_lines(one.blocks, own[p])
            if lines is None:
                lines = _body_lines(one, one.blocks, own[p], starts[p], numbers, printer)
            statements += lines
            for k in range(len(one.values)):
                statements += self._target_lines(one, k, own[p], self.made.get((p, k)), printer)
        begin = self.high - 1 if self.loop.backwards else self.low
        before: Lines = []
        for place, name in self.carried.items():
            before.append(f"real {name} = {self._carried_from(place, own, begin)};")
            statements.append(f"{name} = {self.made[self.writers[place[:2]][:2]]};")
        step = _named("step", self.depth)
        head = f"for (long {step} = {self.low}; {step} < {self.high}; {step}++) {{"
        if self.loop.backwards:
            head = f"for (long {step} = {self.high - 1}; {step} >= {self.low}; {step}--) {{"
        loop = [head, *indented(statements), "}"]
        return ["{", *indented([*before, *loop]), "}"] if before else loop

    def _carried_from(self, place: StatePlace, own: Mapping[int, StepNames], begin: int) -> str:
        """The element that the first step reads, in memory."""
        for p in self.active:
            for one, other in self.loop.bodies[p].read_places.items():
                if other == place:
                    address = own[p].address(self.loop.bodies[p].reads[one], str(begin))
                    return f"({address})[0]"
        raise AssertionError("a carried element is read")

    def _target_lines(
        self, one: StepBody, k: int, names: StepNames, name: str | None, printer: Printer
    ) -> Lines:
        """The statements that store a value in its target, or add it; `name` holds the result."""
        value, shape = one.values[k], one.shapes[k]
        if value is None:
            return []
        if not shape:
            target, text = f"({names.base(Output(k))})[0]", element_text(value, names)
            if name is None:
                return [f"{target} {'+=' if k in one.adds else '='} {text};"]
            total = f"{target} + {text}" if k in one.adds else text
            return [f"const real {name} = {total};", f"{target} = {name};"]
        if k not in one.adds:
            return copy_lines(Copy(Output(k), shape, value), names)
        place = Element(Output(k), Position(0, c_order(shape)))
        nest = Nest(tuple(map(Axis.of, shape)), (Reduce("sum", (value,), place),))
        return printer(nest, names)


def scratch_of(loop: TimeLoop) -> int:
    """The length of the workspace that the bodies of a loop need."""
    return sum(map(_scratch_of_body, loop.bodies))


def _scratch_of_body(one: StepBody) -> int:
    inner = (block for block in (*one.once, *one.blocks) if isinstance(block, TimeLoop))
    return one.memory.size + sum(map(scratch_of, inner))


def _lies_there(one: Begin, names: EntryNames | StepNames) -> bool:
    """Whether the initial values of a state were computed where the state lies."""
    source = one.source
    return isinstance(source, Element) and names.base(source.array) == names.base(one.array)


def _begin_lines(one: Begin, names: EntryNames | StepNames) -> Lines:
    lines: Lines = []
    if one.source is not None and not _lies_there(one, names):
        lines += copy_lines(Copy(one.array, (one.count, *one.shape[1:]), one.source), names)
    stride = prod(one.shape[1:])
    done, total = one.count * stride, one.shape[0] * stride
    if one.cleared and done < total:
        lines.append(fill_line(at(names.base(one.array), done), total - done, 0.0))
    return lines
