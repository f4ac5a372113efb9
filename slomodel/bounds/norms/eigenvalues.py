"""Proved bounds on both extreme eigenvalues of symmetric matrices and of interval matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slomodel.bounds.arithmetic.bounded import Bounded, exact, normalised
from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import (
    Array,
    down_add,
    up_add,
    up_ldexp,
    up_mul,
)
from slomodel.bounds.norms.spectral import DENSE_LIMIT, spectral_norm
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


def spectral_interval(H: Interval) -> SpectralInterval:
    """The interval of all eigenvalues of all symmetric matrices in H (n, n).

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
    return _of_matrix(M.value).widened(spectral_norm(M.error))


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
