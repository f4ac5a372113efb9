"""Which computations share a loop: those over one index that read operands at the same index.

A node joins the loop that computes its operands at the same index, so that those values are not
written to memory; sums of such values are accumulated in the same loop. A node that reads a sum, or
elements at other indices, is computed in a later loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import prod

from slomodel.codegen.loops.access import Access, Accesses, Numbers, c_order, merged_axes
from slomodel.codegen.loops.assembled import assembled
from slomodel.codegen.loops.collected import Collected, Term
from slomodel.codegen.loops.index_pieces import Pieces
from slomodel.codegen.loops.layouts import (
    is_copy,
    is_row,
    is_summed_in_loop,
    layouts,
)
from slomodel.codegen.loops.regions import OpenRegions, Read, Region, loop_labels, scalars_first
from slomodel.codegen.loops.runs import Runs
from slomodel.codegen.loops.sinking import is_narrow, sunk
from slomodel.codegen.lower import Blocks
from slomodel.codegen.program import ALONE, Form, Program, Stage, Step, together
from slomodel.functions.cost import is_quick
from slomodel.ir.expr import (
    Affine,
    Axes,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Input,
    Lookup,
    Map,
    MatrixOperation,
    Recur,
    Scatter,
    affine,
    is_listed,
)
from slomodel.ir.walk import dependents, postorder, users

VIEWS = (Form.AXES, Form.SLICE, Form.TAKE)
STAGES: tuple[Stage, ...] = ("data", "centre", "call")
MOST_NODES, _MOST_IF_SHORT, _MOST_ON_DEVICE, _SHORT = 512, 128, 64, 64
"""The nodes of a loop, of one with fewer elements than the last: for more there is no cache."""
_NOWHERE: Axes = (-1,)
"""The axes of a loop along which an operand runs that is read at other places."""


class Fusion:
    """The loops of a program, in order.

    `stored` are the nodes with memory, and `owners` gives the one whose memory each of them uses;
    other arrays exist a block at a time, and other scalars as variables. `in_order`: a loop takes
    its elements one after another, and may add to values in memory and overwrite what it has read.
    Without an order, as on a device, all sums of a loop run along the same axes, each element of an
    array collects its contributions from slices, and `copied` are the views that a product needs as
    matrices. `given` are inputs not in C order; for `runs` and `pieces` see `runs_of`, `pieces_of`.
    """

    def __init__(
        self,
        program: Program,
        numbers: Numbers,
        *,
        in_order: bool,
        given: Mapping[Expr, Access] | None = None,
        runs: Mapping[Expr, Runs] | None = None,
        pieces: Pieces | None = None,
    ) -> None:
        self.program, self.in_order = program, in_order
        self.runs, self.pieces = runs or {}, pieces or {}
        self.forms = program.forms
        self.order = together(postorder(*program.roots))
        self.steps: Mapping[Expr, Step] = {step.node: step for step in program.steps}
        self.assembled = assembled(program, numbers) if in_order else {}
        self._collected = None if in_order else Collected.of(program)
        joining = (Gather, Scatter) if in_order else (Gather,)
        self._lookups: tuple[type[Gather | Scatter], ...] = joining
        self.copied: frozenset[Expr] = frozenset()
        self.accesses = Accesses(self.is_view, numbers, given or {})
        own: Mapping[Expr, tuple[int, ...]] = {}
        if in_order:
            own = layouts(program, numbers, self.is_matrix_product, self.is_looked_up)
        self.copied = frozenset() if in_order else frozenset(self._copied())
        self.accesses = Accesses(self.is_view, numbers, given or {}, own)
        self._open = OpenRegions()
        self._replaceable: dict[int, dict[Expr, set[tuple[int, ...]]]] = {}
        self._moving = dependents(self.order, set(program.arguments).__contains__)
        often = set(program.arguments) - set(program.centre)
        self._calling = dependents(self.order, often.__contains__)
        self._absorbed = {step.added for step in program.steps if step.added is not None}
        self._repeated = self._quick()
        self._recomputed = self._outer() - self._repeated
        self._settle()
        if in_order:
            self._recomputed |= sunk(self)
            self._settle()

    def _settle(self) -> None:
        self._repeated -= {operand for one in self._recomputed for operand in one.operands}
        self._place_all()
        while (self._repeated | self._recomputed) & self.stored:
            self._repeated -= self.stored
            self._recomputed -= self.stored
            self._place_all()

    def _place_all(self) -> None:
        self.region_of: dict[Expr, int] = {}
        self.regions: list[Region] = []
        self._open = OpenRegions()
        self._replaceable = {}
        for stage in STAGES:
            self._start = len(self.regions)
            for node in scalars_first(self.order):
                later = node in self._repeated or node in self._recomputed
                if self._is_computed(node) and self._stage(node) == stage and not later:
                    self._place(node, stage)
        self.stored = self._stored()
        self.owners: dict[Expr, Expr] = {}
        for node in self.order:
            if node in self.stored:
                before = self.in_place(node)
                self.owners[node] = node if before is None else self.owners[before]

    def _quick(self) -> set[Expr]:
        """Functions of one array of data that are as quick to recompute as to read from memory."""
        if not self.in_order:
            return set()
        using = users(self.order)
        quick: set[Expr] = set()
        for node in self.order:
            if isinstance(node, Map) and node.rank and using[node] and node not in self._moving:
                arrays = [operand for operand in node.operands if operand.rank]
                plain = len(arrays) == 1 and isinstance(arrays[0], Input)
                if plain and is_quick(node.function) and all(map(self._is_called, using[node])):
                    quick.add(node)
        return quick

    def _is_called(self, node: Expr) -> bool:
        return node in self._calling and self.forms[node] is Form.ELEMENTWISE

    def _stage(self, node: Expr) -> Stage:
        if node in self._calling or node in self._repeated:
            return "call"
        return "centre" if node in self._moving else "data"

    def is_view(self, node: Expr) -> bool:
        """Whether a node is a view: its elements are read from its operand's memory."""
        form = self.forms[node]
        if node in self.copied or is_copy(node):
            return False
        if form is Form.RESHAPE:
            return self.accesses.foldable(node)  # type: ignore[arg-type]
        return form in VIEWS and not is_listed(node)

    def reads(self, node: Expr) -> Iterator[Read]:
        """The operands that a node reads, with the axes of its loop."""
        if self.collects(node):
            yield from (Read(term, tuple(range(term.rank))) for term, _ in self.terms(node))
        elif self.forms[node] is Form.ACCUMULATE:
            term = self.steps[node].reads[1]
            yield Read(term, tuple(range(term.rank)))
        elif isinstance(node, Map):
            yield from map(Read, node.operands, node.axes)
        elif self.is_looked_up(node):
            # A gather reads all its operands at other places, a scatter only its tables.
            first = node.operands[0]
            axes = _NOWHERE if isinstance(node, Gather) else range(first.rank)
            yield Read(first, tuple(axes))
            yield from (Read(table, _NOWHERE) for table in node.operands[1:])
        elif isinstance(node, Einsum) and node.operands and not self.is_matrix_product(node):
            order = loop_labels(node)
            for operand, own in zip(node.operands, node.inputs, strict=True):
                yield Read(operand, tuple(order.index(label) for label in own))
        else:
            for operand in node.operands:
                yield Read(operand, tuple(range(operand.rank)))

    def collects(self, node: Expr) -> bool:
        """Whether a node is an array whose elements sum contributions from slices."""
        return self._collected is not None and self._collected.holds(node)

    def terms(self, node: Expr) -> list[Term]:
        """The terms, in order, of a node that sums contributions from slices."""
        assert self._collected is not None
        return self._collected.terms(node)

    def start_of(self, node: Expr) -> Expr | None:
        """The initial value of an accumulation that has to be copied from elsewhere; else None."""
        if not self.in_order or self.forms[node] is not Form.ACCUMULATE:
            return None
        if self.in_place(node) is not None:
            return None
        return self.steps[node].reads[0]

    def in_place(self, node: Expr) -> Expr | None:
        """The node in whose memory an accumulation is continued; None for other nodes."""
        start = self.steps[node].in_place if self.in_order and node in self.steps else None
        return None if start is None or self.is_view(start) else start

    def index(self, node: Expr) -> tuple[Affine, ...]:
        """The index at which a scatter or an accumulation adds the elements of its operand."""
        scatter = self.steps[node].added if self.forms[node] is Form.ACCUMULATE else node
        assert isinstance(scatter, Scatter)
        return affine(scatter.index)

    def is_looked_up(self, node: Expr) -> bool:
        """Whether a gather, or in order a scatter, by index data shares a loop with others."""
        if not isinstance(node, self._lookups) or node not in self.forms:
            return False
        if not node.rank or not node.operands[0].rank:
            return False
        iterated = node if isinstance(node, Gather) else node.operands[0]
        # In order, other rows are read and added to most quickly as a whole, one by one.
        row = iterated.shape[-1].value(self.accesses.numbers)
        if self.in_order and iterated.rank > 1 and not is_row(row):
            return False
        tables = [self.accesses.of(one.table).base for one in node.index if isinstance(one, Lookup)]
        plain = all(isinstance(one, Affine | Lookup) for one in node.index)
        return bool(tables) and plain and all(isinstance(one, Input) for one in tables)

    def is_matrix_product(self, node: Expr) -> bool:
        """Whether a node is a product of two arrays that do not have the same labels.

        Products of one matrix and one vector for each index of a batch are sums in a loop: BLAS
        would take a call for each. On a device, all products with vectors are.
        """
        if self.forms[node] is not Form.PRODUCT:
            return False
        assert isinstance(node, Einsum)
        if is_summed_in_loop(node, in_order=self.in_order):
            return False
        left, right = (set(own) for own in node.inputs)
        return left != right

    def is_value(self, node: Expr) -> bool:
        """Whether a node has a value at each index of its loop; the others reduce over indices."""
        if self.forms[node] is Form.TAKE:
            return self.is_looked_up(node)
        return self.forms[node] in (Form.ELEMENTWISE, Form.RESHAPE)

    def loop_shape(self, node: Expr) -> tuple[int, ...]:
        """The shape that the loop of a node runs over."""
        if self.forms[node] is Form.ACCUMULATE:
            return self.accesses.shape(self.steps[node].reads[1])
        if isinstance(node, (Map, Gather)) or self._is_alone(node):
            return self.accesses.shape(node)
        return self.accesses.shape(max(node.operands, key=lambda operand: operand.rank))

    def work(self, region: Region) -> int:
        """Estimated number of operations of a region."""
        node = region.nodes[0]
        if region.alone and isinstance(node, Einsum):
            return elements([dim.size(self.accesses.numbers) for dim in node.dims])
        if isinstance(node, MatrixOperation):
            return elements(self.accesses.shape(node.operands[0])) * max((1, *region.shape))
        return elements(region.shape) * len(region.nodes)

    def overwrites(self, node: Expr, base: Expr) -> bool:
        """Whether a node may take over the memory of `base`, which its loop is the last to read."""
        place = self.region_of[node]
        if not self.in_order or place == self.region_of[base] or not self.is_value(node):
            return False
        if place not in self._replaceable:
            self._replaceable[place] = self._read_in_place(self.regions[place])
        return self._replaceable[place].get(base) == {self._strides_in(self.regions[place], node)}

    def _strides_in(self, region: Region, node: Expr) -> tuple[int, ...]:
        """The strides with which a loop stores the values of a node."""
        own = self.accesses.of(node).strides
        return own if self.accesses.shape(node) == region.shape else c_order(region.shape)

    def _read_in_place(self, region: Region) -> dict[Expr, set[tuple[int, ...]]]:
        """The arrays that each iteration of a loop reads only at the iteration's own index.

        Their strides along the loop come with them.
        """
        if region.alone or not region.shape:
            return {}
        rank, size = len(region.shape), elements(region.shape)
        accesses: dict[Expr, set[tuple[int, ...]]] = {}
        others: set[Expr] = set()
        for user in region.nodes:
            for start in (self.start_of(user), self.in_place(user)):
                if start is not None:
                    others.add(self._owner(start))
            for read in self.reads(user):
                access, owner = self.accesses.of(read.node), self._owner(read.node)
                if access.offset == 0 and read.is_in_place(rank):
                    accesses.setdefault(owner, set()).add(access.strides)
                else:
                    others.add(owner)
        return {
            one: strides
            for one, strides in accesses.items()
            if one not in others and elements(self.accesses.shape(one)) == size
        }

    def _owner(self, node: Expr) -> Expr:
        base = self.accesses.of(node).base
        return self.owners.get(base, base)

    def _copied(self) -> Iterator[Expr]:
        """Operands that have to be copied before they can be read.

        A matrix product needs each block of axes as one axis of memory; a gather or scatter by
        index arrays needs the elements of its operand in C order.
        """
        for step in self.program.steps:
            if self.is_matrix_product(step.node):
                for k, operand in enumerate(step.node.operands):
                    if not self._is_matrix(step.node, k):
                        yield operand
            elif step.form in (Form.TAKE, Form.PUT) and not self.collects(step.node):
                operand = step.node.operands[0]
                access, shape = self.accesses.of(operand), self.accesses.shape(operand)
                is_moved = self._is_alone(step.node)
                if is_moved and operand.rank and access.strides != c_order(shape):
                    yield operand

    def _is_matrix(self, node: Expr, k: int) -> bool:
        assert isinstance(node, Einsum)
        blocks = Blocks.of_node(node)
        sizes = [dim.size(self.accesses.numbers) for dim in node.dims]
        access = self.accesses.of(node.operands[k])
        if not access.base.rank:
            return False
        steps = dict(zip(node.inputs[k], access.strides, strict=True))
        every = ((blocks.left, blocks.right)[k], blocks.summed)
        merged = [merged_axes([sizes[n] for n in one], [[steps[n] for n in one]]) for one in every]
        return all(len(axes) <= 1 for axes in merged)

    def _is_alone(self, node: Expr) -> bool:
        if not self.in_order and (node in self.copied or self.forms[node] in _ADDING):
            return True
        if self.is_looked_up(node):
            return False
        return self.forms[node] in ALONE or self.is_matrix_product(node) or is_listed(node)

    def _is_computed(self, node: Expr) -> bool:
        form = self.forms[node]
        if form in (Form.INPUT, Form.CONSTANT) or node in self._absorbed:
            return False
        if self._collected is not None and node in self._collected.partial:
            return False
        return not self.is_view(node) and bool(node.rank or form is not Form.ONES)

    def _place(self, node: Expr, stage: Stage) -> None:
        if isinstance(node, Recur) and node.state:
            self.region_of[node] = self.region_of[node.states[0]]
            self.regions[self.region_of[node]].nodes.append(node)
            return
        shape, kept = self.loop_shape(node), self._kept(node)
        alone = self._is_alone(node)
        place = None if alone else self._joined(node, shape, kept)
        if place is None:
            place = len(self.regions)
            self.regions.append(Region(stage, shape, alone))
        else:
            self._open.remove(shape, self.regions[place].kept, place)
        region = self.regions[place]
        region.kept = kept if region.kept is None else region.kept
        for one in (*self._recomputed_for(node), *dict.fromkeys(node.operands), node):
            again = one in self._recomputed and one not in region.nodes
            if again or one is node or (one in self._repeated and one not in self.region_of):
                region.nodes.append(one)
                self.region_of.setdefault(one, place)
        most = MOST_NODES if elements(shape) >= _SHORT else _MOST_IF_SHORT
        if not alone and len(region.nodes) < (most if self.in_order else _MOST_ON_DEVICE):
            self._open.add(shape, region.kept, place)

    def _recomputed_for(self, node: Expr) -> list[Expr]:
        """The nodes that the loop of a node computes again, operands first."""
        recomputed: list[Expr] = []
        waiting = [one for one in node.operands if one in self._recomputed]
        while waiting:
            one = waiting.pop()
            recomputed.append(one)
            waiting += [operand for operand in one.operands if operand in self._recomputed]
        return list(dict.fromkeys(reversed(recomputed)))

    def _outer(self) -> set[Expr]:
        """Nodes that each loop computes: of narrower arrays; on a device, all looked up ones."""
        using = users(self.order)
        again = partial(is_narrow, self) if self.in_order else self.is_looked_up
        outer = {
            node
            for node in self.order
            if node in self._moving and again(node)
            if all(self.joins(user, node) for user in using[node])
        }
        return outer - set(self.program.roots)

    def is_computed_again(self, node: Expr) -> bool:
        """Whether each loop that reads a value computes it."""
        return node in self._recomputed or node in self._repeated

    def joins(self, node: Expr, operand: Expr) -> bool:
        """Whether a node is computed in a loop at the indices of an operand."""
        if self.forms[node] is Form.ELEMENTWISE:
            return True
        if isinstance(node, Scatter) and self.is_looked_up(node):
            return node.operands[0] is operand
        summed = self.forms[node] in (Form.SUM, Form.PRODUCT)
        return summed and not self.is_matrix_product(node)

    def _kept(self, node: Expr) -> Axes | None:
        """The axes not summed by a node, where all sums of a loop must agree; else None."""
        if self.in_order or self.is_value(node) or self._is_alone(node):
            return None
        if not any(operand.rank for operand in node.operands):
            return None
        if isinstance(node, Extreme):
            return tuple(k for k in range(node.operands[0].rank) if k not in node.axes)
        assert isinstance(node, Einsum)
        return tuple(k for k, label in enumerate(loop_labels(node)) if label in node.output)

    def _joined(self, node: Expr, shape: tuple[int, ...], kept: Axes | None) -> int | None:
        """The first region of this shape that a node may join after its operands are computed."""
        earliest = self._start
        own = self._recomputed_for(node)
        for read in (read for one in (*own, node) for read in self.reads(one)):
            if read.node in self._recomputed:
                if not self._may_share(read, shape):
                    earliest = max(earliest, self.region_of.get(read.node, -1) + 1)
                continue
            base = self.accesses.of(read.node).base
            parts = self.assembled.get(base, (base,))
            made = max((self.region_of.get(part, -1) for part in parts), default=-1)
            if made >= 0:
                here = self.regions[made].shape == shape and self._may_share(read, shape)
                earliest = max(earliest, made if here else made + 1)
        starts = () if node in self.assembled else (self.start_of(node), self.in_place(node))
        for start in starts:
            begun = None if start is None else self.region_of.get(self.accesses.of(start).base)
            if start is not None and begun is not None:
                same = start is self.in_place(node) and self.forms[start] in _ADDING
                earliest = max(earliest, begun if same else begun + 1)
        return self._open.first(shape, kept, earliest)

    def _may_share(self, read: Read, shape: tuple[int, ...]) -> bool:
        """Whether a loop may read a value that it computes: at the same index or without axes."""
        if not shape:
            return True
        return self.is_value_here(read, len(shape))

    def is_value_here(self, read: Read, rank: int) -> bool:
        """Whether an elementwise value is read at the index at which it is computed."""
        value = self.forms[read.node] is Form.ELEMENTWISE or (
            self.forms[read.node] is Form.TAKE and self.is_looked_up(read.node)
        )
        return read.node in self.region_of and value and read.is_in_place(rank)

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
            here = base in self.regions[place].nodes
            made_here = here and self.is_value_here(read, rank)
            if not made_here:
                yield base

    def _crosses(self, node: Expr) -> bool:
        """Whether another function reads a scalar: that of a later stage, or another kernel."""
        made = self.region_of.get(node)
        if not self.in_order:
            return made is not None
        return made is not None and self.regions[made].stage != "call"


_ADDING = (Form.PUT, Form.ACCUMULATE)


def elements(shape: Sequence[int]) -> int:
    return prod(shape)
