"""Few variables: intervals for the entries of the Hessian over cells that cover the ball."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.rounding import (
    Array,
    Truths,
    down_add,
    down_mul,
    down_norm,
    down_sum,
    up_add,
    up_mul,
    up_norm,
    up_sqrt,
)
from slomodel.bounds.ball import Ball
from slomodel.bounds.centre import centre_entries
from slomodel.bounds.closure import moved
from slomodel.bounds.effort import INTERVAL_FLOPS
from slomodel.bounds.enclosure import Derivation, DerivativeBounds, Enclosure, both_ends
from slomodel.bounds.norms.cubic_norm import trilinear_norm
from slomodel.bounds.norms.spectral_norm import stack_norm
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.enclose import variable_box
from slomodel.bounds.ranges.hessian import entries, numbers_a_cell, operations_of_steps
from slomodel.bounds.ranges.unbounded import unbounded

MOST_VARIABLES = 6
"""Unknowns up to which the ball is covered by cells: their number grows exponentially."""
_CLOSE = 1.02
"""A cell whose bound is within this factor of the largest value at a midpoint is not divided."""
_MOST_CELLS = 1500
"""Cells of a ball at most."""
_FLOPS_A_PRODUCT = 4793.0
"""Operations per entry (n⁴) of the Gram matrix of D³f over a cell."""
_MOST_AT_ONCE = 256
"""Cells that are bounded in one pass, whose arrays have an axis of cells."""
_FEW_AT_ONCE = 24
"""Fewer cells are halved again before they are bounded: this many cost hardly more than one."""
_FLOPS_BEYOND = 4.0 * INTERVAL_FLOPS
"""Operations per interval computed for the cells beyond the first."""
_FLOPS_A_STEP = 2.0**15
"""Operations on arrays in the time of one operation of a step of a recurrence, on few numbers."""
_ROUNDS = 24
"""Rounds of halving at most."""
_ROUNDS_UNBOUNDED = 11
"""Rounds of halving for a cell whose bound is infinite."""
_ROUNDS_WITHOUT_BOUND = 2
"""Rounds without a finite bound of any cell, after which none is expected: cells are then shorter
than the ball by a factor of about ten. One is enough for recurrences, where rounds take seconds.
"""


@dataclass(frozen=True, slots=True)
class Cells:
    """Boxes (cells, n); `L` (2, cells) bounds ‖H‖ and ‖D³f‖ over them, `low` estimates the same
    bounds at their midpoints.
    """

    box: Interval
    L: Array
    low: Array
    reason: str = ""

    @property
    def count(self) -> int:
        return int(self.L.shape[1])

    def take(self, which: Truths) -> Cells:
        box = self.box.each(lambda array: array[which])
        return Cells(box, self.L[:, which], self.low[:, which], self.reason)

    def join(self, other: Cells) -> Cells:
        box = Interval.concatenated([self.box, other.box])
        L = np.concatenate([self.L, other.L], axis=1)
        low = np.concatenate([self.low, other.low], axis=1)
        return Cells(box, L, low, other.reason or self.reason)


def is_small(part: ObjectivePart) -> bool:
    """Whether there are few variables and one cell is within the effort."""
    if not 0 < part.n <= MOST_VARIABLES:
        return False
    if operations_of_steps(part) > part.effort.count(_FLOPS_A_STEP):
        return False
    return numbers_a_cell(part) <= part.effort.count(INTERVAL_FLOPS)


def interval_entries(part: ObjectivePart, radius: float) -> Enclosure | None:
    """L1 = max ‖H‖, L2 = max ‖D³f‖ over cells that cover the ball, for at most six variables.

    Hypothesis: f is C¹ (C² for L2) and piecewise smooth on every cell, which `smoothness` proves;
    then it is so on the ball, and both are Lipschitz constants there in the 2-norm. For a cell with
    H in M ± R elementwise, ‖H‖ <= min(‖M‖ + ‖R‖, ‖|M| + R‖), and likewise for D³f.
    """
    if not is_small(part):
        return None
    n, effort = part.n, part.effort
    numbers = numbers_a_cell(part)
    centre = part.x
    ball = Ball(centre, radius)
    boxes = [variable_box(part, v, radius) for v in part.variables]
    low, high = (np.concatenate([np.ravel(end) for end in own]) for own in _ends(boxes))
    cells = _bounded(part, ball, Interval(low[np.newaxis], high[np.newaxis]))
    most = min(effort.scaled(_MOST_CELLS, 1.0), effort.count(_FLOPS_A_PRODUCT * n**4))
    left = effort.count(_FLOPS_BEYOND * 2 * numbers)
    steps = operations_of_steps(part)
    rounds = max(effort.count(_FLOPS_A_STEP / _ROUNDS) // steps, 1) if steps else _ROUNDS
    patience = 1 if steps else _ROUNDS_WITHOUT_BOUND
    for attempt in range(min(rounds, _ROUNDS)):
        chosen = _to_divide(cells, attempt, min(_MOST_AT_ONCE, left))
        if not chosen.any() or cells.count >= most:
            break
        parts = cells.box.each(partial(np.compress, chosen, axis=0))
        while True:
            before, parts = parts, _touching(_halves(parts), centre, radius)
            if not 0 < parts.shape[0] <= min(_FEW_AT_ONCE, most - cells.count, left) // 2:
                break
            if np.array_equal(parts.lo, before.lo) and np.array_equal(parts.hi, before.hi):
                break  # adjacent doubles have no midpoint between them
        left -= parts.shape[0] // 2
        new = _bounded(part, ball, parts)
        cells = cells.take(~chosen).join(new)
        patience -= not np.isfinite(new.L[0]).any()
        if not patience:
            break
    L1, L2 = (float(np.max(own, initial=0.0)) for own in cells.L)
    reason = ""
    if not np.isfinite(L2):
        reason = cells.reason or unbounded(part, radius)
    by = Derivation(lines=(f"{cells.count} cells cover the ball",) if cells.count > 1 else ())
    over = DerivativeBounds(both_ends(L1), L2)
    return Enclosure(over=over, reason=reason, second_by=by, third_by=by)


def _ends(boxes: Sequence[Interval]) -> tuple[list[Array], list[Array]]:
    """The lower and the upper ends of intervals."""
    return [box.lo for box in boxes], [box.hi for box in boxes]


def _bounded(part: ObjectivePart, ball: Ball, box: Interval) -> Cells:
    """Bounds over boxes.

    For C² functions also ‖H‖ <= ‖H(m)‖ + ρ sup ‖D³f‖, ρ the distance of the corners from a point m
    of the box.
    """
    result = None if ball.radius else centre_entries(part)
    if result is None:
        result = entries(part, box)
    first, low_first = _norms(result.H, stack_norm)
    second, low_second = _norms(result.T, trilinear_norm)
    order = result.smooth.order
    second = np.where(order >= 2, second, np.inf)
    middle = point(_middle(box))
    if (box.lo < box.hi).any() and np.isfinite(first).any():
        at_middle, low = _norms(entries(part, middle, third=False).H, stack_norm)
        corner = up_norm((box - middle).magnitude, 1)
        first = np.minimum(first, moved(at_middle, corner, second))
        low_first = np.maximum(low, low_first)
    inside = up_norm(middle.lo - ball.centre, 1) <= ball.radius
    low = np.where(inside, np.stack([low_first, low_second]), 0.0)
    L = np.stack([np.where(order >= 1, first, np.inf), second])
    return Cells(box, L, low, result.smooth.reason)


def _norms(a: Interval, norm: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Upper bounds on the norms of the entries' intervals, and estimates for their midpoints."""
    middle, spread, most = np.split(norm(np.concatenate([a.mid, a.rad, a.magnitude])), 3)
    with np.errstate(invalid="ignore"):
        return np.minimum(up_add(middle, spread), most), middle - spread


