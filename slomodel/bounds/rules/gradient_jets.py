"""Norms of derivatives, propagated by blocks of variables through the gradient's graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.arithmetic.upper_bounds import rounded_up
from slomodel.bounds.centre import centre_hessian, hessian_at_centre, third_at_centre
from slomodel.bounds.closure import close
from slomodel.bounds.enclosure import Derivation, DerivativeBounds, Enclosure, both_ends
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.affine_norms import squared_lengths
from slomodel.bounds.ranges.enclose import boxes_over, enclose_narrowed, live_in
from slomodel.bounds.ranges.smoothness import Smoothness, smoothness_in
from slomodel.bounds.ranges.unbounded import unbounded
from slomodel.bounds.result import shown
from slomodel.bounds.rules.jets.block_norms import (
    BlockBounds,
    close_blocks,
    form_norm,
    stacked,
    symmetric,
)
from slomodel.bounds.rules.jets.mixed_norms import canonical, measure
from slomodel.bounds.rules.jets.norm_graph import Prepared, prepare
from slomodel.bounds.rules.jets.propagate import BallJets, propagate

_FLOPS_A_NUMBER = 2.0**13
"""Operations per number of the gradient's graph, for all norms that are required."""


def is_long(part: ObjectivePart) -> bool:
    """Whether `gradient_jets` is too slow to run where another rule suffices."""
    return part.n > 0 and prepare(part).numbers > part.effort.count(_FLOPS_A_NUMBER)


def gradient_jets(part: ObjectivePart, radius: float) -> Enclosure | None:
    """L1 and L2 from bounds over the ball on D∇f, D²∇f and D³∇f by blocks of variables.

    Hypothesis: the objective is C¹ (C² for L2) and piecewise smooth on the ball, which `smoothness`
    proves. Conclusion in the 2-norm; the closing rules are those of `close`.
    """
    if part.n == 0:
        return None
    prepared = prepare(part)
    smooth = _smooth(part, radius)
    order = smooth.least
    if order < 1:
        return Enclosure(order=order, reason=smooth.reason)
    centre = _centre(part)
    ball = centre
    if radius > 0.0:
        lengths = squared_lengths(prepared.order, part, prepared.values, radius)
        ball = propagate(prepared, radius, centre, lengths)
    over = _by_block(prepared, ball)
    if order < 2:
        first = form_norm(over[0])
        reason = smooth.reason if np.isfinite(first) else unbounded(part, radius)
        by = Derivation("sup ‖H‖ by blocks", _largest(prepared, over[0]))
        return Enclosure(
            over=DerivativeBounds(both_ends(first)), order=order, reason=reason, second_by=by
        )
    if order < 3:  # D³f may jump, so that D⁴f does not bound its variation
        over = (*over[:2], np.full_like(over[2], np.inf))
    pieces = _pieces(part, prepared, over, _by_block(prepared, centre), ball.radius)
    result = close_blocks(pieces)
    closure = close(result, radius)
    finite = np.isfinite([closure.first.value, closure.second.value]).all()
    second_by, third_by = (
        replace(by, lines=_largest(prepared, blocks))
        for by, blocks in zip((result.second_by, result.third_by), over, strict=False)
    )
    reason = "" if finite else unbounded(part, radius)
    return replace(result, order=order, reason=reason, second_by=second_by, third_by=third_by)


def _largest(prepared: Prepared, blocks: Array) -> tuple[str, ...]:
    """A trace line on the largest block of a derivative, if there are several."""
    if prepared.count < 2:
        return ()
    place = np.unravel_index(int(np.argmax(blocks)), blocks.shape)
    names = ", ".join(prepared.block_names[int(b)] for b in place)
    return (f"largest block over the ball ({names}) ≤ {shown(float(blocks[place]))}",)


def _smooth(part: ObjectivePart, radius: float) -> Smoothness:
    boxes = boxes_over(part, radius)
    live = live_in(part)
    lengths = squared_lengths(part.order, part, part.values, radius)
    result = enclose_narrowed([part.objective], boxes, part.sizes, lengths, live)
    return smoothness_in(part, result)


@once_per_part
def _centre(part: ObjectivePart) -> BallJets:
    """The jets at the centre."""
    return propagate(prepare(part), 0.0)


def _by_block(prepared: Prepared, ball: BallJets) -> tuple[Array, Array, Array]:
    """Bounds on D^k ∇f for k = 1, 2, 3: symmetric arrays with k + 1 axes of blocks."""
    variables = prepared.part.variables
    blocks = [prepared.blocks[variable.name] for variable in variables]
    roots = ball.roots()
    first, second, third = (
        symmetric(
            stacked([(b, jet[k]) for b, jet in zip(blocks, roots, strict=True)], prepared.count)
        )
        for k in (1, 2, 3)
    )
    return first, second, third


def _pieces(
    part: ObjectivePart,
    prepared: Prepared,
    over: tuple[Array, Array, Array],
    centre: tuple[Array, Array, Array],
    radius: float,
) -> BlockBounds:
    """Block bounds, with the centre's norms from entries where these are known, and from blocks."""
    hessian = min(form_norm(centre[0]), hessian_at_centre(part))
    third = min(form_norm(centre[1]), third_at_centre(part))
    blocks = _centre_blocks(part)
    return BlockBounds(over, radius, hessian, third, blocks)


@once_per_part
def _centre_blocks(part: ObjectivePart) -> Array:
    """The norms of H(c)'s blocks from its entries and from jets."""
    prepared = prepare(part)
    jets, _, _ = _by_block(prepared, _centre(part))
    H = centre_hessian(part)
    return jets if H is None else np.minimum(jets, _block_norms(part, prepared, H))


def _block_norms(part: ObjectivePart, prepared: Prepared, H: Interval) -> Array:
    """The spectral norms of H(c)'s blocks (B, B)."""
    own = [np.full(int(np.size(part.values[v])), prepared.blocks[v.name]) for v in part.variables]
    block = np.concatenate(own)
    result = np.zeros((prepared.count, prepared.count))
    mid, rad = H.mid, H.rad
    for i in range(prepared.count):
        for j in range(i + 1):
            place = np.ix_(block == i, block == j)
            norm = canonical("rc", mid[place].shape)
            result[i, j] = result[j, i] = measure(mid[place], rad[place], norm)
    return rounded_up(result)
