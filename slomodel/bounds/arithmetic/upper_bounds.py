"""Expressions in upper bounds >= 0, computed in doubles and rounded up once for all their errors.

Operands are 0, exactly, or at least `FLOOR`, as `floored` and the functions here return them. The
product of up to four of them is 1e-280 or more, and roots and sums are no smaller: so nothing
underflows, an exact 0 stays one (0 times an infinite bound is 0), and only relative errors occur.
An expression of + and × whose longest path has k roundings is computed to within a factor of 1 ±
γ_k, so that the exact value is at most the computed one times 1/(1 - γ_k) <= 1 + γ_2k. A root
halves the relative error of its argument and adds one rounding; a sum of m terms has m - 1.
"""

from __future__ import annotations

from math import isnan

import numpy as np

from slomodel.bounds.arithmetic.rounding import LIBM_ULPS, Array, gamma

FLOOR = 1e-70
"""Least positive operand: a product of four of them is still a normal double."""
MOST_ROUNDINGS = 50
"""Number of roundings assumed of any expression without long sums; none has more."""


def _factor(roundings: int) -> float:
    """Upper bound on 1 + γ_2k for k roundings, two of which are this factor's and its product's."""
    return 1.0 + gamma(2 * roundings + 8)


_GROWTH = _factor(MOST_ROUNDINGS)


def floored(x: Array) -> Array:
    """Bounds >= 0 as operands: those between 0 and `FLOOR` become `FLOOR`, and NaN becomes +inf."""
    y = np.asarray(x, dtype=np.float64)
    y = np.asarray(np.maximum(y, FLOOR * (y != 0.0)))
    # A sum of numbers >= 0 is no number where one of them is.
    if isnan(float(np.add.reduce(y, axis=None))):
        y[np.isnan(y)] = np.inf
    return y


def rounded_up(x: Array, roundings: int = MOST_ROUNDINGS) -> Array:
    """Upper bounds on the exact values of x, computed with `roundings` roundings, as operands."""
    growth = _GROWTH if roundings == MOST_ROUNDINGS else _factor(roundings)
    with np.errstate(all="ignore"):
        return floored(np.asarray(x * growth))


def exponentials_rounded_up(
    x: Array, arguments: float, argument_roundings: int, functions: int, roundings: int
) -> Array:
    """Upper bounds on the exact values of x, sums of products of exponentials and powers.

    The sum of |a| over all e^a of one product is at most `arguments`, each a being computed with at
    most `argument_roundings` roundings: together a factor of e^(±γ arguments). A function of NumPy
    has an error of `LIBM_ULPS` steps, each at most 2u of the value; the other operations count
    `roundings`. For a total relative error d <= 1/4, e^d and its inverse are at most 1 + 2 d.
    """
    own = gamma(argument_roundings) * arguments + gamma(2 * LIBM_ULPS * functions + roundings)
    if not own <= 0.25:
        return np.full(np.shape(x), np.inf)
    with np.errstate(all="ignore"):
        return np.asarray(x * (1.0 + 2.0 * own))
