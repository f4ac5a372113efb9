"""Least squares with unknowns in which the residuals are affine: these take their best values."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator, Positions
from slomodel.solve.subroutine import Iterate

# A corrected step must keep this fraction of the slope of the step itself.
KEPT_SLOPE = 0.1
# A change of the affine unknowns alone gains much if it lowers f by this factor.
LARGE_DROP = 0.9
# Singular values of the columns, scaled to length 1, below this fraction of the largest count as 0:
# where other unknowns are equal but for rounding, as from a symmetric start, so are columns, and
# unknowns of 1e12 would cancel in the residuals.
DISTINCT = 1e-10
# Relative difference of sums of squares that may be rounding error.
SAME = 1e-10


class VariableProjection:
    """Corrections of steps for f = Σ r² with r affine in some unknowns c, for given other ones.

    After a step from (c, α) to α', c takes the value that minimises f for α', by linear least
    squares with the columns of J at α' that belong to c. These columns depend on α alone, so that
    the Jacobian at the corrected point needs the others only. Where c is best for α, a Gauss–Newton
    step in all unknowns has the α of Kaufman's variable projection.
    Ruhe & Wedin, Algorithms for separable nonlinear least squares problems (1980), algorithm 2.
    """

    def __init__(self, evaluate: Evaluator) -> None:
        self._evaluate = evaluate
        self._known = False
        self._affine: Positions = np.empty(0, np.intp)
        self._others: Positions = np.empty(0, np.intp)
        self._alpha = np.empty(0)
        self._columns = np.empty((0, 0))
        self._before = np.inf

    def begin(self, r: Vector, J: Vector) -> Vector:
        """The best change of c (n,) at a point with the residuals r (m,) and J (m, n), 0 elsewhere.

        It is 0 if it would gain little.

        Corrected steps from there have to end below the value that this gives.
        """
        if not self._known:
            self._find(J.shape[1])
        move = np.zeros(J.shape[1])
        move[self._affine], self._before = self._best(r, J[:, self._affine])
        if not self._before < LARGE_DROP * float(r.dot(r)):
            move[:] = 0.0
        return move

    @staticmethod
    def _best(r: Vector, J: Vector) -> tuple[Vector, float]:
        """The change of c that minimises ‖r + J c‖², and that minimum; J (m, k)."""
        if not J.shape[1]:
            return np.empty(0), np.inf
        if J.shape[1] == 1:
            return _along(r, J[:, 0])
        lengths = np.sqrt((J * J).sum(axis=0))
        lengths[lengths == 0.0] = 1.0
        change = np.linalg.lstsq(J / lengths, -r, rcond=DISTINCT)[0] / lengths
        left = r + J @ change
        return change, float(left.dot(left))

    def correct(self, at: Iterate, v: Vector) -> bool:
        """Add the change of c at the end of a step v (n,) to it, unless that loses the descent.

        False if the end is not below what a change of c alone attains.
        """
        if not len(self._affine):
            return True
        end = at.x + v
        r, J = self._evaluate.jacobian(end, self._affine)
        if not is_finite(r, J):
            return False
        change, after = self._best(r, J)
        if not after <= self._before * (1.0 + SAME):
            return False
        slope = float(at.g.dot(v))
        corrected = slope + float(at.g[self._affine].dot(change))
        if corrected <= KEPT_SLOPE * slope:
            v[self._affine] += change
            self._alpha, self._columns = end[self._others], J
        return True

    def jacobian(self, x: Vector) -> tuple[Vector, Vector]:
        """r (m,) and J (m, n) at x (n,), with the columns of the last correction if they fit."""
        if not len(self._columns) or not (x[self._others] == self._alpha).all():
            return self._evaluate.jacobian(x)
        r, rest = self._evaluate.jacobian(x, self._others)
        J = np.empty((len(r), len(x)))
        J[:, self._affine], J[:, self._others] = self._columns, rest
        return r, J

    def positions(self, n: int) -> tuple[Positions, Positions]:
        """The positions of c, and of the other unknowns; c may be empty."""
        if not self._known:
            self._find(n)
        return self._affine, self._others

    def _find(self, n: int) -> None:
        """Find c; it is empty if r is affine in no unknown, or in all."""
        self._known = True
        self._affine, self._others = _positions(self._evaluate.affine_unknowns().tobytes())


@lru_cache(maxsize=64)
def _positions(affine: bytes) -> tuple[Positions, Positions]:
    """The positions of marked unknowns and of the others; none is marked where all are.

    Cached, since every run of a model needs them.
    """
    marked = np.frombuffer(affine, np.bool_)
    if marked.all():
        marked = ~marked
    return np.flatnonzero(marked), np.flatnonzero(~marked)


def _along(r: Vector, a: Vector) -> tuple[Vector, float]:
    """The change of one unknown that minimises ‖r + a c‖², and that minimum; r and a (m,)."""
    length = norm(a)
    if length == 0.0:
        return np.zeros(1), float(r.dot(r))
    unit = a / length
    along = float(unit.dot(r))
    left = r - along * unit
    return np.array([-along / length]), float(left.dot(left))


def is_finite(r: Vector, J: Vector) -> bool:
    """Whether all residuals r (m,) and derivatives J (m, n) are finite."""
    # A finite sum of absolute values costs less than two tests of all elements.
    if float(np.abs(J).sum()) + float(np.abs(r).sum()) < np.inf:
        return True
    return bool(np.isfinite(J).all() and np.isfinite(r).all())
