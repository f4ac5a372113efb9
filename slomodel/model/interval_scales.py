"""Scales on which intervals are symmetric, so that they stay where a quantity has its values.

A quantity h(q) with a monotone h, such as exp(eta) or a variable x = exp(u) in a half-line, has the
image under h of the interval of q. To first order it is the interval of the delta method, and it
does not leave the range of h. Elements of simplices and of correlation matrices have the image of
an interval of their logit. Intervals of variables in closed boxes are cut at the ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from slomodel.functions import add, div, mul, neg, pow, square, sub
from slomodel.ir import build
from slomodel.ir.expr import Expr, Input, Map
from slomodel.ir.function import ANALYTIC
from slomodel.ir.walk import dependents, inputs, postorder
from slomodel.model.quantities import Quantities
from slomodel.problem import SetKind, Variable
from slomodel.rewrite import stable
from slomodel.solve.uncertainty import IntervalScale

Vector = NDArray[np.float64]
Image = tuple[Vector, Vector]
"""The least and the largest value that each element can have."""

_ENDS: Mapping[SetKind, tuple[float, float]] = {
    "open_simplex": (0.0, 1.0),
    "correlation": (-1.0, 1.0),
}
"""The ends of the elements of open sets whose elements depend on each other."""


def scale_of_variable(variable: Variable, value: Vector, jacobian: Vector) -> IntervalScale | None:
    """The logit of the elements of a simplex or correlation matrix; None for other variables."""
    ends = None if variable.set is None else _ENDS.get(variable.set.kind)
    if ends is None:
        return None
    low, high = ends
    below, above = (value - low).ravel(), (high - value).ravel()
    # Elements of a diagonal are at an end, and constant.
    inner = (below > 0.0) & (above > 0.0)
    product = np.where(inner, below * above, 1.0)
    slopes = np.where(inner, (high - low) / product, 0.0)
    with np.errstate(divide="ignore"):
        logit = (np.log(below) - np.log(above)).reshape(value.shape)
    return IntervalScale(
        logit, jacobian * slopes[:, None], lambda u: low + (high - low) / (1.0 + np.exp(-u))
    )


def ends_of_variable(
    variable: Variable, quantities: Quantities, parts: Mapping[str, Vector]
) -> Image | None:
    """The ends of a box, where its intervals are cut; None for variables in other sets.

    Ends that are other variables are left out.
    """
    declared = variable.set
    if declared is None or declared.kind not in ("box", "open_box"):
        return None
    if any(node.role == "variable" for node in inputs(*declared.numbers)):
        return None
    low, high = (
        infinite if end is None else quantities.evaluated((end,), parts)[0]
        for end, infinite in ((declared.low, -math.inf), (declared.high, math.inf))
    )
    return np.asarray(low), np.asarray(high)


def scale_of_graph(
    graph: Expr, quantities: Quantities, parts: Mapping[str, Vector], name: str
) -> IntervalScale | None:
    """The scale of the innermost quantity of which a graph is a monotone function, elementwise.

    None if that is the graph itself. `name` stands for the graph in errors.
    """
    steps: list[tuple[Expr, Input]] = []
    inner, image = graph, _everything()
    for node, k in reversed(list(_levels(graph))):
        if not steps:
            inner = node.operands[k]
        hole = build.direction("inner", node.operands[k].shape)
        operands = tuple(hole if j == k else one for j, one in enumerate(node.operands))
        step = Map(node.function, operands, node.axes, node.shape)
        with np.errstate(all="ignore"):
            shaped = [np.broadcast_to(end, quantities.shape_of(hole)) for end in image]
            reached = [quantities.evaluated((step,), parts, {hole: end})[0] for end in shaped]
        if _is_monotone(node, k, image) and not np.isnan(reached).any():
            image = np.minimum(*reached), np.maximum(*reached)
            steps.append((step, hole))
        else:
            steps, inner, image = [], node, _everything()
    if not steps:
        return None

    def back(array: Vector) -> Vector:
        for step, hole in steps:
            (array,) = quantities.evaluated((step,), parts, {hole: array})
        return array

    inner = stable(inner)
    (value,) = quantities.evaluated((inner,), parts)
    return IntervalScale(value, quantities.derivatives(inner, parts, name), back)


def _everything() -> Image:
    return np.asarray(-math.inf), np.asarray(math.inf)


def _levels(graph: Expr) -> Iterator[tuple[Map, int]]:
    """The scalar functions from the outermost one on, each with its one operand that varies."""
    order = postorder(graph)
    varying = dependents(order, lambda n: isinstance(n, Input) and n.role == "variable")
    node = graph
    while isinstance(node, Map):
        which = [k for k, operand in enumerate(node.operands) if operand in varying]
        if len(which) != 1:
            return
        yield node, which[0]
        node = node.operands[which[0]]


def _is_monotone(node: Map, k: int, image: Image) -> bool:
    """Whether a function is monotone and smooth in operand k, elementwise over its image."""
    function, (low, high) = node.function, image
    has_one_sign = bool(np.all((low >= 0.0) | (high <= 0.0)))
    if function in (add, sub, neg, mul):
        return True
    if function is div:
        return k == 0 or has_one_sign
    if function is square:
        return has_one_sign
    if function is pow:
        return k == 0 and bool(np.all(low >= 0.0))
    stated = function.monotonicity
    if function.arity != 1 or stated is None or function.smoothness < ANALYTIC or stated.period:
        return False
    first, last = function.domain[0] if function.domain else (-math.inf, math.inf)
    turns = [*stated.critical_points[0], *stated.poles] if stated.critical_points else [0.0]
    inside = np.all((low >= first) & (high <= last))
    return bool(inside) and not any(np.any((low < at) & (at < high)) for at in turns)
