"""BFGS directions that begin with Hessian products, for any number of unknowns."""

from __future__ import annotations

import math

import numpy as np

from slomodel.solve.compiled.loop import HessianArrays, LoopState, address
from slomodel.solve.directions.direction import (
    DirectionInC,
    InverseInC,
    Predicting,
    SecantPair,
    along_minus,
    curvature_scale,
)
from slomodel.solve.directions.lbfgs import LBFGS
from slomodel.solve.directions.newton import inverse_magnitude, whole_hessian
from slomodel.solve.directions.newton_cg import NewtonCG
from slomodel.solve.directions.sparse_newton import CALL, SparseNewton
from slomodel.solve.norms import LARGEST, Vector, norm, ratio
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate

LARGEST_MATRIX = 100
"""Largest n for which the Hessian is computed, in n products."""
# Work before that, as a multiple of the work of the Hessian: a matrix that stems from a point far
# from the solution is of little use, and few unknowns may need none. For n > FEW pairs suffice for
# longer.
WAIT, WAIT_OF_MANY, FEW = 1.0, 2.0, 20
# The same for the next time, doubled after each.
REPEAT = 5.0
# Work from one Hessian to the next, as a multiple of its own, where its step is not suitable.
AGAIN = 3.0
# The first time is put off once if pairs alone, at their rate so far, would lower the gradient norm
# to the fraction REACHED of the first one by less than SOON times the work of the Hessian.
REACHED, SOON = 1e-4, 1.5
# Work before the pattern of the Hessian of more than FEW unknowns is computed, and before Newton
# steps begin if it is sparse, and until the next, as multiples of the work of such a Hessian.
WAIT_FOR_PATTERN, WAIT_SPARSE, REFRESH = 30, 4.0, 1.0
# Operations for each unknown to compute the pattern.
PATTERN = 3e3
# Most pairs, and the number of elements in their vectors, before there is a matrix. SHORT ones take
# less time than the calls of a step; each element more costs PER_ELEMENT operations per step, five
# products and sums, and an evaluation pays for as many as it takes operations.
MOST_PAIRS, LEAST_PAIRS, ELEMENTS = 100, 10, 50_000
SHORT, PER_ELEMENT = 15_000, 10.0
# Products, and relative residual, of the conjugate gradients that confirm a step.
CONFIRMING, RESIDUAL = 25, 0.1


