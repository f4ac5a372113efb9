"""Walking the syntax tree: what lies right below a node, and right below a statement."""

from __future__ import annotations

from typing import assert_never

from slomodel.front.text.syntax import (
    BoolOp,
    Call,
    Check,
    Compare,
    Comprehension,
    DataDecl,
    DimDecl,
    Fn,
    Index,
    Let,
    Name,
    Negate,
    Node,
    NoneLiteral,
    Not,
    Number,
    Objective,
    Power,
    Product,
    Slice,
    Statement,
    String,
    Sum,
    Transpose,
    VarDecl,
)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes right below `node` in the order of the text; function names are not nodes."""
    match node:
        case Number() | Name() | String() | NoneLiteral():
            return ()
        case Negate() | Transpose() | Not():
            return (node.operand,)
        case Sum() | Product():
            return (node.first, *(term.operand for term in node.rest))
        case Power():
            return node.base, node.exponent
        case Slice():
            return tuple(side for side in (node.lo, node.hi) if side is not None)
        case Index():
            return (node.base, *node.items)
        case Call():
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


def roots(statement: Statement) -> tuple[Node, ...]:
    """The expressions and conditions that a statement holds."""
    found: tuple[Node | None, ...]
    match statement:
        case DimDecl():
            found = (statement.default,)
        case DataDecl():
            found = (statement.default, statement.file)
        case VarDecl():
            found = (statement.init,)
        case Let():
            found = (*(i.domain for i in statement.indices or ()), statement.expr)
        case Fn():
            found = (statement.body,)
        case Check():
            found = (statement.condition,)
        case Objective():
            found = (statement.expr,)
        case _:
            assert_never(statement)
    return tuple(node for node in found if node is not None)
