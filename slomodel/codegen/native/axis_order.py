"""The order of a loop's axes: the one that passes run along is the last one, and cheapest."""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.codegen.loops.access import merged_axes
from slomodel.codegen.loops.nest import Apply, Element, Nest, Reduce
from slomodel.codegen.loops.pointers import Pointers
from slomodel.codegen.native.direct import LANES

_STRIDED, _LOOKED_UP, _COSTLY = 12.0, 12.0, 8.0
"""Vector operations that an access with a stride or by an index, or a costly function, is worth."""
_UNROLLED = 4.0
"""Vector operations that an unrolled scalar operation is worth."""
_START, _TOTAL = 16, 24
"""Elements that could be computed while a pass starts and ends, or while a total is formed."""

LoopAxes = list[tuple[int, tuple[int, ...]]]
"""Axes of a loop, each a size and the steps of the pointers along it."""


def arranged(nest: Nest, pointers: Pointers) -> LoopAxes:
    """The axes of the loop, merged where possible, with the one that passes run along last."""
    shape, rank = nest.shape, len(nest.axes)
    strides = [pointer.position.strides for pointer in pointers]
    every: list[tuple[float, int, LoopAxes]] = []
    for last in reversed(range(rank)):
        order = [axis for axis in range(rank) if axis != last] + [last]
        _join_mergeable(order, shape, strides)
        moved = [tuple(own[axis] for axis in order) for own in strides]
        axes = merged_axes([shape[axis] for axis in order], moved)
        every.append((_cost(axes, nest, pointers), len(every), axes))
    return min(every)[2]


def _join_mergeable(
    order: list[int], shape: Sequence[int], strides: Sequence[Sequence[int]]
) -> None:
    """Move next to the last axis those that it can be merged with."""
    place, size = len(order) - 1, shape[order[-1]]
    while True:
        result = next(
            (
                axis
                for axis in reversed(order[:place])
                if all(own[axis] == size * own[order[-1]] for own in strides)
            ),
            None,
        )
        if result is None:
            return
        order.remove(result)
        place -= 1
        order.insert(place, result)
        size *= shape[result]


def _cost(axes: LoopAxes, nest: Nest, pointers: Pointers) -> float:
    """Estimated time per element of passes along the last of the axes, in vector operations."""
    if not axes:
        return 0.0
    size, steps = axes[-1]
    step_of = {pointer.name: step for pointer, step in zip(pointers, steps, strict=True)}
    cost = sum(1.0 if step in (0, 1) else _STRIDED for step in steps)
    varying = {table.name for table in pointers if table.integers and step_of[table.name]}
    for pointer in pointers:
        if any(table.name in varying for table, _ in pointer.lookups):
            cost += _LOOKED_UP
    once = 0.0
    for one in nest.statements:
        if isinstance(one, Apply):
            cost += _COSTLY if one.function is not None and one.function.costly else 0.5
        elif isinstance(one, Reduce):
            target = one.target
            step = step_of[pointers.of(target).name] if isinstance(target, Element) else 0
            cost, once = cost + 1, once + (0 if step else _TOTAL)
    costly = any(
        isinstance(statement, Apply)
        and statement.function is not None
        and statement.function.costly
        for statement in nest.statements
    )
    if size < LANES and not costly:
        return cost * _UNROLLED  # such rows are unrolled, and their totals are plain sums
    return cost * (1 + _START / size) + once / size
