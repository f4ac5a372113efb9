"""Models with a dense matrix: Newton's with the Hessian, and Levenberg–Marquardt."""

from __future__ import annotations

import numpy as np

from slomodel.solve.compiled.loop import MOST_ROTATED, LoopState
from slomodel.solve.directions.direction import SecantPair
from slomodel.solve.directions.gauss_newton import GaussNewton
from slomodel.solve.directions.newton import positive, whole_hessian
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.quadratics.interior_point import convex_step
from slomodel.solve.quadratics.quadratic import REACHED
from slomodel.solve.quadratics.quadratic_program import QuadraticProgram
from slomodel.solve.sets.convex_set import Face, Set
from slomodel.solve.subroutine import Iterate

# Steps on faces of a quadratic objective after which these count as not settling: of a nearly
# singular Hessian each step changes many. Minimisations over the set by interior points.
UNSETTLED, MOST_INTERIOR = 10, 3


class DenseHessian:
    """B = ∇²f(x) with the absolute values of its eigenvalues, in scaled variables.

    At a curved boundary B is the Hessian itself, and the absolute values are those of the
    Lagrangian's eigenvalues on the tangent plane: across it they have no meaning. For a quadratic
    objective B is the same at every point, and `goal` the norm of the projected gradient at which
    a run ends; for others it is 0.
    """

    wants_pairs = False
    most = 50
    # For few unknowns an evaluation takes longer.
    operations = 0.0
    is_over = may_form = False

    def __init__(self, evaluate: Evaluator, goal: float = 0.0) -> None:
        self.accuracy = 1e-6
        self.is_exact = goal > 0.0
        self._goal = goal
        self._solved = self._interior = 0
        self._evaluate = evaluate
        self._B = np.empty((0, 0))

    @property
    def is_spent(self) -> bool:
        # The faces of a nearly singular model do not settle.
        return self.is_exact and self._solved >= self.most

    def begin(self, at: Iterate, shift: Vector | None) -> bool:
        if self.is_exact and shift is None:
            self.accuracy = REACHED * self._goal / at.gnorm
            if self._B.size:
                return True
        H = whole_hessian(self._evaluate, at.x)
        B = positive(H, self._evaluate.eps) if shift is None else H
        if B is None or not np.isfinite(B).all():
            return False
        self._B = B
        return True

    def allow(self, work: float) -> None:
        pass

    def free_step(self, at: Iterate) -> None:
        pass

    def product(self, s: Vector) -> Vector:
        return self._B @ s

    def solve(self, face: Face, r: Vector) -> tuple[Vector, None]:
        self._solved += 1
        if face.shift is not None:
            return on_curved_face(self._B, face, r, self._evaluate.eps), None
        return on_face(self._B, face, r), None

    def minimiser_over(self, within: Set, y: Vector, r: Vector) -> Vector | None:
        """The minimiser of a quadratic objective by an interior point method, if no face lasts."""
        polyhedron = within.polyhedron()
        if polyhedron is None or not self.is_exact or self._interior == MOST_INTERIOR:
            return None
        if self._solved < UNSETTLED * (1 + self._interior):
            return None
        self._interior += 1
        E = polyhedron.E
        held = np.zeros(len(E)), np.ones(len(E), dtype=bool)
        room = polyhedron.low - y, polyhedron.high - y
        step = convex_step(QuadraticProgram(self._B, r, E, *held, *room))
        return None if step is None else y + step.d

    def store(self, loop: LoopState, at: Iterate) -> bool:
        """Let a compiled loop compute the Hessian; False where it cannot."""
        loop.by_hessian, loop.accuracy, loop.most_on_faces = True, self.accuracy, self.most
        can = not self.is_exact and loop.n <= MOST_ROTATED
        return can and self._evaluate.store_product(loop)

    def load(self, loop: LoopState) -> None:
        """Steps of a compiled loop leave nothing behind."""

    def learn(self, pair: SecantPair) -> None:
        pass


class Damped:
    """B = M + λD, the Gauss–Newton matrix M with the damping of Levenberg and Marquardt."""

    is_spent = is_over = may_form = False
    wants_pairs = True
    is_exact = False
    accuracy = 1e-6
    most = 50
    operations = 0.0

    def __init__(self, rule: GaussNewton) -> None:
        self._rule = rule
        self._B = np.empty((0, 0))

    def begin(self, at: Iterate, shift: Vector | None) -> bool:
        B = self._rule.damped(at)
        if B is None:
            return False
        self._B = B
        return True

    def allow(self, work: float) -> None:
        pass

    def free_step(self, at: Iterate) -> None:
        pass

    def product(self, s: Vector) -> Vector:
        return self._B @ s

    def solve(self, face: Face, r: Vector) -> tuple[Vector, None]:
        return on_face(self._B, face, r), None

    def minimiser_over(self, within: Set, y: Vector, r: Vector) -> None:
        pass

    def learn(self, pair: SecantPair) -> None:
        self._rule.learn(pair)


def on_face(B: Vector, face: Face, r: Vector) -> Vector:
    """d (n,) in the subspace of the face with Q(B + shift)d = −Qr for B (n, n) ≻ 0.

    The matrix is completed by a multiple of I − Q, which has no effect on d.
    """
    if face.coordinates is not None:
        d, free = np.zeros_like(r), np.flatnonzero(face.coordinates)
        d[free] = np.linalg.solve(B[free[:, None], free], -r[free])
        return d
    return face.project(np.linalg.solve(completed(B, face), -face.project(r)).astype(np.float64))


def on_curved_face(H: Vector, face: Face, r: Vector, eps: float) -> Vector:
    """The step of `on_face` with the absolute eigenvalues of Q(H + shift)Q, H (n, n) symmetric."""
    B = positive(completed(H, face), eps)
    if B is None:
        raise np.linalg.LinAlgError
    return face.project(np.linalg.solve(B, -face.project(r)).astype(np.float64))


def completed(B: Vector, face: Face) -> Vector:
    """Q(B + shift)Q + size·(I − Q) (n, n), Q the projection on the subspace of a face."""
    n = len(B)
    Q = face.project(np.eye(n))
    shift = face.shift
    A = Q @ (B if shift is None else B + np.diag(shift)) @ Q
    size = float(np.abs(np.diag(B)).max(initial=0.0)) or 1.0
    return A + size * (np.eye(n) - Q)
