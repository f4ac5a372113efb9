"""H(c) and D³f(c) along the same directions: they need not be largest along the same one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.midpoint_radius import exact, midpoint
from slomodel.bounds.arithmetic.rounding import Array, up_add, up_mul, up_sqrt
from slomodel.bounds.centre import centre_hessian, third_along
from slomodel.bounds.norms.cubic_norm import square_norm
from slomodel.bounds.norms.spectral_norm import spectral_norm
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.refinements.series import Series

_MOST_VARIABLES = 300
"""Unknowns up to which H(c) is decomposed: its eigenvectors are a matrix of this order."""
_MOST_VECTORS = 6
"""Largest number of directions that are split off; D³f(c) is computed along each."""
_SPLITS = 2
"""Splits that are compared at each end: before the widest gaps between eigenvalues."""
_MOST_DEFECT = 1e-3
"""‖VᵀV - I‖ beyond which the computed eigenvectors are of no use."""
_FRACTIONS = (0.125, 0.25, 0.5, 0.75, 1.0)
"""Weights with exact complements: of the blockwise form against the norm of the whole."""


@dataclass(frozen=True, slots=True)
class Split:
    """v = p + q for a unit v, p in the span of eigenvectors of ±H(c) with the largest eigenvalues.

    |p|² `first` + |q|² `other` is an upper bound on ±vᵀH(c)v; `own` and `mixed` are upper bounds on
    ‖D³f(c)[·, p, p]‖ and ‖D³f(c)[·, p, q]‖ for unit p and q.
    """

    first: float
    other: float
    own: float
    mixed: float

    def growth(self, radius: float, third: float, moved: float = 0.0) -> float:
        """Upper bound on ±vᵀ(H(c) + D³f(c)[h])v for ‖h‖ <= r and ‖D³f(c)‖ <= `third`.

        The errors of `own` and `mixed` are at most `moved`. D³f(c)[h, v, v] is at most r third |v|²
        and at most r (own |p|² + 2 mixed |p| |q| + third |q|²), and so at most the mean of both
        with any weights (1 - τ, τ): the bound is the larger eigenvalue of a form in |p| and |q|.
        """
        z = up_add(self.other, up_mul(radius, third))
        least = up_add(self.first, up_mul(radius, third))
        own, mixed = up_add(self.own, moved), up_add(self.mixed, moved)
        for fraction in _FRACTIONS:
            slope = up_add(up_mul(fraction, own), up_mul(1.0 - fraction, third))
            x = up_add(self.first, up_mul(radius, slope))
            y = up_mul(fraction, up_mul(radius, mixed))
            half = up_mul(0.5, up_add(x, -z)) if x > z else up_mul(0.5, up_add(z, -x))
            root = up_sqrt(up_add(up_mul(half, half), up_mul(y, y)))
            least = min(least, up_add(up_mul(0.5, up_add(x, z)), root))
        return float(least)


@dataclass(slots=True)
class Aligned:
    """H(c) by eigenvectors V (n, n), decreasing eigenvalues, to within `off` in norm.

    V is within `defect` of an orthogonal matrix. The splits at both ends of the spectrum are
    computed when first needed.
    """

    part: ObjectivePart
    values: Array
    V: Array
    off: float
    defect: float
    splits: dict[bool, tuple[Split, ...]] = field(default_factory=dict)

    def growth(self, radius: float, third: float) -> float:
        """Upper bound on ‖H(c) + D³f(c)[h]‖ for ‖h‖ <= r and ‖D³f(c)‖ <= `third`.

        An end of the spectrum that stays below the other with the whole of D³f(c) added is not
        refined.
        """
        ends = {True: float(self.values[0]), False: -float(self.values[-1])}
        added, most = up_mul(radius, third), 0.0
        moved = float(up_mul(up_mul(3.0, self.defect), third))
        for is_upper in sorted(ends, key=lambda end: -ends[end]):
            least = float(up_add(up_add(ends[is_upper], self.off), added))
            if least > most and 0.0 < added < np.inf:
                for split in self._end(is_upper):
                    least = min(least, split.growth(radius, third, moved))
            most = max(most, least)
        return most

    def _end(self, is_upper: bool) -> tuple[Split, ...]:
        """The splits of H(c) or of -H(c) before the widest gaps between eigenvalues."""
        if is_upper not in self.splits:
            order = slice(None) if is_upper else slice(None, None, -1)
            values = self.values if is_upper else -self.values[::-1]
            self.splits[is_upper] = self._made(values, self.V[:, order])
        return self.splits[is_upper]

    def _made(self, values: Array, V: Array) -> tuple[Split, ...]:
        most = min(_MOST_VECTORS, len(values) - 1)
        gaps = values[:most] - values[1 : most + 1]
        chosen = np.argsort(-gaps, kind="stable")[:_SPLITS] + 1
        T = third_along(self.part, np.ascontiguousarray(V[:, : int(np.max(chosen))].T))
        if T is None or not np.isfinite(T.mid).all():
            return ()
        result = []
        for p in map(int, chosen):
            first, other = (float(up_add(float(values[k]), self.off)) for k in (0, p))
            result.append(Split(first, other, *_norms(Interval(T.lo[:p], T.hi[:p]), V, p)))
        return tuple(result)


def same_directions(part: ObjectivePart, series: Series) -> Series | None:
    """The series with a bound on H(c) and D³f(c) together."""
    own = aligned(part)
    return None if own is None else replace(series, growth=own.growth)


@once_per_part
def aligned(part: ObjectivePart) -> Aligned | None:
    """By the eigenvectors V of the computed H(c); None for many unknowns.

    With δ >= ‖VᵀV - I‖_F the orthogonal polar factor V̂ of V is within δ of it, and H(c) within
    `off` = ‖H(c) - VΛVᵀ‖ + 3 δ max|λ| of V̂ΛV̂ᵀ. For p = P̂α and q = Q̂β, with P and Q in the place
    of P̂ and Q̂, D³f(c)[·, p, p] and D³f(c)[·, p, q] change by at most 3 δ ‖D³f(c)‖.
    """
    H = centre_hessian(part) if 1 < part.n <= _MOST_VARIABLES else None
    return None if H is None else _by_eigenvectors(part, H)


def _by_eigenvectors(part: ObjectivePart, H: Interval) -> Aligned | None:
    if not np.isfinite(H.mid).all():
        return None
    near = midpoint(H).symmetric()
    values, V = np.linalg.eigh(near.value)
    values, V = values[::-1], np.ascontiguousarray(V[:, ::-1])
    largest, vectors = float(np.max(np.abs(values))), exact(V)
    defect = (vectors.transposed @ vectors - exact(np.eye(len(V)))).norm
    if not defect < _MOST_DEFECT:
        return None
    residual = (near - vectors.columns_times(values) @ vectors.transposed).norm
    off = up_add(residual, up_mul(3.0, up_mul(largest, defect)))
    return Aligned(part, values, V, float(off), float(defect))


def _norms(T: Interval, V: Array, p: int) -> tuple[float, float]:
    """Upper bounds on the norms of T[·, P, P] and T[·, P, Q], V = (P, Q), T (p, n, n) along P."""
    n = len(V)
    along = midpoint(T.each(lambda array: array.reshape(-1, n))) @ exact(V)
    image = along.value.reshape(-1, n, n)
    mixed = image[:, :, p:]
    unfolded = [mixed.reshape(p * n, -1), mixed.transpose(1, 0, 2).reshape(n, -1)]
    mixed_norm = min(spectral_norm(one) for one in unfolded)
    own_norm = square_norm(image[:, :, :p].transpose(0, 2, 1))
    return float(up_add(own_norm, along.error)), float(up_add(mixed_norm, along.error))
