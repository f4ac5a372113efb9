"""Conditions on data at bind, and data that may contain NaN, both derived from the graph."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from slomodel.errors import Span
from slomodel.functions import div, ge, where
from slomodel.ir import build
from slomodel.ir.expr import Const, Expr, Extreme, Input, Map
from slomodel.ir.walk import inputs
from slomodel.problem import Check


def nonempty_checks(
    objective: Expr, counts: Mapping[Expr, Span], spans: Mapping[Expr, Span]
) -> list[Check]:
    """Checks that each mean, max, min and logsumexp with `if` has at least one element.

    `counts` holds the numbers of elements of means. Reductions inside a branch of `where`, or with
    a condition on variables, are not checked: a NaN there is traced if it occurs.
    """
    result: dict[Expr, Span] = {}
    for node in _always_computed(objective):
        if isinstance(node, Map) and node.function is div and node.operands[1] in counts:
            result[node.operands[1]] = counts[node.operands[1]]
        if isinstance(node, Extreme) and _is_chosen(node.operands[0]):
            result[_count(node)] = spans[node.operands[0]]
    remedy = "choose another value for empty groups: `… if sum(1 for … if …) > 0 else 0`"
    return [
        Check(_everywhere(count), span.text, span, f"`{span.text}` has no elements", remedy)
        for count, span in result.items()
        if all(node.role == "data" for node in inputs(count))
    ]


def _always_computed(objective: Expr) -> Iterator[Expr]:
    """The nodes that can be reached without entering a branch of a choice."""
    seen = {objective}
    stack = [objective]
    while stack:
        node = stack.pop()
        yield node
        is_choice = isinstance(node, Map) and node.function is where
        new = [
            operand for operand in node.operands[: 1 if is_choice else None] if operand not in seen
        ]
        seen.update(new)
        stack.extend(new)


def _is_chosen(node: Expr) -> bool:
    """Whether a condition `if` replaced some elements of a node by an infinity."""
    if not isinstance(node, Map) or node.function is not where:
        return False
    other = node.operands[2]
    return isinstance(other, Const) and math.isinf(other.value)


def _count(node: Extreme) -> Expr:
    chosen = node.operands[0]
    assert isinstance(chosen, Map)
    condition = build.broadcast(chosen.operands[0], chosen.axes[0], chosen.shape)
    ones = build.apply(where, condition, build.const(1.0), build.const(0.0))
    return build.sum_over(ones, node.axes)


def _everywhere(count: Expr) -> Expr:
    return build.apply(ge, count, build.const(1.0))


def may_be_missing(
    objective: Expr, checks: Sequence[Check], masked: Collection[Expr]
) -> set[Input]:
    """The data whose every use is below one of the nodes in `masked`."""
    roots = (objective, *(check.condition for check in checks))
    seen: set[Expr] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        operands = node.operands
        stack.extend((operands[0], *operands[2:]) if node in masked else operands)
    return {node for node in inputs(*roots) if node.role == "data" and node not in seen}
