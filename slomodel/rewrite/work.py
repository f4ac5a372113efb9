"""How much work an evaluation is: the scalar operations of a call, counted from the graph."""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.calculus import NOTHING, Known, gradient
from slomodel.functions.cost import Sizes, own_work
from slomodel.ir.expr import Expr, Input
from slomodel.ir.walk import dependents, inputs, postorder


def moves(node: Expr) -> bool:
    """True for an input that changes from call to call."""
    return isinstance(node, Input) and node.role != "data"


def work_of_call(objective: Expr, sizes: Sizes, known: Known = NOTHING) -> float:
    """Operations of one value with its gradient, what they share counted once."""
    variables = [node for node in inputs(objective) if node.role == "variable"]
    return work((objective, *gradient(objective, variables, known)), sizes)


def work(roots: Sequence[Expr], sizes: Sizes) -> float:
    """Additions, multiplications and function values under the roots that every call repeats.

    What depends on data alone is free: it is computed once a bind. So are views.
    """
    order = postorder(*roots)
    moving = dependents(order, moves)
    return sum(own_work(node, sizes) for node in order if node in moving)


def work_once(root: Expr, sizes: Sizes) -> float:
    """Operations under a root that depend on data alone."""
    order = postorder(root)
    moving = dependents(order, moves)
    return sum(own_work(node, sizes) for node in order if node not in moving)
