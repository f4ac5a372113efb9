"""Choices between a term and 0: `sum(where(g[i] == k, r[i], 0) for i in N)`, an `if` of the sum.

Written as a choice, all tuples would be computed, and most of them be 0. As a condition of the sum
it makes an index set: of the rows of a group, of the pairs that are joined by an edge.
"""

from __future__ import annotations

from dataclasses import replace

from slomodel.front.elaboration.scope import Scope, Symbol
from slomodel.front.elaboration.values import Label, Value
from slomodel.front.text.syntax import (
    Argument,
    BoolOp,
    Compare,
    Comprehension,
    Condition,
    Expr,
    FunctionCall,
    Name,
    Negate,
    Node,
    NoneLiteral,
    Not,
    NumberLiteral,
    ProductChain,
    String,
)
from slomodel.front.text.traversal import children
from slomodel.ir.walk import inputs

_NEUTRAL = {"sum": 0.0, "sumsq": 0.0, "norm1": 0.0, "norm2": 0.0, "prod": 1.0}
"""The neutral element by reduction, in place of terms that a condition leaves out."""
_TRUTHS = (Compare, BoolOp, Not)
_NOT_NUMBERS = (Compare, BoolOp, Not, String, NoneLiteral)


def with_choices_as_conditions(node: Comprehension, scope: Scope) -> Comprehension:
    """The reduction with choices between its terms and nothing as conditions; itself without any.

    Only those that data decide, of which sets of tuples are made.
    """
    neutral = _NEUTRAL.get(node.function.text)
    if neutral is None:
        return node
    indices = {name.text for iteration in node.iterations for name in iteration.names}
    body, conditions = node.body, []
    while (found := _split(body, neutral, indices)) is not None:
        if not _is_of_data(found[1], scope, indices):
            break
        body = found[0]
        conditions.append(found[1])
    if not conditions:
        return node
    every = (*(() if node.condition is None else (node.condition,)), *conditions)
    both = every[0] if len(every) == 1 else BoolOp("and", every, conditions[0].span)
    return replace(node, body=body, condition=both)


def _split(body: Expr, neutral: float, indices: set[str]) -> tuple[Expr, Condition] | None:
    """Terms as those where a condition holds, and that condition; 0 times any factor is 0.

    A choice over a divisor that differs among the terms stays: 0/0 there shows that data are wrong.
    """
    if isinstance(body, FunctionCall):
        return _choice(body, neutral)
    if neutral != 0.0:
        return None
    if isinstance(body, Negate):
        found = _split(body.operand, neutral, indices)
        return None if found is None else (replace(body, operand=found[0]), found[1])
    if not isinstance(body, ProductChain) or any(term.op == "@" for term in body.rest):
        return None
    divides = any(term.op in {"/", "./"} and names_in(term.operand) & indices for term in body.rest)
    found = None if divides else _split(body.first, neutral, indices)
    if found is not None:
        return replace(body, first=found[0]), found[1]
    for k, term in enumerate(body.rest):
        found = None
        if not divides and term.op not in {"/", "./"}:
            found = _split(term.operand, neutral, indices)
        if found is not None:
            rest = (*body.rest[:k], replace(term, operand=found[0]), *body.rest[k + 1 :])
            return replace(body, rest=rest), found[1]
    return None


def _choice(call: FunctionCall, neutral: float) -> tuple[Expr, Condition] | None:
    if call.function.text != "where" or len(call.args) != 3 or call.kwargs:
        return None
    condition, chosen, other = call.args
    if not isinstance(condition, _TRUTHS):
        return None
    if _is_literal(other, neutral) and not isinstance(chosen, _NOT_NUMBERS):
        return chosen, condition
    if _is_literal(chosen, neutral) and not isinstance(other, _NOT_NUMBERS):
        return other, _negated(condition)
    return None


def names_in(node: Node) -> set[str]:
    """The names that occur in a part of a model."""
    stack, names = [node], set()
    while stack:
        one = stack.pop()
        stack += children(one)
        if isinstance(one, Name):
            names.add(one.text)
    return names


def _negated(condition: Condition) -> Condition:
    """The opposite condition, as an equation where it is one; order has none because of NaN."""
    if isinstance(condition, Not):
        return condition.operand
    if isinstance(condition, Compare) and condition.op in {"==", "!="}:
        return replace(condition, op="==" if condition.op == "!=" else "!=")
    if isinstance(condition, BoolOp):
        op = "and" if condition.op == "or" else "or"
        return replace(condition, op=op, operands=tuple(map(_negated, condition.operands)))
    return Not(condition, condition.span)


def _is_literal(node: Argument, value: float) -> bool:
    return isinstance(node, NumberLiteral) and node.value == value


def _is_of_data(condition: Condition, scope: Scope, indices: set[str]) -> bool:
    """Whether indices and data decide a condition, and at least one of `indices`."""
    stack: list[Node] = [condition]
    found = False
    while stack:
        node = stack.pop()
        stack += children(node)
        if not isinstance(node, Name):
            continue
        if node.text in indices:
            found = True
            continue
        known = scope.local.get(node.text) or scope.model.symbols.get(node.text)
        value = known.value if isinstance(known, Symbol) else known
        if isinstance(value, Value):
            if any(one.role == "variable" for one in inputs(value.expr)):
                return False
        elif not isinstance(value, Label) and not isinstance(known, Symbol):
            return False
    return found
