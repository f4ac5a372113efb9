"""Derivatives at the centre by their graphs, where the effort permits: entries, norms, one row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from itertools import permutations
from math import prod
from operator import itemgetter
from types import MappingProxyType

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, meet, point
from slomodel.bounds.arithmetic.interval_einsum import contract
from slomodel.bounds.arithmetic.rounding import Array, up_add, up_norm
from slomodel.bounds.effort import INTERVAL_FLOPS, NUMBERS_AT_ONCE
from slomodel.bounds.norms.cubic_norm import trilinear_norm
from slomodel.bounds.norms.spectral_norm import symmetric_norm
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.enclose import boxed, enclose, live_in
from slomodel.bounds.ranges.hessian import Entries, along_rows, derivatives
from slomodel.bounds.ranges.smoothness import Smoothness, smoothness_in
from slomodel.bounds.structure.recurrences import written_out
from slomodel.errors import MissingRule
from slomodel.ir.dims import number_of_elements
from slomodel.ir.expr import Expr
from slomodel.ir.walk import dependents, postorder

_FLOPS_ALONG = 238.6
"""Operations per number of D³f along a few rows, including the norms of the results."""


@once_per_part
def has_hessian_at_centre(part: ObjectivePart) -> bool:
    """Whether f is proved to be C² at c as it is written, so that its graphs give H(c).

    At kinks their derivatives are those of a piece. Where a rule proves more, as for cosh(‖x‖), its
    bounds over a ball do not join those of the graphs at c.
    """
    try:
        with np.errstate(all="ignore"):
            live = live_in(part)
            result = enclose([part.objective], boxed(part.values), part.sizes, live=live)
            return smoothness_in(part, result).least >= 2
    except MissingRule:
        return False


def is_third_within(part: ObjectivePart) -> bool:
    """Whether D³f and its norm, by eigenvalues of matrices of order n(n + 1)/2, fit the effort."""
    return float(part.n) ** 6 <= 4.0 * part.effort.flops


@once_per_part
def centre_hessian(part: ObjectivePart) -> Interval | None:
    """H(c) (n, n) as a symmetric interval matrix; None where it exceeds the effort."""
    return _enclosed(part, derivatives(part).second, 1)


@once_per_part
def centre_third(part: ObjectivePart) -> Interval | None:
    """D³f(c) (n, n, n) as a symmetric interval array; None where it exceeds the effort."""
    return _enclosed(part, derivatives(part).third, 2) if is_third_within(part) else None


def centre_entries(part: ObjectivePart) -> Entries | None:
    """Both derivatives, over one cell; None where either exceeds the effort."""
    H, T = centre_hessian(part), centre_third(part)
    if H is None or T is None:
        return None
    one = itemgetter(np.newaxis)
    live = live_in(part)
    result = enclose([part.objective], boxed(part.values, 1), part.sizes, 1, live=live)
    smooth = smoothness_in(part, result, 1)
    order = np.broadcast_to(smooth.order, (1,))
    return Entries(H.each(one), T.each(one), Smoothness(order, smooth.reason))


def third_along(part: ObjectivePart, rows: Array) -> Interval | None:
    """D³f(c)[p_i] (p, n, n) for the rows p_i (p, n); None where it exceeds the effort."""
    return _enclosed(part, derivatives(part).third, 2, rows)


def hessian_over(
    part: ObjectivePart, ranges: Mapping[Expr, Interval], most: int
) -> Interval | None:
    """H (n, n) as a symmetric interval matrix, nodes in `ranges`; None beyond `most` numbers."""
    return _enclosed(part, derivatives(part).second, 1, known=ranges, most=most)


def third_over(part: ObjectivePart, ranges: Mapping[Expr, Interval], most: int) -> Interval | None:
    """D³f (n, n, n) as a symmetric interval array with nodes in `ranges`, as `hessian_over`."""
    if not is_third_within(part):
        return None
    return _enclosed(part, derivatives(part).third, 2, known=ranges, most=most)


_AT_CENTRE: Mapping[Expr, Interval] = MappingProxyType({})


def _enclosed(
    part: ObjectivePart,
    graphs: tuple[Expr, ...],
    directions: int,
    first: Array | None = None,
    known: Mapping[Expr, Interval] = _AT_CENTRE,
    most: int | None = None,
) -> Interval | None:
    """The graphs along all unit vectors of each direction, the first one along `first` if given.

    Mixed derivatives along unit vectors are equal, so the result is intersected with its
    transposes. Nodes have their values at the centre, or lie in the `known` ranges.
    """
    n = part.n
    inputs = derivatives(part)
    nodes = postorder(*graphs)
    along: set[Expr] = {*inputs.v, *inputs.w}
    turning = dependents(nodes, along.__contains__)
    elements = sum(number_of_elements(g.shape, part.sizes) for g in nodes if g in turning)
    front = (n if first is None else len(first), n)[:directions]
    if most is None:
        most = part.effort.count(INTERVAL_FLOPS if first is None else _FLOPS_ALONG)
    if n == 0 or prod(front) * max(elements, n) > most:
        return None
    rows = [np.eye(n) if first is None else first, np.eye(n)][:directions]
    chunk = max(NUMBERS_AT_ONCE // (prod(front[1:]) * max(elements, n)), 1)
    ranges = [
        _along(part, graphs, [rows[0][start : start + chunk], *rows[1:]], known)
        for start in range(0, front[0], chunk)
    ]
    entries = Interval.concatenated(ranges)
    fixed = 0 if first is None else 1
    result = entries
    for order in permutations(range(fixed, directions + 1)):
        result = meet(result, entries.each(partial(np.transpose, axes=(*range(fixed), *order))))
    return result


def _along(
    part: ObjectivePart,
    graphs: tuple[Expr, ...],
    rows: list[Array],
    known: Mapping[Expr, Interval],
) -> Interval:
    """The graphs along the rows of each direction, with one leading axis for each direction."""
    inputs, directions = derivatives(part), len(rows)
    boxes = boxed(part.values, directions)
    for axis, (own, one) in enumerate(zip((inputs.v, inputs.w), rows, strict=False)):
        boxes.update(along_rows(part, own, directions, axis, one))
    live = live_in(part, *graphs)
    wide = (np.newaxis,) * directions
    ranges = {node: a.each(itemgetter(wide)) for node, a in known.items()}
    result = enclose(graphs, boxes, part.sizes, directions, ranges, live)
    front = tuple(len(row) for row in rows)
    parts = [result[g].broadcast(front + result[g].shape[directions:]) for g in graphs]
    flat = [
        one.each(partial(np.reshape, shape=(*front, prod(one.shape[directions:])))) for one in parts
    ]
    return Interval.concatenated(flat, -1)


@once_per_part
def hessian_at_centre(part: ObjectivePart) -> float:
    """Upper bound on ‖H(c)‖ from its entries; +inf if these are not known."""
    H = centre_hessian(part)
    return math.inf if H is None else symmetric_norm(H.mid, H.rad)


def entry_at_centre(part: ObjectivePart) -> float:
    """Lower bound on ‖H(c)‖, its largest entry, where the entries have been computed; else 0."""
    H = part.cached(centre_hessian)
    return 0.0 if H is None else float(np.max(H.mignitude, initial=0.0))


@once_per_part
def third_at_centre(part: ObjectivePart) -> float:
    """Upper bound on ‖D³f(c)‖ from its entries; +inf if these are not known."""
    T = centre_third(part)
    if T is None:
        return math.inf
    mid = float(trilinear_norm(T.mid[np.newaxis])[0])
    return float(up_add(mid, float(up_norm(T.rad))))


def curvature_above(part: ObjectivePart, v: Array) -> float:
    """Upper bound on vᵀH(c)v / vᵀv for v (n,); inf where none is known.

    H(c)v is enclosed elementwise by the graph of its product, at the cost of a few evaluations.
    """
    part = written_out(part)
    if not has_hessian_at_centre(part):
        return math.inf
    graphs = derivatives(part)
    parts = list(part.by_variable(v).values())
    boxes = boxed(part.values) | dict(zip(graphs.v, map(point, parts), strict=True))
    try:
        with np.errstate(all="ignore"):
            live = live_in(part, *graphs.second)
            result = enclose(graphs.second, boxes, part.sizes, live=live)
    except MissingRule:
        return math.inf
    pairs = zip(graphs.second, parts, strict=True)
    whole = [result[graph].broadcast(own.shape).each(np.ravel) for graph, own in pairs]
    u, n = point(v), len(v)
    with np.errstate(all="ignore"):
        form = contract([(u, (0,)), (Interval.concatenated(whole), (0,))], (), (n,))
        ratio = form / contract([(u, (0,)), (u, (0,))], (), (n,))
    largest = float(ratio.hi)
    return math.inf if math.isnan(largest) else largest
