"""From norms of derivatives by blocks to the two constants.

By Banach the norm of a symmetric form on a Hilbert space is its largest value at one unit vector;
with t_b = ‖v_b‖ a form with blocks of norm at most A[b1..bk] is at most Σ A[b1..bk] t_b1..t_bk, so
that its norm is at most that of the array A >= 0 of the blocks' norms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from slomodel.bounds.arithmetic.rounding import FLOOR, Array, settled, up_add, up_mul, up_norm
from slomodel.bounds.norms.cubic import trilinear_norm
from slomodel.bounds.norms.spectral import spectral_norm
from slomodel.bounds.rules.jets.arrays import shift


def form_norm(A: Array) -> float:
    """At least the norm of a symmetric form, from bounds >= 0 of its blocks' norms (B, .., B).

    Of order 2 by the spectral norm, 3 by `trilinear_norm`, 4 by the spectral norm of the unfolding
    (B², B²): T[v, v, v, v] is a quadratic form in v⊗v, whose length is 1.
    """
    if not np.isfinite(A).all():
        return float(np.inf)
    if A.size == 0 or not A.any():
        return 0.0
    if A.size == 1:
        return float(A.reshape(()))
    if A.ndim == 3:
        return float(trilinear_norm(A[np.newaxis])[0])
    count = len(A)
    if A.ndim == 4:
        A = A.reshape(count * count, count * count)
    return spectral_norm(A)


def symmetric(A: Array) -> Array:
    """The least over all orders of the axes: they bound the same block of a symmetric form."""
    result = A
    for order in permutations(range(A.ndim)):
        result = np.minimum(result, A.transpose(order))
    return result


def stacked(parts: Sequence[tuple[int, Array]], count: int) -> Array:
    """Bounds by variable of the gradient as an array with the gradient's block in front.

    Several variables of one block count together by the root of the sum of squares.
    """
    shape = parts[0][1].shape if parts else ()
    rows = []
    for block in range(count):
        own = [array for b, array in parts if b == block]
        rows.append(_length(own) if own else np.zeros(shape))
    return np.stack(rows) if rows else np.zeros((0, *shape))


def _length(arrays: Sequence[Array]) -> Array:
    if len(arrays) == 1:
        return arrays[0]
    return settled(np.asarray(up_norm(np.stack(arrays), 0)))


@dataclass(frozen=True, slots=True)
class Pieces:
    """Bounds by block over the ball of ∇f's derivatives of order 1 to 3, and at its centre.

    Hypothesis: f is C² there, and C³ or the bounds of order 3 are inf.
    `hessian` and `third` are ‖H(c)‖ and ‖D³f(c)‖, `hessian_blocks` the norms of H(c)'s blocks.
    """

    over: tuple[Array, Array, Array]
    radius: float
    hessian: float
    third: float
    hessian_blocks: Array


@dataclass(frozen=True, slots=True)
class Closed:
    """A constant and the rule that gave it, with all that were tried."""

    value: float
    rule: str
    tried: tuple[tuple[str, float], ...]

    @classmethod
    def least(cls, tried: dict[str, float]) -> Closed:
        rule = min(tried, key=lambda name: tried[name])
        return cls(tried[rule], rule, tuple(tried.items()))


def close_second(pieces: Pieces) -> Closed:
    """L2 = sup ‖D³f‖ for a C² objective: over the ball, or from the centre.

    ‖D³f(x)‖ <= ‖D³f(c)‖ + ‖x - c‖ sup ‖D⁴f‖.
    """
    fourth = form_norm(pieces.over[2])
    return Closed.least(
        {
            "sup ‖D³f‖ by blocks": form_norm(pieces.over[1]),
            "‖D³f(c)‖ + r sup ‖D⁴f‖": _plus(pieces.third, pieces.radius, fourth),
        }
    )


def close_first(pieces: Pieces, L2: float) -> Closed:
    """L1 = sup ‖H‖ for a C² objective: over the ball, or from the centre by blocks or in all.

    ‖H(x)‖ <= ‖H(c)‖ + ‖x - c‖ L2 and, to the second order, <= ‖H(c)‖ + r ‖D³f(c)‖ +
    r²/2 sup ‖D⁴f‖; a block of H(x) is within Σ_b r sup ‖D_b H_block‖ of that of H(c).
    """
    r = pieces.radius
    radii = np.full(len(pieces.hessian_blocks), r)
    moved = settled(pieces.hessian_blocks + shift(pieces.over[1], radii, r))
    half = float(up_mul(up_mul(0.5, r), r)) if r == 0.0 or r > FLOOR else FLOOR
    second = _plus(pieces.hessian, r, pieces.third)
    return Closed.least(
        {
            "sup ‖H‖ by blocks": form_norm(pieces.over[0]),
            "‖H(c)‖ + r sup ‖D³f‖ by blocks": form_norm(np.minimum(pieces.over[0], moved)),
            "‖H(c)‖ + r L2": _plus(pieces.hessian, r, L2),
            "‖H(c)‖ + r ‖D³f(c)‖ + r²/2 sup ‖D⁴f‖": _plus(second, half, form_norm(pieces.over[2])),
        }
    )


def _plus(start: float, factor: float, slope: float) -> float:
    return float(up_add(start, float(up_mul(factor, slope))))
