"""The part of a set in a ball around one of its points: the set of an epoch with constraints."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slomodel.solve.norms import EPS, LARGEST, Vector, norm
from slomodel.solve.sets.convex_set import Set

# The distance from the centre is computed up to this multiple of its rounding error.
NEAR = 4.0
# Bisections of the multiplier; each halves the interval of its logarithm or of itself.
HALVINGS = 200
# Steps are shortened to this length, in units of max(1, ‖centre‖).
FARTHEST = 1e100


@dataclass(frozen=True, slots=True)
class WithinBall:
    """{x in `within` : ‖x − centre‖ ≤ radius}, for a convex set and a point `centre` (n,) of it.

    Interior, margin and boundary are those of the ball.
    """

    within: Set
    centre: Vector
    radius: float

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        near = norm(np.subtract(x, self.centre)) <= self.radius + slack
        return near and self.within.contains(x, slack)

    def in_interior(self, x: Vector) -> bool:
        return norm(np.subtract(x, self.centre)) < self.radius

    def in_margin(self, x: Vector, d: float) -> bool:
        return norm(np.subtract(x, self.centre)) >= self.radius - d

    def shrunk(self, d: float) -> WithinBall:
        return WithinBall(self.within, self.centre, self.radius - d)

    def project(self, x: Vector, out: Vector) -> bool:
        moved = self.within.project(x, out)
        if norm(np.subtract(out, self.centre)) <= self.radius:
            return moved
        self._on_ray(np.subtract(x, self.centre), 1.0, out)
        return True

    def project_step(self, x: Vector, g: Vector, gnorm: float, L: float, out: Vector) -> bool:
        """The projection of x − g/L; True if the ball, and not `within` alone, moved it.

        With w = L(x − c) − g it is a point p(t) = P(c + tw), 0 < t ≤ 1/L, P the projection on
        `within`: p(1/L) if that is in the ball, else the p(t) on its boundary. For μ = 1/(Lt) − 1
        it satisfies the conditions of the nearest point in the intersection with the multiplier μ
        of the ball.
        """
        with np.errstate(over="ignore"):
            ray = L * (x - self.centre) - g
            longest = self._longest(ray, L)
            self._place(ray, longest, out)
            if norm(np.subtract(out, self.centre)) <= self.radius:
                return False
            self._on_ray(ray, longest, out)
        return True

    def step_within(self, x: Vector, g: Vector, L: float, out: Vector) -> None:
        """Write the projection of x − g/L on `within`, whatever the ball, into `out`, all (n,)."""
        ray = L * (x - self.centre) - g
        self._place(ray, self._longest(ray, L), out)

    def _longest(self, ray: Vector, L: float) -> float:
        """1/L, or less if only the direction of the ray is left at that distance."""
        size = norm(ray)
        farthest = FARTHEST * max(1.0, norm(self.centre)) / size if size > 0.0 else LARGEST
        return min(1.0 / L if L > 0.0 else LARGEST, farthest, LARGEST)

    def _place(self, ray: Vector, t: float, out: Vector) -> None:
        np.multiply(ray, t, out=out)
        out += self.centre
        self.within.project(out, out)

    def _on_ray(self, ray: Vector, longest: float, out: Vector) -> None:
        """Write p(t) with ‖p(t) − c‖ = radius up to rounding, 0 < t < longest, into `out` (n,).

        The distance increases with t and is at most t‖w‖, since P is nonexpansive and P(c) = c;
        the point returned is on the near side.
        """
        low, high = self.radius / norm(ray), longest
        at_low = 0.0
        at_high = math.inf
        rounding = NEAR * EPS * (self.radius + norm(self.centre))
        t = low
        for k in range(HALVINGS):
            self._place(ray, t, out)
            distance = norm(np.subtract(out, self.centre))
            if self.radius - rounding <= distance <= self.radius:
                return
            if distance <= self.radius:
                low, at_low = t, distance
            else:
                high, at_high = t, distance
            if high <= low * (1.0 + EPS):
                break
            t = between(low, high)
            # Every other time the point where a chord of the distance reaches the radius.
            if k % 2 and at_high < math.inf:
                chord = low + (self.radius - at_low) / (at_high - at_low) * (high - low)
                t = chord if low < chord < high else t
        self._place(ray, low, out)


def between(low: float, high: float) -> float:
    """The middle of 0 < low < high, of their logarithms if they are far apart."""
    if high > 4.0 * low:
        return math.sqrt(low) * math.sqrt(high)
    return low + 0.5 * (high - low)
