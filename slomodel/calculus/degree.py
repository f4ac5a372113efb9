"""The degree of an objective as a polynomial in its variables."""

from __future__ import annotations

from collections.abc import Collection
from functools import singledispatch

from slomodel.functions import add, div, mul, neg, pow, square, sub, where
from slomodel.ir.expr import Const, Einsum, Expr, Gather, Input, Map, Reshape, Scan, Scatter
from slomodel.ir.walk import dependents, postorder

Degrees = list[int]


def degree(objective: Expr, variables: Collection[Expr]) -> int | None:
    """Upper bound on the total degree in the variables; None if the objective is not a polynomial.

    It follows from the operations: cancellation of leading terms is not detected.
    """
    own = set(variables)
    order = postorder(objective)
    varying = dependents(order, own.__contains__)
    result: dict[Expr, int] = {}
    for node in order:
        if node in own or node not in varying:
            result[node] = int(node in own)
            continue
        known = _degree(node, [result[operand] for operand in node.operands])
        if known is None:
            return None
        result[node] = known
    return result[objective]


def is_polynomial(objective: Expr, variables: Collection[Expr]) -> bool:
    """Whether the objective is a polynomial, of any degree.

    Such an objective is smooth everywhere; for any other, the graph of the gradient does not reveal
    jumps.
    """
    return first_nonpolynomial(objective, variables) is None


def first_nonpolynomial(objective: Expr, variables: Collection[Expr]) -> Expr | None:
    """The first node that is not a polynomial in its operands, operands before users."""
    order = postorder(objective)
    varying = dependents(order, variables.__contains__)

    def is_one(node: Expr) -> bool:
        if isinstance(node, Input | Scan):  # a scan has a degree that depends on its length
            return True
        return _degree(node, [int(operand in varying) for operand in node.operands]) is not None

    return next((node for node in order if node in varying and not is_one(node)), None)


@singledispatch
def _degree(node: Expr, degrees: Degrees) -> int | None:
    """Degree of a node that depends on x, from those of its operands; None: not a polynomial."""
    return None


@_degree.register
def _(node: Einsum, degrees: Degrees) -> int | None:
    return sum(degrees)


@_degree.register(Gather)
@_degree.register(Scatter)
@_degree.register(Reshape)
def _(node: Expr, degrees: Degrees) -> int | None:
    return degrees[0]


@_degree.register
def _(node: Map, degrees: Degrees) -> int | None:
    function = node.function
    if function in (add, sub, neg):
        return max(degrees)
    if function is mul:
        return sum(degrees)
    if function is square:
        return 2 * degrees[0]
    if function is div and degrees[1] == 0:
        return degrees[0]
    if function is where and degrees[0] == 0:
        return max(degrees[1:])
    if function is pow:
        return _power(node.operands[1], degrees[0])
    return None


def _power(exponent: Expr, base: int) -> int | None:
    whole = isinstance(exponent, Const) and exponent.value >= 0.0 and exponent.value % 1.0 == 0.0
    return int(exponent.value) * base if whole and isinstance(exponent, Const) else None