class QuasiNewton:
    """v = −H g, with H an estimate of the inverse Hessian by BFGS updates.

    The first step has the length that the curvature along −g implies. At first H is defined by
    pairs, many if n is small. For n ≤ LARGEST_MATRIX it is replaced by the inverse of the Hessian
    with positive eigenvalues, after about as much work as that costs, and updated as a matrix from
    then on; should the run be long, this is repeated at growing intervals. If the Hessian is
    sparse, the pairs update its inverse instead, which is computed anew after as much work as it
    costs. Without Hessian products, and for an objective with kinks, whose curvature across them no
    Hessian contains, H is that of the pairs.
    """

    wants_pairs = True
    compiled = "quasi_newton"

    def __init__(self, evaluate: Evaluator, start: Iterate, delta_bar: float) -> None:
        n = len(start.x)
        memory = min(MOST_PAIRS, max(LEAST_PAIRS, elements_for(evaluate) // max(n, 1)))
        self._evaluate = evaluate
        self._delta_bar = delta_bar
        self._pairs = LBFGS(n, delta_bar, memory, evaluate.eps)
        self._H: Vector | None = None
        self.curvatures: Vector | None = None
        self.hessian: Vector | None = None
        self._gamma = 0.0
        self._eps = evaluate.eps
        wait = (WAIT if n <= FEW else WAIT_OF_MANY) * 2.0 * n
        self._interval = REPEAT * 2.0 * n
        self._computed = 0.0
        has_hessian = evaluate.has_products and evaluate.is_smooth
        has_matrix = has_hessian and n <= LARGEST_MATRIX
        self._due = evaluate.weighted_work + wait if has_matrix else math.inf
        many = has_hessian and n > FEW
        self._began = evaluate.weighted_work
        self._first = start.gnorm
        self._has_put_off = False
        wait = WAIT_FOR_PATTERN + PATTERN * n / (CALL + evaluate.operations)
        self._sparse_due = self._began + wait if many else math.inf
        self._newton = SparseNewton(evaluate, n)
        # The Hessian at a point and its inverse; None where LAPACK is quicker, or not in C.
        self.inverse_in_c: InverseInC | None = None
        self._arrays: HessianArrays | None = None
        self._by_newton = False

    @property
    def memory(self) -> int:
        """The largest number of pairs."""
        return self._pairs.memory

    @property
    def predicting(self) -> Predicting:
        return self

    @property
    def in_c(self) -> DirectionInC:
        return self

    @property
    def units(self) -> Vector | None:
        return self._newton.units if self._by_newton else None

    @property
    def bends(self) -> bool:
        """Whether the last proposal is a Newton step, which can be followed by a shorter one."""
        return self._by_newton and not self._pairs.count

    @property
    def kind(self) -> str:
        if self._by_newton:
            return "secant pairs after Newton" if self._pairs.count else "Newton"
        return "secant pairs" if self._H is None else "BFGS after a Hessian"

    def bend(self, at: Iterate, out: Vector) -> float:
        """Write the next shorter Newton step into `out` (n,); return its norm."""
        return self._newton_step(at, out) if self._newton.raise_shift() else self.fallback(at, out)

    def propose(self, at: Iterate, out: Vector) -> float:
        work = self._evaluate.weighted_work
        if work >= self._sparse_due and self._compute_sparse(at):
            return self._newton_step(at, out)
        if work >= self._due and not self._put_off(at):
            self._compute(at)
        if self._H is not None:
            self._H.dot(at.g, out)
            np.negative(out, out=out)
            return norm(out)
        # A resumed run has the Hessian, and not yet its factor.
        self._pairs.inverse = self._newton.apply if self._by_newton else None
        if self._pairs.count or self._by_newton:
            return self._pairs.propose(at, out)
        if not self._gamma and self._evaluate.has_products:
            self._gamma = self._first_length(at)
        return self.fallback(at, out)

    def _put_off(self, at: Iterate) -> bool:
        """Whether the first Hessian is not worth its work yet, by the progress of the pairs."""
        if self._has_put_off or self._H is not None or not 0.0 < at.gnorm < self._first:
            return False
        now = self._evaluate.weighted_work
        fall = math.log(self._first / at.gnorm)
        left = (now - self._began) * (math.log(1.0 / REACHED) / fall - 1.0)
        if not left < SOON * 2.0 * len(at.x):
            return False
        self._due = now + max(left, len(at.x))
        self._has_put_off = True
        return True

    def _compute_sparse(self, at: Iterate) -> bool:
        """Restart the pairs from the inverse of a sparse Hessian, once the wait is over."""
        now = self._evaluate.weighted_work
        structure = self._newton.structure
        if structure is None:
            self._sparse_due = math.inf
            return False
        self._due = math.inf
        if not self._by_newton and now < self._began + WAIT_SPARSE * self._newton.work:
            self._sparse_due = self._began + WAIT_SPARSE * self._newton.work
            return False
        self._by_newton = self._newton.compute(at)
        self._pairs.forget()
        self._H = None
        self._pairs.inverse = self._newton.apply if self._by_newton else None
        self._sparse_due = self._evaluate.weighted_work + REFRESH * self._newton.work
        self.curvatures = self._newton.curvatures
        return self._by_newton

    def _newton_step(self, at: Iterate, out: Vector) -> float:
        np.negative(self._newton.apply(at.g), out=out)
        self._newton.predict(at, out)
        return norm(out)

    def confirm(self, at: Iterate, out: Vector) -> float:
        """Write a step by the Hessian at a point into `out` (n,); return its norm.

        For n > LARGEST_MATRIX it is that of at most CONFIRMING conjugate gradients.
        """
        if self._by_newton and not self._pairs.count:
            return self.propose(at, out)
        if self._evaluate.weighted_work >= self._sparse_due:
            self._by_newton = self._newton.structure is not None
            if self._compute_sparse(at):
                return self._newton_step(at, out)
        if len(at.x) > LARGEST_MATRIX:
            cg = NewtonCG(self._evaluate, at, self._delta_bar)
            return cg.truncated(at, out, RESIDUAL, CONFIRMING)
        return self.propose(at, out) if self._compute(at) else self.fallback(at, out)

    def recover(self) -> None:
        """Continue: there is no other direction."""

    def fallback(self, at: Iterate, out: Vector) -> float:
        """Write −γg into `out`, γ from the last pair or the first curvature.

        A matrix whose step is not suitable is computed again soon.
        """
        self._newton.forget()
        if self._H is not None and self._due < math.inf:
            self._due = min(self._due, self._computed + AGAIN * 2.0 * len(at.x))
        gamma = self._gamma or min(self._delta_bar / at.gnorm, LARGEST)
        return along_minus(at, gamma, out)

    def learn(self, pair: SecantPair) -> None:
        self.hessian = None
        if self._H is None:
            self._pairs.learn(pair)
            self._gamma = self._pairs.gamma or self._gamma
            return
        s, y, sy = pair.s, pair.y, pair.sy
        gamma = curvature_scale(pair, self._eps)
        if not gamma:
            return
        self._gamma = gamma
        # H − u (Hy)ᵀ − Hy uᵀ + (1 + yᵀHy/⟨s,y⟩) u sᵀ, by a symmetric pair of products.
        H, u = self._H, s / sy
        w = H.dot(y)
        w -= (0.5 * (sy + float(y.dot(w)))) * u
        change = np.multiply.outer(u, w)
        H -= change
        H -= change.T

    @property
    def estimate(self) -> QuasiNewton:
        return self

    def store(self, loop: LoopState, at: Iterate) -> bool:
        """Let a compiled loop work on the estimate in place; False where the next step cannot."""
        self.store_estimate(loop)
        begins = bool(loop.product) and self._evaluate.has_products
        has_estimate = self._H is not None or self._pairs.count > 0 or begins
        return has_estimate and not self._by_newton and self._evaluate.weighted_work < loop.until

    def store_estimate(self, loop: LoopState) -> None:
        """Let a compiled loop update the estimate in place."""
        self._pairs.store(loop)
        loop.H = 0 if self._H is None else address(self._H)
        loop.curvatures = 0 if self.curvatures is None else address(self.curvatures)
        loop.can_compute = self._arrays is not None and bool(loop.product)
        due = min(self._due, self._sparse_due)
        loop.due, loop.until = (due, math.inf) if loop.can_compute else (math.inf, due)
        loop.interval, loop.has_put_off = self._interval, self._has_put_off
        loop.work_computed = self._computed
        loop.work_began, loop.start_gnorm = self._began, self._first
        loop.own_gamma, loop.farthest = self._gamma, self._delta_bar

    def load(self, loop: LoopState, at: Iterate) -> None:
        """Read the state after steps of a compiled loop that end at a point."""
        self._pairs.load(loop)
        self._gamma, self.hessian = loop.own_gamma, None
        if self._arrays is None or not loop.can_compute:
            return
        self._due, self._interval = loop.due, loop.interval
        self._computed = loop.work_computed
        self._has_put_off = bool(loop.has_put_off)
        if loop.computed:
            self._H = self._arrays.estimate if self._H is None else self._H
            self.curvatures = self._arrays.diagonal.copy()
        if loop.confirmed:
            self.hessian = self._arrays.hessian.copy()

    def connect(
        self,
        inverse: InverseInC,
        arrays: HessianArrays | None,
    ) -> None:
        """Let compiled code compute Hessians, and steps of its loop in these arrays."""
        self.inverse_in_c, self._arrays = inverse, arrays

    def _first_length(self, at: Iterate) -> float:
        """1/|c|, with c the curvature of f along g; 0 if c is 0 or not finite."""
        along = at.g / at.gnorm
        product = np.empty_like(along)
        self._evaluate.hvp(at.x, along, product)
        return ratio(1.0, abs(float(along.dot(product))))

    def _compute(self, at: Iterate) -> bool:
        """Replace H by the inverse of the Hessian, made positive; False if that is impossible."""
        self._interval *= 2.0
        self._computed = self._evaluate.weighted_work
        found = self.inverse_in_c(at, self._delta_bar) if self.inverse_in_c else None
        if found is None:
            hessian = whole_hessian(self._evaluate, at.x)
            found = hessian, inverse_magnitude(hessian, self._evaluate.eps, at, self._delta_bar)
        hessian, result = found
        self._due = self._evaluate.weighted_work + self._interval
        if result is None:
            return False
        self._H, self.curvatures, self.hessian = result, np.diag(hessian).copy(), hessian
        self._gamma = ratio(float(at.g.dot(result @ at.g)), at.gnorm, at.gnorm)
        return True


def elements_for(evaluate: Evaluator) -> int:
    """The elements of pairs whose vectors take about as long per step as an evaluation."""
    if not evaluate.operations:
        return ELEMENTS
    return int(min(ELEMENTS, SHORT + evaluate.operations / PER_ELEMENT))
