"""Levenberg–Marquardt directions from the Jacobian of residuals, and quasi-Newton directions."""

from __future__ import annotations

from typing import Literal

import numpy as np

from slomodel.solve.compiled.jacobians import JacobianArrays, jacobian_arrays
from slomodel.solve.compiled.loop import LoopState
from slomodel.solve.directions.direction import DirectionInC, Predicting, SecantPair
from slomodel.solve.directions.mixed_newton import MixedNewton
from slomodel.solve.directions.quasi_newton import QuasiNewton
from slomodel.solve.directions.variable_projection import VariableProjection, is_finite
from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate

# The length of a step is limited to SHORTEN times the last one after a ratio of actual to predicted
# decrease below POOR or a rejected trial, and to LENGTHEN times the last one after a ratio above
# GOOD. At first the limit is the length of x0, or the residual if x0 = 0. Lengths are in units in
# which columns have length 1.
POOR, GOOD = 0.25, 0.75
SHORTEN, LENGTHEN = 0.25, 2.0
# Accuracy to which a step has the length of its limit.
CLOSE = 0.1
# Lengths of columns are forgotten by this factor per step: from a start far away they may have been
# larger by 1e40 than they are near the solution.
FORGET = 0.1
# A length below this fraction of the one before says that the region was another.
FAR = 1e-6
# A step is slow if f and the part of the residual in the range of J both stay above this fraction.
# After PATIENCE slow steps in a row quasi-Newton steps take over for as much work as was spent.
SLOW, PATIENCE = 0.7, 4
# Affine unknowns are not moved to their best values after a whole Gauss–Newton step, the one before
# it as good as predicted, whose predicted decrease is below SMALL times f: that would lower f by
# terms of higher order. They are again below TINY, where best values hold to all digits.
SMALL, TINY = 1e-4, 1e-8
# Trials of one step with its affine unknowns at their best values.
CORRECTIONS = 8


