"""Columns of ∇u that many elements of a node have in common, moved together over a region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from slomodel.bounds.arithmetic.interval import point
from slomodel.bounds.norms.curvature_sums import CurvedRows
from slomodel.bounds.ranges.curvature.array_shifts import FEW_ELEMENTS, ArrayShifts
from slomodel.bounds.ranges.curvature.centre_graph import given_weights
from slomodel.bounds.ranges.curvature.hessian_ranges import BallGraph
from slomodel.bounds.ranges.curvature.slopes import slope_graphs
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.stopping import pause
from slomodel.ir.expr import Expr

_MOST_COLUMNS = 8
"""Columns that are bounded, each for the time of one value of the slopes' graph: those that move
most. Scales and intercepts of groups are few.
"""


def with_shared_columns(run: BallGraph, rows: Mapping[Expr, CurvedRows]) -> dict[Expr, CurvedRows]:
    """The rows of nodes, with bounds on how far the entries of a column move together.

    Column j of ∇u is the derivative of u along unknown j, an array whose graph has its range over
    the region and at the centre by those of the nodes that it reads.
    """
    squares = {}
    for node, own in rows.items():
        moving = np.count_nonzero(own.moved > 0.0, axis=0) >= FEW_ELEMENTS
        with np.errstate(all="ignore"):
            squares[node] = np.where(moving, np.sum(own.moved**2, axis=0), 0.0)
    total = sum(squares.values(), np.zeros(run.part.n))
    columns = [int(j) for j in np.argsort(-total)[:_MOST_COLUMNS] if total[j] > 0.0]
    if not columns:
        return dict(rows)
    centre, part = run.centre, run.part
    made = [centre.means[node] for node in rows]
    own_graphs = slope_graphs(part, tuple(made))
    graphs = dict(zip(rows, own_graphs.graphs, strict=True))
    weights = {node: one.weights for node, one in centre.apart.items()}
    places = [
        (
            {centre.means[o]: a for o, a in ranges.items() if o in centre.means},
            boxed(part.values) | given_weights(centre, over, weights),
        )
        for ranges, over in ((run.ranges, run.weights), (centre.values, weights))
    ]
    result = {node: np.full(part.n, np.inf) for node in rows}
    known: dict[Expr, float] = dict.fromkeys(part.variables, run.region.radius)
    for j in columns:
        pause()
        unit = part.by_variable(np.asarray(np.arange(part.n) == j, dtype=np.float64))
        along = {v: point(unit[x]) for v, x in zip(own_graphs.v, part.variables, strict=True)}
        over, at_centre = (
            enclose(
                own_graphs.graphs, boxes | along, part.sizes, known=ranges, live=own_graphs.live
            )
            for ranges, boxes in places
        )
        shifts = ArrayShifts(part, over, at_centre, dict(known))
        for node, graph in graphs.items():
            if squares[node][j] > 0.0 and graph.shape == node.shape:
                result[node][j] = shifts.of(graph)
    return {
        node: replace(own, together=result[node]) if np.isfinite(result[node]).any() else own
        for node, own in rows.items()
    }
