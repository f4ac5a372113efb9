"""Few variables: intervals of the entries of the Hessian over cells that cover the ball."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slomodel.bounds.blame import unbounded
from slomodel.bounds.hessian import entries
from slomodel.bounds.interval import Interval, around, point
from slomodel.bounds.rounding import Array, Truths, down_add, down_norm, up_add, up_mul, up_norm
from slomodel.bounds.setting import Candidate, Setting
from slomodel.bounds.spectral import stack_norm
from slomodel.bounds.trilinear import trilinear_norm

MOST_VARIABLES = 6
RULE = "interval entries"
_CLOSE = 1.02
"""A cell whose bound is so close to the largest value at a middle is not divided."""
_MOST_CELLS = 1500
_MOST_ENTRIES = 6000
"""Cells times n²."""
_MOST_AT_ONCE = 256
_ROUNDS = 24
_ROUNDS_UNBOUNDED = 11
"""So often a cell is halved in the hope that its bound becomes finite."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Boxes (cells, n); `L` (2, cells) bounds ‖H‖ and ‖D³f‖ over them, `low` is about what the
    same bounds are at their middles.
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
        box = Interval(
            np.concatenate([self.box.lo, other.box.lo]), np.concatenate([self.box.hi, other.box.hi])
        )
        L = np.concatenate([self.L, other.L], axis=1)
        low = np.concatenate([self.low, other.low], axis=1)
        return Cells(box, L, low, other.reason or self.reason)


def interval_entries(setting: Setting, radius: float) -> Candidate | None:
    """L1 = max ‖H‖, L2 = max ‖D³f‖ over cells that cover the ball, for at most six variables.

    Hypothesis: f is C¹ (C² for L2) and piecewise smooth on every cell, which `smoothness` shows;
    then it is so on the ball, and both are Lipschitz constants there in the 2-norm. For a cell with
    H in M ± R entry by entry, ‖H‖ <= min(‖M‖ + ‖R‖, ‖|M| + R‖), and so for D³f.
    """
    n = setting.n
    if not 0 < n <= MOST_VARIABLES:
        return None
    centre = np.concatenate([np.ravel(setting.values[v]) for v in setting.variables])
    cells = _bounded(setting, around(centre, radius).each(lambda array: array[np.newaxis]))
    most = min(_MOST_CELLS, _MOST_ENTRIES // n**2)
    for attempt in range(_ROUNDS):
        chosen = _to_divide(cells, attempt)
        if not chosen.any() or cells.count >= most:
            break
        halves = _touching(_halves(cells.box, chosen), centre, radius)
        cells = cells.take(~chosen).join(_bounded(setting, halves))
    L1, L2 = (float(np.max(own, initial=0.0)) for own in cells.L)
    reason = ""
    if not np.isfinite(L2):
        reason = cells.reason or unbounded(setting, radius)
    return Candidate(RULE, L1, L2, reason, (f"{cells.count} cells cover the ball",))


def _bounded(setting: Setting, box: Interval) -> Cells:
    """Bounds over boxes. For C² functions also ‖H‖ <= ‖H(m)‖ + ρ sup ‖D³f‖, ρ the distance of the
    corners from a point m of the box.
    """
    found = entries(setting, box)
    first, low_first = _norms(found.H, stack_norm)
    second, low_second = _norms(found.T, trilinear_norm)
    order = found.smooth.order
    second = np.where(order >= 2, second, np.inf)
    middle = point(_middle(box))
    at_middle, low = _norms(entries(setting, middle, third=False).H, stack_norm)
    corner = up_norm((box - middle).magnitude, 1)
    first = np.minimum(first, up_add(at_middle, up_mul(corner, second)))
    L = np.stack([np.where(order >= 1, first, np.inf), second])
    return Cells(box, L, np.stack([np.maximum(low, low_first), low_second]), found.smooth.reason)


def _norms(a: Interval, norm: Callable[[Array], Array]) -> tuple[Array, Array]:
    """At least the norm of each entry's interval, and about the least it can be at a middle."""
    middle, spread, most = np.split(norm(np.concatenate([a.mid, a.rad, a.magnitude])), 3)
    return np.minimum(up_add(middle, spread), most), middle - spread


def _to_divide(cells: Cells, attempt: int) -> Truths:
    """Cells without a bound first, if not for ever; then those far above the largest low value."""
    divisible = np.any(_middle(cells.box) != cells.box.hi, axis=1) & np.any(
        cells.box.lo < cells.box.hi, axis=1
    )
    chosen = np.zeros(cells.count, dtype=bool)
    for L, low in zip(cells.L, cells.low, strict=True):
        infinite = ~np.isfinite(L)
        if infinite.any():
            if attempt < _ROUNDS_UNBOUNDED:
                chosen |= infinite
            continue
        known = float(np.max(np.where(np.isfinite(low), low, 0.0), initial=0.0))
        chosen |= _CLOSE * known < L
    chosen &= divisible
    if np.count_nonzero(chosen) > _MOST_AT_ONCE:
        worst = np.argsort(-np.max(cells.L, axis=0, where=np.isfinite(cells.L), initial=0.0))
        kept = worst[chosen[worst]][:_MOST_AT_ONCE]
        chosen = np.isin(np.arange(cells.count), kept)
    return chosen


def _middle(box: Interval) -> Array:
    return np.asarray(0.5 * box.lo + 0.5 * box.hi)


def _halves(box: Interval, chosen: Truths) -> Interval:
    """The chosen boxes cut across their longest side; the halves share the cut."""
    lo, hi = box.lo[chosen], box.hi[chosen]
    longest = np.argmax(hi - lo, axis=1)
    rows = np.arange(len(lo))
    cut = _middle(Interval(lo, hi))[rows, longest]
    upper, lower = lo.copy(), hi.copy()
    upper[rows, longest] = cut
    lower[rows, longest] = cut
    return Interval(np.concatenate([lo, upper]), np.concatenate([lower, hi]))


def _touching(box: Interval, centre: Array, radius: float) -> Interval:
    """The boxes that the ball reaches."""
    gap = np.maximum(np.maximum(down_add(box.lo, -centre), down_add(centre, -box.hi)), 0.0)
    near = down_norm(gap, 1) <= radius
    return box.each(lambda array: array[near])
