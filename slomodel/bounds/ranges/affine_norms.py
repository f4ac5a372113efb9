"""Ranges of ‖r‖² over a ball for an r that is affine in the variables, r(c + d) = r(c) + J d.

Elementwise intervals are loose: an element of r whose range contains 0 adds nothing to the lower
bound, however large ‖r‖ is. Over the ball of radius ρ, for every y of r's shape,

    ‖r‖ ‖y‖ >= y·r >= y·r(c) - ρ ‖Jᵀy‖,

and ‖r‖ <= ‖r(c)‖ + ρ ‖J‖. The best y is r at the point of the ball where ‖r‖ is least: by duality
its bound is that least ‖r‖. The bound holds for any y, so that y may be computed in doubles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, interval, point, total
from slomodel.bounds.arithmetic.interval_einsum import contract
from slomodel.bounds.arithmetic.rounding import (
    Array,
    down_add,
    down_mul,
    down_norm,
    down_sqrt,
    up_add,
    up_div,
    up_mul,
    up_norm,
    up_sqrt,
)
from slomodel.bounds.effort import MOST_NUMBERS
from slomodel.bounds.norms.spectral_norm import spectral_norm
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.elements.element_sums import MOST_VARIABLES
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.ranges.hessian import jacobians
from slomodel.bounds.structure.linear_predictors import affine_nodes
from slomodel.calculus.degree import degree
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Einsum, Expr, Input
from slomodel.ir.walk import dependents

_SHIFTS = np.geomspace(1e-14, 1e3, 18)
"""Trial Levenberg-Marquardt shifts λ, relative to the largest eigenvalue of JᵀJ."""
_FEW_LENGTHS = 16
"""Lengths that are bounded one by one, each from the eigenvectors of its JᵀJ."""


@dataclass(frozen=True, slots=True)
class AffineNorm:
    """An affine r: r(c) (N,), its Jacobian (N, n), upper bounds on ‖r(c)‖ and ‖J‖; JᵀJ ≈ VΛVᵀ."""

    r: Interval
    J: Interval
    length: float
    slope: float
    eigenvalues: Array
    V: Array


def squared_lengths(
    order: Sequence[Expr], part: ObjectivePart, values: Mapping[Input, Array], radius: float
) -> dict[Expr, Interval]:
    """Intervals over the ball of the nodes Σ r² of a graph with an affine r.

    Empty for a polynomial objective, whose bounds do not come from ranges.
    """
    known = _lengths(part)
    result: dict[Expr, Interval] = {}
    candidates = [node for node in order if _is_square(node)]
    if not candidates or not 0 < part.n <= MOST_VARIABLES:
        return result
    if degree(part.objective, part.variables) is not None:
        return result
    varying = dependents(order, set(part.variables).__contains__)
    affine = affine_nodes(list(order), varying)
    for node in candidates:
        if node.operands[0] not in affine:
            continue
        if node not in known:
            known[node] = _length(node.operands[0], part, values)
        one = known[node]
        if one is not None:
            result[node] = _squared(one, radius)
    return result


@once_per_part
def _lengths(part: ObjectivePart) -> dict[Expr, AffineNorm | None]:
    """The cache of `_length` by node, for graphs of this part and of its gradient."""
    return {}


def _is_square(node: Expr) -> bool:
    return (
        isinstance(node, Einsum)
        and not node.output
        and len(node.operands) == 2
        and node.operands[0] is node.operands[1]
        and node.inputs[0] == node.inputs[1] == tuple(range(node.operands[0].rank))
        and len(node.dims) == node.operands[0].rank
    )


def lengths_over_ball(u: Interval, J: Interval, radius: float) -> tuple[Interval, Array]:
    """The ranges (G,) of ‖u + Jd‖ over ‖d‖ <= radius for u (G, k) and J (G, k, n), and upper bounds
    (G,) on ‖J‖.

    Of many lengths each is at least that along u, and ‖J‖ that of Frobenius.
    """
    if u.shape[0] <= _FEW_LENGTHS:
        every = [
            _affine_norm(Interval(u.lo[g], u.hi[g]), Interval(J.lo[g], J.hi[g]))
            for g in range(u.shape[0])
        ]
        squares = [_squared(one, radius) for one in every]
        low: Array = down_sqrt(np.array([float(square.lo) for square in squares]))
        high: Array = up_sqrt(np.array([float(one.hi) for one in squares]))
        return Interval(low, high), np.array([one.slope for one in every])
    slope = np.asarray(up_norm(J.magnitude, (1, 2)))
    across = contract([(J, (0, 1, 2)), (u, (0, 1))], (0, 2), J.shape).magnitude
    far, two = np.asarray(radius), np.asarray(2.0)
    reach: Array = up_mul(far, np.asarray(up_norm(across, 1)))
    least = down_norm(np.maximum(np.maximum(u.lo, -u.hi), 0.0), 1)
    most = np.asarray(up_norm(u.magnitude, 1))
    moved: Array = up_mul(far, slope)
    rise: Array = up_add(up_mul(two, reach), up_mul(moved, moved))
    squared: Array = up_add(up_mul(most, most), rise)
    with np.errstate(all="ignore"):
        low = -up_add(-least, up_div(reach, least))
    low = np.where((least > 0.0) & (low > 0.0), low, 0.0)
    high = up_sqrt(squared)
    return Interval(low, np.minimum(high, up_add(most, moved))), slope


def _length(r: Expr, part: ObjectivePart, values: Mapping[Input, Array]) -> AffineNorm | None:
    shape = concrete(r.shape, part.sizes)
    count, n = prod(shape), part.n
    if not 0 < count * n <= MOST_NUMBERS:
        return None
    at_centre = enclose([r], boxed(values), part.sizes)[r].each(np.ravel)
    slopes = jacobians(replace(part, values=values), [r])[r]
    J = slopes.each(lambda a: np.broadcast_to(a, (n, *shape)).reshape(n, count).T)
    if not (np.isfinite(at_centre.magnitude).all() and np.isfinite(J.magnitude).all()):
        return None
    return _affine_norm(at_centre, J)


def _affine_norm(r: Interval, J: Interval) -> AffineNorm:
    slope = float(up_add(spectral_norm(J.mid), float(up_norm(J.rad))))
    eigenvalues, V = np.linalg.eigh(J.mid.T @ J.mid)
    length = float(up_norm(r.magnitude))
    return AffineNorm(r, J, length, slope, np.maximum(eigenvalues, 0.0), V)


def _squared(one: AffineNorm, radius: float) -> Interval:
    largest = float(up_add(one.length, up_mul(radius, one.slope)))
    least = max(_least(one, y, radius) for y in _directions(one, radius))
    low = max(float(down_mul(least, least)), 0.0)
    return interval(np.asarray(low), np.asarray(up_mul(largest, largest)))


def _directions(one: AffineNorm, radius: float) -> list[Array]:
    """Trial y (N,): r(c), and r after the step -(JᵀJ + λ)⁻¹Jᵀr(c) with the λ of the best bound."""
    r, J = one.r.mid, one.J.mid
    g = one.V.T @ (J.T @ r)
    top = float(one.eigenvalues[-1])
    if not top > 0.0:
        return [r]
    steps = -g[:, np.newaxis] / (one.eigenvalues[:, np.newaxis] + _SHIFTS * top)
    left = g[:, np.newaxis] + one.eigenvalues[:, np.newaxis] * steps
    y = r[:, np.newaxis] + J @ (one.V @ steps)
    sizes = np.linalg.norm(y, axis=0)
    with np.errstate(all="ignore"):
        worth = (r @ y - radius * np.linalg.norm(left, axis=0)) / sizes
    return [r, y[:, int(np.argmax(np.nan_to_num(worth, nan=-np.inf)))]]


def _least(one: AffineNorm, y: Array, radius: float) -> float:
    """Lower bound (y·r(c) - ρ ‖Jᵀy‖) / ‖y‖ on ‖r‖ over the ball, or 0 if that is negative."""
    count, n = one.J.shape
    along = total(point(y) * one.r)
    across = contract([(one.J, (0, 1)), (point(y), (0,))], (1,), (count, n))
    reach = up_mul(radius, float(up_norm(across.magnitude)))
    above = float(down_add(float(along.lo), -reach))
    size = float(up_norm(y))
    if not (above > 0.0 and 0.0 < size < np.inf):
        return 0.0
    return max(-float(up_div(-above, size)), 0.0)
