"""Upper bounds >= 0 enlarged by what the roundings of an operation may have taken from them.

An operation of at most 100 roundings (all that are settled have fewer) is off by a share of 2^-46
at most, by which its result is enlarged; what would come near underflow is enlarged to `FLOOR`.
Zeros are exact, so that 0 times infinity is 0.
"""

from __future__ import annotations

import numpy as np

from slomodel.bounds.intervals.rounding import Array

GROWTH = 1.0 + 2.0**-46
FLOOR = 1e-70
"""Products of four such numbers are far from underflow."""


def settled(x: Array) -> Array:
    """Enlarged by the roundings of an operation; NaN cannot be told from a bound that is not."""
    y = np.asarray(x * GROWTH)
    if not (y >= FLOOR).all():
        y[np.isnan(y)] = np.inf
        y[(y > 0.0) & (y < FLOOR)] = FLOOR
    return y
