"""Proved bounds on both extreme eigenvalues of symmetric matrices and of interval matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.midpoint_radius import Bounded, exact, normalised
from slomodel.bounds.arithmetic.rounding import (
    SMALLEST_NORMAL,
    Array,
    down_add,
    up_add,
    up_div,
    up_ldexp,
    up_mul,
)
from slomodel.bounds.norms.spectral_norm import DENSE_LIMIT, spectral_norm
from slomodel.bounds.stopping import pause


@dataclass(frozen=True, slots=True)
class SpectralInterval:
    """Every eigenvalue lies in [low, high]; an end without a proof is infinite."""

    low: float
    high: float

    @property
    def magnitude(self) -> float:
        """Upper bound on the norm of the matrix."""
        return max(-self.low, self.high)

    def meet(self, low: float, high: float) -> SpectralInterval:
        """The intersection with another interval of the same eigenvalues."""
        return SpectralInterval(max(self.low, low), min(self.high, high))

    def widened(self, by: float) -> SpectralInterval:
        """The interval of the eigenvalues of S + E for every symmetric E with ‖E‖ <= `by`."""
        low, high = float(down_add(self.low, -by)), float(up_add(self.high, by))
        return SpectralInterval(low, high)


UNKNOWN = SpectralInterval(-math.inf, math.inf)


def spectral_interval(H: Interval, *, signs: bool = True) -> SpectralInterval:
    """The interval of all eigenvalues of all symmetric matrices in H (n, n).

    Without `signs`, rows of unlike units are not scaled to show that all have the same sign.

    With M the symmetric part of the midpoints and R their radii, λ(S) is within ‖R‖ of λ(M) for
    every symmetric S in H (Weyl).
    """
    with np.errstate(all="ignore"):
        rad = H.rad
        M = Bounded(H.mid, np.maximum(rad, rad.T)).symmetric()
    if not (np.isfinite(M.value).all() and np.isfinite(M.error).all()):
        return UNKNOWN
    if not M.value.size:
        return SpectralInterval(math.inf, -math.inf)
    result = _of_matrix(M.value).widened(spectral_norm(M.error))
    for low, sign in ((result.low, 1.0), (-result.high, -1.0)) if signs else ():
        if not low > 0.0 and (sign * np.diag(M.value) > 0.0).all():
            end = _definite(H if sign > 0.0 else -H)
            result = result.meet(end, math.inf) if sign > 0.0 else result.meet(-math.inf, -end)
    return result


def unit_scales(H: Array) -> Array:
    """Powers of two a_i near |h_ii|^-½: with them diag(a) H diag(a) is scaled exactly."""
    root = np.sqrt(np.maximum(np.abs(np.diag(H)), SMALLEST_NORMAL))
    return np.asarray(np.ldexp(1.0, 1 - np.frexp(root)[1]))


def _definite(H: Interval) -> float:
    """Lower bound on λ_min that is positive where the matrix scaled to a unit diagonal shows it;
    -inf otherwise.

    With S = diag(a) H diag(a), λ_min(H) >= λ_min(S) / max a² where λ_min(S) >= 0 (Ostrowski). Rows
    of unlike units, as in regression, hide the sign of λ_min(H) itself.
    """
    a = unit_scales(H.mid)
    if (a == a[0]).all():
        return -math.inf  # the same units: nothing is hidden
    with np.errstate(all="ignore"):
        S = H.each(lambda array: a[:, np.newaxis] * array * a)
        M = Bounded(S.mid, np.maximum(S.rad, S.rad.T)).symmetric()
    if not (np.isfinite(M.value).all() and np.isfinite(M.error).all()):
        return -math.inf
    low = _of_matrix(M.value).widened(spectral_norm(M.error)).low
    largest = float(np.max(a))
    return -float(up_div(-low, float(up_mul(largest, largest)))) if low > 0.0 else -math.inf


def _of_matrix(S: Array) -> SpectralInterval:
    """The interval of the eigenvalues of a symmetric S, from its computed eigenpairs V, Λ:

        |λ_k(S) - λ_k(VΛVᵀ)| <= ‖S - VΛVᵀ‖ and |λ_k(VΛVᵀ) - λ_k(Λ)| <= |λ_k(Λ)| ‖VᵀV - I‖

    by Weyl and Ostrowski, as the eigenvalues of VᵀV are within the last norm of 1.
    """
    if len(S) > DENSE_LIMIT:
        norm = spectral_norm(S)
        return SpectralInterval(-norm, norm)
    pause()
    B, e = normalised(S)
    values, V = np.linalg.eigh(B.value)
    vectors = exact(V)
    defect = (vectors.transposed @ vectors - exact(np.eye(len(S)))).norm
    residual = (B - vectors.columns_times(values) @ vectors.transposed).norm
    low, high = float(values[0]), float(values[-1])
    least = up_add(-low, up_add(up_mul(abs(low), defect), residual))
    most = up_add(high, up_add(up_mul(abs(high), defect), residual))
    return SpectralInterval(-float(up_ldexp(float(least), e)), float(up_ldexp(float(most), e)))
