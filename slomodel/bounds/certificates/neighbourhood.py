"""The largest balls round x on which f is proved to be convex, or to have one critical point."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Array, Truths, down_add, up_div, up_mul
from slomodel.bounds.certificates.critical_point import distance_from_identity
from slomodel.bounds.norms.eigenvalues import spectral_interval
from slomodel.bounds.norms.spectral_norm import spectral_norm
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.result import Bounds
from slomodel.bounds.spectrum import hessian_over_ball

BoundsAt = Callable[[float], Bounds]
"""The bounds over the ball of a radius round x."""
_LEAST, _MOST = 1e-12, 1e6
"""The radii that are searched, relative to max(1, ‖x‖)."""
_EVALUATIONS = 10
"""Bounds over balls that a search may take, each as expensive as a call of `bounds`."""
_CLOSE = 1.25
"""The search ends once the radius is known to this factor."""
_GROWTH = 32.0
"""Factor to the next radius where a proof succeeds."""


class Neighbourhood(Protocol):
    """Statements proved over balls around x, by radius, about ±f in the free unknowns."""

    def least(self, radius: float) -> float:
        """Lower bound on λ_min over the ball."""

    def convex(self, radius: float) -> float:
        """A radius up to `radius` within which λ_min >= 0 is proved; 0 for none."""

    def single(self, radius: float) -> float:
        """A radius up to `radius` within which x* is proved to be the only critical point, or 0."""


@dataclass(frozen=True, slots=True)
class ByEntries:
    """By intervals for the entries of the Hessian over the ball, for moderate n.

    R near H(x)⁻¹ proves uniqueness: of two critical points y, z in the ball 0 = R (∇f(y) - ∇f(z)) =
    R M (y - z) with a mean M of the Hessians between, and ‖I - R M‖ < 1 then shows y = z.
    """

    part: ObjectivePart
    free: Truths
    sign: float
    R: Array | None = None

    def least(self, radius: float) -> float:
        H = self._hessian(radius)
        if H is None:
            return -math.inf
        result = spectral_interval(H)
        return result.low if self.sign > 0.0 else -result.high

    def convex(self, radius: float) -> float:
        return radius if self.least(radius) >= 0.0 else 0.0

    def single(self, radius: float) -> float:
        H = self._hessian(radius)
        if H is None or self.R is None:
            return 0.0
        return radius if spectral_norm(distance_from_identity(self.R, H)) < 1.0 else 0.0

    def _hessian(self, radius: float) -> Interval | None:
        H = hessian_over_ball(self.part, radius)
        if H is None or not (np.isfinite(H.lo).all() and np.isfinite(H.hi).all()):
            return None
        return H.each(lambda array: array[np.ix_(self.free, self.free)])


@dataclass(frozen=True, slots=True)
class ByBounds:
    """By the Lipschitz constant of the Hessian and the ends of its spectrum, for any n.

    `centre` is a lower bound on λ_min at x itself. `restricted`: some unknowns are held, so that
    bounds on the whole spectrum do not apply. For uniqueness let β >= `inverse` = ‖H(x)⁻¹‖ and x*
    be within `distance` of x. H averaged between x* and another critical point within ρ <= r
    differs from H(x) by at most L2 (distance + ρ)/2, and would be singular: none exists where β L2
    (distance + ρ) < 2 (Kantorovich 1948).
    """

    at: BoundsAt
    sign: float
    centre: float
    restricted: bool
    inverse: float = math.inf
    distance: float = math.inf

    def least(self, radius: float) -> float:
        result = self.at(radius)
        by_slope = float(down_add(self.centre, -float(up_mul(radius, result.L2))))
        if self.restricted:
            return by_slope
        return max(by_slope, result.lower if self.sign > 0.0 else -result.upper)

    def convex(self, radius: float) -> float:
        if self.least(radius) >= 0.0:
            return radius
        L2 = self.at(radius).L2
        return max(0.0, -float(up_div(-self.centre, L2))) if 0.0 < L2 < math.inf else 0.0

    def single(self, radius: float) -> float:
        L2 = self.at(radius).L2
        bound = math.inf if math.isinf(L2) else float(up_mul(self.inverse, L2))
        if bound == 0.0:
            return radius
        own = float(down_add(-float(up_div(-2.0, bound)), -self.distance))
        return max(0.0, min(radius, math.nextafter(own, -math.inf)))


def largest_radius(proved: Callable[[float], float], scale: float) -> float:
    """A large radius for which `proved` holds; `proved` returns its argument if the whole ball is
    proved, and less otherwise. The search is geometric, and ends within a factor of `_CLOSE` or of
    its evaluations.
    """
    low, high, radius = 0.0, math.inf, 0.01 * scale
    for _ in range(_EVALUATIONS):
        result = proved(radius)
        low = max(low, result)
        if result < radius:
            high = radius
        if high < math.inf:
            radius = math.sqrt(low) * math.sqrt(high) if low > 0.0 else high / _GROWTH
        else:
            radius *= _GROWTH
        if high <= _CLOSE * low or not _LEAST * scale <= radius <= _MOST * scale:
            break
    return low
