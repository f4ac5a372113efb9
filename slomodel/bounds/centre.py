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
from slomodel.bounds.ranges.enclose import boxed, enclose, live_in
from slomodel.bounds.ranges.hessian import Entries, along_rows, derivatives
from slomodel.bounds.ranges.smoothness import Smoothness, smoothness_in
from slomodel.bounds.setting import Setting, once_per_setting
from slomodel.bounds.structure.recurrences import written_out
from slomodel.errors import MissingRule
from slomodel.ir.dims import number_of_elements
from slomodel.ir.expr import Expr
from slomodel.ir.walk import dependents, postorder

_FLOPS_ALONG = 238.6
"""Operations per number of D³f along a few rows, including the norms of the results."""


@once_per_setting
def has_hessian_at_centre(setting: Setting) -> bool:
    """Whether f is proved to be C² at c as it is written, so that its graphs give H(c).

    At kinks their derivatives are those of a piece. Where a rule proves more, as for cosh(‖x‖), its
    bounds over a ball do not join those of the graphs at c.
    """
    try:
        with np.errstate(all="ignore"):
            live = live_in(setting)
            result = enclose([setting.objective], boxed(setting.values), setting.sizes, live=live)
            return smoothness_in(setting, result).least >= 2
    except MissingRule:
        return False


def is_third_within(setting: Setting) -> bool:
    """Whether D³f and its norm, by eigenvalues of matrices of order n(n + 1)/2, fit the effort."""
    return float(setting.n) ** 6 <= 4.0 * setting.effort.flops


@once_per_setting
def centre_hessian(setting: Setting) -> Interval | None:
    """H(c) (n, n) as a symmetric interval matrix; None where it exceeds the effort."""
    return _enclosed(setting, derivatives(setting).second, 1)


@once_per_setting
def centre_third(setting: Setting) -> Interval | None:
    """D³f(c) (n, n, n) as a symmetric interval array; None where it exceeds the effort."""
    return _enclosed(setting, derivatives(setting).third, 2) if is_third_within(setting) else None


def centre_entries(setting: Setting) -> Entries | None:
    """Both derivatives, over one cell; None where either exceeds the effort."""
    H, T = centre_hessian(setting), centre_third(setting)
    if H is None or T is None:
        return None
    one = itemgetter(np.newaxis)
    live = live_in(setting)
    result = enclose([setting.objective], boxed(setting.values, 1), setting.sizes, 1, live=live)
    smooth = smoothness_in(setting, result, 1)
    order = np.broadcast_to(smooth.order, (1,))
    return Entries(H.each(one), T.each(one), Smoothness(order, smooth.reason))


def third_along(setting: Setting, rows: Array) -> Interval | None:
    """D³f(c)[p_i] (p, n, n) for the rows p_i (p, n); None where it exceeds the effort."""
    return _enclosed(setting, derivatives(setting).third, 2, rows)


def hessian_over(setting: Setting, ranges: Mapping[Expr, Interval], most: int) -> Interval | None:
    """H (n, n) as a symmetric interval matrix, nodes in `ranges`; None beyond `most` numbers."""
    return _enclosed(setting, derivatives(setting).second, 1, known=ranges, most=most)


def third_over(setting: Setting, ranges: Mapping[Expr, Interval], most: int) -> Interval | None:
    """D³f (n, n, n) as a symmetric interval array with nodes in `ranges`, as `hessian_over`."""
    if not is_third_within(setting):
        return None
    return _enclosed(setting, derivatives(setting).third, 2, known=ranges, most=most)


_AT_CENTRE: Mapping[Expr, Interval] = MappingProxyType({})


