"""How much work an evaluation is: the scalar operations of a call, counted from the graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import opt_einsum

from slomodel.calculus import NOTHING, Known, gradient
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Axes, Einsum, Expr, Gather, Input, Map, Reshape
from slomodel.ir.walk import dependents, inputs, postorder

Sizes = Mapping[str, int]


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


def own_work(node: Expr, sizes: Sizes) -> float:
    """Operations of one node, its operands given."""
    if isinstance(node, Einsum):
        return work_of_product(node.inputs, node.output, concrete(node.dims, sizes))
    if isinstance(node, (Input, Gather, Reshape)):
        return 0.0
    passes = len(node.operands) if isinstance(node, Map) else 1
    return float(max(passes, 1) * math.prod(concrete(node.shape, sizes)))


def work_of_product(terms: Sequence[Axes], output: Axes, dims: Sequence[int]) -> float:
    """Operations of a contraction pair by pair, in its cheapest order."""
    if len(terms) < 2:
        summed = len(set(output)) < len(dims)
        return float(math.prod(dims)) if summed else 0.0
    if len(terms) == 2:
        summed = bool({*terms[0], *terms[1]} - set(output))
        return float(math.prod(dims)) * (2.0 if summed else 1.0)
    return cheapest(terms, output, dims)[1]


def cheapest(
    terms: Sequence[Axes], output: Axes, dims: Sequence[int]
) -> tuple[list[tuple[int, ...]], float]:
    """The order in which to multiply three or more terms, as opt_einsum writes it, and its work."""
    present = {label for own in terms for label in own}
    kept = dict.fromkeys(label for label in output if label in present)
    letters = [opt_einsum.get_symbol(label) for label in range(len(dims))]
    sides = ["".join(letters[label] for label in own) for own in (*terms, tuple(kept))]
    shapes = [tuple(dims[label] for label in own) for own in terms]
    method = "optimal" if len(terms) < 9 else "greedy"
    spec = f"{','.join(sides[:-1])}->{sides[-1]}"
    path, info = opt_einsum.contract_path(spec, *shapes, shapes=True, optimize=method)
    return [tuple(step) for step in path], float(info.opt_cost)
