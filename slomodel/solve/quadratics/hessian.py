"""Newton's model with Hessian-vector products."""

from __future__ import annotations

import math

import numpy as np

from slomodel.solve.directions.direction import SecantPair
from slomodel.solve.directions.newton_cg import LOOSEST, NewtonCG
from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.quadratics.quadratic import REACHED
from slomodel.solve.quadratics.sparse import SparseFaces
from slomodel.solve.sets.convex_set import Face, Set
from slomodel.solve.subroutine import Iterate

# Products for the minimisation of a model that is the objective, in units of √n, which conjugate
# gradients take on a face for an elliptic operator on a plane grid. More are needed where they
# converge so slowly that the faces do not settle.
PRODUCTS = 400.0
# Largest n for which the matrix replaces them, and products until then in units of the n of it.
FORMED, OF_MATRIX = 1000, 2.0
# Negative curvature in units of the largest, below which it may be rounding.
CONCAVE = 1e-10
# Operations for each unknown of a conjugate gradient, beside the product.
STEP = 100.0
# Steps of one minimisation; more for a model that is the objective itself.
MOST, MOST_IF_EXACT = 10, 100


class HessianProducts:
    """B = ∇²f(x), never formed: on a face its equation is solved by conjugate gradients.

    They stop at the first direction without positive curvature, and so does the minimisation. For a
    quadratic objective, `goal` is the norm of the projected gradient at which a run ends: the
    objective is the model, and minimised up to it; a sparse Hessian is factored once that costs
    less. For others `goal` is 0.
    """

    wants_pairs = False

    def __init__(
        self, evaluate: Evaluator, start: Iterate, longest: float, goal: float = 0.0
    ) -> None:
        self.accuracy = LOOSEST
        self.is_exact = goal > 0.0
        self.most = MOST_IF_EXACT if self.is_exact else MOST
        # Whether a matrix may replace the products, of a convex quadratic as far as is known.
        within = evaluate.within
        self.may_form = self.is_exact and within is not None and within.polyhedral
        self.may_form = self.may_form and len(start.x) <= FORMED
        self._evaluate = evaluate
        self._first = start.gnorm
        self._longest = longest
        self._goal = goal
        self._before = self._begun = evaluate.nhev
        self._allowed = math.inf
        self._sparse = SparseFaces(evaluate, len(start.x))
        self._at = start

    def begin(self, at: Iterate, shift: Vector | None) -> bool:
        self._at = at
        self._begun = self._evaluate.nhev
        self.accuracy = min(LOOSEST, math.sqrt(at.gnorm / self._first))
        if self.is_exact:
            self.accuracy = REACHED * self._goal / at.gnorm
        return True

    @property
    def operations(self) -> float:
        return STEP * len(self._at.x) * (self._evaluate.nhev - self._before)

    @property
    def is_spent(self) -> bool:
        taken, n = self._evaluate.nhev - self._before, len(self._at.x)
        most = OF_MATRIX * n if self.may_form else PRODUCTS * math.sqrt(n)
        return self.is_exact and taken > most

    @property
    def is_over(self) -> bool:
        return self.is_spent or self._evaluate.nhev - self._begun >= self._allowed

    def allow(self, work: float) -> None:
        self._allowed = work

    def free_step(self, at: Iterate) -> None:
        pass

    def product(self, s: Vector) -> Vector:
        out = np.empty_like(s)
        self._evaluate.hvp(self._at.x, s, out)
        return out

    def solve(self, face: Face, r: Vector) -> tuple[Vector, Vector | None]:
        g = face.project(r)
        at = Iterate(self._at.x, self._at.f, g, norm(g))
        d = np.zeros_like(r)
        before = self._evaluate.nhev
        on_face = OnFace(self._evaluate, face, np.zeros_like(r))
        if at.gnorm > 0.0:
            start = Iterate(at.x, at.f, at.g, max(self._first, at.gnorm))
            left = self._allowed - (before - self._begun)
            NewtonCG(on_face, start, self._longest, on_face.took).propose(at, d, left)
        self._sparse.took(self._evaluate.nhev - before)
        # The first direction may be one without positive curvature, of which no product was added.
        self.may_form = self.may_form and not on_face.is_concave
        return d, on_face.total * at.gnorm if on_face.total.any() else None

    def minimiser_over(self, within: Set, y: Vector, r: Vector) -> Vector | None:
        """The minimiser of a quadratic objective over a box, by sparse factors."""
        if not (self.is_exact and within.is_box):
            return None
        return self._sparse.minimiser(self._at, within.limits(), y, r)

    def learn(self, pair: SecantPair) -> None:
        pass


class OnFace:
    """Products with the Hessian on the subspace of a face, with the curvature of the face.

    `total` (n,) adds up the products with the steps that were taken, of all elements; `is_concave`:
    the curvature along a vector was negative beyond rounding, for up to FORMED elements.
    """

    def __init__(self, evaluate: Evaluator, face: Face, total: Vector) -> None:
        self.eps = evaluate.eps
        self.total = total
        self.is_concave = False
        self._largest = 0.0
        self._evaluate = evaluate
        self._face = face
        self._last = np.empty_like(total)

    def hvp(self, x: Vector, v: Vector, out: Vector) -> None:
        """Write Q(∇²f(x) + shift)v into `out` for v (n,) in the subspace."""
        self._evaluate.hvp(x, v, self._last)
        shift = self._face.shift
        out[:] = self._face.project(self._last if shift is None else self._last + shift * v)
        if len(v) > FORMED:
            return
        square = float(v.dot(v))
        self._largest = max(self._largest, norm(out) / math.sqrt(square) if square > 0.0 else 0.0)
        self.is_concave |= float(v.dot(out)) < -CONCAVE * self._largest * square

    def took(self, step: float) -> None:
        """Add a step of this length along the vector of the last product."""
        self.total += step * self._last
