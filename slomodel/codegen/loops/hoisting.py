"""Values of steps that do not depend on the states of a recurrence, computed at all steps at once.

The constructor of recurrences hoists the values that have no more axes than what they are computed
from. Once sizes are known, costly functions are hoisted as long as their values are few: loops over
all steps compute them in vectors, and adjoints often share them.
"""

from __future__ import annotations

from math import prod

from slomodel.codegen.loops.access import Numbers, number_of
from slomodel.codegen.lower import lowered
from slomodel.ir.expr import Expr, Map, Recur
from slomodel.ir.loop import Loop
from slomodel.ir.recur import with_values
from slomodel.ir.walk import rewrite

_MOST = 1 << 17
"""Elements at all steps that are stored: about a megabyte, the L2 cache."""


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
            length = number_of(node.loop.length, numbers)

            def stores(one: Expr) -> bool:
                size = length * prod(number_of(dim, numbers) for dim in one.shape)
                return isinstance(one, Map) and one.function.costly and size <= _MOST

            values = [update.value for update in node.loop.updates]
            states[key] = rewrite(with_values(node, values, stores), simple)
        return states[key][node.state]

    return rewrite(roots, rule)
