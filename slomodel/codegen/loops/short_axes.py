"""Short axes written out: an array (n, 3) that loops compute becomes three arrays (n,).

A loop along an axis of a few elements starts and ends more often than it computes, and an array
with such an axis cannot share a loop with sums along it. Written out, the elements of a row are
values of one loop over n: they stay in registers, a sum along the axis is an addition, and a row
that index data look up is read from consecutive places.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from math import prod

from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.loops.axis_reads import (
    SHORT,
    Place,
    ReadMode,
    computes,
    has_one_long_side,
    is_loop,
    reads,
)
from slomodel.codegen.loops.layouts import is_row, reads_rows
from slomodel.codegen.lower import lowered
from slomodel.functions import add, mul
from slomodel.ir import build
from slomodel.ir.dims import Dim
from slomodel.ir.expr import (
    Affine,
    Einsum,
    Expr,
    Gather,
    Index,
    Input,
    Lookup,
    Map,
    Reshape,
    Scan,
    Scatter,
    is_listed,
    remake,
)
from slomodel.ir.recurrent import ones_like
from slomodel.ir.walk import postorder, users

_SCANNED = 8
"""The same for the axis of a scan, whose loop computes nothing else."""
_LEAST = 16
"""Other elements of an array for which a loop over them pays."""
_RESULT, _REARRANGED = 3, 48
"""Elements computed while one is put into an array of rows: a result, or one that is read again."""
_MOST_NODES = 400
_LONGER = 4
"""Factor by which a loop exceeds an array in length to read a copy of it without strides."""

Fixed = tuple[tuple[int, int], ...]
"""Positions along some axes of a node, in the order of the axes."""


def with_short_axes(
    roots: tuple[Expr, ...], numbers: Numbers, runs: Container[Expr] = ()
) -> tuple[Expr, ...]:
    """Lowered roots in which short axes are written out where that pays.

    `runs` are index data along whose runs loops go: what they look up are slices.
    """
    chosen = _Choice(roots, numbers, runs).chosen()
    return _Rewriting(roots, numbers, chosen).roots() if chosen else roots


@dataclass(slots=True)
class _Class:
    """Axes that are written out together, since nodes read them element by element."""

    places: list[Place] = field(default_factory=list)


class _Choice:
    """The classes of short axes of a graph, and those that are written out."""

    def __init__(self, roots: tuple[Expr, ...], numbers: Numbers, runs: Container[Expr]) -> None:
        self._roots = frozenset(roots)
        self._numbers = numbers
        self._runs = runs
        self._order = postorder(*roots)
        self._users = users(self._order)
        self._class_of: dict[Place, _Class] = {}

    def chosen(self) -> dict[Expr, tuple[int, ...]]:
        """The axes, in order, of each node that are written out."""
        for node in self._order:
            for axis in self._axes(node):
                if 0 < self._size(node, axis) <= _SCANNED:
                    self._class_of[node, axis] = _Class([(node, axis)])
            for k, p, how in reads(node, self._numbers):
                if isinstance(how, int):
                    self._join((node.operands[k], p), (node, how))
            if isinstance(node, Einsum) and has_one_long_side(node, self._numbers):
                # With one axis less it would be a product of matrices.
                short = [axis for axis in self._axes(node) if self._size(node, axis) <= SHORT]
                short = [axis for axis in short if (node, axis) in self._class_of]
                for axis in short[1:]:
                    self._join((node, short[0]), (node, axis))
        result: dict[Expr, list[int]] = {}
        for one in {id(own): own for own in self._class_of.values()}.values():
            if self._pays(one):
                for node, axis in one.places:
                    result.setdefault(node, []).append(axis)
        return {node: tuple(sorted(axes)) for node, axes in result.items()}

    def _axes(self, node: Expr) -> list[int]:
        """The axes of a node that a loop computes, and the labels ~k that it sums over."""
        if isinstance(node, Map | Gather | Scatter | Scan):
            return list(range(node.rank))
        if not isinstance(node, Einsum) or not is_loop(node, self._numbers):
            return []
        summed = [~label for label in range(len(node.dims)) if label not in node.output]
        return [*range(node.rank), *summed]

    def _size(self, node: Expr, axis: int) -> int:
        if axis < 0:
            assert isinstance(node, Einsum)
            return node.dims[~axis].value(self._numbers)
        return node.shape[axis].value(self._numbers)

    def _join(self, one: Place, other: Place) -> None:
        a, b = self._class_of.get(one), self._class_of.get(other)
        if a is None or b is None or a is b:
            return
        if len(a.places) < len(b.places):
            a, b = b, a
        a.places += b.places
        self._class_of.update(dict.fromkeys(b.places, a))

    def _pays(self, one: _Class) -> bool:
        """Whether loops without these axes save more than it takes to put arrays together again."""
        own = set(one.places)
        is_scanned = any(isinstance(node, Scan) and axis == node.axis for node, axis in own)
        if not is_scanned and max(self._size(node, axis) for node, axis in own) > SHORT:
            return False
        # A matrix for each index would pass through memory, where a row stays in a register.
        has_matrices = len({node for node, _ in own if node.rank > 2}) < sum(
            node.rank > 2 for node, _ in own
        )
        work = number = 0
        is_useful = False
        for node, axis in one.places:
            elements, size = self._elements(node), self._size(node, axis)
            row = is_row(size) and axis == node.rank - 1 and self._looks_up_rows(node)
            if row and size > 2 and not has_matrices:
                return False
            computed = axis < 0 or computes(node, axis, own, self._numbers)
            number += size * computed
            is_view = isinstance(node, Gather) and not is_listed(node)
            if computed and not is_view:
                work += elements
                is_useful |= elements >= _LEAST * size and self._gains(node, axis)
            if computed and axis >= 0 and self._is_read_whole(node, axis, own):
                if node.dtype != "real":
                    return False
                work -= (_RESULT if node in self._roots else _REARRANGED) * elements
        return is_useful and number <= _MOST_NODES and work >= 0

    def _looks_up_rows(self, node: Expr) -> bool:
        """Whether a node reads rows at places that do not follow one another."""
        return reads_rows(node) and not all(table in self._runs for table in node.operands[1:])

    def _is_read_whole(self, node: Expr, axis: int, own: Container[Place]) -> bool:
        """Whether an array has to be put together from its parts along an axis."""
        if node in self._roots:
            return True
        for user in dict.fromkeys(self._users[node]):
            for k, p, how in reads(user, self._numbers):
                if user.operands[k] is node and p == axis:
                    joined = how is ReadMode.ELEMENTS or (user, how) in own
                    if not joined or not self._is_split(user, own):
                        return True
        return False

    def _gains(self, node: Expr, axis: int) -> bool:
        """Whether rows of a node are looked up or summed, or share what each of them needs."""
        if is_listed(node) or axis < 0:
            return True
        if not isinstance(node, Map):
            return isinstance(node, Scan) and axis == node.axis
        return any(own and axis not in own for own in node.axes)

    def _is_split(self, user: Expr, own: Container[Place]) -> bool:
        """Whether a user computes its elements one by one along all its axes in a class."""
        axes = [axis for axis in range(user.rank) if (user, axis) in own]
        return all(computes(user, axis, own, self._numbers) for axis in axes)

    def _elements(self, node: Expr) -> int:
        """The number of elements that the loop of a node runs over."""
        dims = node.dims if isinstance(node, Einsum) else node.shape
        return prod(max(0, dim.value(self._numbers)) for dim in dims)


class _Rewriting:
    """The graph with axes written out. `axes` are those of each node, in order."""

    def __init__(
        self, roots: tuple[Expr, ...], numbers: Numbers, axes: Mapping[Expr, tuple[int, ...]]
    ) -> None:
        self._roots = roots
        self._numbers = numbers
        self._axes = {node: tuple(k for k in own if k >= 0) for node, own in axes.items()}
        self._chosen = {(node, axis) for node, own in axes.items() for axis in own}
        self._whole: dict[Expr, Expr] = {}
        self._parts: dict[tuple[Expr, Fixed], Expr] = {}

    def roots(self) -> tuple[Expr, ...]:
        for node in postorder(*self._roots):
            own = self._axes.get(node, ())
            if node not in self._axes and not any(self._axes.get(o) for o in node.operands):
                self._whole[node] = remake(node, tuple(self._whole[o] for o in node.operands))
            elif not self._is_split(node):
                self._whole[node] = remake(node, tuple(map(self._together, node.operands)))
            else:
                for fixed in self._positions(node):
                    self._parts[node, fixed] = self._part(node, dict(fixed))
                if not own:
                    self._whole[node] = self._parts[node, ()]
        return tuple(map(self._together, self._roots))

    def _is_split(self, node: Expr) -> bool:
        """Whether a node is computed, and reads its operands, element by element."""
        own = self._axes.get(node, ())
        if not all(computes(node, axis, self._chosen, self._numbers) for axis in own):
            return False
        for k, p, how in reads(node, self._numbers):
            joined = how is ReadMode.ELEMENTS or (node, how) in self._chosen
            if (node.operands[k], p) in self._chosen and not joined:
                return False
        return True

    def _positions(self, node: Expr) -> list[Fixed]:
        """All positions along the axes of a node that are written out."""
        axes = self._axes.get(node, ())
        sizes = [range(node.shape[axis].value(self._numbers)) for axis in axes]
        return [tuple(zip(axes, own, strict=True)) for own in product(*sizes)]

    def _together(self, node: Expr) -> Expr:
        """A node as one array."""
        if node not in self._whole:
            parts = []
            for fixed in self._positions(node):
                at, kept = dict(fixed), _others(node.rank, dict(fixed))
                index = [
                    Affine(Dim((), at.get(axis, 0)), tuple(int(axis == own) for own in kept))
                    for axis in range(node.rank)
                ]
                parts.append(build.scatter(self._parts[node, fixed], index, node.shape))
            self._whole[node] = reduce(add, parts)
        return self._whole[node]

    def _operand(self, node: Expr, fixed: Mapping[int, int], loop: int) -> Expr:
        """The elements of an operand at positions along its axes, for a loop of this length."""
        own = tuple(sorted(fixed.items()))
        if not own or (node, own) in self._parts:
            return self._parts[node, own] if own else self._whole[node]
        kept = _others(node.rank, dict(own))
        shape = tuple(node.shape[axis] for axis in kept)
        index = [
            Affine(Dim((), dict(own).get(axis, 0)), tuple(int(axis == one) for one in kept))
            for axis in range(node.rank)
        ]
        view = build.gather(self._whole[node], index, shape)
        elements = prod(max(0, dim.value(self._numbers)) for dim in shape)
        is_data = isinstance(node, Input) and node.role == "data"
        longer = _LONGER * elements <= loop
        if node.dtype == "real" and elements >= _LEAST and (is_data or longer):
            # A copy in an order of its own, as a loop reads it without strides.
            return Reshape(view, shape)
        return view

    def _part(self, node: Expr, at: Mapping[int, int]) -> Expr:
        """The elements of a node at positions `at` along its axes that are written out."""
        if isinstance(node, Map):
            return self._part_of_map(node, at)
        if isinstance(node, Einsum):
            return self._part_of_sum(node, at)
        if isinstance(node, Gather):
            return self._part_of_gather(node, at)
        if isinstance(node, Scan):
            return self._part_of_scan(node, at)
        assert isinstance(node, Scatter)
        return self._part_of_scatter(node, at)

    def _part_of_map(self, node: Map, at: Mapping[int, int]) -> Expr:
        kept = _others(node.rank, at)
        shape = tuple(node.shape[axis] for axis in kept)
        loop = prod(max(0, dim.value(self._numbers)) for dim in shape)
        operands, axes = [], []
        for operand, own in zip(node.operands, node.axes, strict=True):
            fixed = {p: at[axis] for p, axis in enumerate(own) if axis in at}
            operands.append(self._operand(operand, fixed, loop))
            axes.append(tuple(kept.index(axis) for axis in own if axis not in at))
        return build.apply_along(node.function, operands, axes, shape)

    def _part_of_sum(self, node: Einsum, at: Mapping[int, int]) -> Expr:
        fixed = {node.output[axis]: position for axis, position in at.items()}
        summed = [label for label in range(len(node.dims)) if (node, ~label) in self._chosen]
        kept = [
            label for label in range(len(node.dims)) if label not in fixed and label not in summed
        ]
        dims = tuple(node.dims[label] for label in kept)
        loop = prod(max(0, dim.value(self._numbers)) for dim in dims)
        output = tuple(kept.index(label) for label in node.output if label not in fixed)
        terms = []
        for positions in product(
            *(range(node.dims[label].value(self._numbers)) for label in summed)
        ):
            now = {**fixed, **dict(zip(summed, positions, strict=True))}
            operands, inputs = [], []
            for operand, own in zip(node.operands, node.inputs, strict=True):
                places = {p: now[label] for p, label in enumerate(own) if label in now}
                operands.append(self._operand(operand, places, loop))
                inputs.append(tuple(kept.index(label) for label in own if label not in now))
            terms.append((operands, inputs))
        whole = tuple(range(len(kept)))
        if all(own == whole for _, inputs in terms for own in inputs) and len(terms) > 1:
            # A loop adds the terms at each index, and sums these values once.
            values = [reduce(mul, operands) for operands, _ in terms]
            return build.einsum([reduce(add, values)], [whole], output, dims)
        parts = [build.einsum(operands, inputs, output, dims) for operands, inputs in terms]
        return reduce(add, [lowered(part, self._numbers) for part in parts])

    def _part_of_scan(self, node: Scan, at: Mapping[int, int]) -> Expr:
        factor, value = node.operands[0], self._operand(node.operands[1], at, 0)
        if node.axis not in at:
            axis = _others(node.rank, at).index(node.axis)
            return build.scan(self._operand(factor, at, 0), value, axis)
        if not at[node.axis]:
            return value
        before = {axis: k - (axis == node.axis) for axis, k in at.items()}
        last = self._parts[node, tuple(sorted(before.items()))]
        if factor is not ones_like(factor):
            last = build.apply(mul, self._operand(factor, at, 0), last)
        return build.apply(add, last, value)

    def _part_of_gather(self, node: Gather, at: Mapping[int, int]) -> Expr:
        kept = _others(node.rank, at)
        shape = tuple(node.shape[axis] for axis in kept)
        index = [_restricted(table, at, kept) for table in self._with_tables(node.index)]
        operand = node.operands[0]
        own = self._axes.get(operand, ())
        places = tuple((p, self._number(index[p])) for p in own)
        source = self._parts.get((operand, places))
        if source is None or not own:
            source = self._whole[operand]
        else:
            index = [one for p, one in enumerate(index) if p not in own]
        return build.gather(source, index, shape)

    def _part_of_scatter(self, node: Scatter, at: Mapping[int, int]) -> Expr:
        operand = node.operands[0]
        shape = tuple(node.shape[axis] for axis in _others(node.rank, at))
        parts = []
        for fixed in self._positions(operand):
            kept = _others(operand.rank, dict(fixed))
            index = [
                _restricted(table, dict(fixed), kept) for table in self._with_tables(node.index)
            ]
            if all(self._number(index[axis]) == position for axis, position in at.items()):
                places = [one for axis, one in enumerate(index) if axis not in at]
                value = self._operand(operand, dict(fixed), 0)
                parts.append(build.scatter(value, places, shape))
        return reduce(add, parts) if parts else build.zeros(shape)

    def _number(self, index: Index) -> int:
        assert isinstance(index, Affine)
        assert not any(index.coefficients)
        return index.offset.size(self._numbers)

    def _with_tables(self, index: Sequence[Index]) -> list[Index]:
        return [
            Lookup(one.axes, self._together(one.table)) if isinstance(one, Lookup) else one
            for one in index
        ]


def _others(rank: int, at: Mapping[int, int]) -> list[int]:
    return [axis for axis in range(rank) if axis not in at]


def _restricted(index: Index, at: Mapping[int, int], kept: Sequence[int]) -> Index:
    """An index at positions along some axes, as a function of the others."""
    if isinstance(index, Affine):
        offset = sum(index.coefficients[axis] * position for axis, position in at.items())
        return Affine(index.offset + offset, tuple(index.coefficients[axis] for axis in kept))
    if isinstance(index, Lookup):
        own = [p for p, axis in enumerate(index.axes) if axis not in at]
        table, axes = index.table, tuple(kept.index(index.axes[p]) for p in own)
        if len(own) == table.rank:
            return Lookup(axes, table)
        places = [
            Affine(Dim((), at.get(axis, 0)), tuple(int(p == q) for q in own))
            for p, axis in enumerate(index.axes)
        ]
        return Lookup(axes, build.gather(table, places, tuple(table.shape[p] for p in own)))
    return type(index)(kept.index(index.axis), index.size, index.degree, index.start, index.stop)
