"""Sums over elements in few variables, bounded as a whole by quartic forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.midpoint_radius import Bounded, symmetrised
from slomodel.bounds.arithmetic.rounding import Array, up, up_add, up_mul, up_sqrt
from slomodel.bounds.enclosure import norm_of
from slomodel.bounds.norms.element_derivatives import (
    Weighted,
    middle_third,
    third_by_size,
    third_order,
    third_spread,
)
from slomodel.bounds.norms.quartic_norm import (
    MOST_COLUMNS,
    Quartic,
    largest_quartic,
    square_of_cubic,
    sum_of_fourth_powers,
)
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.refinements.sums import (
    BY_ENDS,
    WORTH,
    SumBounds,
    SumOverBall,
    Third,
)

_FEW = 12
"""Variables up to which D³f(c) is bounded by Gram matrices before the quartic form is tried."""
_FEW_STEPS = 0.5
"""Effort of the descent for the sum of two forms, relative to that for one."""
_FRACTION_OF_FOURTH = 0.02
"""Relative contribution to D³f below which fourth derivatives are simply added to its norm."""
AT_BEST = 0.7
"""Quartic forms hardly reduce bounds on D⁴f below this fraction."""


def quartic_forms(own: SumOverBall, known: SumBounds) -> SumBounds | None:
    """D⁴f by the largest values of quartic forms, where that may improve on the other bounds.

    None where mixed derivatives of order 4 are not 0, and for many variables.
    """
    third, fourth = own.centre.third.norm, known.fourth
    at_best = (AT_BEST * fourth[0], AT_BEST * fourth[1])
    by_ranges = norm_of(own.ends)
    first = own.by_ends(at_best) < min(by_ranges, WORTH * known.first[BY_ENDS])
    second = third + own.radius * max(at_best) < min(own.third, WORTH * known.second)
    forms = fourth_forms(own.over) if first or second else None
    if forms is None:
        return None
    by_ends, nearby = known.first[BY_ENDS], known.second
    if first:
        upper, lower = (_largest(own.part, form) for form in forms[:2])
        fourth = min(fourth[0], upper), min(fourth[1], lower)
        by_ends = own.by_ends(fourth)
    if second:
        largest = min(_largest(own.part, forms[2]), float(up_add(*fourth)))
        nearby = min(nearby, third_nearby(own.centre.third, forms[2], largest, own.radius))
    return SumBounds({**known.first, BY_ENDS: by_ends}, nearby, fourth)


def _largest(part: ObjectivePart, form: Quartic) -> float:
    """Upper bound on the form's largest value; cached for balls over which D⁴f is the same."""
    known = _largest_values(part)
    key = (form.value.tobytes(), form.near.error)
    if key not in known:
        known[key] = largest_quartic(form)
    return known[key]


@once_per_part
def _largest_values(part: ObjectivePart) -> dict[tuple[bytes, float], float]:
    """A cache of bounds on quartic forms, keyed by their Gram matrices and errors."""
    return {}


def third_of_sum(parts: Sequence[Weighted]) -> Third:
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
