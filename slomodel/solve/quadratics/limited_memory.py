"""The limited-memory BFGS matrix in its compact form."""

from __future__ import annotations

import numpy as np

from slomodel.solve.directions.direction import SecantPair
from slomodel.solve.directions.lbfgs import LBFGS
from slomodel.solve.norms import Vector, ratio
from slomodel.solve.sets.convex_set import Face
from slomodel.solve.subroutine import Iterate

# Pairs kept: as many as unknowns, within these bounds.
FEWEST, MOST = 5, 20
# The curvature of the identity's part is at least this fraction of θ.
LEAST = 1e-3


class LimitedMemory:
    """B = θI − WᵀMW − Λ, W the rows Y and θS (2m, n), M⁻¹ = [[−D, Lᵀ], [L, θSSᵀ]].

    The pairs are those of the Lagrangian, and Λ is what a curved boundary adds to its curvature at
    x. D is the diagonal of SYᵀ and L its part below. On a face B is inverted by the formula of
    Sherman, Morrison and Woodbury. Byrd, Lu, Nocedal & Zhu, A limited memory algorithm for bound
    constrained optimization (1995). Before the first pair the step −g/θ has the length `first`.
    """

    wants_pairs = True
    accuracy = 1e-2
    most = 30

    def __init__(self, n: int, first: float, eps: float) -> None:
        self._pairs = LBFGS(n, first, max(FEWEST, min(n, MOST)), eps=eps)
        self._first = first
        self._theta = 1.0
        self._W = np.empty((0, n))
        self._M: Vector = np.empty((0, 0))
        self._Minv: Vector = np.empty((0, 0))
        self._shift: Vector | None = None

    def begin(self, at: Iterate, shift: Vector | None) -> bool:
        pairs = self._pairs
        self._shift = shift
        if not pairs.count:
            self._theta = ratio(at.gnorm, self._first) or 1.0
            return True
        S, Y = pairs.pairs
        m = len(S)
        theta = self._theta = 1.0 / pairs.gamma
        SY = S @ Y.T
        self._W = np.concatenate([Y, theta * S])
        Minv = np.zeros((2 * m, 2 * m))
        Minv[m:, :m] = np.tril(SY, -1)
        Minv[:m, m:] = Minv[m:, :m].T
        Minv[range(m), range(m)] = -np.diag(SY)
        Minv[m:, m:] = theta * (S @ S.T)
        try:
            self._Minv, self._M = Minv, np.linalg.inv(Minv).astype(np.float64)
        except np.linalg.LinAlgError:
            return False
        return True

    def product(self, s: Vector) -> Vector:
        Bs: Vector = self._theta * s
        if len(self._W):
            Bs -= (self._M @ (self._W @ s)) @ self._W
        if self._shift is not None:
            Bs -= self._shift * s
        return Bs

    def solve(self, face: Face, r: Vector) -> Vector:
        """Exact. With Z = QW/δ, δ = θ + shift − Λ: −(Qr/δ + Zᵀ(M⁻¹ − WᵀZ)⁻¹Z r)."""
        inverse: Vector | float = 1.0 / self._theta
        if face.shift is not None or self._shift is not None:
            added = (0.0 if one is None else one for one in (face.shift, self._shift))
            inverse = 1.0 / np.maximum(self._theta + next(added) - next(added), LEAST * self._theta)
        d: Vector = face.project(r) * -inverse
        if len(self._W):
            W = face.project(self._W)
            inner = self._Minv - (W * inverse) @ W.T
            d += np.linalg.solve(inner, W @ d) @ W * inverse
        return d

    def learn(self, pair: SecantPair) -> None:
        self._pairs.learn(pair)
