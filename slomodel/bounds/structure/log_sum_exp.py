"""Nodes log Σ exp that an objective is affine in, and the remainder of the objective."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import slomodel.functions as table
from slomodel.calculus import gradient
from slomodel.functions.compound import stop_gradient
from slomodel.ir import build
from slomodel.ir.expr import Axes, Einsum, Expr, Input, Map, is_map
from slomodel.ir.walk import inputs, postorder, substitute


@dataclass(frozen=True, slots=True)
class LogSum:
    """log Σ exp u over the axes `summed` of u, which the objective has times `weight`."""

    u: Expr
    summed: Axes
    weight: Expr


def log_sums(
    objective: Expr, variables: Collection[Input], arguments: Collection[Expr]
) -> tuple[tuple[LogSum, ...], Expr] | None:
    """The nodes log Σ exp u, u in `arguments`, and the objective with 0 in their places.

    None where there are none or the objective is not affine in them. The nodes are log Σ exp(u - m)
    with an m that is marked constant and that the objective does not depend on. As the objective is
    w (log Σ exp u - m) + g(m, x) for every m, it is w log Σ exp u + g(0, x).
    """
    order = postorder(objective)
    operands = {
        node: own for node in order if (own := log_sum_operand(node, arguments)) is not None
    }
    if not operands:
        return None
    zeros = {n: build.zeros(n.shape) for n in order if is_map(n, stop_gradient)}
    stand_ins = {node: build.data(f"lse {k}", node.shape) for k, node in enumerate(operands)}
    (others,) = substitute((objective,), zeros | stand_ins)
    weights = gradient(others, list(stand_ins.values()))
    free = set(inputs(*weights))
    if not free.isdisjoint(variables) or not free.isdisjoint(stand_ins.values()):
        return None
    pairs = zip(operands.values(), weights, strict=True)
    result = tuple(LogSum(u, summed, weight) for (u, summed), weight in pairs)
    (rest,) = substitute((others,), {one: build.zeros(one.shape) for one in stand_ins.values()})
    return result, rest


def log_sum_operand(node: Expr, arguments: Collection[Expr]) -> tuple[Expr, Axes] | None:
    """u and its summed axes, if the node is log Σ exp(u - m)."""
    if not is_map(node, table.log):
        return None
    total = node.operands[0]
    if not isinstance(total, Einsum) or not total.operands:
        return None
    if not is_map(total.operands[0], table.exp):
        return None
    exp, labels = total.operands[0], total.inputs[0]
    moved = exp.operands[0]
    summed = tuple(axis for axis in range(exp.rank) if labels[axis] not in total.output)
    kept = tuple(axis for axis in range(exp.rank) if axis not in summed)
    if len(total.operands) > 1 or not summed or len(total.dims) != exp.rank:
        return None
    if tuple(labels[axis] for axis in kept) != total.output or not isinstance(moved, Map):
        return None
    if moved.function is not table.sub or moved.axes != (tuple(range(exp.rank)), kept):
        return None
    u, m = moved.operands
    if is_map(m, stop_gradient):
        return (u, summed) if u in arguments else _transposed(u, summed, arguments)
    return None


def _transposed(u: Expr, summed: Axes, arguments: Collection[Expr]) -> tuple[Expr, Axes] | None:
    """The argument that u is a transpose of, if axes that are not summed stay in order."""
    if not isinstance(u, Einsum) or len(u.operands) > 1 or u.operands[0] not in arguments:
        return None
    (own,) = u.inputs
    places = [own.index(label) for label in u.output]
    kept = [place for axis, place in enumerate(places) if axis not in summed]
    if sorted(places) != list(range(len(own))) or len(u.dims) != len(own) or kept != sorted(kept):
        return None
    return u.operands[0], tuple(sorted(places[axis] for axis in summed))
