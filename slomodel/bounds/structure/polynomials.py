"""Objectives whose graphs show them to be polynomials in their variables."""

from __future__ import annotations

from collections.abc import Collection

from slomodel.functions import add, div, mul, neg, pow, square, sub, where
from slomodel.ir.expr import Const, Einsum, Expr, Gather, Input, Map, Reshape, Scan, Scatter
from slomodel.ir.walk import dependents, postorder


def is_polynomial_graph(objective: Expr, variables: Collection[Expr]) -> bool:
    """Whether the graph has only sums, products, integer powers, quotients by data, reshaping nodes
    and choices by data.

    Such an objective is smooth everywhere; for any other, the graph of the gradient does not reveal
    jumps.
    """
    return first_nonpolynomial(objective, variables) is None


def first_nonpolynomial(objective: Expr, variables: Collection[Expr]) -> Expr | None:
    """The first node that is of another kind, operands before users."""
    order = postorder(objective)
    moving = dependents(order, variables.__contains__)
    return next((node for node in order if node in moving and not _keeps(node, moving)), None)


def _keeps(node: Expr, moving: Collection[Expr]) -> bool:
    """Whether a node is a polynomial in operands that are polynomials."""
    if not isinstance(node, Map):
        return isinstance(node, Input | Einsum | Gather | Scatter | Reshape | Scan)
    if node.function is div:
        return node.operands[1] not in moving
    if node.function is pow:
        exponent = node.operands[1]
        return isinstance(exponent, Const) and exponent.value.is_integer() and exponent.value >= 0
    if node.function is where:
        return node.operands[0] not in moving
    return node.function in (add, sub, mul, neg, square)
