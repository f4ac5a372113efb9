"""`second_order=True`: leave stationary points at which the Hessian is not ⪰ 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.constants.proved import ProofSource
from slomodel.solve.directions.newton import dense
from slomodel.solve.facts import ObjectiveFacts
from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.quadratics.dense import completed
from slomodel.solve.run.stationary_point import (
    SoFar,
    falls_beyond,
    least_on_face,
    loosened_face,
)
from slomodel.solve.stagnation.curvature import (
    LARGEST_SHOWN,
    MOST_STEPS,
    Ritz,
    least_eigenvalue,
    shown_above,
)
from slomodel.solve.stagnation.resolution import ROUNDING
from slomodel.solve.subroutine import Iterate

# A run lingers if f has decreased by less than the fraction LINGERING in STEPS steps and ‖g‖ is
# below the fraction NEAR of its largest value. After a test that gained less, the next one is due
# after GROWTH times as many steps.
LINGERING = 1e-4
STEPS = 20
NEAR = 1e-5
GROWTH = 3
# Steps along ±v are tried from this times max(1, ‖x‖) downwards, each half the previous one: where
# the Hessian almost vanishes, a significant decrease is far from the saddle.
FARTHEST = 4.0
HALVINGS = 60
# The fraction of the decrease |λ|t²/2 that a step of length t must attain.
SIGMA = 0.3
# Radii of balls, in units of max(1, ‖x‖), over which L2 is bounded.
RADII = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
AT_VERTEX = "At this vertex of the set no direction is left, or the Hessian is not finite."
NOT_JUDGED = "The run ended before second_order had judged its last point, which may be a saddle."


class SaddleWatch:
    """Tests for negative curvature where a run lingers or ends, and steps along it.

    For λ = vᵀHv < 0, ⟨g,v⟩ ≤ 0 and L2 over a ball that contains the step, f decreases by at least
    2|λ|³/(3·L2²) at t = 2|λ|/L2; longer steps often gain far more.
    """

    def __init__(self, evaluate: Evaluator, prove: ProofSource | None, seed: int) -> None:
        self.left = 0
        self._evaluate = evaluate
        self._prove = prove
        self._generator = np.random.default_rng(seed)
        self._f = math.inf
        self._since = 0
        self._largest = 0.0
        self._patience = STEPS
        self._seen: Vector | None = None
        self._last: Ritz | None = None
        self._judged = NOT_JUDGED

    def due(self, at: Iterate) -> bool:
        """Record an accepted point; True if the run lingers."""
        if at.f < self._f - LINGERING * abs(self._f):
            self._f, self._since = at.f, 0
        self._since += 1
        self._largest = max(self._largest, at.gnorm)
        return self._since >= self._patience and at.gnorm <= NEAR * self._largest

    def leave(self, at: Iterate, so_far: SoFar | None = None) -> Iterate | None:
        """A lower point along a direction of negative curvature; None if there is none.

        With `so_far`, at the end of a run, directions of almost no curvature are tried too, as at
        an inflection.
        """
        if self._seen is not None and np.array_equal(self._seen, at.x):
            return None
        self._last = self._least(at)
        result = None
        if self._last is not None and self._is_negative(at.x, self._last):
            result = self._lower(at, self._last)
        if result is None and self._last is not None and so_far is not None:
            beyond = falls_beyond(self._evaluate, at, so_far)
            result = self._at(beyond.x, beyond.f) if beyond else None
        self._since = 0
        if result is None:
            self._seen = at.x.copy()
            self._patience *= GROWTH
            return None
        self.left += 1
        gained = result.f < at.f - LINGERING * abs(at.f)
        self._f, self._patience = result.f, STEPS if gained else GROWTH * self._patience
        return result

    def _least(self, at: Iterate) -> Ritz | None:
        """The least Ritz value, in a set that on the face of the point."""
        within, start = self._evaluate.within, self._generator.standard_normal(len(at.x))
        if not len(start):
            return None
        if within is None:
            return least_eigenvalue(self._evaluate, at.x, start)
        face = loosened_face(within, at)
        return least_on_face(self._evaluate, face, at, start, MOST_STEPS)

    def _is_negative(self, x: Vector, ritz: Ritz) -> bool:
        """Whether the curvature is negative beyond rounding, as estimated or as proved."""
        if ritz.value < -ritz.noise:
            return True
        return ritz.value < 0.0 and self._proved(x, ritz) < 0.0

    def _proved(self, x: Vector, ritz: Ritz) -> float:
        """A proved upper bound on the curvature along the Ritz vector; inf without a proof."""
        return math.inf if self._prove is None else self._prove.curvature_above(x, ritz.vector)

    @property
    def verdict(self) -> str:
        """The result of the tests about saddles and about the last point, as text."""
        return f"{saddles_left(self.left)} {self._judged}" if self.left else self._judged

    def judge(self, at: Iterate, tolerance: float) -> None:
        """Determine what is known about the least eigenvalue λ of the Hessian at the last point."""
        self._judged = self._said_of(at, tolerance)

    def _said_of(self, at: Iterate, tolerance: float) -> str:
        last, within = self._last, self._evaluate.within
        if last is None:
            return AT_VERTEX if within or not len(at.x) else "The Hessian is not finite."
        proof = self._constant(at.x, lambda L2: 2.0 * math.sqrt(tolerance / L2))
        if proof is not None:
            bound = -math.sqrt(proof * tolerance)
            if self._is_shown(at, bound):
                return f"λ ≥ −√(L2·gtol) = {bound:.3g} is shown, with L2 = {proof:.3g}."
        shown = self._proved(at.x, last) if last.value < 0.0 else math.inf
        if shown < 0.0:
            return f"λ ≤ {shown:.3g} is proved, but no step along it lowers the objective."
        if last.value < -last.noise:
            return f"λ ≤ {last.value:.3g}, but no step along it lowers the objective."
        steps = f"{last.steps} Lanczos step{'' if last.steps == 1 else 's'}"
        return f"λ < 0 is not refuted: {steps} found {last.value:.3g}."

    def _is_shown(self, at: Iterate, bound: float) -> bool:
        """Whether all eigenvalues are proved to be ≥ `bound`, in a polyhedron those on the face."""
        evaluate, within = self._evaluate, self._evaluate.within
        if len(at.x) > LARGEST_SHOWN or not (within is None or within.polyhedral):
            return False
        H = dense(evaluate.hvp, at.x)
        if within is not None and np.isfinite(H).all():
            H = completed(H, loosened_face(within, at))
        return shown_above(H, bound, evaluate.eps)

    def _lower(self, at: Iterate, ritz: Ritz) -> Iterate | None:
        """The lowest of the points along ±v with sufficient decrease, with its gradient.

        If there is none, it is the certified step, provided that L2 has a proof.
        """
        farthest = FARTHEST * max(1.0, norm(at.x))
        lengths = [farthest * 0.5**k for k in range(HALVINGS)]
        return self._lowest(at, ritz, lengths) or self._lowest(at, ritz, self._certified(at, ritz))

    def _lowest(self, at: Iterate, ritz: Ritz, lengths: Sequence[float]) -> Iterate | None:
        """The lowest of the points at ±t, for each length t, with sufficient decrease."""
        noise = ROUNDING * self._evaluate.eps * abs(at.f)
        best: tuple[float, float] | None = None
        for t in lengths:
            if SIGMA * 0.5 * -ritz.value * t * t <= noise:
                continue
            needed = at.f + SIGMA * 0.5 * ritz.value * t * t
            for step in (t, -t):
                f = self._evaluate.value(self._evaluate.inside(at.x + step * ritz.vector))
                if -math.inf < f <= (needed if best is None else min(needed, best[0])):
                    best = (f, step)
        if best is None:
            return None
        return self._at(self._evaluate.inside(at.x + best[1] * ritz.vector), best[0])

    def _at(self, x: Vector, f: float) -> Iterate | None:
        """The point x (n,) with its value f and gradient; None if that is not finite."""
        g = np.empty_like(x)
        gnorm = self._evaluate.gradient(x, g)
        return Iterate(x, f, g, gnorm) if math.isfinite(gnorm) else None

    def _certified(self, at: Iterate, ritz: Ritz) -> tuple[float, ...]:
        """The certified length 2|λ|/L2, if L2 has a proof."""
        L2 = self._constant(at.x, lambda L2: -2.0 * ritz.value / L2)
        return (-2.0 * ritz.value / L2,) if L2 else ()

    def _constant(self, x: Vector, step: Callable[[float], float]) -> float | None:
        """L2 over a ball that contains a step of length step(L2); None without a proof."""
        for share in RADII if self._prove else ():
            assert self._prove is not None
            radius = share * max(1.0, norm(x))
            L2 = self._prove(x, radius).L2
            if not math.isfinite(L2):
                return None
            if L2 == 0.0 or radius >= step(L2):
                return L2
        return None


def saddles_left(number: int) -> str:
    """The sentence about the saddles that a run has left."""
    return f"{number} saddle{'' if number == 1 else 's'} left."


def watch_of(
    wanted: bool,
    facts: ObjectiveFacts,
    evaluate: Evaluator,
    prove: ProofSource | None,
    seed: int,
) -> SaddleWatch | None:
    """The saddle watch if `second_order` is set; DomainError without Hessian products."""
    if not wanted:
        return None
    if not facts.curvature:
        message = "second_order=True needs products with the Hessian, which are not given"
        raise DomainError(Diagnostic("E604", message, help="leave it out, or compile a model"))
    return SaddleWatch(evaluate, prove, seed)
