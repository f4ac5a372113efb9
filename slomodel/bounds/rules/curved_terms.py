"""Any objective by its nonlinear terms: ∇u at the centre, and how far it moves over the ball."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.centre import hessian_at_centre
from slomodel.bounds.enclosure import Derivation, DerivativeBounds, Enclosure, both_ends, norm_of
from slomodel.bounds.limits import box_of_limits
from slomodel.bounds.norms.curvature_sums import CurvedSum, hessian_ends, third_matrix
from slomodel.bounds.norms.loewner import largest_eigenvalue
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.curvature.centre_graph import CentreGraph, centre_graph, centre_of_cell
from slomodel.bounds.ranges.curvature.curved_sums import (
    curved_rows,
    elements_sum,
    log_sums_sum,
)
from slomodel.bounds.ranges.curvature.hessian_ranges import (
    BallGraph,
    ball_graph,
    region_graph,
    slopes_over,
)
from slomodel.bounds.ranges.curvature.near_identity import log_determinants_sum, with_inverses
from slomodel.bounds.ranges.curvature.shared_columns import with_shared_columns
from slomodel.bounds.ranges.curvature.slopes import slope_numbers
from slomodel.bounds.ranges.curvature.vectors import vectors_of
from slomodel.bounds.ranges.enclose import boxed, live_in
from slomodel.bounds.ranges.smoothness import smoothness_in
from slomodel.bounds.ranges.unbounded import unbounded
from slomodel.bounds.rules.cells import CellBounds, CellOfBall, divided
from slomodel.bounds.structure.averages import with_averages
from slomodel.bounds.structure.curved_terms import (
    CurvedElements,
    CurvedLogDet,
    CurvedLogSum,
    CurvedTerm,
    MeanOfLogSum,
    mean_with,
    varying_nodes,
    with_means,
)
from slomodel.bounds.structure.curved_terms import curved_terms as terms_of
from slomodel.bounds.structure.gathers import with_gathers_below
from slomodel.bounds.structure.lengths import with_unit_vectors
from slomodel.bounds.structure.linear_predictors import affine_nodes
from slomodel.bounds.structure.near_identity import MatrixEquations, with_matrix_equations
from slomodel.bounds.structure.recurrences import written_out
from slomodel.bounds.structure.short_sums import with_short_sums
from slomodel.calculus import gradient
from slomodel.ir import build
from slomodel.ir.dims import concrete
from slomodel.ir.exact import without_rounding
from slomodel.ir.expr import Expr, Input

_FLOPS = 64.0
"""Operations per direction and element of a node."""
_FLOPS_OF_NODE = 2.0**20
"""Flops of a node however small, about a millisecond."""
_MOST_NODES_OF_STEPS = 1500
"""Nodes into which a recurrence is written out, a second of work for this rule alone."""
_MOST_DIVIDED = 64
"""Largest number of unknowns of a ball that is divided: cells in more hardly differ."""
_MOST_CELLS = 16
"""Bounds over cells, about 0.1 s each for a thousand samples."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The terms with their adjoints, and the graph at the centre.

    In the graphs of adjoints log Σ exp u is replaced by Σ p u, which has the same derivatives for
    its weights p, here inputs; `linear` maps all nodes to those with that replacement. ∇u(c) is
    kept of the `wanted` nodes. `numbers` counts those computed over one region.
    """

    part: ObjectivePart
    terms: tuple[CurvedTerm, ...]
    adjoints: tuple[Expr, ...]
    operands: tuple[Expr, ...]
    wanted: tuple[Expr, ...]
    weights: Mapping[CurvedLogSum, Input]
    linear: Mapping[Expr, Expr]
    centre: CentreGraph
    numbers: int


def curved_terms(part: ObjectivePart, radius: float) -> Enclosure | None:
    """L1 and L2 from H = Σ λφ_pq ∇u_p ∇u_qᵀ over the elements φ(u) of all nonlinear terms.

    Hypothesis: f is C¹ (C² for L2) and piecewise smooth on the ball, which `smoothness` proves.
    Over the ball the u lie in the ranges of `hessian_ranges`, so λφ_pq lies in an interval, and ∇u
    moves from its value at the centre by the least of its entries' intervals and r sup ‖D²u‖. The
    sum is bounded in the Loewner order; that of log Σ exp u by the variance of ∇u·v. Where few
    unknowns are decisive, the same holds over cells that cover the ball.
    """
    known = _known(part)
    if known is None:
        return None
    own = known.part
    whole = _over(known, CellOfBall.whole(part.n), ball_graph(own, radius, known.centre))
    at_centre = _centre_norm(part)
    cells = _cells(known, whole, radius, at_centre)
    order, reason = min((cell.order, cell.reason) for cell in cells)
    if order < 1:
        return Enclosure(order=order, reason=reason)
    ends = max(one.ends[0] for one in cells), max(one.ends[1] for one in cells)
    third = max(one.third for one in cells)
    finite = np.isfinite([norm_of(ends), third]).all()
    reason = "" if finite else reason or unbounded(part, radius)
    by = Derivation(lines=() if len(cells) == 1 else (f"{len(cells)} cells cover the ball",))
    return Enclosure(
        DerivativeBounds(both_ends(at_centre)),
        DerivativeBounds(ends, third),
        order,
        reason,
        second_by=by,
        third_by=by,
    )


def _over(known: _Known, cell: CellOfBall, graph: BallGraph) -> CellBounds:
    """Both ends of H and ‖D³f‖ over the region of a graph; infinite where f is not smooth there."""
    part = known.part
    smooth = smoothness_in(part, graph.ranges)
    order, n, widths = smooth.least, part.n, graph.region.widths
    if order < 1:
        return CellBounds(cell, (np.inf, np.inf), np.inf, widths, order, smooth.reason)
    sums = _sums(known, graph)
    forms = third_matrix(sums, n)
    third = largest_eigenvalue(forms) if order > 1 else np.inf
    with np.errstate(all="ignore"):
        worth = np.diag(forms.value) * widths
    worth = worth if np.isfinite(worth).all() else widths
    return CellBounds(cell, hessian_ends(sums, n), third, worth, order, smooth.reason)


def _cells(
    known: _Known, whole: CellBounds, radius: float, at_centre: float
) -> Sequence[CellBounds]:
    """The ball, or cells that cover it where that pays."""
    part = known.part
    work = _FLOPS * known.numbers + _FLOPS_OF_NODE * len(known.centre.order)
    most = min(_MOST_CELLS, part.effort.count(work))
    if not (0.0 < radius < np.inf and part.n <= _MOST_DIVIDED and np.isfinite(at_centre)):
        return [whole]

    limits = box_of_limits(part)

    def bound(cell: CellOfBall) -> CellBounds | None:
        result = cell.around(part.x, radius, limits)
        if result is None:
            return None
        at, region = result
        values = {**part.values, **part.by_variable(at)}
        centre = centre_of_cell(part, known.centre, values, known.wanted, region)
        graph = region_graph(part, region, centre, values)
        return _over(replace(known, centre=centre), cell, graph)

    return divided(whole, radius, bound, part.effort.gap * at_centre, most)


@once_per_part
def _centre_norm(part: ObjectivePart) -> float:
    """Upper bound on ‖H(c)‖ from the terms or from its entries."""
    known = _known(part)
    assert known is not None
    sums = _sums(known, ball_graph(known.part, 0.0, known.centre))
    return min(norm_of(hessian_ends(sums, part.n)), hessian_at_centre(part))


@once_per_part
def _known(part: ObjectivePart) -> _Known | None:
    """The terms; None where the objective has a node of another kind or is too large."""
    if part.n == 0:
        return None
    steps = written_out(part, _MOST_NODES_OF_STEPS)
    averages = with_averages(with_unit_vectors(with_gathers_below(steps) or steps))
    own, exponents, at_most_0 = averages.part, averages.exponents, averages.of_weights
    equations = with_matrix_equations(own)
    terms = _terms(equations, exponents)
    if not any(isinstance(term, CurvedLogSum) for term in terms):
        # Distances in the plane and in space; sums of exponentials stay together.
        own, exponents, at_most_0 = with_short_sums(own) or own, frozenset(), frozenset()
        equations = with_matrix_equations(own)
        terms = _terms(equations, exponents)
    own = equations.part
    most, numbers = part.effort.count(_FLOPS), slope_numbers(own)
    if not terms or numbers > most:
        return None
    operands = tuple(dict.fromkeys(operand for term in terms for operand in term.operands))
    elements = sum(_count(own, term) for term in terms)
    if elements * part.n > most:
        return None
    weights = {
        term: build.data(f"weights {k}", term.u.shape)
        for k, term in enumerate(terms)
        if isinstance(term, CurvedLogSum)
    }
    linear = with_means(own.objective, {term: mean_with(p, term) for term, p in weights.items()})
    with without_rounding():
        adjoints = gradient(linear[own.objective], [linear[term.node] for term in terms], own.known)
    means = tuple(
        MeanOfLogSum(term, p, build.data(f"{p.name} at the centre", p.shape))
        for term, p in weights.items()
    )
    wanted = tuple(dict.fromkeys([*operands, *vectors_of(own, most - elements * own.n)]))
    centre = centre_graph(own, wanted, means, at_most_0, equations.matrices)
    numbers += elements * own.n
    return _Known(own, terms, adjoints, operands, wanted, weights, linear, centre, numbers)


def _terms(equations: MatrixEquations, exponents: Collection[Expr]) -> tuple[CurvedTerm, ...]:
    """The terms of the objective; empty where it has a node of another kind."""
    part = equations.part
    varying = varying_nodes(part.order, part.variables)
    affine = affine_nodes(part.order, varying)
    given = equations.terms(varying)
    return terms_of(part.objective, varying, affine, exponents, given) or ()


def _count(part: ObjectivePart, term: CurvedTerm) -> int:
    """The number of rows of a term."""
    if isinstance(term, CurvedElements):
        shape = concrete(term.shape, part.sizes)
        return int(np.prod(shape, dtype=float)) * len(term.arguments)
    (only,) = term.operands
    return int(np.prod(concrete(only.shape, part.sizes), dtype=float))


def _sums(known: _Known, ball: BallGraph) -> list[CurvedSum]:
    """The terms evaluated over a ball."""
    part = known.part
    over: Mapping[Expr, Interval] = {}
    if ball.region.radius > 0.0:
        over = slopes_over(ball, known.operands)
    rows = {
        node: curved_rows(ball, node, known.centre.slopes[node], over.get(node))
        for node in known.operands
    }
    if over:
        rows = with_shared_columns(ball, rows)
    boxes = boxed(part.values)
    for log_sum, weights in known.weights.items():
        boxes[weights] = ball.weights[log_sum.node]
    ranges = {made: ball.ranges[node] for node, made in known.linear.items()}
    live = live_in(part, *known.adjoints) if not known.weights else {}
    adjoints = with_inverses(ball, known.adjoints, boxes, ranges, live, known.linear)
    result = []
    for term, graph in zip(known.terms, known.adjoints, strict=True):
        shape = concrete(term.node.shape, part.sizes)
        adjoint = adjoints[graph].broadcast(shape)
        if isinstance(term, CurvedElements):
            one = elements_sum(ball, term, adjoint, rows)
        elif isinstance(term, CurvedLogDet):
            one = log_determinants_sum(ball, term, adjoint, rows)
        else:
            one = log_sums_sum(ball, term, adjoint, rows)
        if one is not None:
            result.append(one)
    return result
