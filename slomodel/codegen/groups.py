"""Grouping of elementwise nodes that are computed in one kernel.

A node joins the kernel of its users when all its uses lie in that one kernel and it has the
kernel's shape; a value that several kernels need is written out once and read by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from slomodel.codegen.program import Form
from slomodel.functions.cost import numexpr_time, numpy_time
from slomodel.ir.expr import Expr, Map

# numexpr 2.14 takes 63 inputs, 255 registers and about 200 nested parentheses; half of each
# leaves room for constants and temporaries.
MOST_INPUTS = 30
MOST_OPERATIONS = 100
MOST_DEPTH = 50


@dataclass(slots=True)
class Group:
    """A kernel under construction: its root and the nodes fused so far, with their multiplicities.

    A node used twice is printed twice, so its operands count twice; `printed` is the length of the
    text.
    """

    root: Map
    depth: dict[Map, int] = field(default_factory=dict)
    times: dict[Map, int] = field(default_factory=dict)
    printed: int = 1
    leaves: int = 0


def group(
    order: Sequence[Expr],
    forms: Mapping[Expr, Form],
    users: Mapping[Expr, Sequence[Expr]],
    alone: set[Expr],
) -> dict[Expr, Group]:
    """The group of each elementwise array node of `order`; nodes in `alone` are never joined."""
    result: dict[Expr, Group] = {}
    for node in reversed(order):
        if forms[node] is not Form.ELEMENTWISE or not isinstance(node, Map) or not node.rank:
            continue
        joined = None if node in alone else _joined(node, users[node], result)
        if joined is None:
            joined = Group(node, {node: 1}, {node: 1}, 1, node.function.arity)
        result[node] = joined
    return result


def _joined(node: Map, uses: Sequence[Expr], known: Mapping[Expr, Group]) -> Group | None:
    groups = {id(known[user]): known[user] for user in uses if user in known}
    if len(groups) != 1 or any(user not in known for user in uses):
        return None
    target = next(iter(groups.values()))
    if node.shape != target.root.shape or not all(_in_full(node, user) for user in uses):
        return None
    inside = [user for user in uses if isinstance(user, Map)]
    times = sum(target.times[user] for user in inside)
    depth = 1 + max(target.depth[user] for user in inside)
    leaves = target.leaves + node.function.arity - 1
    too_big = target.printed + times > MOST_OPERATIONS or leaves > MOST_INPUTS
    if too_big or depth > MOST_DEPTH:
        return None
    target.times[node] = times
    target.depth[node] = depth
    target.printed += times
    target.leaves = leaves
    return target


def _in_full(node: Expr, user: Expr) -> bool:
    assert isinstance(user, Map)
    whole = tuple(range(user.rank))
    return all(
        axes == whole
        for operand, axes in zip(user.operands, user.axes, strict=True)
        if operand is node
    )


def worth_fusing(group: Group, elements: int) -> bool:
    """Whether one kernel beats one NumPy pass per operation, for this many elements."""
    functions = [node.function for node in group.times]
    return len(functions) > 1 and numexpr_time(functions, elements) < numpy_time(
        functions, elements
    )
