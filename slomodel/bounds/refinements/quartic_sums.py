"""Sums over elements in few variables, bounded as a whole by quartic forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from slomodel.bounds.arithmetic.bounded import Bounded, symmetrised
from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Array, up, up_add, up_mul, up_sqrt
from slomodel.bounds.norms.element_derivatives import (
    Weighted,
    middle_third,
    third_by_size,
    third_order,
    third_spread,
)
from slomodel.bounds.norms.quartic import (
    MOST_COLUMNS,
    Quartic,
    largest_quartic,
    square_of_cubic,
    sum_of_fourth_powers,
)

_FEW = 12
_FEW_STEPS = 0.5
_FRACTION_OF_FOURTH = 0.02
"""Relative contribution to D³f below which fourth derivatives are simply added to its norm."""


@dataclass(frozen=True, slots=True)
class Third:
    """D³f at the centre, with its error in norm, and an upper bound on its norm."""

    form: Bounded[float] | None
    norm: float


def third_at_centre(parts: Sequence[Weighted]) -> Third:
    """`Third` of a sum, by the quartic form ‖D³f[v, v]‖² where variables are few."""
    n = parts[0].columns
    if _FEW < n <= MOST_COLUMNS:
        norm = third_by_size(parts)
    else:
        norm = min(third_order(parts, at_point=True))
    if n > MOST_COLUMNS or not 0.0 < norm < np.inf:
        return Third(None, norm)
    form = symmetrised(middle_third(parts))
    form = Bounded(form.value, float(up_add(form.error, third_spread(parts))))
    e = int(np.frexp(norm)[1])
    root = up_sqrt(largest_quartic(square_of_cubic(np.ldexp(form.value, -e))))
    return Third(form, min(norm, float(up_add(float(up(np.ldexp(root, e))), form.error))))


def fourth_forms(parts: Sequence[Weighted]) -> tuple[Quartic, Quartic, Quartic] | None:
    """Σ t (a·v)⁴ over all parts and their arguments, with the magnitudes of t > 0, of t < 0 and of
    all t.

    None where variables are many or some mixed derivative of order 4 is not 0.
    """
    own = []
    for one in parts:
        for slots, a in one.ranges.items():
            if len(slots) != 4 or not a.magnitude.any():
                continue
            if len(set(slots)) > 1 or not np.isfinite(a.magnitude).all():
                return None
            own.append((one.rows[slots[0]], a))
    if parts[0].columns > MOST_COLUMNS or not own:
        return None

    def form(size: Callable[[Interval], Array]) -> Quartic:
        first, *others = (sum_of_fourth_powers(rows, size(a)) for rows, a in own)
        return reduce(Quartic.plus, others, first)

    return (
        form(lambda a: np.maximum(a.hi, 0.0)),
        form(lambda a: np.maximum(-a.lo, 0.0)),
        form(lambda a: a.magnitude),
    )


def third_nearby(third: Third, fourth: Quartic, largest: float, radius: float) -> float:
    """Upper bound on ‖D³f‖ within r of the centre, where q(v) = Σ sup|φ''''| (a·v)⁴ <= F.

    |D³f(c + d)[v, v, v]| <= ‖T[v, v]‖ + Σ sup|φ''''| |a·d| |a·v|³, and by Hölder's inequality the
    sum is at most r F^¼ q(v)^¾ <= r (F q(v))^½. As (x + y)² <= (1 + λ) x² + (1 + 1/λ) y² for λ > 0,
    the square is at most the largest value of one quartic form; λ = r F / ‖T‖ is used.
    """
    added = up_mul(radius, largest)
    plain = float(up_add(third.norm, added))
    if third.form is None or not _FRACTION_OF_FOURTH * third.norm < added < np.inf:
        return plain
    e = int(np.frexp(plain)[1])
    ratio = added / third.norm
    T = square_of_cubic(np.ldexp(third.form.value, -e), float(up(1.0 + ratio)))
    scale = up_mul(up(1.0 + up(1.0 / ratio)), up_mul(up_mul(radius, radius), largest))
    factor = float(up(np.ldexp(scale, -2 * e)))
    both = T.plus(fourth.times(factor))
    root = up_sqrt(largest_quartic(both, _FEW_STEPS))
    return min(plain, float(up_add(float(up(np.ldexp(root, e))), third.form.error)))
