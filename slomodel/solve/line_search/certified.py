"""Steps whose descent is proved by bounds along the ray, without trial values.

With φ(t) = f(x + t v), the upper end s < 0 of φ'(0), and bounds M and M₃ on the remainders of
Taylor's polynomials over [0, T], which are at most sup φ'' and sup φ''',

    φ(t) - φ(0) <= m(t) = min(s t + M t²/2, s t + φ''(0) t²/2 + M₃ t³/6)   for 0 <= t <= T.

The step minimises m: it is the better of the minimisers of the parabola and of the cubic. Its
descent is at least that of the parabola, |s|/2 · min(T, |s|/M), which gives the paper's second
inequality with M in place of L1, and at least σ|s|t with σ = ½, its first.

Along −∇f exact minimisers zigzag between two directions (Akaike 1959). Steps that are shorter by a
constant factor ρ do not (Raydan and Svaiter 2002), and descend by at least ρ(2 − ρ) of the above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slomodel.calculus.rays.bounds import RayBounds
from slomodel.solve.line_search.armijo import AcceptedTrial
from slomodel.solve.line_search.proved_values import ProvedValues
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.status import Status
from slomodel.solve.subroutine import Halt, Iterate

# The fraction σ of |s|t that every step descends at least.
SIGMA = 0.5
# The factor ρ of steps along −∇f. On Rosenbrock's functions, phase retrieval, linear autoencoders
# and Lennard-Jones clusters 0.8 took 0.4 to 0.8 of the steps that 1 did.
RELAXATION = 0.8
# Factor by which T changes where it limits the step, or where nothing is proved.
LONGER, SHORTER = 2.0, 0.25
# T is at most this multiple of the last step. Along −∇f the few steps that are much longer than the
# others are those that gain most: with 2 in its place after loose bounds, Student's t took twice as
# many steps, and Rosenbrock's function more than twice.
REACH = 12.0
# Where the step is shorter than T by this factor, a shorter ray may prove a longer step.
FAR = 8.0
# No shorter ray is tried for a step of at least this part of the one that the curvature at the
# start would allow.
CLOSE = 0.5
# A slope with a larger relative error is computed again in extended precision: a step loses about
# that part of its length, which costs steps in a run that ends at rounding.
UNSURE = 0.1
# Largest number of bounds in one search.
BOUNDS = 60


@dataclass(frozen=True, slots=True)
class ProvedStep:
    """A step t, M of φ(0) + φ'(0)t + M t²/2 over [0, T], and whether T limits the step."""

    t: float
    curvature: float
    limited: bool


def proved_step(bounds: RayBounds, relaxation: float = 1.0) -> ProvedStep | None:
    """The minimiser of the majorant over [0, T]; None where no descent is proved.

    A minimiser inside is multiplied by ρ = `relaxation` if ρ(2 − ρ) of the parabola's descent is
    left.
    """
    T = bounds.T
    slope = bounds.slope + bounds.slope_error
    M = bounds.remainder_upper
    if not (slope < 0.0 and math.inf > M and T > 0.0):
        return None
    t = T if slope + M * T <= 0.0 else -slope / M
    fall = slope * t + 0.5 * M * t * t
    start, third = bounds.curvature + bounds.curvature_error, bounds.third_remainder_upper
    if math.isfinite(start) and math.isfinite(third):
        other = _minimiser(slope, start, third, T)
        lower = other * (slope + other * (0.5 * start + third * other / 6.0))
        if lower < fall and lower <= SIGMA * slope * other:
            t = other
    if t < T and majorant(bounds, relaxation * t) <= descent_left(relaxation) * fall:
        return ProvedStep(relaxation * t, M, False) if relaxation * t > 0.0 else None
    return ProvedStep(t, M, t >= T) if t > 0.0 else None


def descent_left(relaxation: float) -> float:
    """ρ(2 − ρ): the part of a parabola's descent that ρ times its minimiser has, less roundings."""
    return relaxation * (2.0 - relaxation) * (1.0 - 1e-9)


def balanced(bounds: RayBounds) -> float:
    """T whose parabola has its minimiser at T, if M grows from φ''(0) with the square of T.

    That is c T + b T³ = |s|. It grows faster where the bound is loose, so that T is too short.
    """
    slope = abs(bounds.slope + bounds.slope_error)
    start = max(bounds.curvature, 0.0)
    growth = max(bounds.remainder_upper - start, 0.0) / (bounds.T * bounds.T)
    if not 0.0 < growth < math.inf:
        return SHORTER * bounds.T
    T = min(slope / start if start > 0.0 else math.inf, math.cbrt(slope / growth), bounds.T)
    for _ in range(3):  # Newton's steps, from above after the first one
        T -= (T * (start + growth * T * T) - slope) / (start + 3.0 * growth * T * T)
    return T


def majorant(bounds: RayBounds, t: float) -> float:
    """Upper bound on φ(t) - φ(0), 0 <= t <= T: the lesser of parabola and cubic."""
    slope = bounds.slope + bounds.slope_error
    start = bounds.curvature + bounds.curvature_error
    parabola = t * (slope + 0.5 * bounds.remainder_upper * t)
    cubic = t * (slope + t * (0.5 * start + bounds.third_remainder_upper * t / 6.0))
    return min(parabola, cubic) if cubic < math.inf else parabola


def _minimiser(s: float, c: float, m: float, end: float) -> float:
    """The first zero of s + c t + m t²/2 in (0, T], s < 0; T if there is none."""
    discriminant = c * c - 2.0 * s * m
    if discriminant < 0.0:
        return end
    below = c + math.sqrt(discriminant)
    t = -2.0 * s / below if below > 0.0 else end
    return min(t, end)


