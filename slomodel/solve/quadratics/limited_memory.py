"""The limited-memory BFGS matrix in its compact form."""

from __future__ import annotations

import math

import numpy as np

from slomodel.solve.compiled.loop import LoopState
from slomodel.solve.directions.direction import SecantPair
from slomodel.solve.directions.lbfgs import LBFGS
from slomodel.solve.norms import Vector, ratio
from slomodel.solve.sets.convex_set import Face, Mask, Set
from slomodel.solve.subroutine import Iterate

# A product of rows over the free elements is the difference of two sums if it is at least this
# fraction of the sum over all elements, so that few digits cancel.
RESOLVED = 1e-6
# Spare rows of S and Y, so that the pairs are shifted once in SPARE steps, not at every step.
SPARE = 5
# Number of pairs stored: that of the unknowns, within FEWEST and MOST. Of many unknowns it is that
# of ELEMENTS in all, at least MANY, as the linear algebra of more takes longer than the evaluations
# that they save.
FEWEST, MANY, MOST = 5, 10, 20
ELEMENTS = 20_000
BELOW = np.tri(MOST, k=-1)
# Operations of a step for each element of a pair, by NumPy and, of those that take a fifth of its
# time, by a compiled loop.
STEP, STEP_IN_C = 100.0, 20.0
# The diagonal part δ = θ + shift − Λ of B is raised to at least this fraction of θ.
LEAST = 1e-3


