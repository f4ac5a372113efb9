"""Objectives that are linear, or constant, in their variables."""

from __future__ import annotations

from slomodel.bounds.setting import Candidate, Setting
from slomodel.functions import add, div, mul, neg, sub
from slomodel.ir.expr import Einsum, Expr, Gather, Input, Map, Reshape, Scatter
from slomodel.ir.walk import dependents, postorder


def linear(setting: Setting, radius: float) -> Candidate | None:
    """L1 = L2 = 0, over any ball, where no variable is left in the gradient.

    The objective must be made of sums, products and quotients by data, which are smooth
    everywhere: the graph of the gradient says nothing of jumps.
    """
    variables: set[Expr] = set(setting.variables)
    order = postorder(setting.objective)
    moving = dependents(order, variables.__contains__)
    if not all(_is_plain(node, moving) for node in order if node in moving):
        return None
    if any(node in variables for node in postorder(*setting.gradient)):
        return None
    return Candidate("linear", 0.0, 0.0, trace=("the gradient is constant",))


def _is_plain(node: Expr, moving: set[Expr]) -> bool:
    if not isinstance(node, Map):
        return isinstance(node, Input | Einsum | Gather | Scatter | Reshape)
    if node.function is div:
        return node.operands[1] not in moving
    return node.function in (add, sub, mul, neg)
