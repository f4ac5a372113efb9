"""The least eigenvalue of a Hessian: estimated by Lanczos, bounded by a factorisation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slomodel.solve.directions.newton_cg import Products
from slomodel.solve.norms import EPS, Vector, norm

# Limits on the Hessian products of one estimate, and on the numbers in the Lanczos basis.
MOST_STEPS = 150
MOST_NUMBERS = 50_000_000
# A negative Ritz value is converged enough to step along it if its residual is below this fraction
# of it.
CLOSE = 0.05
# Rounding error of a Hessian product, in units of eps·√n·‖H‖.
NOISE = 16.0
LARGEST_SHOWN = 2_000
_ONE = np.ones((1, 1))


@dataclass(frozen=True, slots=True)
class Ritz:
    """A Rayleigh quotient `value` of the Hessian with its unit vector (n,).

    `residual` is ‖Hv − value·v‖, `largest` an estimate of ‖H‖, `steps` the number of products used,
    and `eps` their rounding unit.
    """

    value: float
    vector: Vector
    residual: float
    largest: float
    steps: int
    eps: float = EPS

    @property
    def noise(self) -> float:
        """Eigenvalues of up to this magnitude may be rounding only."""
        return NOISE * self.eps * math.sqrt(len(self.vector)) * self.largest


def least_eigenvalue(
    evaluate: Products,
    x: Vector,
    start: Vector,
    most: int = MOST_STEPS,
) -> Ritz | None:
    """The least Ritz value at x (n,) after up to `most` products; None if H is not finite.

    Lanczos with full reorthogonalisation, from the vector `start` (n,). It stops
    once a negative value has converged.
    """
    n = len(x)
    most = min(n, most, max(2, MOST_NUMBERS // n))
    basis = np.empty((most, n))
    w = start.copy()
    np.divide(w, norm(w), out=basis[0])
    T = np.zeros((most, most))
    for k in range(most):
        evaluate.hvp(x, basis[k], w)
        if not np.isfinite(w).all():
            return None
        T[k, k] = float(basis[k].dot(w))
        for _ in range(2):
            w -= (basis[: k + 1] @ w) @ basis[: k + 1]
        beside = norm(w)
        values, vectors = np.linalg.eigh(T[: k + 1, : k + 1]) if k else (T[0, :1], _ONE)
        residual = beside * abs(float(vectors[-1, 0]))
        v = vectors[:, 0] @ basis[: k + 1]
        result = Ritz(
            float(values[0]),
            v / norm(v),
            residual,
            float(np.abs(values).max()),
            k + 1,
            evaluate.eps,
        )
        converged = residual <= CLOSE * -result.value and result.value < -result.noise
        if converged or k + 1 == most or beside <= result.noise:
            break
        T[k, k + 1] = T[k + 1, k] = beside
        np.divide(w, beside, out=basis[k + 1])
    return result


def shown_above(H: Vector, bound: float, eps: float) -> bool:
    """Whether a Cholesky factorisation proves that all eigenvalues of H (n, n) are ≥ `bound`.

    The factorisation is of H − (bound + e)·I, with e for its rounding errors and those of the
    products that gave H, of unit `eps`: if it exists, the matrix itself has no eigenvalue below −e.
    Rump, Verification of positive definiteness (2006), Theorem 2.3.
    """
    n = len(H)
    if not (0 < n <= LARGEST_SHOWN and np.isfinite(H).all()):
        return False
    A = H.copy()
    A[np.diag_indices(n)] -= bound
    size = float(np.abs(np.diag(A)).sum())
    products = NOISE * eps * math.sqrt(n) * norm(A.ravel())
    A[np.diag_indices(n)] -= 2.0 * (n + 2) * EPS * size + products
    try:
        np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return False
    return True
