"""Intervals for the entries of the Hessian and of the third derivative over boxes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from math import prod

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, meet, point
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.enclose import boxed, enclose, live_in
from slomodel.bounds.ranges.smoothness import Smoothness, smoothness_in
from slomodel.bounds.structure.recurrences import nodes_of_steps
from slomodel.calculus import jvp
from slomodel.ir.build import direction
from slomodel.ir.dims import number_of_elements
from slomodel.ir.exact import without_rounding
from slomodel.ir.expr import Expr, Input, Recur
from slomodel.ir.walk import dependents, postorder

_CELLS, _V, _W = range(3)
_BATCH = 3
"""Batch axes: the cells, and two directions that run through all unit vectors."""


@dataclass(frozen=True, slots=True)
class DerivativeGraphs:
    """Graphs of H v and D³f[v, w] by variable, and the directions in them."""

    v: tuple[Input, ...]
    w: tuple[Input, ...]
    second: tuple[Expr, ...]
    third: tuple[Expr, ...]


@once_per_part
def derivatives(part: ObjectivePart) -> DerivativeGraphs:
    """The graphs of a part."""
    v = tuple(direction(f"v.{x.name}", x.shape) for x in part.variables)
    w = tuple(direction(f"w.{x.name}", x.shape) for x in part.variables)
    along: dict[Expr, Expr] = dict(zip(part.variables, v, strict=True))
    again: dict[Expr, Expr] = dict(zip(part.variables, w, strict=True))
    with without_rounding():
        second = jvp(part.gradient, along)
        return DerivativeGraphs(v, w, second, jvp(second, again))


def numbers_a_cell(part: ObjectivePart) -> int:
    """The number of intervals that `entries` computes per cell, without constant ones; >= 1."""
    graphs = derivatives(part)
    order = postorder(part.objective, *graphs.second, *graphs.third)
    inputs = (set(part.variables), set(graphs.v), set(graphs.w))
    varying, along, again = (dependents(order, own.__contains__) for own in inputs)
    result: int = sum(
        number_of_elements(node.shape, part.sizes) * part.n ** ((node in along) + (node in again))
        for node in order
        if node in varying
    )
    return max(result, 1)


def operations_of_steps(part: ObjectivePart) -> int:
    """The number of operations of one call of `entries` that belong to steps of recurrences."""
    graphs = derivatives(part)
    order = postorder(part.objective, *graphs.second, *graphs.third)
    loops = {node.loop for node in order if isinstance(node, Recur)}
    return sum(nodes_of_steps(loop, part.sizes) for loop in loops)


@dataclass(frozen=True, slots=True)
class Entries:
    """Per cell: H (cells, n, n), D³f (cells, n, n, n), and the order of smoothness of f."""

    H: Interval
    T: Interval
    smooth: Smoothness


def entries(part: ObjectivePart, cells: Interval, *, third: bool = True) -> Entries:
    """Enclosures over boxes of x (cells, n) by propagating intervals through the graphs.

    Mixed derivatives are equal, so an entry lies in the intersection of the intervals of all its
    permutations. Without `third`, D³f is left out, as (cells, 0, n, n).
    """
    graphs = derivatives(part)
    boxes = boxed(part.values, _BATCH)
    for variable, box in _split(part, cells).items():
        boxes[variable] = box.each(lambda array: np.expand_dims(array, (_V, _W)))
    boxes.update(unit_directions(part, graphs.v, _BATCH, _V))
    boxes.update(unit_directions(part, graphs.w, _BATCH, _W))
    tails = graphs.third if third else ()
    roots = (part.objective, *graphs.second, *tails)
    result = enclose(roots, boxes, part.sizes, _BATCH, live=live_in(part, *roots))
    smooth = smoothness_in(part, result, _BATCH)
    count, n = cells.shape
    H = _flat([result[g] for g in graphs.second], (count, n, 1))
    T = point(np.zeros((count, 0, n, n)))
    if third:
        T = _symmetric(_flat([result[g] for g in graphs.third], (count, n, n)))
    return Entries(
        _symmetric(H.each(lambda array: array[:, :, 0, :])),
        T,
        Smoothness(np.broadcast_to(smooth.order[:, 0, 0], (count,)), smooth.reason),
    )


def _split(part: ObjectivePart, cells: Interval) -> Mapping[Input, Interval]:
    """The cells' columns as boxes of each variable's shape."""
    low = part.by_variable(cells.lo)
    high = low if cells.is_point else part.by_variable(cells.hi)
    return {variable: Interval(low[variable], high[variable]) for variable in part.variables}


def unit_directions(
    part: ObjectivePart, inputs: tuple[Input, ...], batch: int, axis: int
) -> dict[Input, Interval]:
    """All n unit vectors along one of the batch axes, by variable."""
    return along_rows(part, inputs, batch, axis, np.eye(part.n))


def along_rows(
    part: ObjectivePart, inputs: tuple[Input, ...], batch: int, axis: int, rows: Array
) -> dict[Input, Interval]:
    """The rows (p, n) as directions along one of the batch axes, by variable."""
    missing = tuple(k for k in range(batch) if k != axis)
    columns = part.by_variable(rows).values()
    pairs = zip(inputs, columns, strict=True)
    return {own: point(np.expand_dims(array, missing)) for own, array in pairs}


def _flat(parts: list[Interval], front: tuple[int, ...]) -> Interval:
    """The arrays of all variables flattened and concatenated along one last axis."""
    wide = [a.broadcast(front + a.shape[_BATCH:]) for a in parts]
    flat = [a.each(partial(np.reshape, shape=(*front, prod(a.shape[_BATCH:])))) for a in wide]
    return Interval.concatenated(flat, -1)


def _symmetric(a: Interval) -> Interval:
    """The intersection over all permutations of the axes after the first."""
    result = a
    for order in permutations(range(1, a.lo.ndim)):
        result = meet(result, a.each(partial(np.transpose, axes=(0, *order))))
    return result


def jacobians(part: ObjectivePart, affine: list[Expr]) -> dict[Expr, Interval]:
    """The derivatives (n, *shape) of affine nodes along all unit vectors."""
    v = tuple(direction(f"v.{x.name}", x.shape) for x in part.variables)
    graphs = jvp(affine, dict(zip(part.variables, v, strict=True)))
    boxes = boxed(part.values, 1)
    boxes.update(unit_directions(part, v, 1, 0))
    result = enclose(graphs, boxes, part.sizes, 1)
    return {node: result[graph] for node, graph in zip(affine, graphs, strict=True)}
