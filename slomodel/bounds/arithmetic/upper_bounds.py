"""Expressions in upper bounds >= 0, computed in doubles and rounded up once by all their errors.

Operands are 0, exactly, or at least `FLOOR`, as `floored` and the functions here make them. Up to
four of them have a product of 1e-280 or more, and roots and sums are no smaller: so nothing
underflows, an exact 0 stays one (0 times an infinite bound is 0), and relative errors are all:
an expression with + and × of which the longest path has k roundings is computed to within a factor
of 1 ± γ_k of the exact one, so that the exact one is at most the computed one times 1/(1 - γ_k) <=
1 + γ_2k. A root halves what comes before it and adds one rounding, a sum of m terms has m - 1.
"""

from __future__ import annotations

import numpy as np

from slomodel.bounds.arithmetic.rounding import LIBM_ULPS, Array, gamma

FLOOR = 1e-70
MOST_ROUNDINGS = 50
"""Of an expression without long sums; all have fewer."""


def _factor(roundings: int) -> float:
    """At least 1 + γ_2k for k roundings, two of them of this number and of the product with it."""
    return 1.0 + gamma(2 * roundings + 8)


_GROWTH = _factor(MOST_ROUNDINGS)


def floored(x: Array) -> Array:
    """Bounds >= 0 as operands: what is above 0 and less than `FLOOR` becomes that, NaN +inf."""
    return _floored(np.array(x, dtype=np.float64))


def _floored(y: Array) -> Array:
    if not (y >= FLOOR).all():
        y[np.isnan(y)] = np.inf
        y[(y > 0.0) & (y < FLOOR)] = FLOOR
    return y


def rounded_up(x: Array, roundings: int = MOST_ROUNDINGS) -> Array:
    """Upper bounds on what x was computed for, by so many roundings, as an operand again."""
    growth = _GROWTH if roundings == MOST_ROUNDINGS else _factor(roundings)
    with np.errstate(all="ignore"):
        return _floored(np.asarray(x * growth))


def exponentials_rounded_up(
    x: Array, arguments: float, argument_roundings: int, functions: int, roundings: int
) -> Array:
    """Upper bounds on sums of products of exponentials and powers that x was computed for.

    The sum of the |a| of all e^a of one product is at most `arguments`, each a computed by
    `argument_roundings` at most: together a factor of e^(±γ arguments). A function of NumPy is off
    by `LIBM_ULPS` steps, each at most 2u of the value, and other operations by `roundings`. For a
    relative error d <= 1/4 in all, e^d and its inverse are at most 1 + 2 d.
    """
    own = gamma(argument_roundings) * arguments + gamma(2 * LIBM_ULPS * functions + roundings)
    if not own <= 0.25:
        return np.full(np.shape(x), np.inf)
    with np.errstate(all="ignore"):
        return np.asarray(x * (1.0 + 2.0 * own))
