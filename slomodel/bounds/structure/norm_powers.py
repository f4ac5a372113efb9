"""Objectives that are sums of powers of norms of affine arrays and a remainder."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import slomodel.functions as table
from slomodel.bounds.effort import MOST_NODES
from slomodel.calculus import gradient
from slomodel.calculus.degree import degree
from slomodel.calculus.signs import is_nonnegative
from slomodel.ir import build
from slomodel.ir.expr import Const, Expr, Input, Map
from slomodel.ir.walk import inputs, postorder, substitute


@dataclass(frozen=True, slots=True)
class NormPower:
    """weight * ‖u‖^exponent, where `squared` is the scalar ‖u‖² of an affine array u."""

    weight: Expr
    squared: Expr
    exponent: float


def norm_powers_of(
    objective: Expr, variables: Collection[Input]
) -> tuple[tuple[NormPower, ...], Expr] | None:
    """The powers ‖u‖^p, p >= 2, in which an objective is affine, and the objective without them.

    None where there are none, or their weights depend on x.
    """
    order = postorder(objective)
    if len(order) > MOST_NODES:
        return None
    result = {node: own for node in order if (own := _power(node, variables)) is not None}
    if not result:
        return None
    stand_ins = {node: build.data(f"norm {k}", ()) for k, node in enumerate(result)}
    (others,) = substitute((objective,), stand_ins)
    weights = gradient(others, list(stand_ins.values()))
    free = set(inputs(*weights))
    if not free.isdisjoint(variables) or not free.isdisjoint(stand_ins.values()):
        return None
    (rest,) = substitute((others,), dict.fromkeys(stand_ins.values(), Const(0.0)))
    pairs = zip(result.values(), weights, strict=True)
    return tuple(NormPower(weight, *own) for own, weight in pairs), rest


def _power(node: Expr, variables: Collection[Input]) -> tuple[Expr, float] | None:
    """‖u‖² and p of a scalar node ‖u‖^p with p >= 2 that is not a polynomial."""
    if not isinstance(node, Map) or node.rank or node.function not in (table.mul, table.pow):
        return None
    squared = _squared(node)
    exponent = None if squared is None else _exponent(node, squared)
    if squared is None or exponent is None or exponent < 2.0:
        return None
    # A quadratic function that is nowhere negative is a sum of squares of affine ones.
    order = degree(squared, variables)
    is_square = order is not None and order <= 2 and is_nonnegative(squared)
    return (squared, exponent) if is_square else None


def _squared(node: Map) -> Expr | None:
    """The sum of squares s of the first root(s) among the factors of a node."""
    stack: list[Expr] = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, Map) and one.function is table.root:
            return one.operands[0]
        if isinstance(one, Map) and one.function in (table.mul, table.pow, table.square):
            stack += one.operands
    return None


def _exponent(node: Expr, squared: Expr) -> float | None:
    """p if a node is ‖u‖^p, with ‖u‖² = `squared`."""
    if node is squared:
        return 2.0
    if not isinstance(node, Map):
        return None
    if node.function is table.root:
        return 1.0 if node.operands[0] is squared else None
    if node.function is table.square:
        inner = _exponent(node.operands[0], squared)
        return None if inner is None else 2.0 * inner
    if node.function is table.pow and isinstance(node.operands[1], Const):
        inner = _exponent(node.operands[0], squared)
        return None if inner is None else inner * float(node.operands[1].value)
    if node.function is table.mul:
        left, right = (_exponent(operand, squared) for operand in node.operands)
        return None if left is None or right is None else left + right
    return None
