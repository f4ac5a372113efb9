"""Nonlinear conjugate gradients."""

from __future__ import annotations

import numpy as np

from slomodel.solve.directions.direction import SecantPair, along_minus
from slomodel.solve.norms import Vector, norm, ratio
from slomodel.solve.subroutine import Iterate

# Lower bound on β in units of ‖g‖/‖s‖, as in Hager & Zhang with η = 0.01. Truncation at 0 would
# restart too often; without any truncation the method may fail to converge.
LEAST_BETA = 0.01


class ConjugateGradient:
    """v = −g + β s, with s the last step and β = ⟨y − 2s‖y‖²/⟨s,y⟩, g⟩/⟨s,y⟩.

    Then ⟨g,v⟩ ≤ −(7/8)‖g‖² for any step. Without positive curvature v = −g. Hager & Zhang, A new
    conjugate gradient method (2005), (1.3), with s in place of d, since β s does not depend on the
    length of s.
    """

    wants_pairs = True
    predicting = None
    in_c = None
    kind = ""
    units = None

    def __init__(self, n: int) -> None:
        self._s = np.zeros(n)
        self._y = np.zeros(n)
        self._sy = 0.0
        self._ynorm = 0.0
        self._snorm = 0.0

    def propose(self, at: Iterate, out: Vector) -> float:
        beta = self._beta(at)
        if beta == 0.0:
            return self.fallback(at, out)
        np.multiply(self._s, beta, out=out)
        out -= at.g
        return norm(out)

    def _beta(self, at: Iterate) -> float:
        if not self._sy > 0.0:
            return 0.0
        first = ratio(float(self._y.dot(at.g)), self._sy)
        second = 2.0 * ratio(self._ynorm, self._sy) * self._ynorm
        beta = first - second * ratio(float(self._s.dot(at.g)), self._sy)
        return max(beta, -LEAST_BETA * ratio(at.gnorm, self._snorm))

    def learn(self, pair: SecantPair) -> None:
        np.copyto(self._s, pair.s)
        np.copyto(self._y, pair.y)
        self._sy, self._snorm, self._ynorm = pair.sy, pair.snorm, pair.ynorm

    def fallback(self, at: Iterate, out: Vector) -> float:
        return along_minus(at, 1.0, out)