def _enclosed(
    setting: Setting,
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
    n = setting.n
    inputs = derivatives(setting)
    nodes = postorder(*graphs)
    along: set[Expr] = {*inputs.v, *inputs.w}
    turning = dependents(nodes, along.__contains__)
    elements = sum(number_of_elements(g.shape, setting.sizes) for g in nodes if g in turning)
    front = (n if first is None else len(first), n)[:directions]
    if most is None:
        most = setting.effort.count(INTERVAL_FLOPS if first is None else _FLOPS_ALONG)
    if n == 0 or prod(front) * max(elements, n) > most:
        return None
    rows = [np.eye(n) if first is None else first, np.eye(n)][:directions]
    chunk = max(NUMBERS_AT_ONCE // (prod(front[1:]) * max(elements, n)), 1)
    ranges = [
        _along(setting, graphs, [rows[0][start : start + chunk], *rows[1:]], known)
        for start in range(0, front[0], chunk)
    ]
    entries = Interval.concatenated(ranges)
    fixed = 0 if first is None else 1
    result = entries
    for order in permutations(range(fixed, directions + 1)):
        result = meet(result, entries.each(partial(np.transpose, axes=(*range(fixed), *order))))
    return result


def _along(
    setting: Setting,
    graphs: tuple[Expr, ...],
    rows: list[Array],
    known: Mapping[Expr, Interval],
) -> Interval:
    """The graphs along the rows of each direction, with one leading axis for each direction."""
    inputs, directions = derivatives(setting), len(rows)
    boxes = boxed(setting.values, directions)
    for axis, (own, one) in enumerate(zip((inputs.v, inputs.w), rows, strict=False)):
        boxes.update(along_rows(setting, own, directions, axis, one))
    live = live_in(setting, *graphs)
    wide = (np.newaxis,) * directions
    ranges = {node: a.each(itemgetter(wide)) for node, a in known.items()}
    result = enclose(graphs, boxes, setting.sizes, directions, ranges, live)
    front = tuple(len(row) for row in rows)
    parts = [result[g].broadcast(front + result[g].shape[directions:]) for g in graphs]
    flat = [
        one.each(partial(np.reshape, shape=(*front, prod(one.shape[directions:])))) for one in parts
    ]
    return Interval.concatenated(flat, -1)


@once_per_setting
def hessian_at_centre(setting: Setting) -> float:
    """Upper bound on ‖H(c)‖ from its entries; +inf if these are not known."""
    H = centre_hessian(setting)
    return math.inf if H is None else symmetric_norm(H.mid, H.rad)


def entry_at_centre(setting: Setting) -> float:
    """Lower bound on ‖H(c)‖, its largest entry, where the entries have been computed; else 0."""
    H = setting.cached(centre_hessian)
    return 0.0 if H is None else float(np.max(H.mignitude, initial=0.0))


@once_per_setting
def third_at_centre(setting: Setting) -> float:
    """Upper bound on ‖D³f(c)‖ from its entries; +inf if these are not known."""
    T = centre_third(setting)
    if T is None:
        return math.inf
    mid = float(trilinear_norm(T.mid[np.newaxis])[0])
    return float(up_add(mid, float(up_norm(T.rad))))


def curvature_above(setting: Setting, v: Array) -> float:
    """Upper bound on vᵀH(c)v / vᵀv for v (n,); inf where none is known.

    H(c)v is enclosed elementwise by the graph of its product, at the cost of a few evaluations.
    """
    setting = written_out(setting)
    if not has_hessian_at_centre(setting):
        return math.inf
    graphs = derivatives(setting)
    parts = list(setting.by_variable(v).values())
    boxes = boxed(setting.values) | dict(zip(graphs.v, map(point, parts), strict=True))
    try:
        with np.errstate(all="ignore"):
            live = live_in(setting, *graphs.second)
            result = enclose(graphs.second, boxes, setting.sizes, live=live)
    except MissingRule:
        return math.inf
    pairs = zip(graphs.second, parts, strict=True)
    whole = [result[graph].broadcast(part.shape).each(np.ravel) for graph, part in pairs]
    u, n = point(v), len(v)
    with np.errstate(all="ignore"):
        form = contract([(u, (0,)), (Interval.concatenated(whole), (0,))], (), (n,))
        ratio = form / contract([(u, (0,)), (u, (0,))], (), (n,))
    largest = float(ratio.hi)
    return math.inf if math.isnan(largest) else largest
