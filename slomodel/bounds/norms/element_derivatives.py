"""Norms of the derivatives of Σ_i w_i φ_i(u_1i, .., u_ki), u_pi = a_pi·x + b_pi, from the ranges of
the derivatives of w_i φ_i.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.midpoint_radius import Bounded, exact
from slomodel.bounds.arithmetic.rounding import Array, up_add, up_mul
from slomodel.bounds.effort import DEFAULT, Effort
from slomodel.bounds.norms.cubic_norm import cubic_norm
from slomodel.bounds.norms.fourth_powers import attained, cubic_by_fourth_powers, fourth_powers
from slomodel.bounds.norms.loewner import (
    Rows,
    Slots,
    balances,
    by_lengths,
    cubic_sum,
    largest_eigenvalue,
    quadratic_sum,
    quotient,
    upper_end,
)

_MOST_COLUMNS = 100
"""Variables up to which D³f of the midpoints is stored as one form, of n³ numbers."""
_FLOPS = 0.25
"""Operations per multiplication for that form, rows times n³, in products of matrices."""
_NEGLIGIBLE = 1e-4
"""Radii whose contribution relative to the norm of the midpoints is smaller are not refined."""


Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Weighted:
    """Rows of one part of the sum, and intervals (m,) of w_i times a derivative, by sorted slots.

    `dominating` holds, for each argument, intervals whose endpoints, as diagonal matrices in
    (a_p·v), lie below and above the Hessian of each w_i φ_i in the Loewner order; empty where not
    known.
    """

    rows: tuple[Rows, ...]
    ranges: Mapping[Slots, Interval]
    dominating: tuple[Interval, ...] = ()

    @property
    def columns(self) -> int:
        return int(self.rows[0].value.shape[1])

    @property
    def is_ridge(self) -> bool:
        """Whether there is a single argument, and so one row per element."""
        return len(self.rows) == 1

    def of_order(self, order: int, size: Callable[[Slots, Interval], Array]) -> dict[Slots, Array]:
        """One number for each derivative of an order, for all permutations of its slots."""
        every = product(range(len(self.rows)), repeat=order)
        return {slots: size(slots, self.ranges[tuple(sorted(slots))]) for slots in every}


def second_order(parts: Sequence[Weighted]) -> float:
    """Upper bound on ‖H‖."""
    return max(*second_order_ends(parts), 0.0)


def second_order_ends(parts: Sequence[Weighted]) -> Ends:
    """Upper bounds on λ_max(H) and λ_max(-H), which may be negative.

    By the Loewner order they are bounds on λ_max(Σ A(C + E)) and λ_max(-Σ A(C - E)).
    """
    upper, lower = (upper_end(matrix_of_side(parts, sign)) for sign in (1.0, -1.0))
    return upper, lower


def matrix_of_side(parts: Sequence[Weighted], sign: float) -> Bounded[float]:
    """M (n, n) with sign · H <= M in the Loewner order."""
    n = parts[0].columns
    return total_of([quadratic_sum(part.rows, one_side(part, sign)) for part in parts], (n, n))


def matrix_of_third(parts: Sequence[Weighted]) -> Bounded[float]:
    """M (n, n) with |D³f[v, v, v]| <= vᵀMv for unit v."""
    return _matrix_of_order(parts, 3, _magnitude)


def matrix_of_fourth(parts: Sequence[Weighted], sign: float) -> Bounded[float]:
    """M (n, n) with sign · D⁴f[v, v, w, w] at most the larger of vᵀMv and wᵀMw for unit v, w."""
    return _matrix_of_order(parts, 4, _above if sign > 0.0 else _below)


def _matrix_of_order(
    parts: Sequence[Weighted], order: int, size: Callable[[Slots, Interval], Array]
) -> Bounded[float]:
    n = parts[0].columns
    weights = [by_lengths(part.rows, part.of_order(order, size)) for part in parts]
    sums = [quadratic_sum(one.rows, own) for one, own in zip(parts, weights, strict=True)]
    return total_of(sums, (n, n))


def one_side(one: Weighted, sign: float) -> dict[Slots, Array]:
    """Weights of a_p a_qᵀ whose sum dominates sign · H in the Loewner order.

    They are the upper endpoints of sign · w φ_pp; and the midpoints of w φ_pq, with their radii on
    the diagonal by 2 R_pq |x y| <= R_pq (δ x² + y²/δ). For elements for which these are larger, the
    dominating diagonal matrix is used in their place.
    """
    weights: dict[Slots, Array] = {}
    lengths = balances(one.rows)

    def add(p: int, array: Array) -> None:
        before = weights.get((p, p))
        weights[p, p] = array if before is None else up_add(before, array)

    for slots, a in one.ranges.items():
        if len(slots) != 2:
            continue
        p, q = slots
        if p == q:
            add(p, a.hi if sign > 0.0 else -a.lo)
            continue
        weights[p, q] = sign * a.mid
        for own, other in ((p, q), (q, p)):
            add(own, up_mul(a.rad, quotient(lengths[other], lengths[own])))
    if one.dominating:
        diagonal = [a.hi if sign > 0.0 else -a.lo for a in one.dominating]
        squares = [length**2 for length in lengths]
        before = np.stack([weights[p, p] * s for p, s in enumerate(squares)])
        after = np.stack([d * s for d, s in zip(diagonal, squares, strict=True)])
        is_less = (np.max(after, 0) < np.max(before, 0)) & (np.sum(after, 0) <= np.sum(before, 0))
        for (p, q), array in weights.items():
            weights[p, q] = np.where(is_less, diagonal[p] if p == q else 0.0, array)
    return weights


def third_order(
    parts: Sequence[Weighted],
    useless: float = float(np.inf),
    at_point: bool = False,
    effort: Effort = DEFAULT,
) -> Ends:
    """Two upper bounds on ‖D³f‖: from magnitudes, and from midpoints and radii.

    The midpoints add up to one form, where the effort permits. Neither is refined where it is at
    least `useless`, nor, at a point, where the radii are rounding errors.
    """
    n = parts[0].columns
    products = n**3 * sum(len(one.rows[0].length) * len(one.rows) ** 3 for one in parts)
    sizes = [size for part in parts for size in part.of_order(3, _magnitude).values()]
    finite = all(np.isfinite(size).all() for size in sizes)
    if n > _MOST_COLUMNS or products > effort.count(_FLOPS) or not finite:
        return _absolute(parts, 3, _magnitude, 0.0, useless), float(np.inf)
    middle = cubic_norm(middle_third(parts))
    enough = float(np.inf) if at_point else _NEGLIGIBLE * middle
    spread = _absolute(parts, 3, _rad, enough, useless - middle)
    by_middles = float(up_add(middle, spread))
    # Magnitudes are never less than radii: if the radii dominate, magnitudes give no smaller bound.
    enough = float(np.inf) if middle <= _NEGLIGIBLE * spread else 0.0
    return _absolute(parts, 3, _magnitude, enough, min(useless, by_middles)), by_middles


def third_by_size(parts: Sequence[Weighted], enough: float = 0.0) -> float:
    """Upper bound on ‖D³f‖ from magnitudes; not refined below `enough`."""
    return _absolute(parts, 3, _magnitude, enough)


def third_spread(parts: Sequence[Weighted]) -> float:
    """Upper bound on ‖D³f - M‖, M the form of the midpoints."""
    return _absolute(parts, 3, _rad)


def middle_third(parts: Sequence[Weighted]) -> Bounded[float]:
    """D³f with all ranges replaced by their midpoints."""
    n = parts[0].columns
    sums = [cubic_sum(part.rows, part.of_order(3, _mid)) for part in parts]
    return total_of(sums, (n, n, n))


def fourth_order(parts: Sequence[Weighted]) -> float:
    """Upper bound on ‖D⁴f‖: by Banach's theorem the largest |D⁴f[v, v, v, v]| for unit v."""
    return max(fourth_order_ends(parts))


