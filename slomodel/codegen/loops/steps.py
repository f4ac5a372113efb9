"""Loops over time in loop form: the reads, values and stores of each group of updates in a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from slomodel.codegen.loops.access import Access, Accesses, c_order
from slomodel.codegen.loops.axis_pieces import in_pieces
from slomodel.codegen.loops.fusion import Fusion, elements
from slomodel.codegen.loops.log_sums import log_products, log_sum_terms
from slomodel.codegen.loops.nest import (
    Begin,
    Block,
    Element,
    MovingPosition,
    Position,
    Scalar,
    StatePlace,
    StepBody,
    TimeLoop,
    WrittenPlace,
    located,
)
from slomodel.codegen.loops.regions import Region
from slomodel.codegen.loops.row_parts import with_row_parts
from slomodel.codegen.loops.scalars import by_element, scalars
from slomodel.codegen.loops.workspace import Memory
from slomodel.codegen.program import Program, UpdateGroup
from slomodel.codegen.schedule import schedule
from slomodel.functions import add
from slomodel.ir import build
from slomodel.ir.dims import Dim
from slomodel.ir.expr import Const, Expr, Input, Recur
from slomodel.ir.loop import Source, StateAt, Update, Whole
from slomodel.ir.walk import postorder

Blocks = Callable[[Region, Fusion], list[Block]]


def time_loop(node: Recur, fusion: Fusion, blocks: Blocks) -> TimeLoop:
    """The loop over the steps of all states of a recurrence."""
    loop = node.loop
    length = fusion.accesses.shape(node)[0]
    begins = []
    for state, first in zip(node.states, loop.initial, strict=True):
        shape = fusion.accesses.shape(state)
        count, source, covered = 0, None, Dim()
        if first is not None:
            operand = node.operands[first]
            covered = operand.shape[0]
            count = min(length, fusion.accesses.shape(operand)[0])
            source = located(fusion.accesses.of(operand))
        whole = loop.is_assigned(state.state, covered)
        begins.append(Begin(state, shape, count, source, cleared=not whole))
    bodies = []
    for group in fusion.steps[node].groups:
        parts = _Parts(node, fusion.accesses)
        program = parts.by_element(group) or parts.as_arrays(group)
        bodies.append(parts.body(group, program, blocks))
    first_step = min((body.start for body in bodies), default=length)
    own = (length, loop.backwards, first_step, tuple(begins), tuple(bodies))
    if any(begin.cleared for begin in begins):
        return TimeLoop(*own)
    sums = log_sum_terms(node, fusion, first_step)
    return TimeLoop(*own, sums, log_products(node, fusion, first_step))


@dataclass(slots=True)
class _Parts:
    """The reads and writes of a group of updates, as arrays or elementwise."""

    node: Recur
    accesses: Accesses
    reads: dict[Expr, MovingPosition] = field(default_factory=dict)
    given: dict[Expr, Access] = field(default_factory=dict)
    read_places: dict[Expr, StatePlace] = field(default_factory=dict)
    targets: list[MovingPosition] = field(default_factory=list)
    written_places: list[WrittenPlace] = field(default_factory=list)
    adds: set[int] = field(default_factory=set)

    def as_arrays(self, group: UpdateGroup) -> Program:
        """The program of the group, whose inputs and results are whole arrays.

        What an update adds to is read in the loop that computes its value.
        """
        used = set(postorder(*group.program.roots))
        for placeholder, source in self.node.loop.sources:
            if placeholder in used:
                self._read(placeholder, placeholder, source, ())
        for update in group.updates:
            self._write(update, None)
        roots = list(group.program.roots)
        places = self.written_places
        for k in sorted(self.adds):
            alone = sum(one[::2] == places[k][::2] for one in places) == 1
            if roots[k].rank and alone:
                target = Input(f"target {k}", "step", roots[k].shape)
                self.reads[target] = self.targets[k]
                self.given[target] = Access(target, 0, c_order(self.accesses.shape(target)))
                roots[k] = build.apply(add, target, roots[k])
                self.adds.remove(k)
        divided = in_pieces(roots, self.accesses.numbers)
        if tuple(divided) == group.program.roots:
            return group.program
        return schedule(divided, list(self.reads), prints=None, numbers=self.accesses.numbers)  # type: ignore[arg-type]

    def by_element(self, group: UpdateGroup) -> Program | None:
        """The program of the group in scalars; None if that is too large."""
        numbers = self.accesses.numbers
        result = by_element(group.program.roots, numbers)
        if result is None:
            return None
        roots, inputs = result
        sources = dict(self.node.loop.sources)
        every: list[Expr] = []
        for update, own in zip(group.updates, roots, strict=True):
            for k, root in enumerate(scalars(own)):
                self._write(update, k)
                every.append(root)
        used = set(postorder(*every))
        read = [one for one in inputs if one in used]
        for one in read:
            placeholder, at = inputs[one]
            self._read(one, placeholder, sources[placeholder], at)
        return schedule(every, read, prints=None, numbers=numbers)

    def _read(self, name: Expr, placeholder: Expr, source: Source, at: tuple[int, ...]) -> None:
        """Record where the value of a placeholder, or its element `at`, lies at each step."""
        if isinstance(source, StateAt):
            array: Expr = self.node.states[source.state]
        else:
            array = self.node.operands[source.operand]
        access = self.accesses.of(array)
        varying, strides, offset = 0, access.strides, access.offset
        if not isinstance(source, Whole):
            varying, *rest = access.strides
            strides = tuple(rest)
            offset += varying * source.shift.value(self.accesses.numbers)
        if name is not placeholder:
            offset += sum(k * stride for k, stride in zip(at, strides, strict=True))
            strides = ()
        base = access.base
        place = Element(base, Position(offset)) if base.rank else Scalar(base)
        self.reads[name] = MovingPosition(place, varying)
        self.given[name] = Access(name, 0, strides)
        if isinstance(source, StateAt) and not name.rank:
            inside = c_order(self.accesses.shape(placeholder))
            element = sum(k * stride for k, stride in zip(at, inside, strict=True))
            shift = source.shift.value(self.accesses.numbers)
            self.read_places[name] = (source.state, element, shift)

    def _write(self, update: Update, element: int | None) -> None:
        """Record the target of an update, or of one element of it."""
        loop, state = self.node.loop, self.node.states[update.state]
        shape = self.accesses.shape(state)[1:]
        stride, shift = elements(shape), update.shift.value(self.accesses.numbers)
        place = Element(state, Position(stride * shift + (element or 0)))
        first = loop.initial[update.state]
        covered = Dim() if first is None else self.node.operands[first].shape[0]
        if not loop.is_assigned(update.state, covered):
            self.adds.add(len(self.targets))
        self.targets.append(MovingPosition(place, stride))
        single = element is not None or not shape
        self.written_places.append((update.state, (element or 0) if single else None, shift))

    def body(self, group: UpdateGroup, program: Program, blocks: Blocks) -> StepBody:
        """The body that runs a program and stores its roots in the targets."""
        numbers = self.accesses.numbers
        inner = Fusion(program, numbers, in_order=True, given=self.given)
        nothing: Expr = Const(0.0)  # which has no memory of its own
        roots = program.roots
        memory = Memory(inner, [nothing if k in self.adds else r for k, r in enumerate(roots)])
        parts: dict[bool, list[Block]] = {True: [], False: []}
        regions = [(region, blocks(region, inner)) for region in inner.regions]
        for region, own in zip(inner.regions, with_row_parts(regions, inner, None), strict=True):
            parts[region.stage == "call"] += own
        return StepBody(
            group.start.value(numbers),
            self.reads,
            tuple(self.targets),
            tuple(parts[False]),
            tuple(parts[True]),
            tuple(
                None if k in memory.given else located(inner.accesses.of(root))
                for k, root in enumerate(roots)
            ),
            tuple(inner.accesses.shape(root) for root in roots),
            frozenset(self.adds),
            memory,
            self.read_places,
            tuple(self.written_places),
        )
