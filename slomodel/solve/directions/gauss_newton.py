"""Levenberg-Marquardt directions, for objectives that are sums of squares."""

from __future__ import annotations

import numpy as np

from slomodel.solve.directions.direction import SecantPair, of_search_length
from slomodel.solve.directions.newton import dense
from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate

# Damping, in units of the scaled matrix, whose diagonal is at most 1.
FIRST_DAMPING = 1e-3
MOST_DAMPING = 1e10
# Ratio of the actual to the predicted decrease: above GOOD the damping is divided by RELIEF,
# below POOR multiplied by it.
GOOD, POOR = 0.75, 0.25
RELIEF = 10.0


class GaussNewton:
    """v = −(M + λD)⁻¹ g with M = 2 Σ wJᵀJ, D the elementwise maximum of the diagonals so far.

    λ decreases while M predicts the decrease of f well, and increases where it does not or where
    the line search shortens the step. The scaling is that of Moré, The Levenberg-Marquardt
    algorithm (1978).
    """

    wants_pairs = True
    predicting = None
    in_c = None
    kind = ""

    def __init__(self, evaluate: Evaluator, start: Iterate, delta_bar: float) -> None:
        self.units: Vector | None = None
        self._evaluate = evaluate
        self._delta_bar = delta_bar
        self._damping = FIRST_DAMPING
        self._diagonal = np.zeros_like(start.x)
        self._f = start.f
        self._predicted = 0.0
        self._length = 0.0

    def propose(self, at: Iterate, out: Vector) -> float:
        M = dense(self._evaluate.gauss_newton, at.x)
        if not np.isfinite(M).all():
            return self.fallback(at, out)
        np.maximum(self._diagonal, np.diag(M), out=self._diagonal)
        self.units = scale = 1.0 / np.sqrt(np.where(self._diagonal > 0.0, self._diagonal, 1.0))
        if self._predicted > 0.0:
            shares = scale * np.diag(M) * scale
            least = float(shares.min(initial=1.0, where=shares > 0.0))
            self._judge(self.share(at), self._evaluate.eps * least)
        values, vectors = np.linalg.eigh(scale[:, None] * M * scale)
        values = np.maximum(values, 0.0)
        g = (scale * at.g) @ vectors
        p = g / (values + self._damping)
        np.matmul(vectors, p, out=out)
        out *= -scale
        self._f, self._length = at.f, norm(out)
        self._predicted = float(g.dot(p)) - 0.5 * float(p.dot(values * p))
        return self._length

    def damped(self, at: Iterate) -> Vector | None:
        """M + λD (n, n) at a point; None if it is not finite."""
        M = dense(self._evaluate.gauss_newton, at.x)
        if not np.isfinite(M).all():
            return None
        np.maximum(self._diagonal, np.diag(M), out=self._diagonal)
        size = np.where(self._diagonal > 0.0, self._diagonal, 1.0)
        return M + np.diag(self._damping * size)

    def learn(self, pair: SecantPair) -> None:
        """Raise the damping if the line search shortened the step.

        After a step along another direction the prediction is discarded, since it does not apply.
        """
        if not pair.own:
            self.forget()
            return
        length = min(self._length, self._delta_bar)
        if pair.snorm < 0.9 * length:
            self._damping = min(self._damping * length / pair.snorm, MOST_DAMPING)
            self._predicted = 0.0

    def share(self, at: Iterate) -> float:
        """Ratio of the actual to the predicted decrease at `at`; 0 if the step was shortened."""
        return (self._f - at.f) / self._predicted if self._predicted > 0.0 else 0.0

    def forget(self) -> None:
        """Discard the prediction, since the next step is along another direction."""
        self._predicted = self._length = 0.0

    def fallback(self, at: Iterate, out: Vector) -> float:
        self.forget()
        return of_search_length(at, self._delta_bar, out)

    def _judge(self, share: float, least: float) -> None:
        """Adapt the damping to the ratio of the actual to the predicted decrease of the last step.

        A damping below `least` would be lost to rounding in every diagonal element of M, since
        these may have become far smaller than those of D.
        """
        if share > GOOD:
            self._damping = max(self._damping / RELIEF, least)
        elif share < POOR:
            self._damping = min(self._damping * RELIEF, MOST_DAMPING)
