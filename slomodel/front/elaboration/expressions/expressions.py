"""The evaluation rules of all kinds of expressions, and the value of a whole expression."""

from __future__ import annotations

from typing import assert_never

from slomodel.front.elaboration.errors import StatementError, error
from slomodel.front.elaboration.evaluation import Steps, run
from slomodel.front.elaboration.expressions.array_literals import array_literal
from slomodel.front.elaboration.expressions.calls import call
from slomodel.front.elaboration.expressions.operators import (
    addition,
    comparison,
    connective,
    inversion,
    negation,
    power,
    product,
    transposition,
)
from slomodel.front.elaboration.functions.array_functions import ARRAY_FUNCTIONS
from slomodel.front.elaboration.indices.index_sets import index_value
from slomodel.front.elaboration.indices.indexing import indexing
from slomodel.front.elaboration.scope import CONSTANTS, Ongoing, Scope, Symbol, ValueRequest
from slomodel.front.elaboration.sums.ordered_sums import by_index
from slomodel.front.elaboration.values import Label, Value, number, number_of, value_of
from slomodel.front.text.syntax import (
    ArrayLiteral,
    BoolOp,
    Compare,
    Comprehension,
    Condition,
    Expr,
    FunctionCall,
    Index,
    Name,
    Negate,
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
from slomodel.functions import FUNCTIONS


def evaluate(node: Expr | Condition, scope: Scope, sparse: bool = False) -> Value:
    """The value of an expression or condition; it may be a sparse array if `sparse` permits it."""
    return requested(ValueRequest(node, scope, sparse=sparse))


def requested(request: ValueRequest) -> Value:
    """The value that is requested."""
    return run(request, _rule)


def _rule(request: ValueRequest) -> Steps | Value:
    node = request.node
    match node:
        case NumberLiteral():
            return number(node.value)
        case Name():
            return _name(node, request.scope)
        case ArrayLiteral():
            return array_literal(node, request)
        case Negate():
            return negation(node, request)
        case SumChain():
            return addition(node, request)
        case ProductChain():
            return product(node, request)
        case Power():
            return power(node, request)
        case Transpose():
            return transposition(node, request)
        case Index():
            return indexing(node, request)
        case FunctionCall():
            return call(node, request)
        case Comprehension():
            return by_index(node, request)
        case Compare():
            return comparison(node, request)
        case BoolOp():
            return connective(node, request)
        case Not():
            return inversion(node, request)
        case Slice() | NoneLiteral() | String():
            raise error("E208", "a number or an array is expected here", node.span)
        case _:
            assert_never(node)


def _name(node: Name, scope: Scope) -> Value:
    text = node.text
    model = scope.model
    declared = text in scope.local or text in model.symbols or text in model.later
    if text in CONSTANTS and not declared:
        return value_of(CONSTANTS[text])
    if not declared and (text in FUNCTIONS or text in ARRAY_FUNCTIONS):
        raise _needs_arguments(node)
    result = scope.find(node)
    if isinstance(result, Label):
        return index_value(result)
    if isinstance(result, Symbol):
        if result.dim is not None:
            return number_of(result.dim)
        if result.value is None:
            raise _needs_arguments(node)
        return result.value
    if isinstance(result, Ongoing):
        message = f"`{text}` is being computed step by step, and is not known as a whole here"
        raise error("E227", message, node.span, f"read an earlier element, like `{text}[t - 1]`")
    return result


def _needs_arguments(node: Name) -> StatementError:
    message = f"`{node.text}` is a function and needs its arguments"
    return error("E203", message, node.span, f"write `{node.text}(…)`")
