"""The norms of derivatives by blocks of variables, joined to norms over all variables.

By Banach's theorem the norm of a symmetric form on a Hilbert space is its largest value at a single
unit vector; with t_b = ‖v_b‖, a form with blocks of norm at most A[b1..bk] is at most Σ A[b1..bk]
t_b1..t_bk, so that its norm is at most that of the array A >= 0 of the blocks' norms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from slomodel.bounds.arithmetic.rounding import Array, up_norm
from slomodel.bounds.arithmetic.upper_bounds import rounded_up
from slomodel.bounds.closure import Closed
from slomodel.bounds.enclosure import Derivation, DerivativeBounds, Enclosure, both_ends
from slomodel.bounds.norms.cubic_norm import trilinear_norm
from slomodel.bounds.norms.spectral_norm import spectral_norm
from slomodel.bounds.rules.jets.arrays import shift


def form_norm(A: Array) -> float:
    """Upper bound on the norm of a symmetric form, from bounds on its blocks' norms (B, .., B).

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
    """The least over all permutations of the axes, which bound the same block of the form."""
    result = A
    for order in permutations(range(A.ndim)):
        result = np.minimum(result, A.transpose(order))
    return result


def stacked(parts: Sequence[tuple[int, Array]], count: int) -> Array:
    """Bounds per variable on the gradient as an array with the gradient's block in front.

    Several variables of one block are combined by the root of the sum of squares.
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
    return rounded_up(np.asarray(up_norm(np.stack(arrays), 0)))


@dataclass(frozen=True, slots=True)
class BlockBounds:
    """Bounds by block over the ball on ∇f's derivatives of order 1 to 3, and at its centre.

    Hypothesis: f is C² there, and either C³ or the bounds of order 3 are inf. `hessian` and `third`
    are ‖H(c)‖ and ‖D³f(c)‖, `hessian_blocks` the norms of H(c)'s blocks.
    """

    over: tuple[Array, Array, Array]
    radius: float
    hessian: float
    third: float
    hessian_blocks: Array


def close_blocks(pieces: BlockBounds) -> Enclosure:
    """The enclosure of a C² objective.

    A block of H(x) is within Σ_b r sup ‖D_b H_block‖ of that of H(c).
    """
    r = pieces.radius
    radii = np.full(len(pieces.hessian_blocks), r)
    reached = rounded_up(pieces.hessian_blocks + shift(pieces.over[1], radii, r))
    first = Closed.least(
        {
            "sup ‖H‖ by blocks": form_norm(pieces.over[0]),
            "‖H(c)‖ + r sup ‖D³f‖ by blocks": form_norm(np.minimum(pieces.over[0], reached)),
        }
    )
    third, fourth = form_norm(pieces.over[1]), both_ends(form_norm(pieces.over[2]))
    return Enclosure(
        DerivativeBounds(both_ends(pieces.hessian), pieces.third),
        DerivativeBounds(both_ends(first.value), third, fourth),
        second_by=Derivation(first.rule),
        third_by=Derivation("sup ‖D³f‖ by blocks"),
    )