def fourth_order_ends(
    parts: Sequence[Weighted], useless: Ends = (float(np.inf), float(np.inf))
) -> Ends:
    """Upper bounds, >= 0, on D⁴f[v, v, w, w] and -D⁴f[v, v, w, w] over all unit v and w.

    They are not refined where they are at least `useless`. A term t (a·v)² (a·w)² counts where t
    has that sign, other products by their magnitudes. The bounds of `_absolute` hold with two of
    its factors at w: bounds by lengths apply to each factor alone, and by the Cauchy–Schwarz
    inequality Σ t (a·v)² (a·w)² is at most the larger of Σ t (a·v)⁴ and Σ t (a·w)⁴.
    """
    above, below = useless
    return _absolute(parts, 4, _above, 0.0, above), _absolute(parts, 4, _below, 0.0, below)


def _absolute(
    parts: Sequence[Weighted],
    order: int,
    size: Callable[[Slots, Interval], Array],
    enough: float = 0.0,
    useless: float = float(np.inf),
) -> float:
    """Upper bound on Σ |t_pq..| |a_p v| |a_q v| .. over all parts and unit v.

    A bound is not refined once it is at most `enough`, or known to stay at least `useless`.
    """
    n = parts[0].columns
    weights = [part.of_order(order, size) for part in parts]
    sums = [
        quadratic_sum(one.rows, by_lengths(one.rows, own))
        for one, own in zip(parts, weights, strict=True)
    ]
    together = largest_eigenvalue(total_of(sums, (n, n)))
    if not enough < together < np.inf or not any(one.is_ridge for one in parts):
        return together
    apart = [largest_eigenvalue(total) for total in sums]
    ridges = {k: next(iter(weights[k].values())) for k, one in enumerate(parts) if one.is_ridge}
    least = list(apart)
    for k, d in ridges.items():
        least[k] = min(apart[k], attained(parts[k].rows[0], d, order))
    if sum(least) >= min(together, useless):
        return together
    by_powers = cubic_by_fourth_powers if order == 3 else fourth_powers
    for k, d in ridges.items():
        apart[k] = min(apart[k], by_powers(parts[k].rows[0], d))
    return min(together, reduce(up_add, apart))


def _magnitude(_slots: Slots, a: Interval) -> Array:
    return a.magnitude


def _mid(_slots: Slots, a: Interval) -> Array:
    return a.mid


def _rad(_slots: Slots, a: Interval) -> Array:
    return a.rad


def _above(slots: Slots, a: Interval) -> Array:
    """Magnitude of the positive contribution to an even power; mixed products have either sign."""
    return np.maximum(a.hi, 0.0) if len(set(slots)) == 1 else a.magnitude


def _below(slots: Slots, a: Interval) -> Array:
    return _above(slots, -a)


def total_of(sums: Sequence[Bounded[float]], shape: tuple[int, ...]) -> Bounded[float]:
    """The sum of matrices or forms, 0 of this shape without any."""
    return reduce(Bounded.__add__, sums) if sums else exact(np.zeros(shape))
