"""Cells that cover a ball, divided along the unknowns that matter until a bound is close."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slomodel.bounds.arithmetic.rounding import (
    Array,
    down_mul,
    down_sum,
    up_add,
    up_mul,
    up_sqrt,
)
from slomodel.bounds.ball import Displacements
from slomodel.bounds.enclosure import Ends, norm_of

_GAIN = 0.8
"""A division pays if the bound over each part is below that over the whole by this factor."""
_GAIN_OF_ONE = 0.1
"""Or if that over one part is by this factor: about as much as three divisions that pay."""
_MOST_FAILURES = 2
"""Divisions that did not pay, after which the cells are left as they are."""


@dataclass(frozen=True, slots=True, eq=False)
class CellOfBall:
    """{c + y: low <= y <= high (n,), ‖y‖ <= r}; unknowns with infinite ends are not divided."""

    low: Array
    high: Array

    @classmethod
    def whole(cls, n: int) -> CellOfBall:
        return cls(np.full(n, -np.inf), np.full(n, np.inf))

    def halves(self, j: int, radius: float) -> tuple[CellOfBall, CellOfBall]:
        """The cell divided along unknown j."""
        low, high = max(self.low[j], -radius), min(self.high[j], radius)
        middle = 0.5 * low + 0.5 * high
        return self._with(j, low, middle), self._with(j, middle, high)

    def _with(self, j: int, low: float, high: float) -> CellOfBall:
        lows, highs = self.low.copy(), self.high.copy()
        lows[j], highs[j] = low, high
        return CellOfBall(lows, highs)

    def around(
        self, centre: Array, radius: float, limits: tuple[Array, Array] | None = None
    ) -> tuple[Array, Displacements] | None:
        """A point of the cell, and a region around it that holds the cell; None for no points.

        Both within `limits`, which the centre lies in.
        """
        cut = np.isfinite(self.low)
        low, high = np.where(cut, self.low, 0.0), np.where(cut, self.high, 0.0)
        nearest = np.maximum(np.maximum(low, -high), 0.0)
        left = float(down_sum(down_mul(nearest, nearest)))
        rest = float(up_add(up_mul(radius, radius), -left))
        if rest < 0.0:
            return None
        first, last = -up_add(-centre, -low), np.asarray(up_add(centre, high))
        if limits is not None:
            first = np.where(cut, np.maximum(first, limits[0]), first)
            last = np.where(cut, np.minimum(last, limits[1]), last)
            if (first > last).any():
                return None
        at = np.where(cut, np.clip(0.5 * first + 0.5 * last, first, last), centre)
        half = np.maximum(np.maximum(up_add(last, -at), up_add(at, -first)), 0.0)
        return at, Displacements.product(np.where(cut, half, np.inf), float(up_sqrt(rest)))


@dataclass(frozen=True, slots=True, eq=False)
class CellBounds:
    """A cell with upper bounds on both ends of H and on ‖D³f‖ over it.

    `worth` (n,) estimates what dividing it along each unknown gains. f is `order` times
    continuously differentiable there, no more for the `reason`.
    """

    cell: CellOfBall
    ends: Ends
    third: float
    worth: Array
    order: int
    reason: str = ""

    def within(self, other: CellBounds) -> CellBounds:
        """The least bounds, where the other ones hold over a larger set."""
        above, below = (min(pair) for pair in zip(self.ends, other.ends, strict=True))
        third = min(self.third, other.third)
        if other.order <= self.order:
            return replace(self, ends=(above, below), third=third)
        order, reason = other.order, other.reason
        return replace(self, ends=(above, below), third=third, order=order, reason=reason)


def divided(
    first: CellBounds,
    radius: float,
    bound: Callable[[CellOfBall], CellBounds | None],
    least: float,
    most: int,
) -> Sequence[CellBounds]:
    """Cells that cover the ball, from the whole of it, after at most `most` bounds.

    The cell with the largest bound on ‖H‖ is divided until that is at most `least`, along the
    unknown that seems to matter most. One that turns out to matter little is left whole from then
    on, and the division ends when two in succession do.
    """
    cells, idle, failures = [first], np.zeros(len(first.worth), dtype=bool), 0
    while most >= 2 and failures < _MOST_FAILURES and not idle.all():
        worst = max(range(len(cells)), key=lambda k: norm_of(cells[k].ends))
        own = cells[worst]
        if norm_of(own.ends) <= least:
            break
        most -= 2
        j = int(np.argmax(np.where(idle, -1.0, own.worth)))
        parts = [bound(part) for part in own.cell.halves(j, radius)]
        within = [part.within(own) for part in parts if part is not None]
        if _pays(within, own):
            cells[worst : worst + 1] = within
            failures = 0
        else:
            idle[j] = True
            failures += 1
    return cells


def _pays(parts: Sequence[CellBounds], whole: CellBounds) -> bool:
    """Whether the bounds over the parts of a cell are clearly below those over the whole.

    It also pays if the bounds over one part are far below, or if there are some over a part and
    none over the whole: the others may need more divisions.
    """
    pairs = [([norm_of(part.ends) for part in parts], norm_of(whole.ends))]
    pairs.append(([part.third for part in parts], whole.third))
    return any(
        max(bounds, default=0.0) < _GAIN * known or min(bounds, default=0.0) < _GAIN_OF_ONE * known
        for bounds, known in pairs
    )
