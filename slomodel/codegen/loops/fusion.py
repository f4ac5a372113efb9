"""Which computations run in one loop: all over one index, each element from elements at its place.

A node joins a loop that makes what it reads at the same place, so that this never goes through
memory; sums of such values are taken along. What reads a sum, or elements at other places, comes
in a later loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from slomodel.codegen.cost import is_quick
from slomodel.codegen.loops.access import Access, Accesses, Numbers, c_order
from slomodel.codegen.program import Form, Program, Stage, Step
from slomodel.ir.expr import Affine, Axes, Einsum, Expr, Input, Map, Scatter, affine, is_listed
from slomodel.ir.walk import dependents, postorder, users

VIEWS = (Form.AXES, Form.SLICE, Form.TAKE)
STAGES: tuple[Stage, ...] = ("data", "centre", "call")
MOST_NODES = 64
"""A loop of more would keep more blocks than the cache holds."""
_ALONE = (Form.COUNT, Form.ONES, Form.SCAN)


@dataclass(frozen=True, slots=True)
class Read:
    """An operand and, for each of its axes, the axis of the loop that it runs along."""

    node: Expr
    axes: Axes

    def is_in_place(self, rank: int) -> bool:
        return self.axes == tuple(range(rank))


@dataclass(slots=True)
class Region:
    """A loop over `shape` that computes `nodes` in order; `alone`: one that has code of its own."""

    stage: Stage
    shape: tuple[int, ...]
    alone: bool = False
    nodes: list[Expr] = field(default_factory=list)


class Regions:
    """The loops of a program, in order.

    `stored` are the nodes whose values have to lie in memory; other arrays exist a block at a
    time, and other scalars as variables.
    """

    def __init__(self, program: Program, numbers: Numbers) -> None:
        self.program = program
        self.forms = program.forms
        self.accesses = Accesses(self.is_view, numbers)
        self.order = postorder(*program.roots)
        self.steps: Mapping[Expr, Step] = {step.node: step for step in program.steps}
        self._moving = dependents(self.order, set(program.arguments).__contains__)
        often = set(program.arguments) - set(program.centre)
        self._calling = dependents(self.order, often.__contains__)
        self._absorbed = {step.added for step in program.steps if step.added is not None}
        self._repeated = self._quick()
        self._place_all()
        while self._repeated & self.stored:
            self._repeated -= self.stored
            self._place_all()

    def _place_all(self) -> None:
        self.region_of: dict[Expr, int] = {}
        self.regions: list[Region] = []
        for stage in STAGES:
            self._start = len(self.regions)
            for node in self.order:
                later = node in self._repeated
                if self._is_computed(node) and self._stage(node) == stage and not later:
                    self._place(node, stage)
        self.stored = self._stored()

    def _quick(self) -> set[Expr]:
        """What could be made once of one array of data, but is as quick to make as to read."""
        using = users(self.order)
        found: set[Expr] = set()
        for node in self.order:
            if isinstance(node, Map) and node.rank and using[node] and node not in self._moving:
                arrays = [operand for operand in node.operands if operand.rank]
                plain = len(arrays) == 1 and isinstance(arrays[0], Input)
                if plain and is_quick(node.function) and all(map(self._is_called, using[node])):
                    found.add(node)
        return found

    def _is_called(self, node: Expr) -> bool:
        return node in self._calling and self.forms[node] is Form.ELEMENTWISE

    def _stage(self, node: Expr) -> Stage:
        if node in self._calling or node in self._repeated:
            return "call"
        return "centre" if node in self._moving else "data"

    def is_view(self, node: Expr) -> bool:
        """True for what is looked up where its operand lies."""
        form = self.forms[node]
        if form is Form.RESHAPE:
            return self.accesses.foldable(node)  # type: ignore[arg-type]
        return form in VIEWS and not is_listed(node)

    def reads(self, node: Expr) -> Iterator[Read]:
        """What a node computes with, by the axes of its loop."""
        if self.forms[node] is Form.ACCUMULATE:
            term = self.steps[node].reads[1]
            yield Read(term, tuple(range(term.rank)))
        elif isinstance(node, Map):
            yield from map(Read, node.operands, node.axes)
        elif isinstance(node, Einsum) and node.operands and not self.is_matrix_product(node):
            order = loop_labels(node)
            for operand, own in zip(node.operands, node.inputs, strict=True):
                yield Read(operand, tuple(order.index(label) for label in own))
        else:
            for operand in node.operands:
                yield Read(operand, tuple(range(operand.rank)))

    def start_of(self, node: Expr) -> Expr | None:
        """What an accumulation begins with where that is not its own memory."""
        if self.forms[node] is not Form.ACCUMULATE or self.in_place(node) is not None:
            return None
        return self.steps[node].reads[0]

    def in_place(self, node: Expr) -> Expr | None:
        """The node in whose memory an accumulation goes on."""
        start = self.steps[node].in_place if node in self.steps else None
        return None if start is None or self.is_view(start) else start

    def index(self, node: Expr) -> tuple[Affine, ...]:
        """Where a scatter, or an accumulation, puts the elements of what it reads."""
        scatter = self.steps[node].added if self.forms[node] is Form.ACCUMULATE else node
        assert isinstance(scatter, Scatter)
        return affine(scatter.index)

    def is_matrix_product(self, node: Expr) -> bool:
        """True for a product of two arrays whose result has axes that only one of them has."""
        if self.forms[node] is not Form.PRODUCT:
            return False
        assert isinstance(node, Einsum)
        left, right = (set(own) for own in node.inputs)
        return left != right

    def is_value(self, node: Expr) -> bool:
        """True for what has a value at each place of its loop; others gather over many places."""
        return self.forms[node] in (Form.ELEMENTWISE, Form.RESHAPE)

    def loop_shape(self, node: Expr) -> tuple[int, ...]:
        """The index that the loop of a node runs over."""
        if self.forms[node] is Form.ACCUMULATE:
            return self.accesses.shape(self.steps[node].reads[1])
        if isinstance(node, Map) or self._is_alone(node):
            return self.accesses.shape(node)
        return self.accesses.shape(max(node.operands, key=lambda operand: operand.rank))

    def work(self, region: Region) -> int:
        """About how many operations a region takes."""
        node = region.nodes[0]
        if region.alone and isinstance(node, Einsum):
            return elements([dim.size(self.accesses.numbers) for dim in node.dims])
        return elements(region.shape) * len(region.nodes)

    def overwrites(self, node: Expr, base: Expr) -> bool:
        """Whether a node may lie where another does that its loop, and no later one, reads."""
        place = self.region_of[node]
        region = self.regions[place]
        if region.alone or place == self.region_of[base] or not self.is_value(node):
            return False
        if not region.shape:
            return False
        here, rank = Access(base, 0, c_order(region.shape)), len(region.shape)
        if elements(self.accesses.shape(base)) != elements(region.shape):
            return False
        for user in region.nodes:
            if any(
                start is not None and self.accesses.of(start).base is base
                for start in (self.start_of(user), self.in_place(user))
            ):
                return False
            for read in self.reads(user):
                access = self.accesses.of(read.node)
                if access.base is base and not (access == here and read.is_in_place(rank)):
                    return False
        return True

    def _is_alone(self, node: Expr) -> bool:
        return self.forms[node] in _ALONE or self.is_matrix_product(node) or is_listed(node)

    def _is_computed(self, node: Expr) -> bool:
        form = self.forms[node]
        if form in (Form.INPUT, Form.CONSTANT) or node in self._absorbed:
            return False
        return not self.is_view(node) and bool(node.rank or form is not Form.ONES)

    def _place(self, node: Expr, stage: Stage) -> None:
        shape = self.loop_shape(node)
        place = None if self._is_alone(node) else self._joined(node, shape)
        if place is None:
            place = len(self.regions)
            self.regions.append(Region(stage, shape, self._is_alone(node)))
        for one in (*dict.fromkeys(node.operands), node):
            if one is node or (one in self._repeated and one not in self.region_of):
                self.regions[place].nodes.append(one)
                self.region_of[one] = place

    def _joined(self, node: Expr, shape: tuple[int, ...]) -> int | None:
        """The region of this shape nearest to what the node reads that it may join."""
        earliest = self._start
        for read in self.reads(node):
            made = self.region_of.get(self.accesses.of(read.node).base)
            if made is not None:
                here = self.regions[made].shape == shape and self._may_share(read, shape)
                earliest = max(earliest, made if here else made + 1)
        for start in (self.start_of(node), self.in_place(node)):
            made = None if start is None else self.region_of.get(self.accesses.of(start).base)
            if start is not None and made is not None:
                same = start is self.in_place(node) and self.forms[start] in _ADDING
                earliest = max(earliest, made if same else made + 1)
        for place in range(earliest, len(self.regions)):
            region = self.regions[place]
            roomy = not region.alone and len(region.nodes) < MOST_NODES
            if region.shape == shape and roomy and self._admits(place, node):
                return place
        return None

    def _admits(self, place: int, node: Expr) -> bool:
        """Whether a loop of a node's shape may take it along."""
        return True

    def _may_share(self, read: Read, shape: tuple[int, ...]) -> bool:
        """Whether a loop may read what it makes: at its own place, or where it has one place."""
        if not shape:
            return True
        return self.is_value_here(read, len(shape))

    def is_value_here(self, read: Read, rank: int) -> bool:
        """True where a value made in the same loop is read at the place where it was made."""
        return (
            read.node in self.region_of
            and self.forms[read.node] is Form.ELEMENTWISE
            and read.is_in_place(rank)
        )

    def _stored(self) -> set[Expr]:
        stored: set[Expr] = set()
        for place, region in enumerate(self.regions):
            for node in region.nodes:
                if node.rank and not self.is_value(node):
                    stored.add(node)
                if node.rank and self.forms[node] is Form.RESHAPE:
                    stored.add(node)
                stored.update(self._read_from_memory(node, place, len(region.shape)))
        for root in self.program.roots:
            stored.add(self.accesses.of(root).base)
        scalars = {n for n in stored if not n.rank and not self._crosses(n)}
        return {n for n in stored - scalars if n in self.region_of}

    def _read_from_memory(self, node: Expr, place: int, rank: int) -> Iterator[Expr]:
        for start in (self.start_of(node), self.in_place(node)):
            if start is not None:
                yield self.accesses.of(start).base
        for read in self.reads(node):
            base = self.accesses.of(read.node).base
            made_here = self.region_of.get(base) == place and self.is_value_here(read, rank)
            if not made_here:
                yield base

    def _crosses(self, node: Expr) -> bool:
        """True for a scalar that is made once and read at many calls."""
        made = self.region_of.get(node)
        return made is not None and self.regions[made].stage != "call"


_ADDING = (Form.PUT, Form.ACCUMULATE)


def loop_labels(node: Einsum) -> Axes:
    """The labels of a sum or a scalar product in the order of the operand with all of them."""
    return max(node.inputs, key=len)


def elements(shape: Sequence[int]) -> int:
    return prod(shape)
