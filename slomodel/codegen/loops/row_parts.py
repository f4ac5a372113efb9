"""Loops over a masked matrix: the part of each row in which there is anything to add.

Sums over pairs i < j of a matrix are sums of values that a mask sets to 0 elsewhere. Where sizes
alone determine the mask and each row of it is true in one range, whose ends move along by the same
number from row to row, the loop along a row runs over that range.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slomodel.codegen.loops.access import Numbers, c_order
from slomodel.codegen.loops.nest import (
    Apply,
    Computed,
    Element,
    Operand,
    Reduce,
    RowParts,
    Scalar,
    Statement,
)
from slomodel.functions import add, div, mul, neg, square, sub, where
from slomodel.ir.expr import Const, Expr
from slomodel.ir.walk import inputs
from slomodel.reference import evaluate

_LEAST = 24
"""Elements of a row from which shorter parts of it pay, although their lengths are not constant."""
_MOST = 1 << 18
"""Elements of a mask that is examined."""

Ends = tuple[NDArray[np.int64], NDArray[np.int64]]
"""For each row the first element that may not be 0, and the one after the last."""


def row_parts(
    shape: Sequence[int], statements: Sequence[Statement], numbers: Numbers
) -> RowParts | None:
    """The parts of rows outside of which all that a loop adds is 0; None for whole rows."""
    if len(shape) != 2 or shape[1] < _LEAST or shape[0] * shape[1] > _MOST:
        return None
    ends = _RowEnds(shape[0], shape[1], numbers)
    every: Ends | None = None
    for statement in statements:
        if isinstance(statement, Apply):
            ends.add(statement)
        elif isinstance(statement, Reduce) and statement.op == "sum":
            own = ends.product([ends.of(one) for one in statement.operands])
            if own is None:
                return None
            every = own if every is None else _union(every, own)
            ends.values.append(None)
        else:
            return None
    if every is None or not (every[0] < every[1]).any():
        return None
    if 4 * int((every[1] - every[0]).clip(0).sum()) > 3 * shape[0] * shape[1]:
        return None
    some = np.flatnonzero(every[0] < every[1])
    lows, highs = (_line(some, own[some], shape[1]) for own in every)
    return None if lows is None or highs is None else RowParts(*lows, *highs)


class _RowEnds:
    """The ends of the values of a loop's statements, in each row."""

    def __init__(self, rows: int, columns: int, numbers: Numbers) -> None:
        self._rows, self._columns, self._numbers = rows, columns, numbers
        self._masks: dict[Expr, Ends | None] = {}
        self.values: list[Ends | None] = []

    def add(self, one: Apply) -> None:
        own = [self.of(operand) for operand in one.operands]
        self.values.append(self._value(one, own))

    def of(self, operand: Operand) -> Ends | None:
        """The ends of an operand; None if it may have values everywhere."""
        if isinstance(operand, Computed):
            return self.values[operand.statement]
        if isinstance(operand, Scalar) and isinstance(operand.node, Const):
            nothing = np.zeros(self._rows, np.int64)
            return (nothing, nothing) if operand.node.value == 0.0 else None
        return None

    def _value(self, one: Apply, own: Sequence[Ends | None]) -> Ends | None:
        if one.function is where:
            mask = self._mask(one.operands[0])
            chosen = mask if own[1] is None else self.product([mask, own[1]])
            return None if chosen is None or own[2] is None else _union(chosen, own[2])
        if one.function is mul:
            return self.product(own)
        if one.function in (add, sub):
            first, second = own
            return None if first is None or second is None else _union(first, second)
        if one.function in (None, neg, square, div):
            return own[0]
        return None

    def product(self, own: Sequence[Ends | None]) -> Ends | None:
        known = [one for one in own if one is not None]
        if not known:
            return None
        lows, highs = zip(*known, strict=True)
        return np.maximum.reduce(lows), np.minimum.reduce(highs)

    def _mask(self, operand: Operand) -> Ends | None:
        if not isinstance(operand, Element) or not isinstance(operand.array, Expr):
            return None
        node, position = operand.array, operand.position
        whole = (self._rows, self._columns)
        plain = position.is_affine and not position.offset and position.strides == c_order(whole)
        if not plain or node.dtype != "bool" or inputs(node):
            return None
        if node not in self._masks:
            self._masks[node] = self._examined(node)
        return self._masks[node]

    def _examined(self, node: Expr) -> Ends | None:
        table = np.asarray(evaluate([node], {}, self._numbers)[0])
        if table.shape != (self._rows, self._columns):
            return None
        some = table.any(axis=1)
        lows = np.where(some, table.argmax(axis=1), self._columns)
        highs = np.where(some, self._columns - table[:, ::-1].argmax(axis=1), 0)
        return lows.astype(np.int64), highs.astype(np.int64)


def _union(one: Ends, other: Ends) -> Ends:
    """Ends that enclose both; an empty part counts for nothing."""
    first, second = (own[0] < own[1] for own in (one, other))
    lows = np.where(first & second, np.minimum(one[0], other[0]), np.where(first, one[0], other[0]))
    highs = np.where(
        first & second, np.maximum(one[1], other[1]), np.where(first, one[1], other[1])
    )
    return lows, highs


def _line(rows: NDArray[np.intp], ends: NDArray[np.int64], columns: int) -> tuple[int, int] | None:
    """The ends of rows as `start + step * row`, cut to the row; None if they are not on a line."""
    inside = np.flatnonzero((ends > 0) & (ends < columns))
    step = int(ends[inside[1]] - ends[inside[0]]) if inside.size > 1 else 0
    at = inside[0] if inside.size else 0
    start = int(ends[at]) - step * int(rows[at])
    return (start, step) if np.array_equal(np.clip(start + step * rows, 0, columns), ends) else None