def _to_divide(cells: Cells, attempt: int, most: int) -> Truths:
    """At most `most` cells: first those without a bound, for some rounds; then the loosest."""
    divisible = np.any(_middle(cells.box) != cells.box.hi, axis=1) & np.any(
        cells.box.lo < cells.box.hi, axis=1
    )
    excess = np.zeros(cells.count)
    for L, low in zip(cells.L, cells.low, strict=True):
        infinite = ~np.isfinite(L)
        if infinite.any():
            hopeless = attempt >= _ROUNDS_UNBOUNDED
            own = np.zeros(cells.count) if hopeless else np.where(infinite, np.inf, 0.0)
        else:
            known = float(np.max(low, initial=0.0, where=np.isfinite(low)))
            own = np.where(L > 0.0, L / known if known else np.inf, 0.0)
        excess = np.maximum(excess, own)
    chosen = (excess > _CLOSE) & divisible
    worst = np.argsort(-np.where(chosen, excess, 0.0), kind="stable")[:most]
    return np.asarray(chosen & np.isin(np.arange(cells.count), worst))


def _middle(box: Interval) -> Array:
    return np.asarray(0.5 * box.lo + 0.5 * box.hi)


def _halves(box: Interval) -> Interval:
    """The boxes bisected across their longest side; the halves share the cut."""
    lo, hi = box.lo, box.hi
    longest = np.argmax(hi - lo, axis=1)
    rows = np.arange(len(lo))
    cut = _middle(Interval(lo, hi))[rows, longest]
    upper, lower = lo.copy(), hi.copy()
    upper[rows, longest] = cut
    lower[rows, longest] = cut
    return Interval(np.concatenate([lo, upper]), np.concatenate([lower, hi]))


def _touching(box: Interval, centre: Array, radius: float) -> Interval:
    """The boxes that intersect the ball, each cut to a box around its intersection.

    With g_j the distance of the centre from a box along axis j, its points in the ball satisfy |x_i
    - c_i|² <= r² - Σ_(j≠i) g_j².
    """
    gap = np.maximum(np.maximum(down_add(box.lo, -centre), down_add(centre, -box.hi)), 0.0)
    squared = down_mul(gap, gap)
    others = np.stack([down_sum(np.delete(squared, i, 1), 1) for i in range(len(centre))], 1)
    left = up_add(np.asarray(up_mul(radius, radius)), -np.maximum(others, 0.0))
    reach = up_sqrt(np.maximum(left, 0.0))
    lo = np.maximum(box.lo, down_add(centre, -reach))
    hi = np.minimum(box.hi, up_add(centre, reach))
    near = (down_norm(gap, 1) <= radius) & (left >= 0.0).all(axis=1) & (lo <= hi).all(axis=1)
    return Interval(lo[near], hi[near])
