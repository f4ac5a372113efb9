"""The limited-memory BFGS matrix in its compact form."""

from __future__ import annotations

import numpy as np

from slomodel.solve.directions.direction import SecantPair
from slomodel.solve.directions.lbfgs import LBFGS
from slomodel.solve.norms import Vector, ratio
from slomodel.solve.sets.convex_set import Face
from slomodel.solve.subroutine import Iterate


class LimitedMemory:
    """B = θI − WᵀMW, W the rows Y and θS (2m, n), M⁻¹ = [[−D, Lᵀ], [L, θSSᵀ]].

    D is the diagonal of SYᵀ and L its part below. On a face B is inverted by the formula of
    Sherman, Morrison and Woodbury. Byrd, Lu, Nocedal & Zhu, A limited memory algorithm for bound
    constrained optimization (1995). Before the first pair the step −g/θ has the length `first`.
    """

    wants_pairs = True
    accuracy = 1e-2
    most = 30

    def __init__(self, n: int, first: float, eps: float) -> None:
        self._pairs = LBFGS(n, first, eps=eps)
        self._first = first
        self._theta = 1.0
        self._W = np.empty((0, n))
        self._Minv = np.empty((0, 0))
        self._count = 0

    def begin(self, at: Iterate) -> bool:
        pairs = self._pairs
        if not pairs.count:
            self._theta = ratio(at.gnorm, self._first) or 1.0
            return True
        S, Y = pairs.pairs
        theta = self._theta = 1.0 / pairs.gamma
        SY = S @ Y.T
        lower = np.tril(SY, -1)
        self._W = np.concatenate([Y, theta * S])
        self._Minv = np.block([[-np.diag(np.diag(SY)), lower.T], [lower, theta * (S @ S.T)]])
        return True

    def product(self, s: Vector) -> Vector:
        if not len(self._W):
            return self._theta * s
        return self._theta * s - np.linalg.solve(self._Minv, self._W @ s) @ self._W

    def solve(self, face: Face, r: Vector) -> Vector:
        """Exact. With Z = QW/δ, δ = θ + shift: −(Qr/δ + Zᵀ(M⁻¹ − WᵀZ)⁻¹Z r)."""
        shift = face.shift
        inverse = 1.0 / (self._theta if shift is None else self._theta + shift)
        d: Vector = face.project(r) * -inverse
        if len(self._W):
            W = face.project(self._W)
            inner = self._Minv - (W * inverse) @ W.T
            d += np.linalg.solve(inner, W @ d) @ W * inverse
        return d

    def learn(self, pair: SecantPair) -> None:
        self._pairs.learn(pair)
