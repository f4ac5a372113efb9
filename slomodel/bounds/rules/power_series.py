"""Few unknowns: f as a power series over cells of the ball, with a norm of its higher terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from slomodel.bounds.arithmetic.interval import point
from slomodel.bounds.arithmetic.monomials import Monomials, monomials
from slomodel.bounds.arithmetic.power_series import PowerSeries, enlarged, variables
from slomodel.bounds.arithmetic.rounding import Array, up_add, up_mul, up_norm
from slomodel.bounds.ball import Displacements, norm
from slomodel.bounds.enclosure import Derivation, DerivativeBounds, Enclosure, Ends, norm_of
from slomodel.bounds.limits import box_of_limits
from slomodel.bounds.norms.cubic_norm import trilinear_norm
from slomodel.bounds.norms.eigenvalues import spectral_interval
from slomodel.bounds.norms.spectral_norm import spectral_norm
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.power_series.narrow import narrow_degree
from slomodel.bounds.ranges.power_series.propagate import SeriesPass, inputs_of
from slomodel.bounds.rules.cells import CellOfBall
from slomodel.bounds.structure.curved_terms import varying_nodes
from slomodel.bounds.structure.recurrences import nodes_of_steps
from slomodel.calculus.degree import degree
from slomodel.errors import MissingRule
from slomodel.ir.dims import number_of_elements
from slomodel.ir.expr import Einsum, Map, MatrixOperation, Recur
from slomodel.ir.walk import inputs

_LEAST_DEGREE, _MOST_DEGREE = 3, 10
"""Below the least, third derivatives are lost in the tail; above the most, little is gained."""
_MOST_MONOMIALS = 1400
"""Of any degree, which those of degree 3 in 18 unknowns are: beyond, memory takes the time."""
_FLOPS_A_CALL = 2.0**18
"""Operations in the time of one operation on few series: some dozens of calls of NumPy."""
_FLOPS_A_STEP = 2.0**16
"""Flops of a node of a step of a recurrence; few of these are products of two series."""
_FLOPS_A_PAIR = 3.0
"""Flops of a product of two coefficients, which are gathered and added by place."""
_PRODUCTS_OF_FEW = 0.5
"""Products of whole matrices in an operation on one, which libraries compute ten times as fast as
other products, half of whose coefficients are 0 or above the degree so far.
"""
_CELLS_OF_HIGH = 8
"""Cells that the effort has to permit for degrees above 4."""
_MOST_CELLS = 256
"""Cells at most, however cheap one is."""
_DEEPER = 6
"""Halvings, beyond those into as many equal cells as there is work for, after which a cell without
a bound ends the search.
"""
_HALVINGS_NEARER = 6
"""Where there is no bound over a region, unknowns are compared in one halved this often along each
of them.
"""
_NARROWEST, _WIDEST = 1e-100, 1e100
"""Widths of regions, so that their third powers neither under- nor overflow."""
_OF_THIRD = 1.1
"""Largest factor, about, by which the bound on the norm of a cubic form exceeds it."""
CLOSE = (1.2, 3.0)
"""Bounds on H and D³f within these factors of attained values are not refined, and other rules
seldom have smaller ones.
"""
_BEYOND = 200
"""Degrees of the tail that are compared: beyond, the terms decrease."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell with bounds over it, attained norms of H and D³f, and the worth of each unknown.

    `is_far`: there is no bound after some halvings along every unknown either.
    """

    cell: CellOfBall
    ends: Ends
    third: float
    attained: tuple[float, float]
    worth: Array
    is_far: bool = False

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite([*self.ends, self.third]).all())


def power_series(part: ObjectivePart, radius: float) -> Enclosure | None:
    """L1 and L2 from the coefficients of f about points of the ball and a norm of the others.

    Hypothesis: f is composed of analytic functions, and of others whose branches the region
    decides, for at most `_MOST_UNKNOWNS` unknowns. Conclusion: the coefficients up to a degree p
    are known up to errors, and those above have the sum t over |z_i| <= 1, z = h/R. As z^α has
    second derivatives of at most k(k - 1)(r/R)^(k-2)/R² for |h| <= r, the terms above p add at most
    t max_{k>p} k(k - 1)(r/R)^(k-2)/R², and those below what their entries give. The ball is covered
    by cells where that is not close to an attained value.
    """
    table = _table(part)
    if table is None or not 0.0 < radius < _WIDEST:
        return None
    limits = box_of_limits(part)

    def bounded(cell: CellOfBall, halvings: int) -> _Cell | None:
        placed = cell.around(part.x, radius, limits)
        if placed is None:
            return None
        at, region = placed
        is_inside = norm(at - part.x) <= radius
        return _over(part, table, cell, at, region, is_inside, halvings)

    try:
        covers = _coverings(bounded, part, table, radius)
    except MissingRule:
        return None
    cells = covers[-1]
    # Halves have one unknown more that is bounded by itself, so that their bounds may be larger.
    bounds = [np.array([[*one.ends, one.third] for one in cover]).max(axis=0) for cover in covers]
    *ends, third = np.min(bounds, axis=0).tolist()
    if not np.isfinite([*ends, third]).all():
        return None
    lines = (f"power series of degree {table.degree}",)
    if len(cells) > 1:
        lines = (f"power series of degree {table.degree} over {len(cells)} cells",)
    by = Derivation(lines=lines)
    over = DerivativeBounds((ends[0], ends[1]), third)
    return Enclosure(over=over, second_by=by, third_by=by)


def _coverings(
    bounded: Callable[[CellOfBall, int], _Cell | None],
    part: ObjectivePart,
    table: Monomials,
    radius: float,
) -> list[list[_Cell]]:
    """Cells that cover the ball, the worst divided until bounds are close or the work is spent.

    All covers met on the way: the whole ball first.
    """
    most = min(_MOST_CELLS, part.effort.count(_operations(part, table)))
    deepest = most.bit_length() + _DEEPER
    first = bounded(CellOfBall.whole(part.n), _halvings(most, 1))
    assert first is not None
    cells, depths, spent = [first], [0], 1
    covers = [[first]]
    while spent + 2 <= most:
        low = [max(one.attained[k] for one in cells) for k in (0, 1)]
        excess = [_excess(one, low) for one in cells]
        worst = int(np.argmax(excess))
        own = cells[worst]
        if excess[worst] <= 1.0 or (not own.is_finite and depths[worst] >= deepest):
            break
        # One cell without a bound is enough for none over the ball.
        left = min(deepest - depths[worst], (most - spent) // 2)
        if own.is_far and left <= _halvings(most, spent) * part.n:
            break
        halves = own.cell.halves(int(np.argmax(own.worth)), radius)
        parts = [bounded(half, _halvings(most, spent + 2)) for half in halves]
        within = [one for one in parts if one is not None]
        cells = [*cells[:worst], *within, *cells[worst + 1 :]]
        covers.append(cells)
        depths[worst : worst + 1] = [depths[worst] + 1] * len(within)
        spent += 2
    return covers


def _halvings(most: int, spent: int) -> int:
    """Halvings of a region along each unknown, at least one; the cells left allow no more."""
    return max(1, min(_HALVINGS_NEARER, (most - spent) // 2))


def _excess(one: _Cell, low: Sequence[float]) -> float:
    if not one.is_finite:
        return np.inf
    pairs = zip((norm_of(one.ends), one.third), low, CLOSE, strict=True)
    return max((value / (close * least) if least else 0.0) for value, least, close in pairs)


def is_tried(part: ObjectivePart) -> bool:
    """Whether the rule applies: few unknowns, and f is not a polynomial."""
    return _table(part) is not None


@once_per_part
def _table(part: ObjectivePart) -> Monomials | None:
    """The monomials up to the highest degree that the effort permits; None without one.

    None too for polynomials, whose series ends.
    """
    n = part.n
    if not 0 < n <= _MOST_MONOMIALS or degree(part.objective, part.variables) is not None:
        return None
    for k in range(_MOST_DEGREE, _LEAST_DEGREE - 1, -1):
        table = monomials(n, k)
        if table.ends[-1] <= _MOST_MONOMIALS:
            cells = _CELLS_OF_HIGH if k > 4 else 1
            if part.effort.count(_operations(part, table)) >= cells:
                return table
    return None


def _operations(part: ObjectivePart, table: Monomials) -> float:
    """The work for one cell."""
    varying = varying_nodes(part.order, part.variables)
    total = 0.0
    for node in part.order:
        if node not in varying:
            continue
        numbers = float(number_of_elements(node.shape, part.sizes))
        products = 0.0
        if isinstance(node, Map):
            products = table.degree + 1.0 if len(node.operands) == 1 else 1.0
        elif isinstance(node, Einsum):
            dims = number_of_elements(node.dims, part.sizes)
            count = sum(operand in varying for operand in node.operands)
            numbers, products = float(dims), count - 1.0
        elif isinstance(node, MatrixOperation) and (own := _operations_of_few(part, node, table)):
            total += own
            continue
        elif isinstance(node, MatrixOperation):
            numbers, products = numbers * node.operands[0].shape[-1].size(part.sizes), 10.0
        elif isinstance(node, Recur):
            steps = nodes_of_steps(node.loop, part.sizes)
            total += steps * (_FLOPS_A_STEP + table.count_of_pairs())
            continue
        total += _FLOPS_A_CALL * max(products, 1.0)
        total += _FLOPS_A_PAIR * numbers * (products * table.count_of_pairs() + table.ends[-1])
    return total


def _operations_of_few(part: ObjectivePart, node: MatrixOperation, table: Monomials) -> float:
    """The work for an operation on a matrix that reads few unknowns; 0 for others."""
    matrix = node.operands[0]
    read = [part.values[one] for one in inputs(matrix) if one in part.variables]
    unknowns = sum(one.size for one in read)
    degree = narrow_degree(node, unknowns, table, part.sizes)
    if degree is None:
        return 0.0
    size = float(matrix.shape[-1].size(part.sizes))
    pairs = monomials(unknowns, degree).count_of_pairs()
    return _FLOPS_A_PAIR * size**3 * pairs * _PRODUCTS_OF_FEW


def _over(
    part: ObjectivePart,
    table: Monomials,
    cell: CellOfBall,
    at: Array,
    region: Displacements,
    is_inside: bool,
    halvings: int,
) -> _Cell:
    """Bounds over the region around a point."""
    p = table.degree
    one_by_one = tuple(np.flatnonzero(np.isfinite(region.half)).tolist())
    table = monomials(table.n, p, one_by_one)
    # From this ratio on, the second derivatives in the tail are largest at its first degree.
    widening = (p + 2.0) / p
    reach = np.maximum(region.widths, _NARROWEST) * widening
    root = _series(part, table, at, reach, widening)
    if not np.isfinite([root.tail, root.error]).all() or not np.isfinite(root.c).all():
        nearer = 2.0**halvings
        near = _series(part, table, at, reach / nearer, widening)
        worth = _worth(near, widening * nearer)
        known = bool(np.isfinite(worth).all() and worth.any())
        is_far = not np.isfinite([near.tail, near.error]).all()
        none, seen = (np.inf, np.inf), (0.0, 0.0)
        return _Cell(cell, none, np.inf, seen, worth if known else region.widths, is_far)
    sizes = _sizes(table, region.is_ball, widening)
    H, apart, slope, moved = _sums(root, reach, sizes, region.radius)
    spread = float(up_add(apart, _beyond(root, reach, widening, 2)))
    eigenvalues = spectral_interval(point(H), signs=False).widened(spread)
    ends = eigenvalues.high, -eigenvalues.low
    third = float(up_add(up_add(slope, moved), _beyond(root, reach, widening, 3)))
    attained = (float(np.abs(np.linalg.eigvalsh(H)).max()), slope / _OF_THIRD)
    return _Cell(
        cell,
        ends,
        third,
        attained if is_inside else (0.0, 0.0),
        _worth(root, widening),
    )


def _series(
    part: ObjectivePart, table: Monomials, at: Array, reach: Array, widening: float
) -> PowerSeries:
    """f on the unit ball, where x = at + reach z; the region is that of radius 1/widening.

    Of the unknowns `apart` in the table, which are bounded one by one, that is |z_i| <= 1.
    """
    unknowns = variables(table, at, reach)
    given = inputs_of(part, unknowns)
    run = SeriesPass(table, part.sizes, (1.0 + 2.0**-40) / widening)
    root = run.values_of(part.objective, given)[part.objective]
    assert isinstance(root, PowerSeries)
    return root


def _sizes(table: Monomials, is_ball: bool, widening: float) -> Array:
    """Upper bounds on |z^β| (monomials,) over the region."""
    degrees = table.exponents.sum(axis=1)
    own = widening ** (-degrees.astype(float))
    return enlarged(own * table.on_sphere if is_ball else own)


def _sums(
    root: PowerSeries, reach: Array, sizes: Array, radius: float
) -> tuple[Array, float, float, float]:
    """H at the point, how far it is from that over the region, ‖D³f‖ there, and how far that moves.

    Of the coefficients alone. H moves by at most ‖D³f‖ radius in the terms of degree 1, or by their
    sizes.
    """
    n = root.table.n
    second, third = (_derivative(root, reach, order) for order in (2, 3))
    H, T = second[0], third[0]
    by_size = [np.tensordot(sizes[1 : len(a)], np.abs(a[1:]), 1) for a in (second, third)]
    higher = np.tensordot(sizes[n + 1 : len(second)], np.abs(second[n + 1 :]), 1)
    slope = float(trilinear_norm(T[np.newaxis])[0])
    along = up_add(up_mul(slope, radius), spectral_norm(enlarged(higher)))
    apart = min(float(along), float(spectral_norm(enlarged(by_size[0]))))
    moved = float(trilinear_norm(enlarged(by_size[1])[np.newaxis])[0])
    # Each entry was computed with a few roundings.
    errors = [
        up_mul(2.0**-40, float(up_norm(np.abs(a[0]) + own)))
        for a, own in zip((second, third), by_size, strict=True)
    ]
    return H, float(up_add(apart, errors[0])), float(up_add(slope, errors[1])), moved


def _derivative(root: PowerSeries, reach: Array, order: int) -> Array:
    """The coefficients (monomials, n, .., n) of the derivative of this order; symmetric."""
    table, n = root.table, root.table.n
    count = table.ends[table.degree - order]
    indices = np.sort(np.indices((n,) * order).reshape(order, -1), axis=0)
    places = np.broadcast_to(np.arange(count)[:, np.newaxis], (count, n**order))
    factor = np.ones((count, n**order))
    scale = np.ones(n**order)
    for own in indices:
        places = table.products(places, own + 1)
        factor *= np.take_along_axis(table.exponents[places], own[np.newaxis, :, np.newaxis], 2)[
            ..., 0
        ]
        scale *= reach[own]
    c = root.padded(table.degree)
    return np.asarray(c[places] * factor / scale).reshape((count, *(n,) * order))


def _beyond(root: PowerSeries, reach: Array, widening: float, order: int) -> float:
    """Upper bound on the derivative of this order of what the coefficients leave out.

    The form of z^α of degree k is at most that for |v_i| = 1: k(k - 1) .. θ^(order - k)/R^order.
    """
    p = root.table.degree
    degrees = np.arange(_BEYOND, dtype=np.float64)
    falling = degrees * (degrees - 1.0) * (degrees - 2.0 if order == 3 else 1.0)
    terms = falling * widening ** (order - degrees)
    own = root.tail * terms[p + 1 :].max() + root.error * terms[order:].max()
    return float(enlarged(own / reach.min() ** order))


def _worth(root: PowerSeries, widening: float) -> Array:
    """Roughly, the contribution of the terms of degree 3 and more along each unknown."""
    exponents = root.table.exponents[: len(root.c)]
    degrees = exponents.sum(axis=1)
    weight = np.where(degrees >= 3, np.abs(root.c) * widening ** (-degrees.astype(float)), 0.0)
    return np.asarray((weight * degrees**2) @ exponents)
