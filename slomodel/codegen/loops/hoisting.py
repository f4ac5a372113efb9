"""Work that is moved out of loops: values of steps to all steps at once, conditions to tables.

The constructor of recurrences hoists the values that have no more axes than what they are computed
from. Once sizes are known, costly functions are hoisted as long as their values are few: loops over
all steps compute them in vectors, and adjoints often share them.

where(c, A[.., i[n]], 0) is a lookup in where(c, A, 0) if c depends on axes of A alone: one decision
for each element of A, and not one for each lookup. The same holds for sums at places of index data.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.loops.affine_steps import affine_values
from slomodel.codegen.lower import lowered
from slomodel.functions import where
from slomodel.ir import build
from slomodel.ir.dims import Dim
from slomodel.ir.expr import (
    Affine,
    Axes,
    Const,
    Expr,
    Gather,
    Index,
    Map,
    Recur,
    Scatter,
    is_listed,
)
from slomodel.ir.loop import Loop
from slomodel.ir.recur import with_values
from slomodel.ir.walk import rewrite

_MOST = 1 << 17
"""Elements at all steps that are stored: about a megabyte, the L2 cache."""
_FEWER = 2
"""Factor by which lookups outnumber elements to pay for a copy of all elements."""


def with_hoisted(roots: tuple[Expr, ...], numbers: Numbers) -> tuple[Expr, ...]:
    """Lowered roots in which loops read what does not depend on their states."""
    states: dict[tuple[tuple[Expr, ...], Loop], tuple[Expr, ...]] = {}

    def simple(node: Expr) -> Expr:
        return node if isinstance(node, Recur) else lowered(node, numbers)

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Recur):
            return node
        key = node.operands, node.loop
        if key not in states:
            length = node.loop.length.value(numbers)

            def stores(one: Expr) -> bool:
                size = length * prod(dim.value(numbers) for dim in one.shape)
                return isinstance(one, Map) and one.function.costly and size <= _MOST

            # Costly functions first, as arrays: the adjoints of the operands read the same arrays,
            # and element by element they would be other nodes.
            values = [update.value for update in node.loop.updates]
            apart = with_values(node, values, stores)[0]
            assert isinstance(apart, Recur)
            values = list(affine_values(apart.loop, numbers))
            states[key] = rewrite(with_values(apart, values, stores), simple)
        return states[key][node.state]

    return rewrite(roots, rule)


def with_masked_tables(roots: tuple[Expr, ...], numbers: Numbers) -> tuple[Expr, ...]:
    """Lowered roots with conditions on the elements of tables and not on what is looked up."""

    def size(node: Expr) -> int:
        return prod(dim.value(numbers) for dim in node.shape)

    def rule(node: Expr) -> Expr:
        if isinstance(node, Map):
            value = _condition(node)
            if value is None or not isinstance(value, Gather) or not is_listed(value):
                return node
            source = value.operands[0]
            axes = _places(node.axes[0], value.index, source)
            if axes is None or _FEWER * size(source) > size(node):
                return node
            own = (axes, tuple(range(source.rank)), ())
            operands = (node.operands[0], source, node.operands[2])
            table = build.apply_along(where, operands, own, source.shape)
            return build.gather(table, value.index, node.shape)
        if isinstance(node, Scatter) and is_listed(node) and isinstance(node.operands[0], Map):
            added = node.operands[0]
            value = _condition(added)
            axes = None if value is None else _places(added.axes[0], node.index, node)
            zero = added.operands[-1]
            if axes is None or value is None or not isinstance(zero, Const) or zero.value:
                return node
            if _FEWER * size(node) > size(added):
                return node
            whole = build.broadcast(value, added.axes[1], added.shape)
            result = build.scatter(whole, node.index, node.shape)
            own = (axes, tuple(range(node.rank)), ())
            return build.apply_along(where, (added.operands[0], result, zero), own, node.shape)
        return node

    return rewrite(roots, rule)


def _condition(node: Map) -> Expr | None:
    """The value of where(c, value, number), for a condition with fewer axes; else None."""
    if node.function is not where or not isinstance(node.operands[2], Const):
        return None
    return node.operands[1] if 0 < node.operands[0].rank < node.rank else None


def _places(axes: Axes, index: Sequence[Index], table: Expr) -> Axes | None:
    """The axes of a table along which the iterated axes run; None if their order differs."""
    places = []
    for axis in axes:
        own = [
            q
            for q, one in enumerate(index)
            if isinstance(one, Affine)
            and one.offset == Dim()
            and [k for k, c in enumerate(one.coefficients) if c] == [axis]
            and one.coefficients[axis] == 1
        ]
        if len(own) != 1:
            return None
        places += own
    return tuple(places) if places == sorted(set(places)) else None
