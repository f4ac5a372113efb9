"""Steps whose descent is proved by bounds along the ray, without trial values.

With φ(t) = f(x + t v), the upper end s < 0 of φ'(0), M >= sup φ'' and M₃ >= sup φ''' over [0, T],

    φ(t) - φ(0) <= m(t) = min(s t + M t²/2, s t + φ''(0) t²/2 + M₃ t³/6)   for 0 <= t <= T.

The step minimises m: it is the better of the minimisers of the parabola and of the cubic. Its
descent is at least that of the parabola, |s|/2 · min(T, |s|/M), which gives the paper's second
inequality with M in place of L1, and at least σ|s|t with σ = ½, its first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slomodel.calculus.rays.bounds import RayBounds
from slomodel.solve.line_search.armijo import Found
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate

# The fraction σ of |s|t that every step descends at least.
SIGMA = 0.5
# Factor by which T changes where it limits the step, or where nothing is proved.
LONGER, SHORTER = 2.0, 0.25
# Where the step is shorter than T by this factor, a shorter ray may prove a longer step.
FAR = 8.0
# T of the next search is this multiple of the step.
MARGIN = 1.5
# Largest number of bounds in one search.
BOUNDS = 60


@dataclass(frozen=True, slots=True)
class ProvedStep:
    """A step t, the bound M on the curvature over [0, T], and whether T limits the step."""

    t: float
    curvature: float
    limited: bool


def proved_step(found: RayBounds) -> ProvedStep | None:
    """The minimiser of the majorant over [0, T]; None where no descent is proved."""
    T = found.T
    slope = found.slope + found.slope_error
    M = found.upper
    if not (slope < 0.0 and math.inf > M and T > 0.0):
        return None
    t = T if slope + M * T <= 0.0 else -slope / M
    fall = slope * t + 0.5 * M * t * t
    start, third = found.curvature + found.curvature_error, found.third_upper
    if math.isfinite(start) and math.isfinite(third):
        other = _minimiser(slope, start, third, T)
        lower = other * (slope + other * (0.5 * start + third * other / 6.0))
        if lower < fall and lower <= SIGMA * slope * other:
            t = other
    return ProvedStep(t, M, t >= T) if t > 0.0 else None


def _minimiser(s: float, c: float, m: float, end: float) -> float:
    """The first zero of s + c t + m t²/2 in (0, T], s < 0; T if there is none."""
    discriminant = c * c - 2.0 * s * m
    if discriminant < 0.0:
        return end
    below = c + math.sqrt(discriminant)
    t = -2.0 * s / below if below > 0.0 else end
    return min(t, end)


class CertifiedSearch:
    """Steps of proved descent. T follows the steps, grows where it limits one, and shrinks where
    nothing, or only a far shorter step, is proved. `trials` is the number of bounds computed in the
    last search.

    The descent is that of the exact point; the computed one is off by the rounding of x + t v.
    """

    def __init__(self, evaluate: Evaluator, start: Iterate) -> None:
        self.trials = 0
        self.step: ProvedStep | None = None
        self._evaluate = evaluate
        self._length = math.inf
        self._spare = Iterate(np.empty_like(start.x), 0.0, np.empty_like(start.g), 0.0)

    def search(self, at: Iterate, v: Vector, vnorm: float, longest: float) -> Found | None:
        """Search from `at` along v (n,) for δ <= `longest`; None if no step is proved.

        The accepted point is stored in arrays that the second search after this one overwrites.
        """
        self.trials = 0
        self.step = best = self._longest_proved(at, v, vnorm, longest)
        if best is None:
            return None
        delta, new = best.t, self._spare
        np.multiply(v, delta, out=new.x)
        new.x += at.x
        if np.array_equal(new.x, at.x):
            return None
        new.f = self._evaluate.value(new.x)
        new.gnorm = self._evaluate.gradient(new.x, new.g)
        if not (-math.inf < new.f < math.inf and math.isfinite(new.gnorm)):
            return None
        self._length = MARGIN * delta * vnorm
        self._spare = at
        return Found(new, delta, by_rounding=not new.f < at.f)

    def _longest_proved(
        self, at: Iterate, v: Vector, vnorm: float, longest: float
    ) -> ProvedStep | None:
        """The longest step found: T grows where it limits the step, and becomes the geometric mean
        of both where the step is far shorter, as the bound over a long ray may be loose.
        """
        end = min(self._length / vnorm, longest)
        best: ProvedStep | None = None
        loose: float | None = None
        while self.trials < BOUNDS and end > 0.0:
            self.trials += 1
            found = self._evaluate.ray_bounds(at.x, v, end)
            if found.slope + found.slope_error >= 0.0:
                return best
            step = proved_step(found)
            if step is None:
                if best is not None:
                    return best
                end *= SHORTER
                continue
            if best is not None and step.t <= best.t:
                return best
            best = step
            if FAR * step.t < end:
                loose, end = end, math.sqrt(end * step.t)
            elif not step.limited or end >= longest:
                return best
            else:
                end = min(LONGER * end if loose is None else math.sqrt(end * loose), longest)
        return best
