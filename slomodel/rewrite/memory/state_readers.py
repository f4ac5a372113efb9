"""What an objective reads of the states of a recurrence, one step at a time.

An array runs along the steps if its element at each place of one axis belongs to one step and
depends on a fixed number of states near it. What reads such arrays otherwise is of three kinds:
sums over the steps, elements at fixed steps, and anything else, for which they have to be stored.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from slomodel.errors import ShapeError
from slomodel.ir import build
from slomodel.ir.expr import Affine, Const, Einsum, Expr, Gather, Input, Lookup, Recur, reads_axis
from slomodel.ir.stepwise import at_one_step, not_stepwise, operand_axes, table_axes
from slomodel.ir.walk import users

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StateRow:
    """State number `state` at step t + shift."""

    state: int
    shift: int


@dataclass(frozen=True, slots=True)
class SliceRow:
    """The slice sign * t + shift of an array along an axis; the sign is 1 or -1."""

    array: Expr
    axis: int
    shift: int
    sign: int


@dataclass(frozen=True, slots=True)
class WholeArray:
    """An array that is the same at every step."""

    array: Expr


Leaf = StateRow | SliceRow | WholeArray


@dataclass(frozen=True, slots=True)
class Row:
    """The graph of an array at step t, for `count` steps from `start` on.

    At other steps the array has no elements.
    """

    graph: Expr
    start: int
    count: int

    @property
    def end(self) -> int:
        return self.start + self.count


@dataclass(frozen=True, slots=True)
class StepSum:
    """A node that is a sum over steps of `row`."""

    node: Einsum
    row: Row


@dataclass(frozen=True, slots=True)
class AtStep:
    """A node that reads `row` at one step, by an index into it."""

    node: Gather
    row: Row
    index: tuple[Affine | Lookup, ...]


@dataclass(frozen=True, slots=True)
class ArrayOfSteps:
    """An array along the steps, on `axis`, that other nodes read as a whole.

    It is in the order of the steps, or `reversed`.
    """

    node: Expr
    axis: int
    row: Row
    reversed: bool


Reader = StepSum | AtStep | ArrayOfSteps


@dataclass(frozen=True, slots=True)
class _Along:
    """An axis of an array along which element o is of step start + sign * o."""

    axis: int
    start: int
    sign: int = 1

    @property
    def shift(self) -> int:
        """The element of step t is sign * t + shift."""
        return -self.sign * self.start

    def row(self, graph: Expr, count: int) -> Row:
        """The row of `count` elements with this graph."""
        return Row(graph, self.start if self.sign > 0 else self.start - count + 1, count)


_Key = tuple[Expr, int | None, int, int]
"""An array at element sign * t + shift of an axis, with shift and sign; axis None: all of it."""


@dataclass(slots=True)
class StateReaders:
    """The readers of the states of a loop, `states` by node, in a graph given in postorder.

    `varying` are the nodes that depend on x: rows compute them from what they depend on, so that
    they need not be stored for all steps.
    """

    states: Mapping[Expr, int]
    order: Sequence[Expr]
    varying: Collection[Expr]
    sizes: Sizes
    leaves: dict[Expr, Leaf] = field(default_factory=dict)
    _along: dict[Expr, _Along] = field(default_factory=dict)
    _dependent: set[Expr] = field(default_factory=set)
    _rows: dict[_Key, Expr] = field(default_factory=dict)
    _places: dict[Leaf, Expr] = field(default_factory=dict)

    def collect(self) -> list[Reader]:
        """All readers that do not run along the steps themselves.

        Raises ShapeError for an array along the steps that has no graph of one step.
        """
        for node in self.order:
            if node in self.states:
                self._along[node] = _Along(0, 0)
            elif not any(operand in self._dependent for operand in node.operands):
                continue
            elif (own := self._along_of(node)) is not None:
                self._along[node] = own
            self._dependent.add(node)
        using = users(self.order)
        sums: dict[Expr, StepSum | AtStep] = {}
        stored: dict[Expr, ArrayOfSteps] = {}
        for node in self._along:
            for user in using[node]:
                if user in self._along or user in sums:
                    continue
                result = self._sum(user) or self._at_step(user)
                if result is not None:
                    sums[user] = result
                elif node not in stored:
                    stored[node] = self._stored(node)
        return [*sums.values(), *stored.values()]

    def row(self, array: Expr, axis: int, shift: int, sign: int = 1) -> Expr:
        """The graph of the slice sign * t + shift of an array along an axis."""
        waiting: list[_Key] = [(array, axis, shift, sign)]
        while waiting:
            key = waiting[-1]
            if key in self._rows:
                waiting.pop()
                continue
            below = self._operands(key)
            missing = [one for one in below or () if one not in self._rows]
            waiting += missing
            if missing:
                continue
            node, own_axis, *_ = key
            if below is None or own_axis is None:
                self._rows[key] = self._leaf(key)
            else:
                operands = tuple(self._rows[one] for one in below)
                own = tuple(one[1] for one in below)
                self._rows[key] = at_one_step(node, operands, own_axis, own)
        return self._rows[array, axis, shift, sign]

    def _along_of(self, node: Expr) -> _Along | None:
        read = [k for k, operand in enumerate(node.operands) if operand in self._dependent]
        if isinstance(node, Recur) or any(node.operands[k] not in self._along for k in read):
            return None
        for axis in range(node.rank):
            try:
                own, offset, factor = self._axes_below(node, axis)
            except ShapeError:
                continue
            known = [self._along[node.operands[k]] for k in read]
            same = len({one.sign for one in known}) == 1
            if same and all(own[k] == one.axis for k, one in zip(read, known, strict=True)):
                sign = known[0].sign
                return _Along(axis, max(one.start for one in known) + sign * offset, sign * factor)
        return None

    def _axes_below(self, node: Expr, axis: int) -> tuple[tuple[int | None, ...], int, int]:
        """For each operand its axis along an axis of the node, and how the first is read.

        Element o reads element offset + factor * o of it; the factor is 1 or -1. Raises
        ShapeError where an element of the node does not depend on one of each operand alone.
        """
        if not isinstance(node, Gather):
            return operand_axes(node, axis), 0, 1
        for k, one in enumerate(node.index):
            if not isinstance(one, Affine) or one.coefficients[axis] not in (1, -1):
                continue
            alone = sum(map(abs, one.coefficients)) == 1
            others = (*node.index[:k], *node.index[k + 1 :])
            if alone and not any(not isinstance(o, Lookup) and reads_axis(o, axis) for o in others):
                offset = one.offset.size(self.sizes)
                return (k, *table_axes(node, axis)), offset, one.coefficients[axis]
        if any(not isinstance(one, Lookup) and reads_axis(one, axis) for one in node.index):
            raise not_stepwise("an index does not run along the steps")
        return (None, *table_axes(node, axis)), 0, 1

    def _operands(self, key: _Key) -> list[_Key] | None:
        """The operands of an array at a step; None if it is read."""
        node, axis, shift, sign = key
        if axis is None or node in self.states or not node.operands:
            return None
        if node not in self._along and node not in self.varying:
            return None
        try:
            own, offset, factor = self._axes_below(node, axis)
        except ShapeError:
            return None
        if all(one is None for one in own):
            return None
        first = (node.operands[0], own[0], offset + factor * shift, factor * sign)
        rest = zip(node.operands[1:], own[1:], strict=True)
        return [first, *((operand, one, shift, sign) for operand, one in rest)]

    def _leaf(self, key: _Key) -> Expr:
        node, axis, shift, sign = key
        leaf: Leaf
        if axis is None:
            if isinstance(node, Const):
                return node
            leaf = WholeArray(node)
        elif node in self.states:
            leaf = StateRow(self.states[node], shift)
        else:
            leaf = SliceRow(node, axis, shift, sign)
        if leaf not in self._places:
            shape = tuple(dim for k, dim in enumerate(node.shape) if k != axis)
            result = Input(f"leaf {len(self._places)}", "step", shape, node.dtype)
            self._places[leaf] = result
            self.leaves[result] = leaf
        return self._places[leaf]

    def _sum(self, node: Expr) -> StepSum | None:
        """The node as a sum over steps."""
        if not isinstance(node, Einsum):
            return None
        read = [k for k, operand in enumerate(node.operands) if operand in self._dependent]
        if any(node.operands[k] not in self._along for k in read):
            return None
        known = [self._along[node.operands[k]] for k in read]
        labels = {node.inputs[k][one.axis] for k, one in zip(read, known, strict=True)}
        if len(labels) > 1 or len({one.sign for one in known}) > 1 or labels & set(node.output):
            return None
        (label,) = labels
        if any(own.count(label) > 1 for own in node.inputs):
            return None
        latest = max(known, key=lambda one: one.start)
        graph = self.term(node, label, latest.shift, latest.sign)
        return StepSum(node, latest.row(graph, node.dims[label].size(self.sizes)))

    def term(self, node: Einsum, label: int, shift: int = 0, sign: int = 1) -> Expr:
        """The graph of the term of a sum at element sign * t + shift along a label."""
        operands, inputs = [], []
        for operand, own in zip(node.operands, node.inputs, strict=True):
            axis = own.index(label) if label in own else None
            operands.append(
                self._leaf((operand, None, 0, 1))
                if axis is None
                else self.row(operand, axis, shift, sign)
            )
            inputs.append(tuple(one - (one > label) for one in own if one != label))
        output = tuple(one - (one > label) for one in node.output)
        dims = (*node.dims[:label], *node.dims[label + 1 :])
        return build.einsum(operands, inputs, output, dims)

    def computed(self) -> dict[Expr, int]:
        """The nodes that rows compute, each with the axis along which its elements are taken."""
        return {
            node: axis
            for key in self._rows
            if (axis := key[1]) is not None and self._operands(key) is not None
            for node in (key[0],)
        }

    def _at_step(self, node: Expr) -> AtStep | None:
        """The node as one that reads an array at a fixed step."""
        if not isinstance(node, Gather) or node.operands[0] not in self._along:
            return None
        array = node.operands[0]
        own = self._along[array]
        place = node.index[own.axis]
        if not isinstance(place, Affine) or any(place.coefficients):
            return None
        rest = tuple(
            one
            for k, one in enumerate(node.index)
            if k != own.axis and isinstance(one, (Affine, Lookup))
        )
        if len(rest) + 1 < len(node.index):
            return None
        graph = self.row(array, own.axis, own.shift, own.sign)
        step = own.start + own.sign * place.offset.size(self.sizes)
        return AtStep(node, Row(graph, step, 1), rest)

    def _stored(self, node: Expr) -> ArrayOfSteps:
        own = self._along[node]
        count = node.shape[own.axis].size(self.sizes)
        graph = self.row(node, own.axis, own.shift, own.sign)
        return ArrayOfSteps(node, own.axis, own.row(graph, count), own.sign < 0)
