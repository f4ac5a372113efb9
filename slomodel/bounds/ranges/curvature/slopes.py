"""Gradients of the nodes of a graph at a point or over a box, by directional derivatives, and what
is known of the derivatives of a node over a region.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from operator import itemgetter
from types import MappingProxyType

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Array, up_norm
from slomodel.bounds.ball import Displacements
from slomodel.bounds.effort import NUMBERS_AT_ONCE
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.curvature.incidence import unknowns_apart
from slomodel.bounds.ranges.enclose import boxed, enclose, live_in
from slomodel.bounds.ranges.hessian import along_rows
from slomodel.bounds.ranges.liveness import Live
from slomodel.calculus import jvp
from slomodel.ir.build import direction
from slomodel.ir.dims import concrete, number_of_elements
from slomodel.ir.expr import Expr, Input
from slomodel.ir.walk import dependents, first_met, postorder


@dataclass(frozen=True, slots=True)
class NodeBounds:
    """Upper bounds over a region K around the centre, for each element u of a node.

    `slope` ‖∇u‖, `reach` ∇u·y, `curvature` ‖D²u‖, `turn` D²u[y, v], `bend` D²u[y, y'], with y and
    y' in K and v of length 1.
    """

    slope: Array
    reach: Array
    curvature: Array
    turn: Array
    bend: Array


@dataclass(frozen=True, slots=True)
class Forms:
    """Bounds on ∇u in the first and in the second place of the bilinear form D²u, and on D²u."""

    first: Array
    second: Array
    curvature: Array


def numbers(x: Array, shape: tuple[int, ...]) -> Array:
    """`x` broadcast to that shape, with inf in the place of NaN."""
    return np.broadcast_to(np.where(np.isnan(x), inf, x), shape)


@once_per_part
def slope_graphs(part: ObjectivePart, nodes: tuple[Expr, ...]) -> Slopes:
    v = tuple(direction(f"slope.{x.name}", x.shape) for x in part.variables)
    graphs = jvp(nodes, dict(zip(part.variables, v, strict=True)))
    below = postorder(*graphs)
    turning = dependents(below, set(v).__contains__)
    elements = sum(number_of_elements(g.shape, part.sizes) for g in below if g in turning)
    return Slopes(v, graphs, elements, live_in(part, *graphs))


@dataclass(frozen=True, slots=True)
class Slopes:
    """Graphs of ∇u·v, the directions v in them, and the number of elements that depend on v."""

    v: tuple[Input, ...]
    graphs: tuple[Expr, ...]
    elements: int
    live: Live


def slope_elements(part: ObjectivePart, nodes: Sequence[Expr]) -> int:
    """The number of elements that depend on the direction in the slopes of these nodes."""
    return slope_graphs(part, tuple(nodes)).elements


def slope_numbers(part: ObjectivePart) -> int:
    """The number of directions times elements for all slopes of the objective's nodes."""
    varying = [node for node in part.order if node in part.varying]
    groups = unknowns_apart(part, tuple(node for node in varying if node.dtype == "real"))
    return sum(
        (groups.count if node in groups.reads else part.n)
        * number_of_elements(node.shape, part.sizes)
        for node in varying
    )


def slopes_of(
    part: ObjectivePart,
    nodes: Sequence[Expr],
    wanted: Collection[Expr],
    known: Mapping[Expr, Interval],
    region: Displacements,
    given: Mapping[Input, Interval] = MappingProxyType({}),
) -> tuple[dict[Expr, Array], dict[Expr, Array], dict[Expr, Interval]]:
    """Upper bounds on the lengths of the nodes' gradients g and on g·y over the region, and the
    gradients of the wanted nodes; no bounds on g·y over a ball.

    `known` nodes lie in their ranges, and inputs that are not of the part are `given`. Unknowns
    of which each element reads one have one direction (Curtis, Powell and Reid 1974): along it,
    the derivative is that by the unknown that the element reads.
    """
    own = slope_graphs(part, tuple(nodes))
    groups = unknowns_apart(part, tuple(nodes))
    front = {node: a.each(itemgetter(np.newaxis)) for node, a in known.items()}
    others = {node: a.each(itemgetter(np.newaxis)) for node, a in given.items()}
    lengths: dict[Expr, list[Array]] = {node: [] for node in nodes}
    sizes: dict[Expr, list[Array]] = {node: [] for node in nodes}
    parts: dict[Expr, list[Interval]] = {node: [] for node in wanted}
    local: dict[Expr, tuple[Expr, Interval]] = {}

    def along(chosen: Sequence[Expr], directions: Array) -> Iterator[tuple[Expr, Interval]]:
        """The derivatives of nodes along directions, some of these at a time."""
        graphs = [own.graphs[places[node]] for node in chosen]
        inner = first_met(graphs, local)
        at_once = max(NUMBERS_AT_ONCE // max(own.elements, 1), 1)
        for start in range(0, len(directions) if chosen else 0, at_once):
            which = slice(start, start + at_once)
            rows = directions[which]
            boxes = boxed(part.values, 1) | others | along_rows(part, own.v, 1, 0, rows)
            below = {
                graph: a.each(partial(groups.by_unknown, node, which=which))
                for graph, (node, a) in local.items()
                if graph in inner
            }
            result = enclose(graphs, boxes, part.sizes, 1, known=front | below, live=own.live)
            for node, graph in zip(chosen, graphs, strict=True):
                shape = (len(rows), *concrete(node.shape, part.sizes))
                yield node, result[graph].broadcast(shape)

    def joined(chosen: Sequence[Expr], directions: Array) -> dict[Expr, Interval]:
        found: dict[Expr, list[Interval]] = {node: [] for node in chosen}
        for node, a in along(chosen, directions):
            found[node].append(a)
        return {node: Interval.concatenated(own) for node, own in found.items()}

    places = {node: k for k, node in enumerate(nodes)}
    for node, a in joined([*groups.reads], groups.directions()).items():
        graph = own.graphs[places[node]]
        lengths[node] = [np.asarray(up_norm(a.magnitude, 0))]
        if graph.shape == node.shape and not isinstance(graph, Input):
            local[graph] = node, a
        if not region.is_ball:
            sizes[node] = [groups.by_unknown(node, a.magnitude)]
        if node in parts:
            parts[node] = [a.each(partial(groups.by_unknown, node))]
    for node, a in along([one for one in nodes if one not in groups.reads], np.eye(part.n)):
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
