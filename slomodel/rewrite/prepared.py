"""What is made of the data once a bind: it becomes data itself, for every function and target."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from slomodel.ir.dims import Shape
from slomodel.ir.expr import Expr, Input, Triangle
from slomodel.ir.walk import dependents, inputs, postorder, substitute, users
from slomodel.rewrite.work import moves


def prepared(
    roots: tuple[Expr, ...], taken: Collection[str]
) -> tuple[tuple[Expr, ...], Mapping[Input, Expr]]:
    """The roots over new data inputs, and what each of these is made of.

    Those parts are taken out that stand on data alone and on a factorisation: other parts of this
    kind take about as long as reading the data, and each function does them for itself.
    """
    order = postorder(*roots)
    factored = dependents(order, lambda node: isinstance(node, Triangle))
    if not factored:
        return roots, {}
    moving = dependents(order, moves)
    above = users(order)
    names = {*taken, *(node.name for node in inputs(*roots))}
    made: dict[Expr, Expr] = {}
    for node in order:
        once = node in factored and node not in moving
        if once and (node in roots or any(user in moving for user in above[node])):
            made[node] = _named(node.shape, names)
    result = substitute(roots, made)
    return result, {new: node for node, new in made.items() if isinstance(new, Input)}


def _named(shape: Shape, names: set[str]) -> Input:
    """A data input of a name that is not yet used, and that no model text can have."""
    number = next(k for k in range(1, len(names) + 2) if f"R[{k}]" not in names)
    names.add(f"R[{number}]")
    return Input(f"R[{number}]", "data", shape)