class CertifiedSearch:
    """Steps of proved descent, of at least σ|s|t.

    A step that `values` prove comes first; `step` is None then. Where they prove none,
    a proposed step is taken if bounds along the ray prove it, and otherwise the step minimises the
    majorant over [0, T]: T follows the steps, grows after one that it limits, and shrinks where
    nothing, or only a far shorter step, is proved. `trials` is the number of bounds computed in the
    last search; `unproved` states why it ended without a step, if rounding hides the slope.

    Along rays the descent is that of the exact point; the computed one is off by the rounding of
    x + t v.
    """

    def __init__(
        self,
        evaluate: Evaluator,
        start: Iterate,
        sigma: float = SIGMA,
        relaxation: float = 1.0,
        values: ProvedValues | None = None,
    ) -> None:
        self.trials = 0
        self.step: ProvedStep | None = None
        self.unproved = ""
        self._evaluate = evaluate
        self._sigma = sigma
        self._relaxation = relaxation
        self._values = values
        self._length = math.inf
        self._precise: RayBounds | None = None
        self._spare = Iterate(np.empty_like(start.x), 0.0, np.empty_like(start.g), 0.0)

    def search(
        self, at: Iterate, v: Vector, vnorm: float, longest: float, proposed: float = math.inf
    ) -> AcceptedTrial | None:
        """Search from `at` along v (n,) for δ <= `longest`; None if no step is proved.

        The accepted point is stored in arrays that the second search after this one overwrites.
        """
        self.trials = 0
        self.unproved = ""
        self._precise = self.step = None
        if self._values is not None:
            accepted = self._values.search(at, v, vnorm, min(longest, proposed))
            self.trials = self._values.trials
            if accepted is not None:
                self._length = accepted.delta * vnorm
                return accepted
        self.step = best = self._longest_proved(at, v, vnorm, longest, proposed)
        if best is None:
            return None
        delta, new = best.t, self._spare
        np.multiply(v, delta, out=new.x)
        new.x += at.x
        if np.array_equal(new.x, at.x):
            return None
        new.f, new.gnorm = self._evaluate.value_and_gradient(new.x, new.g)
        if not (-math.inf < new.f < math.inf and math.isfinite(new.gnorm)):
            return None
        self._length = delta * vnorm
        self._spare = at
        return AcceptedTrial(new, delta, by_rounding=not new.f < at.f)

    def _longest_proved(
        self, at: Iterate, v: Vector, vnorm: float, longest: float, proposed: float
    ) -> ProvedStep | None:
        """The proposed step or the longest found.

        Where the step is far shorter than T, as the bound over a long ray may be loose, T becomes
        what quadratic growth of M would allow, and grows again where it then limits the step: to
        the minimiser for this M, if that is longer.
        """
        end = min(REACH * self._length / vnorm, longest, proposed)
        best: ProvedStep | None = None
        loose, error = math.inf, math.inf
        while self.trials < BOUNDS and end > 0.0:
            self.trials += 1
            bounds = self._bounds_over(at, v, end)
            step = proved_step(bounds, self._relaxation)
            if step is None:
                if best is not None:
                    return best
                if not bounds.slope + bounds.slope_error < 0.0:
                    # The error includes what the range of the ray adds to it, unless it stays.
                    if bounds.slope >= 0.0:
                        return None
                    if bounds.slope_error >= 0.5 * error and error < math.inf:
                        self.unproved = (
                            f"The slope {bounds.slope / vnorm:.3g} is below the bound on its "
                            f"rounding error, {bounds.slope_error / vnorm:.3g}."
                        )
                        return None
                    error = bounds.slope_error
                end *= SHORTER
                continue
            slope = bounds.slope + bounds.slope_error
            if end == proposed and majorant(bounds, end) <= self._sigma * slope * end:
                return ProvedStep(end, bounds.remainder_upper, True)
            if best is not None and step.t <= best.t:
                return best
            best = step
            minimiser = -slope / bounds.remainder_upper if bounds.remainder_upper > 0.0 else 0.0
            if FAR * step.t < end and not self._is_close(step, bounds):
                loose, end = end, balanced(bounds)
            elif not step.limited or end >= longest:
                return best
            elif loose < math.inf:
                if end * FAR >= loose:
                    return best
                end = math.sqrt(end * loose)
            else:
                end = min(max(LONGER * end, min(minimiser, REACH * end)), longest)
        return best

    @property
    def at_floor(self) -> bool:
        """Whether rounding in doubles hid most of the slope of the last search."""
        return self._precise is not None

    def _bounds_over(self, at: Iterate, v: Vector, end: float) -> RayBounds:
        """The bounds over [0, T], T = `end`, with the most precise slope that is known."""
        bounds = self._evaluate.ray_bounds(at.x, v, end)
        if bounds.slope_error <= UNSURE * abs(bounds.slope) or bounds.remainder_upper == math.inf:
            return bounds
        if self._precise is None:
            self._precise = self._evaluate.ray_bounds(at.x, v, end, precise=True)
        slope, error = self._precise.slope, self._precise.slope_error
        return bounds._replace(slope=slope, slope_error=min(error, bounds.slope_error))

    def _is_close(self, step: ProvedStep, bounds: RayBounds) -> bool:
        """Whether a bound over a shorter ray, at least φ''(0), could not prove much more."""
        slope = bounds.slope + bounds.slope_error
        return bounds.curvature * step.t >= -CLOSE * self._relaxation * slope


def hidden(halt: Halt, why: str) -> Halt:
    """The halt where rounding hides the slope from proofs, if not from values of f too."""
    if halt.status is not Status.line_search_stalled:
        return halt
    sentence = "No step has a descent that can be proved in floating point."
    return Halt(halt.status, why, halt.best, "Go on with line_search='armijo'.", sentence)
