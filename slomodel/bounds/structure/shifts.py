"""Shifts of variables by arrays that are constant along an axis, and nodes that they shift.

x + s, with s any array that is constant along an axis of x, shifts affine nodes by arrays that are
known as graphs of s, and the largest element along an axis by the shift that is constant there: so
u - max u and softmax u are invariant. Two shifts are equal where their graphs are the same node,
since nodes are interned.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import inf

import slomodel.functions as table
from slomodel.bounds.structure.axis_actions import NotCarried
from slomodel.bounds.structure.gathers import over_axes
from slomodel.functions.compound import stop_gradient
from slomodel.ir import build
from slomodel.ir.expr import (
    Axes,
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Map,
    reads_axis,
)


@dataclass(frozen=True, slots=True)
class Shift:
    """A node moves by `by`, whose axis k is its axis `axes[k]`; along the others it is constant."""

    by: Expr
    axes: Axes


def is_shift_invariant(objective: Expr, shifts: Mapping[Expr, Shift]) -> bool:
    """Whether the objective is proved not to move when variables are shifted."""
    result: dict[Expr, Shift] = {}
    varying = set(shifts)
    try:
        for node in _in_order(objective):
            if any(operand in varying for operand in _read(node)):
                varying.add(node)
            if node in shifts:
                result[node] = shifts[node]
            elif any(operand in result for operand in _read(node)):
                own = _shifted(node, result, varying)
                if own is not None:
                    result[node] = own
    except NotCarried:
        return False
    return objective not in result


def _in_order(objective: Expr) -> list[Expr]:
    """The nodes under the objective after those that they read."""
    order: list[Expr] = []
    seen: set[Expr] = set()
    stack = [(objective, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(operand, False) for operand in _read(node)]
    return order


def _read(node: Expr) -> tuple[Expr, ...]:
    """The operands of a node; u alone for u where |u| < inf and else another number."""
    if isinstance(node, Map) and node.function is table.where:
        condition, u, _ = node.operands
        if isinstance(condition, Map) and condition.function is table.lt:
            size, end = condition.operands
            is_size = isinstance(size, Map) and size.function is table.abs and size.operands[0] is u
            if is_size and isinstance(end, Const) and end.value == inf:
                return (u,)
    return node.operands


def _shifted(node: Expr, shifts: Mapping[Expr, Shift], varying: Collection[Expr]) -> Shift | None:
    """The shift of a node some of whose operands are shifted; None for none."""
    if isinstance(node, Map):
        if len(_read(node)) < len(node.operands):
            return shifts[_read(node)[0]]  # for numbers that are finite
        return _of_map(node, shifts, varying)
    if isinstance(node, Einsum):
        return _of_contraction(node, shifts, varying)
    own = shifts.get(node.operands[0])
    if own is None:
        raise NotCarried
    if isinstance(node, Extreme) and set(own.axes).isdisjoint(node.axes):
        left = [axis for axis in range(node.operands[0].rank) if axis not in node.axes]
        return Shift(own.by, tuple(left.index(axis) for axis in own.axes))
    if isinstance(node, Gather):
        return _of_gather(node, own)
    raise NotCarried


def _of_map(node: Map, shifts: Mapping[Expr, Shift], varying: Collection[Expr]) -> Shift | None:
    parts: list[Shift | None] = []
    for operand, axes in zip(node.operands, node.axes, strict=True):
        own = shifts.get(operand)
        placed = None if own is None else Shift(own.by, tuple(axes[k] for k in own.axes))
        parts.append(placed)
    known = [part for part in parts if part is not None]
    function = node.function
    if function is stop_gradient:
        return known[0]
    if function in (table.add, table.sub) and len(known) == 2:
        first, second = known
        other = _negative(second.by) if function is table.add else second.by
        if first.by is other and first.axes == second.axes:
            return None
        return _applied(node, known)
    if function in (table.add, table.sub, table.neg):
        (only,) = known
        is_negative = function is table.neg or (function is table.sub and parts[0] is None)
        return Shift(_negative(only.by), only.axes) if is_negative else only
    if function in (table.mul, table.div) and len(known) == 1:
        which = 0 if parts[0] is not None else 1
        other_operand = node.operands[1 - which]
        if other_operand in varying or (which == 1 and function is table.div):
            raise NotCarried
        factor = Shift(other_operand, node.axes[1 - which])
        return _applied(node, [known[0], factor] if which == 0 else [factor, known[0]])
    raise NotCarried


def _negative(a: Expr) -> Expr:
    return a.operands[0] if isinstance(a, Map) and a.function is table.neg else table.neg(a)


def _applied(node: Map, parts: list[Shift]) -> Shift:
    """The node's function of two arrays, over the axes that they have."""
    axes = tuple(sorted({axis for part in parts for axis in part.axes}))
    shape = tuple(node.shape[axis] for axis in axes)
    along = [tuple(axes.index(axis) for axis in part.axes) for part in parts]
    return Shift(build.apply_along(node.function, [part.by for part in parts], along, shape), axes)


def _of_contraction(node: Einsum, shifts: Mapping[Expr, Shift], varying: Collection[Expr]) -> Shift:
    own = [k for k, operand in enumerate(node.operands) if operand in varying]
    if len(own) != 1 or len(set(node.output)) < node.rank:
        raise NotCarried
    (k,) = own
    shift, labels = shifts[node.operands[k]], node.inputs[k]
    if len(set(labels)) < len(labels):
        raise NotCarried
    operands = [shift.by if j == k else operand for j, operand in enumerate(node.operands)]
    inputs = [
        tuple(labels[axis] for axis in shift.axes) if j == k else other
        for j, other in enumerate(node.inputs)
    ]
    used = sorted({label for one in inputs for label in one})
    if any(label not in used and label not in node.output for label in labels):
        raise NotCarried  # the number of terms would multiply the shift
    axes = tuple(axis for axis, label in enumerate(node.output) if label in used)
    number = {label: place for place, label in enumerate(used)}
    by = build.einsum(
        operands,
        [tuple(number[label] for label in one) for one in inputs],
        tuple(number[node.output[axis]] for axis in axes),
        [node.dims[label] for label in used],
    )
    return Shift(by, axes)


def _of_gather(node: Gather, own: Shift) -> Shift:
    index = [node.index[axis] for axis in own.axes]
    read = tuple(axis for axis in range(node.rank) if any(reads_axis(one, axis) for one in index))
    shape = tuple(node.shape[axis] for axis in read)
    by = build.gather(own.by, [over_axes(one, read) for one in index], shape) if index else own.by
    return Shift(by, read)
