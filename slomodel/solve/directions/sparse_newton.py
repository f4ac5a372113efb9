"""The inverse of a sparse Hessian, factored by SuperLU or LAPACK, and made positive definite."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from slomodel.solve.coloured_hessian import Band, ColouredHessian, Sparse
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate

# The shift of the scaled Hessian, whose diagonal is ±1: the first one, the factor after a
# factorisation that is not positive definite or a rejected trial, and the divisor after a step of
# good prediction. A shift below NEGLIGIBLE becomes 0.
FIRST_SHIFT, RAISE, LOWER, NEGLIGIBLE, MOST_SHIFT = 1e-3, 4.0, 10.0, 1e-6, 1e6
# Operations of SuperLU for each column beyond those of the factor, a fraction of whose estimate its
# ordering saves; and those of an evaluation and a step beyond those of the objective.
COLUMN, FLOP, CALL = 500.0, 0.1, 5e4
# Ratios of the actual to the predicted decrease that are poor and good.
POOR, GOOD = 0.25, 0.75
# A Hessian is sparse if its pattern needs at most n/SPARSE products.
SPARSE = 4


class SparseNewton:
    """H⁻¹ ≈ S(SHS + τI)⁻¹S for a sparse Hessian H, whose diagonal the scaling S makes ±1.

    τ is the last one that sufficed, raised until the matrix is positive definite, which it is if
    and only if all pivots of its symmetric factorisation are positive. It follows the ratio of the
    actual to the predicted decrease. Nocedal & Wright, Numerical Optimization (2006), Section 3.4.
    """

    def __init__(self, evaluate: Evaluator, n: int) -> None:
        self.units: Vector | None = None
        self.curvatures: Vector | None = None
        self._evaluate = evaluate
        self._n = n
        self._shift = 0.0
        self._f = self._predicted = 0.0
        self._entries: Vector | None = None
        self._factor: Any = None

    @property
    def structure(self) -> ColouredHessian | None:
        """The pattern of H, if it is sparse enough."""
        return self._evaluate.coloured_hessian(self._n // SPARSE)

    @property
    def work(self) -> float:
        """Work of computing and factoring H, in values or gradients."""
        structure = self.structure
        assert structure is not None
        factoring = COLUMN * self._n + structure.fill + FLOP * structure.flops
        return 2.0 * structure.products + factoring / (CALL + self._evaluate.operations)

    def compute(self, at: Iterate) -> bool:
        """Compute H at a point; False if it is not finite or cannot be made positive definite."""
        structure = self.structure
        assert structure is not None
        if self._predicted > 0.0:
            self._judge((self._f - at.f) / self._predicted)
        self._predicted = 0.0
        entries = structure.entries(lambda v, Hv: self._evaluate.hvp(at.x, v, Hv))
        if not np.isfinite(entries).all():
            return False
        self._entries = entries
        diagonal = np.zeros(self._n)
        own = structure.rows == structure.columns
        diagonal[structure.rows[own]] = np.abs(entries[own])
        tiny = self._evaluate.eps * float(diagonal.max(initial=0.0))
        self.units = 1.0 / np.sqrt(np.where(diagonal > tiny, diagonal, tiny or 1.0))
        self.curvatures = diagonal
        return self._factorise()

    def apply(self, r: Vector) -> Vector:
        """The product of the inverse with r (n,)."""
        if self._factor is None:
            self._factorise()
        assert self.units is not None
        result: Vector = self._factor.solve(self.units * r)
        return self.units * result

    def predict(self, at: Iterate, v: Vector) -> None:
        """Note the decrease that H predicts for the Newton step v (n,) from a point."""
        assert self.units is not None
        # ⟨g,v⟩ + vᵀHv/2, with Hv = −g − τS⁻²v.
        p = v / self.units
        self._f = at.f
        self._predicted = -0.5 * float(at.g.dot(v)) + 0.5 * self._shift * float(p.dot(p))

    def raise_shift(self) -> bool:
        """Raise τ after a rejected trial; False if that is impossible."""
        self._shift = max(RAISE * RAISE * self._shift, FIRST_SHIFT)
        return self._factorise()

    def forget(self) -> None:
        """Discard the prediction, since another step is taken."""
        self._predicted = 0.0

    def _judge(self, ratio: float) -> None:
        if ratio < POOR:
            self._shift = max(RAISE * self._shift, FIRST_SHIFT)
        elif ratio > GOOD:
            self._shift = self._shift / LOWER if self._shift > NEGLIGIBLE else 0.0

    def _factorise(self) -> bool:
        """Factorise H with the least shift, from the present one on, that suffices."""
        structure = self.structure
        assert structure is not None
        assert self._entries is not None
        assert self.units is not None
        scaled = self.units[structure.rows]
        scaled *= self.units[structure.columns]
        scaled *= self._entries
        if structure.band is not None:
            factor = partial(positive_band, structure.band, scaled)
        else:
            factor = partial(positive_factor, structure.matrix(scaled))
        while self._shift <= MOST_SHIFT:
            self._factor = factor(self._shift)
            if self._factor is not None:
                return True
            self._shift = max(RAISE * self._shift, FIRST_SHIFT)
        return False


class BandFactor:
    """The Cholesky factor of a band matrix (n, n)."""

    def __init__(self, band: Band, factor: Vector) -> None:
        self._order = band.order
        self._factor = factor

    def solve(self, r: Vector) -> Vector:
        """The product of the inverse with r (n,)."""
        from scipy.linalg.lapack import dpbtrs

        result = np.empty_like(r)
        result[self._order], _ = dpbtrs(self._factor, r[self._order], lower=1)
        return result


def positive_band(band: Band, entries: Vector, shift: float) -> BandFactor | None:
    """The factor of H + shift·I from the entries of H, all in a band; None if not positive."""
    from scipy.linalg.lapack import dpbtrf

    n = len(band.order)
    elements = np.zeros((band.width + 1) * n)
    elements[band.at] = entries[band.chosen]
    elements[:: band.width + 1] += shift
    matrix = elements.reshape((band.width + 1, n), order="F")
    factor, failed = dpbtrf(matrix, lower=1, overwrite_ab=1)
    return None if failed else BandFactor(band, factor)


def positive_factor(H: Sparse, shift: float) -> Any:
    """The factorisation of H + shift·I (n, n), symmetric; None if that is not positive definite.

    Without exchanges of rows the pivots of LU are those of LDLᵀ, so that their signs are those of
    the eigenvalues.
    """
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    matrix = H if shift == 0.0 else (H + shift * eye_array(H.shape[0], format="csc")).tocsc()
    options = {"SymmetricMode": True}
    try:
        factor = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    except RuntimeError:
        # Exactly singular.
        return None
    same = bool((factor.perm_r == factor.perm_c).all())
    return factor if same and float(factor.U.diagonal().min(initial=1.0)) > 0.0 else None