class LimitedMemory:
    """B = θI − WᵀMW − Λ, W the rows Y and θS (2m, n), M⁻¹ = [[−D, Lᵀ], [L, θSSᵀ]].

    The pairs are those of the Lagrangian, and Λ is what a curved boundary adds to its curvature at
    x. D is the diagonal of SYᵀ and L its part below. On a face B is inverted by the formula of
    Sherman, Morrison and Woodbury. Byrd, Lu, Nocedal & Zhu, A limited memory algorithm for bound
    constrained optimization (1995). Before the first pair the step −g/θ has the length `first`.
    """

    is_spent = is_over = may_form = False
    wants_pairs = True
    is_exact = False
    # A closer minimum of an estimate saves no evaluations.
    accuracy = 0.3
    most = 30

    def __init__(self, n: int, first: float, eps: float, *, compiled: bool = False) -> None:
        memory = max(FEWEST, min(n, max(MANY, min(MOST, ELEMENTS // max(n, 1)))))
        self.operations = 0.0
        self._of_step = STEP_IN_C if compiled else STEP
        self._pairs = LBFGS(n, first, memory, eps, SPARE)
        self._first = first
        self._theta = 1.0
        self._products = RowProducts(self._pairs.memory)
        self._multiplied = 0
        self._Minv: Vector | None = None
        self._M: Vector | None = None
        self._shift: Vector | None = None

    def begin(self, at: Iterate, shift: Vector | None) -> bool:
        pairs = self._pairs
        self._shift = shift
        if not pairs.count:
            self._theta = ratio(at.gnorm, self._first) or 1.0
            return True
        self._theta = 1.0 / pairs.gamma
        self._Minv = self._M = None
        self.operations += self._of_step * pairs.count * len(at.x)
        return True

    def _inner(self) -> Vector:
        """M⁻¹ (2m, 2m) at the current point."""
        if self._Minv is not None:
            return self._Minv
        self._multiply()
        SS, SY, _ = self._products.of(self._pairs.count)
        m = len(SS)
        Minv = np.zeros((2 * m, 2 * m))
        np.multiply(SY, BELOW[:m, :m], out=Minv[m:, :m])
        Minv[:m, m:] = Minv[m:, :m].T
        Minv.flat[: 2 * m * m : 2 * m + 1] = -SY.diagonal()
        np.multiply(SS, self._theta, out=Minv[m:, m:])
        self._Minv = Minv
        return Minv

    def _inverse(self) -> Vector:
        """M (2m, 2m), computed once per point: a minimisation takes several products."""
        if self._M is None:
            self._M = np.asarray(np.linalg.inv(self._inner()), dtype=np.float64)
        return self._M

    def allow(self, work: float) -> None:
        pass

    def free_step(self, at: Iterate) -> Vector | None:
        """The step of the two-loop recursion of L-BFGS."""
        if not self._pairs.count or self._shift is not None:
            return None
        s = np.empty_like(at.x)
        self._pairs.propose(at, s)
        return s

    def product(self, s: Vector) -> Vector:
        Bs: Vector = self._theta * s
        if self._pairs.count:
            S, Y = self._pairs.pairs
            Bs -= self._combined(self._inverse() @ self._times(S, Y, s), S, Y)
        if self._shift is not None:
            Bs -= self._shift * s
        return Bs

    def _times(self, S: Vector, Y: Vector, v: Vector) -> Vector:
        """W v for v (n,)."""
        return np.concatenate([Y @ v, self._theta * (S @ v)])

    def _combined(self, c: Vector, S: Vector, Y: Vector) -> Vector:
        """Wᵀ c for c (2m,)."""
        m = len(S)
        out: Vector = c[:m] @ Y
        out += (self._theta * c[m:]) @ S
        return out

    def solve(self, face: Face, r: Vector) -> tuple[Vector, Vector]:
        """The exact solution d = (QWᵀc − Qr)/δ, and Bd; δ = θ + shift − Λ.

        c = −(M⁻¹ − WQWᵀ/δ)⁻¹WQr/δ is also MWd, so that Bd = θd − Wᵀc − Λd.
        """
        inverse: Vector | float = 1.0 / self._theta
        if face.shift is not None or self._shift is not None:
            added = (0.0 if one is None else one for one in (face.shift, self._shift))
            inverse = 1.0 / np.maximum(self._theta + next(added) - next(added), LEAST * self._theta)
        d: Vector = face.project(r) * -inverse
        if not self._pairs.count:
            return d, self.product(d)
        S, Y = self._pairs.pairs
        self._multiply()
        if face.coordinates is not None:
            WW = self._products.over(face.coordinates, S, Y, self._theta) / self._theta
            c = np.linalg.solve(self._inner() - WW, self._times(S, Y, d)).astype(np.float64)
        else:
            W = np.concatenate([face.project(Y), self._theta * face.project(S)])
            c = np.linalg.solve(self._inner() - (W * inverse) @ W.T, W @ d).astype(np.float64)
        Wc = self._combined(c, S, Y)
        d += face.project(Wc) * inverse
        Bd: Vector = self._theta * d
        Bd -= Wc
        if self._shift is not None:
            Bd -= self._shift * d
        return d, Bd

    def minimiser_over(self, within: Set, y: Vector, r: Vector) -> None:
        pass

    def learn(self, pair: SecantPair) -> None:
        self._pairs.learn(pair)

    def store(self, loop: LoopState, at: Iterate) -> bool:
        """Let a compiled loop work on the pairs in place."""
        self._pairs.store(loop)
        loop.first_length, loop.of_step = self._first, self._of_step
        loop.by_hessian, loop.accuracy, loop.most_on_faces = False, self.accuracy, self.most
        loop.operations, loop.others_operations, loop.unit = self.operations, 0.0, math.inf
        loop.turn_ends, loop.has_middle = math.inf, True
        return True

    def load(self, loop: LoopState) -> None:
        """Read the state after steps of a compiled loop."""
        self._pairs.load(loop)
        self.operations = loop.operations

    def _multiply(self) -> None:
        """Bring the products of the pairs up to date, which steps in the interior do not need."""
        learned = self._pairs.learned
        if learned - self._multiplied == 1:
            self._products.add(*self._pairs.pairs)
        elif learned > self._multiplied:
            self._products.compute(*self._pairs.pairs)
        self._multiplied = learned


class RowProducts:
    """The products SSᵀ, SYᵀ and YYᵀ (m, m) of the pairs, of which each new one adds a row."""

    def __init__(self, memory: int) -> None:
        self._SS, self._SY, self._YY = (np.zeros((memory, memory)) for _ in range(3))
        self._count = 0

    def of(self, m: int) -> tuple[Vector, Vector, Vector]:
        return self._SS[:m, :m], self._SY[:m, :m], self._YY[:m, :m]

    def add(self, S: Vector, Y: Vector) -> None:
        """Update with the last rows of S and Y (m, n); the oldest pair may have been dropped."""
        last = len(S) - 1
        dropped, self._count = len(S) == self._count, len(S)
        if dropped:
            for products in (self._SS, self._SY, self._YY):
                products[:-1, :-1] = products[1:, 1:].copy()
        s, y = S[last], Y[last]
        self._SS[last, : last + 1] = self._SS[: last + 1, last] = S @ s
        self._YY[last, : last + 1] = self._YY[: last + 1, last] = Y @ y
        self._SY[last, : last + 1] = Y @ s
        self._SY[: last + 1, last] = S @ y

    def compute(self, S: Vector, Y: Vector) -> None:
        """Compute all products of S and Y (m, n)."""
        self._count = m = len(S)
        self._SS[:m, :m], self._SY[:m, :m], self._YY[:m, :m] = S @ S.T, S @ Y.T, Y @ Y.T

    def over(self, free: Mask, S: Vector, Y: Vector, theta: float) -> Vector:
        """WWᵀ (2m, 2m) over the free elements alone, W the rows Y and θS."""
        m = len(S)
        held = np.flatnonzero(~free)
        SS, SY, YY = self.of(m)
        if 2 * len(held) < len(free):
            s, y = S.take(held, axis=1), Y.take(held, axis=1)
            less = SS - s @ s.T, SY - s @ y.T, YY - y @ y.T
            resolved = less[0].diagonal() >= RESOLVED * SS.diagonal()
            if resolved.all() and (less[2].diagonal() >= RESOLVED * YY.diagonal()).all():
                return in_blocks(*less, theta)
        s, y = S.compress(free, axis=1), Y.compress(free, axis=1)
        return in_blocks(s @ s.T, s @ y.T, y @ y.T, theta)


def in_blocks(SS: Vector, SY: Vector, YY: Vector, theta: float) -> Vector:
    """[[YYᵀ, θYSᵀ], [θSYᵀ, θ²SSᵀ]] (2m, 2m)."""
    m = len(SS)
    WW = np.empty((2 * m, 2 * m))
    WW[:m, :m], WW[m:, m:] = YY, theta * theta * SS
    WW[m:, :m] = theta * SY
    WW[:m, m:] = WW[m:, :m].T
    return WW
