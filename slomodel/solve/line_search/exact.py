"""Exact line search for polynomials, whose restriction to a ray has few coefficients."""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial import Polynomial

from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.scaled_descent import spacing
from slomodel.solve.subroutine import Iterate

# Interpolation beyond this degree loses more than half the digits.
LARGEST_DEGREE = 16
# Nodes lie in [NEAREST_NODE·T, T]: value and slope at 0 are known, and near 0 the values of f
# differ by rounding only.
NEAREST_NODE = 0.2
# A minimiser t is accepted if t/T lies in RESOLVED; otherwise the nodes are placed again with
# another T, at most PLACINGS times in all.
RESOLVED = (0.1, 1.5)
PLACINGS = 12
# T is MARGIN times the expected or last computed minimiser, but changes by factors within CHANGES,
# since a minimiser far from T is inaccurate. Where f is not finite, T is reduced by the least
# factor.
MARGIN = 1.25
CHANGES = (1e-3, 10.0)
# Leading coefficients below this fraction of the largest are rounding error, and would cost digits
# of the roots.
LOST = 1e-13
NEWTON_STEPS = 3
SHORTEST = float(np.finfo(np.float64).tiny)


class Ray:
    """The minimiser of f along rays from the points of one run, for a polynomial f of known degree.

    φ(t) = f(x + tv) is φ(0) + φ'(0)t + t²q(t), with q interpolated at degree − 1 Chebyshev nodes.
    The minimum is over those t that satisfy Armijo's condition, so that the theorems about that
    rule apply.
    """

    def __init__(self, evaluate: Evaluator, degree: int, sigma: float, start: Iterate) -> None:
        self._evaluate = evaluate
        self._sigma = sigma
        count = max(degree - 1, 0)
        angles = np.pi * (np.arange(count) + 0.5) / max(count, 1)
        middle = 0.5 * (1.0 + NEAREST_NODE)
        self._nodes = middle + (1.0 - middle) * np.cos(angles)
        self._trial = np.empty_like(start.x)
        self._expected = math.inf

    def minimiser(
        self, at: Iterate, v: Vector, vnorm: float, slope: float, longest: float
    ) -> float | None:
        """The minimiser t in (0, longest] of f(x + tv), slope = ⟨g,v⟩/‖v‖; None if not found.

        A step below the spacing of numbers near x is rounding; the next call then has no estimate
        to start from.
        """
        apart = spacing(at.x, v)
        shortest = max(self._evaluate.eps * apart, SHORTEST) if apart < math.inf else SHORTEST
        top = min(longest, MARGIN * self._expected / vnorm)
        minimiser, farthest = None, longest
        for _ in range(PLACINGS):
            if top < shortest:
                break
            poly = self._along(at, v, slope * vnorm, top)
            if poly is None:
                top *= CHANGES[0]
                continue
            minimiser = top * self._least(poly, farthest / top)
            low, high = RESOLVED
            if low * top <= minimiser <= min(high * top, longest) or minimiser == 0.0:
                break
            if minimiser < low * top:
                # The interpolant at nodes close to 0 is dominated by rounding far beyond them.
                farthest = low * top
            least, most = (top * change for change in CHANGES)
            top = min(longest, max(least, min(most, MARGIN * minimiser)))
        if minimiser is None or minimiser < shortest:
            self._expected = math.inf
            return None
        self._expected = minimiser * vnorm
        return min(minimiser, longest)

    def _along(self, at: Iterate, v: Vector, slope: float, top: float) -> Polynomial | None:
        """φ(top·s) − φ(0) as a polynomial in s; None where a value is not finite."""
        rest = np.empty_like(self._nodes)
        for k, s in enumerate(self._nodes):
            np.multiply(v, top * s, out=self._trial)
            self._trial += at.x
            change = self._evaluate.value(self._trial) - at.f
            rest[k] = (change - top * s * slope) / s**2
        if not (np.isfinite(rest).all() and math.isfinite(top * slope)):
            return None
        linear = Polynomial([0.0, top * slope])
        if not rest.size:
            return linear
        q = Polynomial.fit(self._nodes, rest, rest.size - 1, domain=[NEAREST_NODE, 1.0])
        return linear + Polynomial([0.0, 0.0, 1.0]) * q.convert()

    def _least(self, poly: Polynomial, most: float) -> float:
        """The minimiser s in (0, most] of poly below Armijo's line of slope σ·poly'(0); 0 if none.

        The intersections with the line are candidates too: the minimiser itself may lie above it.
        """
        if len(poly) < 2:
            # The ray is so short that every change of f is lost to rounding.
            return 0.0
        line = Polynomial([0.0, self._sigma * float(poly.coef[1])])
        candidates = [most, *_positive_roots(poly.deriv()), *_positive_roots(poly - line)]
        below = [s for s in candidates if s <= most and poly(s) <= line(s) * (1.0 - 1e-9)]
        return float(min(below, key=poly, default=0.0))


def _positive_roots(poly: Polynomial) -> list[float]:
    coefficients = poly.coef
    scale = np.abs(coefficients).max()
    if not scale > 0.0:
        return []
    roots = np.asarray(Polynomial(coefficients / scale).trim(LOST).roots(), dtype=complex)
    real = roots.real[np.abs(roots.imag) <= 1e-8 * np.abs(roots)]
    return [_polished(poly, float(root)) for root in real if root > 0.0]


def _polished(poly: Polynomial, root: float) -> float:
    """A root refined by Newton's method: a small leading coefficient costs small roots digits."""
    slope = poly.deriv()
    for _ in range(NEWTON_STEPS):
        below = float(slope(root))
        step = float(poly(root)) / below if below else 0.0
        if not abs(step) < 0.5 * root:
            break
        root -= step
    return root
