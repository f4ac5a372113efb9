"""Gradients of the nodes of a graph at a point or over a box, by directional derivatives."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Array, up_norm
from slomodel.bounds.ball import Displacements
from slomodel.bounds.effort import NUMBERS_AT_ONCE
from slomodel.bounds.ranges.enclose import boxed, enclose, live_in
from slomodel.bounds.ranges.hessian import along_rows
from slomodel.bounds.ranges.liveness import Live
from slomodel.bounds.setting import Setting, once_per_setting
from slomodel.bounds.structure.curved_terms import varying_nodes
from slomodel.calculus import jvp
from slomodel.ir.build import direction
from slomodel.ir.dims import concrete, number_of_elements
from slomodel.ir.expr import Expr, Input
from slomodel.ir.walk import dependents, postorder


@once_per_setting
def _slope_graphs(setting: Setting, nodes: tuple[Expr, ...]) -> _Slopes:
    v = tuple(direction(f"slope.{x.name}", x.shape) for x in setting.variables)
    graphs = jvp(nodes, dict(zip(setting.variables, v, strict=True)))
    below = postorder(*graphs)
    turning = dependents(below, set(v).__contains__)
    elements = sum(number_of_elements(g.shape, setting.sizes) for g in below if g in turning)
    return _Slopes(v, graphs, elements, live_in(setting, *graphs))


@dataclass(frozen=True, slots=True)
class _Slopes:
    """Graphs of ∇u·v, the directions v in them, and the number of elements that depend on v."""

    v: tuple[Input, ...]
    graphs: tuple[Expr, ...]
    elements: int
    live: Live


def slope_elements(setting: Setting, nodes: Sequence[Expr]) -> int:
    """The number of elements that depend on the direction in the slopes of these nodes."""
    return _slope_graphs(setting, tuple(nodes)).elements


def slope_numbers(setting: Setting) -> int:
    """The number of directions times elements for all slopes of the objective's nodes."""
    varying = varying_nodes(setting.order, setting.variables)
    return setting.n * sum(number_of_elements(node.shape, setting.sizes) for node in varying)


def slopes_of(
    setting: Setting,
    nodes: Sequence[Expr],
    wanted: Collection[Expr],
    known: Mapping[Expr, Interval],
    region: Displacements,
    given: Mapping[Input, Interval] = MappingProxyType({}),
) -> tuple[dict[Expr, Array], dict[Expr, Array], dict[Expr, Interval]]:
    """Upper bounds on the lengths of the nodes' gradients g and on g·y over the region, and the
    gradients of the wanted nodes; no bounds on g·y over a ball.

    `known` nodes lie in their ranges, and inputs that are not of the setting are `given`.
    """
    own = _slope_graphs(setting, tuple(nodes))
    front = {node: a.each(itemgetter(np.newaxis)) for node, a in known.items()}
    others = {node: a.each(itemgetter(np.newaxis)) for node, a in given.items()}
    at_once = max(NUMBERS_AT_ONCE // max(own.elements, 1), 1)
    lengths: dict[Expr, list[Array]] = {node: [] for node in nodes}
    sizes: dict[Expr, list[Array]] = {node: [] for node in nodes}
    parts: dict[Expr, list[Interval]] = {node: [] for node in wanted}
    for start in range(0, setting.n, at_once):
        rows = np.eye(setting.n)[start : start + at_once]
        boxes = boxed(setting.values, 1) | others | along_rows(setting, own.v, 1, 0, rows)
        result = enclose(own.graphs, boxes, setting.sizes, 1, known=front, live=own.live)
        for node, graph in zip(nodes, own.graphs, strict=True):
            shape = (len(rows), *concrete(node.shape, setting.sizes))
            a = result[graph].broadcast(shape)
            lengths[node].append(np.asarray(up_norm(a.magnitude, 0)))
            if not region.is_ball:
                sizes[node].append(a.magnitude)
            if node in parts:
                parts[node].append(a)
    reaches = {node: region.reach(np.concatenate(a)) for node, a in sizes.items() if a}
    return (
        {node: np.asarray(up_norm(np.stack(a), 0)) for node, a in lengths.items()},
        reaches,
        {node: Interval.concatenated(a) for node, a in parts.items()},
    )
