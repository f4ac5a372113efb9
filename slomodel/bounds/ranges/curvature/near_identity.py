"""Solutions z of N z = b and log |det N| over a region on which N is near the identity I.

With ‖N - I‖ <= ε < 1 and s = ε/(1 - ε), N⁻¹ = I + E = I + G + GE for G = I - N and ‖E‖ <= s. So,
column by column, a vector t with |t| <= τ elementwise has

    |N⁻¹t| <= τ + min(s‖τ‖, |G|τ + ε s‖τ‖),
    Dz = N⁻¹(Db - DN z),   D²z = N⁻¹(D²b - D²N z - 2 DN Dz),
    |D log det N| <= tr|DN| + √k s‖DN‖_F,  |D² log det N| <= tr|D²N| + √k s‖D²N‖_F + (1 + s)²‖DN‖_F²
for matrices of order k. The second derivative -tr(N⁻¹DN N⁻¹DN) by the elements of N is, for
symmetric N, within the factors (1 ± s)² of -‖DN‖_F², as N⁻¹ has its eigenvalues in 1 ± s; for other
N it differs from -Σ DN_ij DN_ji by (2s + s²)‖DN‖_F² at most. The third derivative is at most
2(1 + s)³‖DN‖_F²‖DN‖.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, around, from_zero, interval, meet, point
from slomodel.bounds.arithmetic.rounding import (
    Array,
    down,
    up_add,
    up_div,
    up_mul,
    up_norm,
    up_sqrt,
    up_sum,
)
from slomodel.bounds.norms.curvature_sums import CurvedRows, CurvedSum
from slomodel.bounds.norms.loewner import Slots, quotient
from slomodel.bounds.norms.spectral_norm import spectral_norm, stack_norm
from slomodel.bounds.ranges.curvature.hessian_ranges import BallGraph, derivatives_of
from slomodel.bounds.ranges.curvature.slopes import Forms
from slomodel.bounds.ranges.enclose import enclose
from slomodel.bounds.ranges.liveness import Live
from slomodel.bounds.ranges.matrices import product, range_of_operation
from slomodel.bounds.structure.curved_terms import CurvedLogDet
from slomodel.ir import build
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr, Input, MatrixOperation
from slomodel.ir.walk import postorder

_MOST_MATRICES = 256
"""Batches of more matrices are bounded by their Frobenius norms."""
_ROUNDS = 2
"""Rounds in which the ranges of a solution and of its slopes tighten each other: a third gains
little.
"""
_ONE, _TWO = np.asarray(1.0), np.asarray(2.0)


def norm_from_identity(run: BallGraph, matrix: Expr) -> Array:
    """Upper bounds on ‖N - I‖ over the region, for each matrix (batch)."""
    if matrix not in run.distances:
        run.distances[matrix] = _distance(run, matrix)
    return run.distances[matrix]


def _distance(run: BallGraph, matrix: Expr) -> Array:
    over = _from_identity(run.ranges[matrix])
    result = norms(over.magnitude)
    if matrix not in run.centre.varying or not run.region.is_ball:
        return result
    at_centre = norms(_from_identity(run.centre.values[matrix]).magnitude)
    along = up_mul(np.asarray(run.region.radius), _slope_at_centre(run, matrix))
    bent = up_mul(np.asarray(0.5), _frobenius(run.curves[matrix].bend))
    return np.minimum(result, up_add(up_add(at_centre, along), bent))


def _from_identity(a: Interval) -> Interval:
    return point(np.broadcast_to(np.eye(a.shape[-1]), a.shape)) - a


def _slope_at_centre(run: BallGraph, matrix: Expr) -> Array:
    """Upper bounds (batch) on the largest ‖Σ_l v_l ∂N/∂x_l‖ at the centre over unit v."""
    slopes = run.centre.slopes.get(matrix)
    shape = concrete(matrix.shape, run.part.sizes)
    if slopes is None:
        return _frobenius(np.broadcast_to(run.centre.lengths[matrix], shape))
    size = np.moveaxis(slopes.magnitude, 0, -3)
    result = _frobenius(np.asarray(up_norm(size, -3)))
    n, count = size.shape[-3], int(np.prod(shape[:-2]))
    if n * count <= _MOST_MATRICES:
        middle, spread = (np.moveaxis(a, 0, -3) for a in (slopes.mid, slopes.rad))
        flat = (-1, *shape[-2:])
        by_unknown = up_add(stack_norm(middle.reshape(flat)), norms(spread.reshape(flat)))
        own = np.asarray(up_norm(by_unknown.reshape((*shape[:-2], n)), -1))
        result = np.minimum(result, own)
    if count <= _MOST_MATRICES:
        J, E = (a.reshape((n, count, -1)) for a in (slopes.mid, slopes.rad))
        whole = [up_add(spectral_norm(J[:, k]), float(up_norm(E[:, k]))) for k in range(count)]
        result = np.minimum(result, np.reshape(whole, shape[:-2]))
    return result


def norms(size: Array) -> Array:
    """Upper bounds (batch) on the spectral norms of matrices with elements of these sizes."""
    result = _frobenius(size)
    if size.size and result.size <= _MOST_MATRICES:
        each = [spectral_norm(one) for one in size.reshape((-1, *size.shape[-2:]))]
        result = np.minimum(result, np.reshape(each, result.shape))
    return np.where(np.isnan(result), np.inf, result)


def _frobenius(size: Array) -> Array:
    return np.asarray(up_norm(size, (-2, -1)))


def _excess(distance: Array) -> Array:
    """s with ‖N⁻¹ - I‖ <= s; infinite where N may be singular."""
    with np.errstate(all="ignore"):
        return np.where(distance < 1.0, up_div(distance, down(1.0 - distance)), np.inf)


class _Inverse:
    """|N⁻¹t| for t by sizes of its elements."""

    __slots__ = ("distance", "excess", "size")

    def __init__(self, run: BallGraph, matrix: Expr) -> None:
        self.distance = norm_from_identity(run, matrix)
        self.excess = _excess(self.distance)
        self.size = _from_identity(run.ranges[matrix]).magnitude

    def of(self, size: Array, transposed: bool = False) -> Array:
        """Upper bounds on the elements of N⁻¹t or of N⁻ᵀt."""
        return up_add(size, self.added(size, transposed))

    def added(self, size: Array, transposed: bool = False) -> Array:
        """Upper bounds on the elements of (N⁻¹ - I)t."""
        length = np.asarray(up_norm(size, -2))[..., None, :]
        excess, distance = self.excess[..., None, None], self.distance[..., None, None]
        G = np.swapaxes(self.size, -1, -2) if transposed else self.size
        direct = up_mul(excess, length)
        twice = up_add(_times(G, size), up_mul(up_mul(distance, excess), length))
        return np.minimum(direct, np.where(np.isnan(twice), np.inf, twice))


def _times(a: Array, b: Array) -> Array:
    """Upper bounds on products of matrices >= 0."""
    return product(from_zero(a), from_zero(b)).hi


@derivatives_of.register
def _(node: MatrixOperation, run: BallGraph, known: Mapping[Expr, Forms]) -> tuple[Array, Array]:
    if node.operands[0] not in run.centre.near_identity:
        return np.asarray(np.inf), np.asarray(np.inf)
    if node.function.startswith("logdet"):
        return _of_log_determinant(node, run, known)
    assert node.function == "solve"
    return _of_solution(node, run, known)


def _of_log_determinant(
    node: MatrixOperation, run: BallGraph, known: Mapping[Expr, Forms]
) -> tuple[Array, Array]:
    matrix = node.operands[0]
    own, excess = known[matrix], _excess(norm_from_identity(run, matrix))
    order = up_sqrt(np.asarray(float(run.ranges[matrix].shape[-1])))

    def by_trace(size: Array) -> Array:
        trace = up_sum(np.diagonal(size, axis1=-2, axis2=-1), -1)
        return up_add(trace, up_mul(up_mul(order, excess), _frobenius(size)))

    inverse: Array = up_add(_ONE, excess)
    both = up_mul(_frobenius(own.first), _frobenius(own.second))
    return by_trace(own.first), up_add(
        by_trace(own.curvature), up_mul(up_mul(inverse, inverse), both)
    )


def _of_solution(
    node: MatrixOperation, run: BallGraph, known: Mapping[Expr, Forms]
) -> tuple[Array, Array]:
    matrix, right = node.operands
    inverse = _Inverse(run, matrix)
    at_centre, length = run.centre.values[node].magnitude, run.centre.lengths[node]
    radius = np.asarray(run.region.radius)
    N, b = (_forms(run, one, known) for one in (matrix, right))
    ball = [_forms(run, one, run.forms[0]) for one in (matrix, right)]
    z = inverse.of(run.ranges[right].magnitude)
    slope = np.full(z.shape, np.inf)
    for _ in range(_ROUNDS):
        first = inverse.of(up_add(ball[1].first, _times(ball[0].first, z)))
        slope = np.minimum(slope, first)
        moved = up_mul(radius, slope)
        products = up_mul(_TWO, _times(ball[0].first, slope))
        curvature = up_add(ball[1].curvature, _times(ball[0].curvature, z))
        bent = up_mul(radius, inverse.of(up_add(curvature, products)))
        slope = np.minimum(slope, up_add(length, bent))
        moved = np.minimum(moved, up_mul(radius, slope))
        z = np.minimum(z, up_add(at_centre, moved))
    first = inverse.of(up_add(b.first, _times(N.first, z)))
    second = inverse.of(up_add(b.second, _times(N.second, z)))
    if known is run.forms[0]:
        first, second = np.minimum(first, slope), np.minimum(second, slope)
    mixed = up_add(_times(N.first, second), _times(N.second, first))
    straight = up_add(b.curvature, _times(N.curvature, z))
    return first, inverse.of(up_add(straight, mixed))


def _forms(run: BallGraph, node: Expr, known: Mapping[Expr, Forms]) -> Forms:
    cached = known.get(node)
    if cached is not None:
        return cached
    nothing = np.zeros(run.ranges[node].shape)
    return Forms(nothing, nothing, nothing)


def with_inverses(
    run: BallGraph,
    roots: Sequence[Expr],
    boxes: Mapping[Input, Interval],
    known: Mapping[Expr, Interval],
    live: Live,
    places: Mapping[Expr, Expr],
) -> dict[Expr, Interval]:
    """`enclose` of graphs of adjoints, with the inverses of matrices near I by their distances.

    `places` maps the nodes of the region to those in their places here, with their ranges `known`.
    """
    sizes = run.part.sizes
    near: dict[Expr, tuple[Expr, bool]] = {}
    for one in run.centre.near_identity:
        near[build.transposed(places[one])] = one, True
        near[places[one]] = one, False
    result = dict(known)
    for node in postorder(*roots):
        if not isinstance(node, MatrixOperation) or node in result:
            continue
        if node.operands[0] not in near:
            continue
        result = enclose(node.operands, boxes, sizes, known=result, live=live)
        operands = [result[operand] for operand in node.operands]
        own = range_of_operation(node.function, operands)
        matrix, transposed = near[node.operands[0]]
        right = operands[1] if len(operands) > 1 else None
        if right is None:
            right = point(np.broadcast_to(np.eye(own.shape[-1]), own.shape))
        added = _Inverse(run, matrix).added(right.magnitude, transposed)
        result[node] = meet(own, right + around(np.zeros(()), added))
    return enclose(roots, boxes, sizes, known=result, live=live)


def log_determinants_sum(
    run: BallGraph, term: CurvedLogDet, adjoint: Interval, rows: Mapping[Expr, CurvedRows]
) -> CurvedSum:
    """The sum over the elements of all matrices, as one argument where these are symmetric."""
    own = rows[term.matrix]
    shape = concrete(term.matrix.shape, run.part.sizes)
    excess = _excess(norm_from_identity(run, term.matrix))
    weight = adjoint.each(lambda array: _by_elements(array, shape))
    size: Array = up_add(_ONE, excess)
    turn = _frobenius(run.curves[term.matrix].turn)
    steepest = up_add(_slope_at_centre(run, term.matrix), turn)
    cubic: Array = up_mul(up_mul(_TWO, up_mul(size, up_mul(size, size))), steepest)
    length = up_add(own.rows.length, own.reach)
    third = up_mul(weight.magnitude, _by_elements(cubic, shape))
    third = quotient(third, length)
    if term.is_symmetric:
        least = np.maximum(down(1.0 - excess), 0.0)
        factor = interval(-up_mul(size, size), -np.maximum(down(least * least), 0.0))
        curved = weight * factor.each(lambda array: _by_elements(array, shape))
        return CurvedSum((own,), {(0, 0): curved}, {(0, 0, 0): third})
    places = np.arange(int(np.prod(shape)), dtype=np.intp).reshape(shape)
    other = own.take(np.swapaxes(places, -1, -2).ravel())
    off: Array = up_mul(excess, up_add(_TWO, excess))
    within = up_mul(weight.magnitude, _by_elements(off, shape))
    second: dict[Slots, Interval] = {
        (0, 0): around(np.zeros(()), within),
        (0, 1): weight * point(np.asarray(-0.5)),
        (1, 1): point(np.zeros(within.shape)),
    }
    none = np.zeros(len(third))
    thirds: dict[Slots, Array] = {
        (0, 0, 0): third,
        (0, 0, 1): none,
        (0, 1, 1): none,
        (1, 1, 1): none,
    }
    return CurvedSum((own, other), second, thirds)


def _by_elements(array: Array, shape: tuple[int, ...]) -> Array:
    """Numbers (batch) repeated for each element of the matrices, flat."""
    return np.broadcast_to(np.asarray(array)[..., None, None], shape).ravel()
