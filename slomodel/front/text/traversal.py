"""Traversals of the syntax tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from slomodel.front.text.syntax import (
    ArrayLiteral,
    BoolOp,
    Compare,
    Comprehension,
    Expr,
    FunctionCall,
    Index,
    Name,
    Negate,
    Node,
    NoneLiteral,
    Not,
    NumberLiteral,
    Power,
    ProductChain,
    Slice,
    String,
    SumChain,
    Transpose,
)


def children(node: Node) -> tuple[Node, ...]:
    """The direct children of `node` in the order of the text; function names are not nodes."""
    match node:
        case NumberLiteral() | Name() | String() | NoneLiteral():
            return ()
        case Negate() | Transpose() | Not():
            return (node.operand,)
        case SumChain() | ProductChain():
            return (node.first, *(term.operand for term in node.rest))
        case Power():
            return node.base, node.exponent
        case Slice():
            return tuple(part for part in (node.lo, node.hi, node.step) if part is not None)
        case ArrayLiteral():
            return node.items
        case Index():
            return (node.base, *node.items)
        case FunctionCall():
            return (*node.args, *(keyword.value for keyword in node.kwargs))
        case Comprehension():
            domains = tuple(iteration.domain for iteration in node.iterations)
            tail = () if node.condition is None else (node.condition,)
            return (node.body, *domains, *tail)
        case Compare():
            return node.left, node.right
        case BoolOp():
            return node.operands
        case _:
            assert_never(node)


def nodes(root: Node) -> Iterator[Node]:
    """A node and all nodes below it."""
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += children(node)


def with_children(node: Node, parts: Sequence[Any]) -> Node:
    """The node with other children, in the order of `children`."""
    match node:
        case NumberLiteral() | Name() | String() | NoneLiteral():
            return node
        case Negate() | Transpose() | Not():
            return replace(node, operand=parts[0])
        case SumChain() | ProductChain():
            pairs = zip(node.rest, parts[1:], strict=True)
            rest = tuple(replace(term, operand=part) for term, part in pairs)
            return replace(node, first=parts[0], rest=rest)
        case Power():
            return replace(node, base=parts[0], exponent=parts[1])
        case Slice():
            left = iter(parts)
            lo, hi, step = (part and next(left) for part in (node.lo, node.hi, node.step))
            return replace(node, lo=lo, hi=hi, step=step)
        case ArrayLiteral():
            return replace(node, items=tuple(parts))
        case Index():
            return replace(node, base=parts[0], items=tuple(parts[1:]))
        case FunctionCall():
            count = len(node.args)
            named = zip(node.kwargs, parts[count:], strict=True)
            kwargs = tuple(replace(keyword, value=part) for keyword, part in named)
            return replace(node, args=tuple(parts[:count]), kwargs=kwargs)
        case Comprehension():
            count = len(node.iterations) + 1
            domains = zip(node.iterations, parts[1:count], strict=True)
            iterations = tuple(replace(one, domain=part) for one, part in domains)
            condition = None if node.condition is None else parts[count]
            return replace(node, body=parts[0], iterations=iterations, condition=condition)
        case Compare():
            return replace(node, left=parts[0], right=parts[1])
        case BoolOp():
            return replace(node, operands=tuple(parts))
        case _:
            assert_never(node)


def replaced(root: Expr, new: Mapping[Node, Expr]) -> Expr:
    """The tree with other expressions in place of some, also inside the replacements."""
    made: dict[Node, Any] = {}
    stack: list[Node] = [root]
    while stack:
        node = target = stack[-1]
        while target in new:
            target = new[target]
        below = children(target)
        waiting = [one for one in below if one not in made]
        if waiting:
            stack += waiting
            continue
        parts = [made[one] for one in below]
        is_same = all(one is other for one, other in zip(below, parts, strict=True))
        made[node] = target if is_same else with_children(target, parts)
        stack.pop()
    result: Expr = made[root]
    return result
