"""Newton's model with Hessian-vector products."""

from __future__ import annotations

import math

import numpy as np

from slomodel.solve.directions.direction import SecantPair
from slomodel.solve.directions.newton_cg import LOOSEST, NewtonCG
from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.sets.convex_set import Face
from slomodel.solve.subroutine import Iterate


class HessianProducts:
    """B = ∇²f(x), never formed: on a face its equation is solved by conjugate gradients.

    They stop at the first direction without positive curvature, and so does the minimisation.
    """

    wants_pairs = False
    most = 10

    def __init__(self, evaluate: Evaluator, start: Iterate, longest: float) -> None:
        self.accuracy = LOOSEST
        self._evaluate = evaluate
        self._first = start.gnorm
        self._longest = longest
        self._at = start

    def begin(self, at: Iterate, shift: Vector | None) -> bool:
        self._at = at
        self.accuracy = min(LOOSEST, math.sqrt(at.gnorm / self._first))
        return True

    def free_step(self, at: Iterate) -> None:
        pass

    def product(self, s: Vector) -> Vector:
        out = np.empty_like(s)
        self._evaluate.hvp(self._at.x, s, out)
        return out

    def solve(self, face: Face, r: Vector) -> Vector:
        g = face.project(r)
        at = Iterate(self._at.x, self._at.f, g, norm(g))
        d = np.zeros_like(r)
        if at.gnorm > 0.0:
            on_face = OnFace(self._evaluate, face)
            start = Iterate(at.x, at.f, at.g, max(self._first, at.gnorm))
            NewtonCG(on_face, start, self._longest).propose(at, d)
        return d

    def learn(self, pair: SecantPair) -> None:
        pass


class OnFace:
    """Products with the Hessian on the subspace of a face, with the curvature of the face."""

    def __init__(self, evaluate: Evaluator, face: Face) -> None:
        self.eps = evaluate.eps
        self._evaluate = evaluate
        self._face = face

    def hvp(self, x: Vector, v: Vector, out: Vector) -> None:
        """Write Q(∇²f(x) + shift)v into `out` for v (n,) in the subspace."""
        self._evaluate.hvp(x, v, out)
        shift = self._face.shift
        out[:] = self._face.project(out if shift is None else out + shift * v)
