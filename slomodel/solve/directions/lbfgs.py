"""Limited-memory BFGS directions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from slomodel.solve.compiled.loop import LoopState, address
from slomodel.solve.directions.direction import SecantPair, along_minus, curvature_scale
from slomodel.solve.norms import EPS, LARGEST, Vector, norm
from slomodel.solve.subroutine import Iterate

MEMORY = 10


Positions = NDArray[np.intp]


def times(M: Vector, rows: slice | Positions, v: Vector) -> Vector:
    """M[rows] v for v (n,), without copying rows."""
    # For few elements the method `dot` takes half the time of the operator.
    return np.asarray(M[rows].dot(v) if isinstance(rows, slice) else M.dot(v)[rows])


def combine(M: Vector, rows: slice | Positions, c: Vector, out: Vector) -> None:
    """Write c M[rows] into `out` (n,), without copying rows."""
    if isinstance(rows, slice):
        c.dot(M[rows], out)
        return
    coefficients = np.zeros(len(M))
    coefficients[rows] = c
    coefficients.dot(M, out)


class LBFGS:
    """v = −H g, with H the estimate of the inverse Hessian from the last `memory` pairs.

    This is the two-loop recursion with each loop written as a triangular solve: with R the upper
    triangle of S Yᵀ and D its diagonal, the first loop is R a = S g and the second Rᵀ c = D a − Y
    r. R⁻¹ is stored, since a new pair adds one column to it. Pairs with too little curvature are
    skipped. H begins as γI, or as the map `inverse` of vectors (n,) if there is one. The rows of S
    and Y are overwritten cyclically; with `spare` rows they are moved to the front only when these
    are used up, and `pairs` never has to copy them.
    """

    wants_pairs = True
    predicting = None
    in_c = None
    kind = ""
    units = None

    def __init__(
        self, n: int, delta_bar: float, memory: int = MEMORY, eps: float = EPS, spare: int = 0
    ) -> None:
        self._eps = eps
        self.memory = memory
        self.count = 0
        self.learned = 0
        self.gamma = 0.0
        self.inverse: Callable[[Vector], Vector] | None = None
        self._delta_bar = delta_bar
        self._first = 0
        self._is_cyclic = spare == 0
        self._S = np.empty((memory + spare, n))
        self._Y = np.empty((memory + spare, n))
        self._Rinv = np.zeros((memory, memory))
        self._D = np.zeros(memory)
        self._work = np.empty(n)

    @property
    def pairs(self) -> tuple[Vector, Vector]:
        """S and Y (count, n), oldest pair first."""
        rows = self._rows
        return self._S[rows], self._Y[rows]

    @property
    def _rows(self) -> slice | Positions:
        """The rows of the pairs (count,), oldest first."""
        last = self._first + self.count
        if last <= len(self._S):
            return slice(self._first, last)
        return np.arange(self._first, last) % len(self._S)

    def propose(self, at: Iterate, out: Vector) -> float:
        if not self.count and self.inverse is None:
            return self.fallback(at, out)
        g, rows = at.g, self._rows
        Rinv, D = self._Rinv[: self.count, : self.count], self._D[: self.count]
        if isinstance(rows, slice) and self.inverse is None:
            S, Y = self._S[rows], self._Y[rows]
            a = Rinv.dot(S.dot(g))
            a.dot(Y, out)
            out -= g
            out *= self.gamma
            (D * a + Y.dot(out)).dot(Rinv).dot(S, self._work)
            out -= self._work
            return norm(out)
        a = Rinv.dot(times(self._S, rows, g))
        combine(self._Y, rows, a, out)
        out -= g
        if self.inverse is None:
            out *= self.gamma
        else:
            out[:] = self.inverse(out)
        c = (D * a + times(self._Y, rows, out)).dot(Rinv)
        combine(self._S, rows, c, self._work)
        out -= self._work
        return norm(out)

    def fallback(self, at: Iterate, out: Vector) -> float:
        """Write −γg into `out`, with γ that of H; before the first pair −g of the search length."""
        gamma = self.gamma if self.count else min(self._delta_bar / at.gnorm, LARGEST)
        return along_minus(at, gamma, out)

    def store(self, loop: LoopState) -> None:
        """Let a compiled loop work on the pairs in place."""
        loop.memory, loop.pair_rows = self.memory, len(self._S)
        if loop.learned != self.learned:
            # Rows may have been moved.
            loop.multiplied = -1
        loop.first, loop.count, loop.learned = self._first, self.count, self.learned
        loop.S, loop.Y, loop.D, loop.Rinv = map(address, (self._S, self._Y, self._D, self._Rinv))
        loop.gamma = self.gamma

    def load(self, loop: LoopState) -> None:
        """Read the state after steps of a compiled loop."""
        self._first, self.count, self.learned = loop.first, loop.count, loop.learned
        self.gamma = loop.gamma

    def forget(self) -> None:
        """Discard all pairs."""
        self._first = self.count = 0

    def learn(self, pair: SecantPair) -> None:
        s, y, sy = pair.s, pair.y, pair.sy
        gamma = curvature_scale(pair, self._eps)
        if not gamma:
            return
        if self.count == self.memory:
            self._drop_oldest()
        k = self.count
        if self._first + k == len(self._S) and not self._is_cyclic:
            self._move_to_front()
        rows, last = self._rows, (self._first + k) % len(self._S)
        Rinv = self._Rinv
        Rinv[:k, k] = Rinv[:k, :k].dot(times(self._S, rows, y)) / -sy
        self._S[last], self._Y[last] = s, y
        Rinv[k, :k] = 0.0
        Rinv[k, k] = 1.0 / sy
        self._D[k] = sy
        self.gamma = gamma
        self.count = k + 1
        self.learned += 1

    def _drop_oldest(self) -> None:
        self._Rinv[:-1, :-1] = self._Rinv[1:, 1:].copy()
        self._D[:-1] = self._D[1:].copy()
        self._first = (self._first + 1) % len(self._S)
        self.count -= 1

    def _move_to_front(self) -> None:
        for rows in (self._S, self._Y):
            for k in range(self.count):
                rows[k] = rows[self._first + k]
        self._first = 0
