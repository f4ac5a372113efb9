"""Conversion between the graph of one step and that of all steps, which has one more first axis.

`batched` evaluates the body of a loop at many steps at once; the steps are its first axis.
`one_step` is the inverse: it reduces a graph in which every node that depends on some placeholders
has an axis of steps, and nothing is combined along it, to the graph of a single step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import TypeVar

from slomodel.errors import ShapeError
from slomodel.ir.dims import Dim
from slomodel.ir.elementwise import apply_along
from slomodel.ir.expr import (
    Affine,
    Axes,
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Index,
    Input,
    Lookup,
    Map,
    MatrixOperation,
    Multiset,
    Recur,
    Reshape,
    Scan,
    Scatter,
    remake,
)
from slomodel.ir.linear import einsum, gather, reshape, scatter
from slomodel.ir.loop import SliceAt, StateAt
from slomodel.ir.walk import dependents, postorder

T = TypeVar("T")


def batched(root: Expr, arrays: Mapping[Expr, Expr], length: Dim) -> Expr:
    """The values (length, *shape) of a node at many steps.

    `arrays` maps placeholders to arrays; an array with one more axis than its placeholder has the
    steps along its first axis. Raises ShapeError for a recurrence inside a step.
    """
    order = postorder(root)
    stepped = dependents(order, lambda node: node in arrays and arrays[node].rank > node.rank)
    done: dict[Expr, Expr] = {}
    for node in order:
        if node in arrays:
            done[node] = arrays[node]
            continue
        operands = tuple(done[operand] for operand in node.operands)
        if node not in stepped:
            done[node] = remake(node, operands) if operands else node
            continue
        varying = tuple(operand in stepped for operand in node.operands)
        done[node] = batched_node(node, operands, varying, length)
    if root not in stepped:
        axes = tuple(range(1, root.rank + 1))
        return einsum([done[root]], [axes], (0, *axes), (length, *root.shape))
    return done[root]


def _moved(axes: Axes, varying: bool) -> Axes:
    return (0, *(axis + 1 for axis in axes)) if varying else tuple(axis + 1 for axis in axes)


@singledispatch
def batched_node(
    node: Expr, operands: tuple[Expr, ...], varying: tuple[bool, ...], length: Dim
) -> Expr:
    """A node at many steps: `varying` tells which of its operands have the steps as first axis."""
    raise ShapeError(f"a {type(node).__name__} node cannot depend on the states of a recurrence")


@batched_node.register
def _(node: Map, operands: tuple[Expr, ...], varying: tuple[bool, ...], length: Dim) -> Expr:
    axes = tuple(map(_moved, node.axes, varying))
    return apply_along(node.function, operands, axes, (length, *node.shape))


@batched_node.register
def _(node: Einsum, operands: tuple[Expr, ...], varying: tuple[bool, ...], length: Dim) -> Expr:
    inputs = list(map(_moved, node.inputs, varying))
    return einsum(operands, inputs, _moved(node.output, varying=True), (length, *node.dims))


def _after(one: Index) -> Index:
    """An index of an array with one more axis in front of its iterated axes."""
    if isinstance(one, Affine):
        return Affine(one.offset, (0, *one.coefficients))
    if isinstance(one, Lookup):
        return Lookup(tuple(axis + 1 for axis in one.axes), one.table)
    return Multiset(one.axis + 1, one.size, one.degree, one.start, one.stop)


def _index(
    node: Gather | Scatter, operands: tuple[Expr, ...], varying: tuple[bool, ...]
) -> tuple[Index, ...]:
    """The index of a node with the axis of steps in front, over its new operands.

    A table with an axis of steps is looked up along it too.
    """
    now = {
        table: (operands[k], varying[k]) for k, table in enumerate(node.operands) if k
    }  # operand 0 is the array
    result: list[Index] = []
    for one in node.index:
        if isinstance(one, Lookup):
            table, steps = now[one.table]
            result.append(Lookup(_moved(one.axes, steps), table))
        else:
            result.append(_after(one))
    return tuple(result)


@batched_node.register
def _(node: Gather, operands: tuple[Expr, ...], varying: tuple[bool, ...], length: Dim) -> Expr:
    shape = (length, *node.shape)
    first = (Affine.along(0, len(shape)),) if varying[0] else ()
    return gather(operands[0], (*first, *_index(node, operands, varying)), shape)


@batched_node.register
def _(node: Scatter, operands: tuple[Expr, ...], varying: tuple[bool, ...], length: Dim) -> Expr:
    operand = operands[0]
    if not varying[0]:
        axes = tuple(range(1, operand.rank + 1))
        operand = einsum([operand], [axes], (0, *axes), (length, *operand.shape))
    first = Affine.along(0, operand.rank)
    return scatter(operand, (first, *_index(node, operands, varying)), (length, *node.shape))


@batched_node.register
def _(node: Reshape, operands: tuple[Expr, ...], varying: tuple[bool, ...], length: Dim) -> Expr:
    return reshape(operands[0], (length, *node.shape))


@batched_node.register
def _(node: Extreme, operands: tuple[Expr, ...], varying: tuple[bool, ...], length: Dim) -> Expr:
    return Extreme(operands[0], node.which, tuple(axis + 1 for axis in node.axes))


@batched_node.register
def _(node: Scan, operands: tuple[Expr, ...], varying: tuple[bool, ...], length: Dim) -> Expr:
    sides = []
    for operand, steps in zip(operands, varying, strict=True):
        axes = tuple(range(1, node.rank + 1))
        wide = (length, *node.shape)
        own = operand if steps else einsum([operand], [axes], (0, *axes), wide)
        sides.append(own)
    return Scan(sides[0], sides[1], node.axis + 1)


@batched_node.register
def _(
    node: MatrixOperation, operands: tuple[Expr, ...], varying: tuple[bool, ...], length: Dim
) -> Expr:
    own = []
    for operand, steps in zip(operands, varying, strict=True):
        axes = tuple(range(1, operand.rank + 1))
        wide = (length, *operand.shape)
        own.append(operand if steps else einsum([operand], [axes], (0, *axes), wide))
    return MatrixOperation(node.function, tuple(own))


@dataclass(slots=True)
class Steps:
    """The reads, in the graph of one step, of arrays that do not depend on the states.

    `slices` maps placeholders to arrays whose first axis is that of the steps, `wholes` to arrays
    that are the same at every step.
    """

    slices: dict[Expr, Expr] = field(default_factory=dict)
    wholes: dict[Expr, Expr] = field(default_factory=dict)
    _made: dict[tuple[Expr, int | None], Expr] = field(default_factory=dict)

    def read(self, array: Expr, axis: int | None) -> Expr:
        """A placeholder for the slice of an array along its axis of steps; None: for all of it."""
        if axis is None and isinstance(array, Const):
            return array
        key = (array, axis)
        if key not in self._made:
            name = f"read {len(self._made)}"
            if axis is None:
                result = Input(name, "step", array.shape, array.dtype)
                self.wholes[result] = array
            else:
                rest = [k for k in range(array.rank) if k != axis]
                first = einsum([array], [tuple(range(array.rank))], (axis, *rest), array.shape)
                result = Input(name, "step", first.shape[1:], array.dtype)
                self.slices[result] = first
            self._made[key] = result
        return self._made[key]


def one_step(root: Expr, states: Mapping[Expr, Expr], steps: Steps) -> Expr:
    """The graph of one step of a graph whose first axis, like that of all `states`, is the steps.

    `states` maps arrays, placeholders with an axis of steps, to placeholders without. Arrays that
    do not depend on them are read through `steps`. Raises ShapeError where steps are combined.
    """
    order = postorder(root)
    varying = dependents(order, states.__contains__)
    if root not in varying:
        return steps.read(root, 0)
    axis: dict[Expr, int] = {}
    done: dict[Expr, Expr] = {}
    for node in order:
        if node in states:
            axis[node], done[node] = 0, states[node]
        elif node in varying:
            axis[node] = _axis_of_steps(node, axis)
            own = operand_axes(node, axis[node])
            operands = []
            for operand, place in zip(node.operands, own, strict=True):
                if operand in varying:
                    if axis[operand] != place:
                        raise not_stepwise()
                    operands.append(done[operand])
                else:
                    operands.append(steps.read(operand, place))
            done[node] = at_one_step(node, tuple(operands), axis[node], own)
    if axis[root] != 0:
        raise not_stepwise()
    return done[root]


def not_stepwise(reason: str = "a step of a recurrence combines several steps") -> ShapeError:
    """The error for what cannot be computed step by step; its callers say where."""
    return ShapeError(reason)


def _axis_of_steps(node: Expr, axis: Mapping[Expr, int]) -> int:
    """The axis of a node along which the steps run, found from an operand where it is known."""
    reason = not_stepwise()
    for k, operand in enumerate(node.operands):
        if operand not in axis:
            continue
        for candidate in range(node.rank):
            try:
                if operand_axes(node, candidate)[k] == axis[operand]:
                    return candidate
            except ShapeError as problem:
                reason = problem
    raise reason


def operand_axes(node: Expr, axis: int) -> tuple[int | None, ...]:
    """For each operand, its axis that runs along an axis of the node; None if there is none."""
    if isinstance(node, Map):
        return tuple(own.index(axis) if axis in own else None for own in node.axes)
    if isinstance(node, Einsum):
        label = node.output[axis]
        if node.output.count(label) > 1 or any(own.count(label) > 1 for own in node.inputs):
            raise not_stepwise()
        return tuple(own.index(label) if label in own else None for own in node.inputs)
    if isinstance(node, Gather):
        wanted = Affine.along(axis, node.rank)
        first = node.index.index(wanted) if wanted in node.index else None
        if first is not None and node.operands[0].shape[first] != node.shape[axis]:
            raise not_stepwise()
        return (first, *table_axes(node, axis))
    if isinstance(node, Scatter):
        one = node.index[axis]
        runs = [k for k, c in enumerate(one.coefficients) if c] if isinstance(one, Affine) else []
        source = node.operands[0]
        if len(runs) != 1 or one != Affine.along(runs[0], source.rank):
            return (None,) * len(node.operands)
        if source.shape[runs[0]] != node.shape[axis]:
            raise not_stepwise()
        return (runs[0], *table_axes(node, runs[0]))
    if isinstance(node, Extreme):
        kept = [k for k in range(node.operands[0].rank) if k not in node.axes]
        return (kept[axis],)
    if isinstance(node, Scan):
        return (None, None) if axis == node.axis else (axis, axis)
    if isinstance(node, MatrixOperation):
        batch = node.operands[0].rank - 2
        return (axis if axis < batch else None,) * len(node.operands)
    if isinstance(node, Recur):
        result = _AxesInLoop.of(node, axis)
        return (None,) * len(node.operands) if result is None else result.operands
    if isinstance(node, Reshape):
        before = node.operands[0].shape[: axis + 1]
        return (axis if before == node.shape[: axis + 1] else None,)
    raise ShapeError(f"a {type(node).__name__} node cannot depend on the states of a recurrence")


def table_axes(node: Gather | Scatter, axis: int) -> tuple[int | None, ...]:
    """For each table that is looked up, its axis that runs along an iterated axis."""
    table_axes: list[int | None] = []
    for table in node.operands[1:]:
        every = [
            lookup for lookup in node.index if isinstance(lookup, Lookup) and lookup.table is table
        ]
        places = {lookup.axes.index(axis) if axis in lookup.axes else None for lookup in every}
        if len(places) > 1:
            raise not_stepwise()
        table_axes.append(places.pop())
    return tuple(table_axes)


def _without(axes: Axes, axis: int) -> Axes:
    return tuple(other - (other > axis) for other in axes if other != axis)


def at_one_step(
    node: Expr, operands: tuple[Expr, ...], axis: int, own: tuple[int | None, ...]
) -> Expr:
    """The node without its axis of steps, over operands without theirs."""
    shape = tuple(dim for k, dim in enumerate(node.shape) if k != axis)
    if isinstance(node, Map):
        axes = tuple(_without(one, axis) for one in node.axes)
        return apply_along(node.function, operands, axes, shape)
    if isinstance(node, Einsum):
        label = node.output[axis]
        inputs = [_without(one, label) for one in node.inputs]
        dims = tuple(dim for k, dim in enumerate(node.dims) if k != label)
        return einsum(operands, inputs, _without(node.output, label), dims)
    if isinstance(node, Gather):
        kept = [one for k, one in enumerate(node.index) if k != own[0]]
        return gather(operands[0], _index_without(node, kept, operands, axis), shape)
    if isinstance(node, Scatter):
        assert own[0] is not None
        kept = [one for k, one in enumerate(node.index) if k != axis]
        return scatter(operands[0], _index_without(node, kept, operands, own[0]), shape)
    if isinstance(node, Extreme):
        assert own[0] is not None
        return Extreme(operands[0], node.which, _without(node.axes, own[0]))
    if isinstance(node, Scan):
        return Scan(operands[0], operands[1], node.axis - (node.axis > axis))
    if isinstance(node, MatrixOperation):
        return MatrixOperation(node.function, operands)
    if isinstance(node, Recur):
        result = _AxesInLoop.of(node, axis)
        assert result is not None
        return result.without(operands)
    return reshape(operands[0], shape)


def _index_without(
    node: Gather | Scatter, kept: list[Index], operands: tuple[Expr, ...], axis: int
) -> tuple[Index, ...]:
    """The entries of an index without an iterated axis, with the tables among `operands`."""
    now = dict(zip(node.operands[1:], operands[1:], strict=True))
    index: list[Index] = []
    for entry in kept:
        if isinstance(entry, Affine):
            if entry.coefficients[axis]:
                raise not_stepwise()
            rest = tuple(c for k, c in enumerate(entry.coefficients) if k != axis)
            index.append(Affine(entry.offset, rest))
        elif isinstance(entry, Lookup):
            index.append(Lookup(_without(entry.axes, axis), now[entry.table]))
        else:
            place = entry.axis - (entry.axis > axis)
            index.append(Multiset(place, entry.size, entry.degree, entry.start, entry.stop))
    return tuple(index)


@dataclass(slots=True)
class _AxesInLoop:
    """The axes along which the steps run in a loop inside a step, by state and placeholder.

    A state is along the steps if it reads, or is read by, one that is. `nodes` are the axes of the
    nodes of each update.
    """

    node: Recur
    states: dict[int, int]
    nodes: list[dict[Expr, int]]
    operands: tuple[int | None, ...] = ()

    @classmethod
    def of(cls, node: Recur, axis: int) -> _AxesInLoop | None:
        """The axes, from that of the node itself; None if no steps can run along it."""
        if axis == 0:
            return None
        loop = node.loop
        result = cls(node, {node.state: axis - 1}, [{} for _ in loop.updates])
        try:
            result._spread_all()
            # States that are not connected are computed for the same steps, as by one definition.
            for state, shape in enumerate(loop.shapes):
                if state not in result.states and shape[axis - 1 : axis] == node.shape[axis:][:1]:
                    result.states[state] = axis - 1
                    result._spread_all()
            result.operands = result._of_operands()
        except ShapeError:
            return None
        return result

    def _spread_all(self) -> None:
        known = -1
        while known < len(self.states):
            known = len(self.states)
            for k in range(len(self.node.loop.updates)):
                self._spread(k)

    def _spread(self, k: int) -> None:
        """The axes in an update, from that of its state or of a state that it reads."""
        loop, axes = self.node.loop, self.nodes[k]
        update = loop.updates[k]
        order = postorder(update.value)
        sources = dict(loop.sources)
        if update.state not in self.states:
            up = {
                node: self.states[source.state]
                for node in order
                if isinstance(source := sources.get(node), StateAt) and source.state in self.states
            }
            for node in order:
                if node not in up and any(operand in up for operand in node.operands):
                    up[node] = _axis_of_steps(node, up)
            if update.value not in up:
                return
            self.states[update.state] = up[update.value]
        self._put(axes, update.value, self.states[update.state])
        for node in reversed(order):
            if node not in axes:
                continue
            own = operand_axes(node, axes[node]) if node.operands else ()
            for operand, axis in zip(node.operands, own, strict=True):
                if axis is not None:
                    self._put(axes, operand, axis)
            source = sources.get(node)
            if isinstance(source, StateAt):
                self._put(self.states, source.state, axes[node])

    @staticmethod
    def _put(axes: dict[T, int], key: T, axis: int) -> None:
        if axes.setdefault(key, axis) != axis:
            raise not_stepwise()

    def _of_operands(self) -> tuple[int | None, ...]:
        loop = self.node.loop
        result: dict[int, int] = {}
        for state, first in enumerate(loop.initial):
            if first is not None and state in self.states:
                self._put(result, first, self.states[state] + 1)
        for axes in self.nodes:
            for node, source in loop.sources:
                if node in axes and not isinstance(source, StateAt):
                    is_slice = isinstance(source, SliceAt)
                    self._put(result, source.operand, axes[node] + int(is_slice))
        return tuple(result.get(k) for k in range(len(self.node.operands)))

    def without(self, operands: tuple[Expr, ...]) -> Expr:
        """The node at one step, over operands without the axis of steps."""
        loop = self.node.loop
        placeholders: dict[Expr, Expr] = {}
        for one, _ in loop.sources:
            axis = next((axes[one] for axes in self.nodes if one in axes), None)
            assert isinstance(one, Input)
            shape = tuple(dim for k, dim in enumerate(one.shape) if k != axis)
            placeholders[one] = Input(one.name, "step", shape, one.dtype)
        updates = []
        for update, axes in zip(loop.updates, self.nodes, strict=True):
            done: dict[Expr, Expr] = {}
            for node in postorder(update.value):
                inner = tuple(done[operand] for operand in node.operands)
                if node in placeholders:
                    done[node] = placeholders[node]
                elif node in axes:
                    own = operand_axes(node, axes[node])
                    done[node] = at_one_step(node, inner, axes[node], own)
                else:
                    done[node] = remake(node, inner) if inner else node
            updates.append(replace(update, value=done[update.value]))
        own_loop = replace(
            loop,
            shapes=tuple(
                tuple(dim for k, dim in enumerate(shape) if k != self.states.get(state))
                for state, shape in enumerate(loop.shapes)
            ),
            sources=tuple((placeholders[one], source) for one, source in loop.sources),
            updates=tuple(updates),
        )
        return Recur(operands, own_loop, self.node.state)
