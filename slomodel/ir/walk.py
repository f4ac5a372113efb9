"""Walks over the graph, all iterative, so that its depth is not limited."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from slomodel.ir.expr import Expr, Input, remake


def postorder(*roots: Expr) -> list[Expr]:
    """Every node under the roots once, operands before their users, in a fixed order."""
    order: list[Expr] = []
    seen: set[Expr] = set()
    # Once its operands are on the stack above it, a node is followed by None.
    stack: list[Expr | None] = list(reversed(roots))
    while stack:
        node = stack.pop()
        if node is None:
            done = stack.pop()
            assert done is not None
            order.append(done)
        elif node not in seen:
            seen.add(node)
            if not node.operands:
                order.append(node)
                continue
            stack += (node, None)
            for operand in reversed(node.operands):
                if operand not in seen:
                    stack.append(operand)
    return order


def users(order: Iterable[Expr]) -> dict[Expr, list[Expr]]:
    """The users of each node of `order` that are in `order`, listed once per use."""
    result: dict[Expr, list[Expr]] = {}
    for node in order:
        result.setdefault(node, [])
        for operand in node.operands:
            result.setdefault(operand, []).append(node)
    return result


def rewrite(roots: tuple[Expr, ...], rule: Callable[[Expr], Expr]) -> tuple[Expr, ...]:
    """The roots with `rule` applied to every node, operands first (already rewritten)."""
    done: dict[Expr, Expr] = {}
    for node in postorder(*roots):
        operands = tuple(done[operand] for operand in node.operands)
        done[node] = rule(remake(node, operands) if operands else node)
    return tuple(done[root] for root in roots)


def substitute(roots: tuple[Expr, ...], values: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
    """The roots with the nodes in `values` replaced by others of the same shape."""
    done: dict[Expr, Expr] = {}
    for node in postorder(*roots):
        operands = tuple(done[operand] for operand in node.operands)
        done[node] = values.get(node) or (remake(node, operands) if operands else node)
    return tuple(done[root] for root in roots)


def dependents(order: Iterable[Expr], start: Callable[[Expr], bool]) -> set[Expr]:
    """The nodes of `order`, a postorder, for which `start` holds, and those that depend on one."""
    result: set[Expr] = set()
    for node in order:
        if start(node) or any(operand in result for operand in node.operands):
            result.add(node)
    return result


def first_met(roots: Iterable[Expr], wanted: Collection[Expr]) -> set[Expr]:
    """The first wanted nodes on every path down from the roots."""
    result: set[Expr] = set()
    stack = [*roots]
    seen = set(stack)
    while stack:
        node = stack.pop()
        if node in wanted:
            result.add(node)
            continue
        fresh = [operand for operand in node.operands if operand not in seen]
        seen.update(fresh)
        stack += fresh
    return result


def inputs(*roots: Expr) -> list[Input]:
    """The inputs under the roots, in order of first appearance."""
    return [node for node in postorder(*roots) if isinstance(node, Input)]
