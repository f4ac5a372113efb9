"""Limited-memory BFGS directions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slomodel.solve.directions.direction import SecantPair, along_minus, curved
from slomodel.solve.norms import EPS, LARGEST, Vector, norm, ratio
from slomodel.solve.subroutine import Iterate

MEMORY = 10
# Spare rows of the buffers, so that the pairs are shifted once in SPARE steps, not at every step.
SPARE = 5


class LBFGS:
    """v = −H g, with H the estimate of the inverse Hessian from the last `memory` pairs.

    This is the two-loop recursion with each loop written as a triangular solve: with R the upper
    triangle of S Yᵀ and D its diagonal, the first loop is R a = S g and the second Rᵀ c = D a − Y
    r. R⁻¹ is stored, since a new pair adds one column to it. Pairs with too little curvature are
    skipped. H begins as γI, or as the map `inverse` of vectors (n,) if there is one.
    """

    wants_pairs = True
    units = None

    def __init__(self, n: int, delta_bar: float, memory: int = MEMORY, eps: float = EPS) -> None:
        self._eps = eps
        self.memory = memory
        self.count = 0
        self.learned = 0
        self.gamma = 0.0
        self.inverse: Callable[[Vector], Vector] | None = None
        self._delta_bar = delta_bar
        self._first = 0
        self._S = np.empty((memory + SPARE, n))
        self._Y = np.empty((memory + SPARE, n))
        self._Rinv = np.zeros((memory, memory))
        self._D = np.zeros(memory)
        self._work = np.empty(n)

    @property
    def pairs(self) -> tuple[Vector, Vector]:
        """S and Y (count, n), oldest pair first."""
        rows = slice(self._first, self._first + self.count)
        return self._S[rows], self._Y[rows]

    def propose(self, at: Iterate, out: Vector) -> float:
        if not self.count and self.inverse is None:
            return self.fallback(at, out)
        g = at.g
        S, Y = self.pairs
        Rinv, D = self._Rinv[: self.count, : self.count], self._D[: self.count]
        a = Rinv @ (S @ g)
        np.matmul(a, Y, out=out)
        np.subtract(g, out, out=out)
        if self.inverse is None:
            out *= self.gamma
        else:
            out[:] = self.inverse(out)
        c = (D * a - Y @ out) @ Rinv
        np.matmul(c, S, out=self._work)
        out += self._work
        np.negative(out, out=out)
        return norm(out)

    def fallback(self, at: Iterate, out: Vector) -> float:
        """Write −γg into `out`, with γ that of H; before the first pair −g of the search length."""
        gamma = self.gamma if self.count else min(self._delta_bar / at.gnorm, LARGEST)
        return along_minus(at, gamma, out)

    def forget(self) -> None:
        """Discard all pairs."""
        self._first = self.count = 0

    def learn(self, pair: SecantPair) -> None:
        s, y, sy = pair.s, pair.y, pair.sy
        gamma = ratio(sy, pair.ynorm, pair.ynorm)
        if not (curved(pair, self._eps) and gamma > 0.0 and ratio(1.0, sy) > 0.0):
            return
        if self.count == self.memory:
            self._drop_oldest()
        k = self.count
        if self._first + k == len(self._S):
            self._move_to_front()
        last = self._first + k
        self._S[last], self._Y[last] = s, y
        Rinv = self._Rinv
        Rinv[:k, k] = Rinv[:k, :k] @ (self._S[self._first : last] @ y) / -sy
        Rinv[k, :k] = 0.0
        Rinv[k, k] = 1.0 / sy
        self._D[k] = sy
        self.gamma = gamma
        self.count = k + 1
        self.learned += 1

    def _drop_oldest(self) -> None:
        self._Rinv[:-1, :-1] = self._Rinv[1:, 1:].copy()
        self._D[:-1] = self._D[1:].copy()
        self._first += 1
        self.count -= 1

    def _move_to_front(self) -> None:
        for rows in (self._S, self._Y):
            for k in range(self.count):
                rows[k] = rows[self._first + k]
        self._first = 0