class LevenbergMarquardt:
    """v = −(JᵀJ + λD²)⁻¹ Jᵀr for f = Σ r², D the recent largest lengths of the columns of J.

    λ is 0, or such that ‖Dv‖ is a limit that follows the ratio of the actual to the predicted
    decrease; after a rejected trial `bend` proposes a shorter step. The system is solved by the
    singular values of J. Where these steps are slow, as with large residuals of large curvature,
    quasi-Newton steps alternate with them; every step updates the quasi-Newton matrix. A run that
    stalls continues with `MixedNewton`. Unknowns in which r is affine are moved to their best
    values after every trial (`VariableProjection`). Moré, The Levenberg-Marquardt algorithm (1978).
    """

    wants_pairs = True
    units: Vector | None = None

    def __init__(self, evaluate: Evaluator, start: Iterate, delta_bar: float) -> None:
        self._evaluate = evaluate
        self._other = QuasiNewton(evaluate, start, delta_bar)
        self._mixed = MixedNewton(evaluate, start, delta_bar)
        self._stalled = False
        self._lengths = np.zeros_like(start.x)
        self._limit = 0.0
        self._length = 0.0
        self._active = evaluate.has_residuals
        self._began = self._until = evaluate.weighted_work
        self._slow = 0
        self._f = start.f
        self._predicted = self._in_range = 0.0
        self._s = np.empty(0)
        self._V = np.empty((0, 0))
        self._Ur = np.empty(0)
        self._square = 0.0
        self._was_good = self._is_whole = self._is_damped = False
        self._J: Vector | None = None
        self._r = np.empty(0)
        self._change = np.empty(0)
        self._x = np.empty(0)
        evaluate.own_gradient = self._gradient
        self._in_c: JacobianArrays | Literal[False] | None = False
        self._projection = VariableProjection(evaluate)

    @property
    def compiled(self) -> str:
        """The compiled loop that takes the next steps."""
        return "least_squares" if self._active else self._other.compiled

    @property
    def memory(self) -> int:
        """The largest number of pairs."""
        return self._other.memory

    def recover(self) -> None:
        """Continue with `MixedNewton`, which depends least on the units of the variables."""
        self._stalled, self._active = True, False

    def propose(self, at: Iterate, out: Vector) -> float:
        self._is_damped = False
        if self._stalled:
            vnorm = self._mixed.propose(at, out)
            self.units = self._mixed.units
            return vnorm
        if not self._active and self._evaluate.weighted_work >= self._until:
            self._active = self._evaluate.has_residuals
            self._predicted = self._in_range = 0.0
            self._began, self._slow = self._evaluate.weighted_work, 0
        if not (self._active and self._factorise(at)):
            return self._propose_other(at, out)
        self._is_damped = True
        return self._solve(at, out)

    @property
    def predicting(self) -> Predicting:
        return self

    @property
    def in_c(self) -> DirectionInC:
        return self

    @property
    def curvatures(self) -> Vector | None:
        return self._other.curvatures

    @property
    def hessian(self) -> Vector | None:
        return self._other.hessian

    @property
    def kind(self) -> str:
        if self._stalled:
            return "Gauss-Newton or Newton"
        return "Levenberg-Marquardt" if self._active else self._other.kind

    @property
    def bends(self) -> bool:
        """Whether the last proposal can be followed by one with a larger λ.

        A step by the whole Hessian cannot, nor one of a compiled loop, whose factors stay there.
        """
        return self._active and self._is_damped

    def bend(self, at: Iterate, out: Vector) -> float:
        """Write the next shorter step into `out` (n,); return its norm."""
        self._limit = SHORTEN * self._length
        return self._solve(at, out)

    def confirm(self, at: Iterate, out: Vector) -> float:
        """Write the step by the whole Hessian at a point into `out` (n,); return its norm."""
        self._predicted, self._is_damped = 0.0, False
        return self._other.confirm(at, out)

    def fallback(self, at: Iterate, out: Vector) -> float:
        self._predicted, self._is_damped = 0.0, False
        return self._other.fallback(at, out)

    def learn(self, pair: SecantPair) -> None:
        if self._stalled:
            self._mixed.learn(pair)
        if self._active and pair.own:
            pair = SecantPair(pair.s, pair.y, pair.sy, pair.snorm, pair.ynorm, own=False)
        self._other.learn(pair)

    @property
    def estimate(self) -> QuasiNewton:
        """The quasi-Newton directions."""
        return self._other

    def store(self, loop: LoopState, at: Iterate) -> bool:
        """Let a compiled loop work on the estimate in place; False where it cannot."""
        if self._stalled:
            return False
        if not self._active:
            self._predicted, self.units = 0.0, None
            stored = self._other.store(loop, at)
            if not self._evaluate.has_residuals:
                return stored
            loop.until = min(loop.until, self._until)
            return stored and self._evaluate.weighted_work < self._until
        if self._in_c is False:
            n = len(at.x)
            residuals = self._evaluate.compiled_residuals()
            self._in_c = jacobian_arrays(loop, residuals, *self._projection.positions(n))
        if self._in_c is None:
            return False
        self._other.store_estimate(loop)
        r, J = self._jacobian(at.x)
        self._in_c.store(loop, r, J, self._lengths)
        loop.limit, loop.length, loop.last_f = self._limit, self._length, self._f
        loop.predicted, loop.in_range, loop.slow = self._predicted, self._in_range, self._slow
        loop.was_good, loop.is_whole = self._was_good, self._is_whole
        return True

    def load(self, loop: LoopState, at: Iterate) -> None:
        """Read the state after steps of a compiled loop that end at a point."""
        self._other.load(loop, at)
        self._is_damped = False
        if not self._active:
            return
        assert self._in_c
        self._evaluate.has_own_gradients = True
        self._r, self._J = self._in_c.load()
        self._x = at.x.copy()
        self.units = 1.0 / np.where(self._lengths == 0.0, 1.0, self._lengths)
        self._limit, self._length, self._f = loop.limit, loop.length, loop.last_f
        self._predicted, self._in_range, self._slow = loop.predicted, loop.in_range, loop.slow
        self._was_good, self._is_whole = bool(loop.was_good), bool(loop.is_whole)
        if loop.gave_up:
            self._leave()

    def _gradient(self, x: Vector, out: Vector) -> bool:
        """Write 2 Jᵀr at a trial point x (n,) into `out`; False while J is not used.

        The next step needs J there, so that the gradient costs nothing more.
        """
        if not self._active:
            return False
        r, J = self._jacobian(x)
        np.matmul(r, J, out=out)
        out *= 2.0
        return True

    def _jacobian(self, x: Vector) -> tuple[Vector, Vector]:
        """The residuals (m,) and J (m, n) at x (n,); those of the last point are cached."""
        if self._J is None or not (x == self._x).all():
            self._r, self._J = self._projection.jacobian(x)
            self._x = x.copy()
        return self._r, self._J

    def _propose_other(self, at: Iterate, out: Vector) -> float:
        self._predicted = 0.0
        self.units = None
        return self._other.propose(at, out)

    def _factorise(self, at: Iterate) -> bool:
        """J = U diag(s) V at a point, and the limit from the last step; False on leaving."""
        r, J = self._jacobian(at.x)
        if not is_finite(r, J):
            self._leave()
            return False
        lengths = np.sqrt(np.einsum("ij,ij->j", J, J))
        recent = FORGET * self._lengths
        recent[lengths < FAR * self._lengths] = 0.0
        np.maximum(recent, lengths, out=self._lengths)
        self.units = 1.0 / self._lengths
        if not self._lengths.all():
            self.units[self._lengths == 0.0] = 1.0
        self._change = self._projection.begin(r, J)
        U, self._s, self._V = np.linalg.svd(J * self.units, full_matrices=False)
        self._Ur = r.dot(U)
        self._square = float(r.dot(r))
        in_range = norm(self._Ur) / (norm(r) or 1.0)
        if not self._limit:
            self._limit = norm(self._lengths * at.x) or norm(self._Ur) or 1.0
        if self._predicted > 0.0:
            self._judge((self._f - at.f) / self._predicted)
            slow = at.f > SLOW * self._f and in_range > SLOW * self._in_range
            self._slow = self._slow + 1 if slow else 0
        self._f, self._in_range = at.f, in_range
        if self._slow < PATIENCE:
            return True
        self._leave()
        return False

    def _leave(self) -> None:
        self._active = False
        now = self._evaluate.weighted_work
        self._until = now + 2 * max(now - self._began, 10 * len(self._lengths))

    def _judge(self, ratio: float) -> None:
        """Adapt the limit to the ratio of the actual to the predicted decrease."""
        self._was_good = ratio > GOOD
        if ratio < POOR:
            self._limit = SHORTEN * self._length
        elif ratio > GOOD:
            self._limit = max(self._limit, LENGTHEN * self._length)

    def _solve(self, at: Iterate, out: Vector) -> float:
        """Write the step within the present limit into `out` (n,); return its norm.

        If a change of the affine unknowns alone lowers f much, that is the step; otherwise
        the limit is lowered.
        """
        for _ in range(CORRECTIONS):
            self._damped(at, out)
            if self._needs_no_correction or self._projection.correct(at, out):
                break
            if self._change.any():
                out[:] = self._change
                # The next Jacobian may be of another scale, and so may the limit.
                self._predicted = self._limit = 0.0
                self._lengths[:] = 0.0
                break
            self._limit = SHORTEN * self._length
        return norm(out)

    @property
    def _needs_no_correction(self) -> bool:
        small = TINY * self._square <= self._predicted <= SMALL * self._square
        return small and self._is_whole and self._was_good

    def _damped(self, at: Iterate, out: Vector) -> None:
        """Write the Levenberg–Marquardt step into `out` (n,)."""
        assert self.units is not None
        s, b = self._s, self._Ur
        V = self._V
        determined = s > len(s) * self._evaluate.eps * float(s.max(initial=0.0))
        if not determined.all():
            s, b, V = s[determined], b[determined], V[determined]
        damping = damping_of(s, b, self._limit)
        p = -s * b / (s * s + damping)
        self._length, self._is_whole = norm(p), damping == 0.0
        along = s * p
        self._predicted = float(along.dot(along)) + 2.0 * damping * float(p.dot(p))
        np.multiply(p @ V, self.units, out=out)


def damping_of(s: Vector, b: Vector, limit: float) -> float:
    """λ >= 0 with ‖p‖ about `limit`, p_i = s_i b_i/(s_i² + λ) for singular values s_i > 0.

    0 if that is within the limit. Newton's method on 1/‖p‖: Moré & Sorensen, Computing a trust
    region step (1983).
    """
    if not norm(b / s) > (1.0 + CLOSE) * limit or not limit > 0.0:
        return 0.0
    damping = 0.0
    for _ in range(50):
        divisor = s * s + damping
        p = s * b / divisor
        length = norm(p)
        if abs(length - limit) <= CLOSE * limit:
            break
        slope = float((p * p / divisor).sum()) / length if length > 0.0 else 0.0
        if slope == 0.0:
            break
        damping += (length / limit - 1.0) * length / slope
        damping = max(damping, 0.0)
    return damping
