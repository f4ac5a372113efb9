"""Loops over a masked matrix: the part of each row whose values are needed.

Sums over pairs i < j of a matrix are sums of values that a mask sets to 0 elsewhere, and maxima are
those of values that it sets to -infinity. Where sizes alone determine the mask and each row of it
is true in one range, whose ends move along by the same number from row to row, the loop along a row
runs over that range. So does a loop that stores arrays which other loops read only there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from slomodel.codegen.loops.access import Numbers, c_order
from slomodel.codegen.loops.fusion import Fusion
from slomodel.codegen.loops.nest import (
    Apply,
    Block,
    Computed,
    Copy,
    Element,
    Nest,
    Operand,
    Reduce,
    RowParts,
    Scalar,
    Statement,
    Store,
    places,
)
from slomodel.codegen.loops.regions import Region
from slomodel.functions import add, div, land, lor, maximum, minimum, mul, neg, square, sub, where
from slomodel.ir.expr import Const, Expr
from slomodel.ir.walk import inputs
from slomodel.reference import evaluate

_LEAST = 24
"""Elements of a row from which on shorter parts pay, although their lengths are not constant."""
_MOST = 1 << 22
"""Elements of a mask that is examined: this takes some 20 ms."""
_WIDTH = 8
"""Parts of rows begin and end at multiples of it, the elements of a vector."""
_IDENTITY = {"sum": 0.0, "max": -inf, "min": inf}

Ends = tuple[NDArray[np.int64], NDArray[np.int64]]
"""For each row the first element in which there is a value, and the one after the last."""
KeepsRows = Callable[[Nest], bool]
"""Whether a target runs along the last axis of a nest, inside a loop over the first."""


def with_row_parts(
    regions: Sequence[tuple[Region, list[Block]]], fusion: Fusion, keeps_rows: KeepsRows | None
) -> list[list[Block]]:
    """The blocks of regions, in order, with the parts of rows over which their loops run.

    Arrays are stored in part where `keeps_rows` says that a target runs along rows.
    """
    whole = set() if keeps_rows is None else _read_whole(regions, fusion)
    masks: dict[Expr, Ends | None] = {}
    known: dict[Expr, Ends] = {}
    loops: dict[int, _LoopRows] = {}
    nests = [one for _, blocks in regions for one in blocks if isinstance(one, Nest)]
    for nest in nests:
        if _is_long(nest):
            plain = _LoopRows(nest, fusion.accesses.numbers, masks, known)
            loops[id(nest)] = plain
            known.update(plain.zeros())
    if not any(one.is_masked for one in loops.values()):
        return [blocks for _, blocks in regions]
    stores = _Stores(whole) if keeps_rows is not None else None
    result: list[list[Block]] = []
    for _, blocks in reversed(regions):
        own: list[Block] = []
        for block in reversed(blocks):
            rows = loops.get(id(block))
            parts = None
            if isinstance(block, Nest):
                if rows is not None and (keeps_rows is None or keeps_rows(block)):
                    parts = rows.parts(stores)
                if stores is not None:
                    stores.read(block, None if parts is None else _ends(parts, block.shape))
                block = block if parts is None else replace(block, rows=parts)
            own.append(block)
        result.append(own[::-1])
    return result[::-1]


def _is_long(nest: Nest) -> bool:
    if len(nest.axes) != 2 or not all(axis.is_fixed for axis in nest.axes):
        return False
    rows, columns = nest.shape
    return columns >= _LEAST and 0 < rows * columns <= _MOST


def _read_whole(regions: Sequence[tuple[Region, list[Block]]], fusion: Fusion) -> set[Expr]:
    """The arrays that are results, or that others than loops read or write."""
    result = {fusion.accesses.of(root).base for root in fusion.program.roots}
    for region, blocks in regions:
        if len(blocks) == 1 and isinstance(blocks[0], Nest):
            continue
        for node in region.nodes:
            every = [node, *node.operands, *(read.node for read in fusion.reads(node))]
            every += [one for one in (fusion.start_of(node), fusion.in_place(node)) if one]
            result.update(fusion.accesses.of(one).base for one in every)
    for base in list(result):
        result.update(fusion.assembled.get(base, ()))
    result.update(one for one, owner in fusion.owners.items() if one is not owner)
    return result | {fusion.owners[one] for one in result if one in fusion.owners}


@dataclass(slots=True)
class _Stores:
    """The parts of arrays that later loops read; those in `whole` are needed everywhere."""

    whole: set[Expr]
    needed: dict[Expr, Ends] = field(default_factory=dict)

    def of(self, store: Store, shape: tuple[int, ...]) -> Ends | None:
        """The part of a stored array that is needed; None for all of it."""
        array = _own_array(store.target, shape)
        return None if array is None or array in self.whole else self.needed.get(array)

    def read(self, nest: Nest, ends: Ends | None) -> None:
        """Take into account what a loop reads in the given parts of its rows."""
        for statement in nest.statements:
            every = places(statement)
            targets = () if isinstance(statement, Apply) else (statement.target,)
            for one in every:
                if not isinstance(one.array, Expr):
                    continue
                own = _own_array(one, nest.shape) if len(nest.axes) == 2 else None
                if any(one is target for target in targets):
                    if own is None or isinstance(statement, Reduce):
                        self.whole.add(one.array)
                elif own is None or ends is None:
                    self.whole.add(one.array)
                else:
                    before = self.needed.get(own)
                    self.needed[own] = ends if before is None else _union(before, ends)
        for fill in nest.fills:
            arrays = [fill.array]
            if isinstance(fill, Copy) and isinstance(fill.source, Element):
                arrays.append(fill.source.array)
            self.whole.update(one for one in arrays if isinstance(one, Expr))


def _own_array(operand: Operand, shape: Sequence[int]) -> Expr | None:
    """The array whose element at the index of the loop an operand is; None for other operands."""
    if not isinstance(operand, Element) or not isinstance(operand.array, Expr):
        return None
    position = operand.position
    plain = position.is_affine and not position.offset
    return operand.array if plain and position.strides == c_order(shape) else None


class _LoopRows:
    """The parts of the rows of a loop in which its sums and extremes have something to add."""

    def __init__(
        self,
        nest: Nest,
        numbers: Numbers,
        masks: dict[Expr, Ends | None],
        known: Mapping[Expr, Ends],
    ) -> None:
        self._nest = nest
        self._values = {
            start: _RowEnds(nest.shape, nest.statements, start, numbers, masks, known)
            for start in _starts(nest.statements)
        }

    @property
    def is_masked(self) -> bool:
        return any(one is not None for own in self._values.values() for one in own.values)

    def zeros(self) -> Iterator[tuple[Expr, Ends]]:
        """The arrays that the loop stores and that are 0 outside of parts of rows."""
        for statement in self._nest.statements:
            if isinstance(statement, Store):
                array = _own_array(statement.target, self._nest.shape)
                ends = self._values[0.0].of(statement.value)
                if array is not None and ends is not None:
                    yield array, ends

    def parts(self, stores: _Stores | None) -> RowParts | None:
        """The parts of rows outside of which nothing that the loop does is needed."""
        every: Ends | None = None
        for statement in self._nest.statements:
            own: Ends | None
            if isinstance(statement, Apply):
                continue
            if isinstance(statement, Reduce):
                values = self._values[_IDENTITY[statement.op]]
                own = values.product([values.of(one) for one in statement.operands])
            else:
                own = None if stores is None else stores.of(statement, self._nest.shape)
            if own is None:
                return None
            every = own if every is None else _union(every, own)
        return None if every is None else _lines(every, self._nest.shape)


def _starts(statements: Sequence[Statement]) -> set[float]:
    """The numbers that the reductions of a loop ignore, and 0."""
    return {0.0, *(_IDENTITY[one.op] for one in statements if isinstance(one, Reduce))}


class _RowEnds:
    """For each statement the part of each row outside of which its value is `start`; else None."""

    def __init__(
        self,
        shape: tuple[int, ...],
        statements: Sequence[Statement],
        start: float,
        numbers: Numbers,
        masks: dict[Expr, Ends | None],
        known: Mapping[Expr, Ends],
    ) -> None:
        self._shape, self._start, self._numbers = shape, start, numbers
        self._masks, self._known = masks, known
        # Conditions are 0 where they are false.
        self._truths = (
            self if start == 0.0 else _RowEnds(shape, statements, 0.0, numbers, masks, known)
        )
        self.values: list[Ends | None] = []
        for one in statements:
            own = self._value(one) if isinstance(one, Apply) else None
            self.values.append(own)

    def of(self, operand: Operand) -> Ends | None:
        """The ends of an operand; None if it may have other values everywhere."""
        if isinstance(operand, Computed):
            return self.values[operand.statement]
        if isinstance(operand, Scalar) and isinstance(operand.node, Const):
            nothing = np.zeros(self._shape[0], np.int64)
            return (nothing, nothing) if operand.node.value == self._start else None
        array = _own_array(operand, self._shape)
        if array is None or self._start != 0.0:
            return None
        if array.dtype == "bool" and not inputs(array):
            if array not in self._masks:
                self._masks[array] = self._examined(array)
            return self._masks[array]
        return self._known.get(array)

    def _value(self, one: Apply) -> Ends | None:
        own = [self.of(operand) for operand in one.operands]
        function = one.function
        if function is where:
            mask = self._truths.of(one.operands[0])
            return None if own[2] is None else _both(mask, own[1], own[2])
        if function is None:
            return own[0]
        if self._start != 0.0:
            keeps = maximum if self._start < 0 else minimum
            return _all(own) if function is keeps else None
        if function in (mul, land):
            return self.product(own)
        if function in (add, sub, lor, maximum, minimum):
            return _all(own)
        return own[0] if function in (neg, square, div) else None

    @staticmethod
    def product(own: Sequence[Ends | None]) -> Ends | None:
        known = [one for one in own if one is not None]
        if not known:
            return None
        lows, highs = zip(*known, strict=True)
        return np.maximum.reduce(lows), np.minimum.reduce(highs)

    def _examined(self, node: Expr) -> Ends | None:
        table = np.asarray(evaluate([node], {}, self._numbers)[0])
        if table.shape != self._shape:
            return None
        columns = self._shape[1]
        some = table.any(axis=1)
        lows = np.where(some, table.argmax(axis=1), columns)
        highs = np.where(some, columns - table[:, ::-1].argmax(axis=1), 0)
        return lows.astype(np.int64), highs.astype(np.int64)


def _both(mask: Ends | None, chosen: Ends | None, other: Ends) -> Ends | None:
    """The ends of a choice: of its first value where the mask is true, and of the other one."""
    first = _RowEnds.product([mask, chosen])
    return None if first is None else _union(first, other)


def _all(own: Sequence[Ends | None]) -> Ends | None:
    first, *rest = own
    for one in rest:
        first = None if first is None or one is None else _union(first, one)
    return first


def _union(one: Ends, other: Ends) -> Ends:
    """Ends that enclose both; an empty part counts for nothing."""
    first, second = (own[0] < own[1] for own in (one, other))
    lows = np.where(first & second, np.minimum(one[0], other[0]), np.where(first, one[0], other[0]))
    highs = np.where(
        first & second, np.maximum(one[1], other[1]), np.where(first, one[1], other[1])
    )
    return lows, highs


def _lines(every: Ends, shape: tuple[int, ...]) -> RowParts | None:
    """The ends of rows as lines over the number of the row; None where whole rows are as good."""
    rows, columns = shape
    if not (every[0] < every[1]).any():
        return None
    if 4 * int((every[1] - every[0]).clip(0).sum()) > 3 * rows * columns:
        return None
    some = np.flatnonzero(every[0] < every[1])
    lows, highs = (_line(some, own[some], columns) for own in every)
    return None if lows is None or highs is None else RowParts(*lows, *highs, _WIDTH)


def _line(rows: NDArray[np.intp], ends: NDArray[np.int64], columns: int) -> tuple[int, int] | None:
    """The ends of rows as `start + step * row`, cut to the row; None if they are not on a line."""
    inside = np.flatnonzero((ends > 0) & (ends < columns))
    step = int(ends[inside[1]] - ends[inside[0]]) if inside.size > 1 else 0
    at = inside[0] if inside.size else 0
    start = int(ends[at]) - step * int(rows[at])
    return (start, step) if np.array_equal(np.clip(start + step * rows, 0, columns), ends) else None


def _ends(parts: RowParts, shape: tuple[int, ...]) -> Ends:
    """The ends of parts of rows, before they are moved to multiples of a width.

    Where these enclose those of another loop, so do the moved ones.
    """
    rows = np.arange(shape[0], dtype=np.int64)
    lines = ((parts.low, parts.low_step), (parts.high, parts.high_step))
    low, high = ((start + step * rows).clip(0, shape[1]) for start, step in lines)
    return low, high
