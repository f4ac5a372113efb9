"""Newton directions from the whole Hessian, for few unknowns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slomodel.solve.directions.direction import SecantPair, along_minus
from slomodel.solve.norms import EPS, LARGEST, Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate

LARGEST_DENSE = 300
# Eigenvalues are lifted to SMALLEST·eps times the largest: below, their sign may be rounding.
SMALLEST = 16.0

Product = Callable[[Vector, Vector, Vector], None]
"""(x, v, out), all (n,): writes a matrix at x times v into `out`."""


class Newton:
    """v = −S V |Λ|⁻¹ Vᵀ S g, where S H S = V Λ Vᵀ and S scales H to a diagonal of ones.

    Nocedal & Wright, Numerical Optimization (2006), Section 3.4: eigenvalues made positive.
    """

    wants_pairs = False

    def __init__(self, evaluate: Evaluator, start: Iterate, delta_bar: float) -> None:
        self.units: Vector | None = None
        self._evaluate = evaluate
        self._delta_bar = delta_bar

    def propose(self, at: Iterate, out: Vector) -> float:
        H = dense(self._evaluate.hvp, at.x)
        if not np.isfinite(H).all():
            return self.fallback(at, out)
        self.units = scale = balance(H, self._evaluate.eps)
        values, vectors = np.linalg.eigh(scale[:, None] * H * scale)
        values = np.abs(values)
        largest = float(values.max(initial=0.0))
        if largest == 0.0:
            return self.fallback(at, out)
        inverse = 1.0 / np.maximum(values, SMALLEST * self._evaluate.eps * largest)
        np.matmul(vectors, inverse * ((scale * at.g) @ vectors), out=out)
        out *= -scale
        return norm(out)

    def learn(self, pair: SecantPair) -> None:
        pass

    def fallback(self, at: Iterate, out: Vector) -> float:
        return along_minus(at, min(self._delta_bar / at.gnorm, LARGEST), out)


def dense(product: Product, x: Vector) -> Vector:
    """The symmetric matrix (n, n) of the products at x (n,) with the unit vectors."""
    matrix = np.empty((len(x), len(x)))
    for unit, row in zip(np.eye(len(x)), matrix, strict=True):
        product(x, unit, row)
    return 0.5 * (matrix + matrix.T)


def balance(H: Vector, eps: float = EPS) -> Vector:
    """The scaling (n,) of variables that brings the diagonal of H (n, n) to ±1 where it can.

    A diagonal element h_i below eps·h_ij²/h_j, which cannot be where H ≥ 0, is lifted to that, so
    that the scaling is equivariant under changes of units.
    """
    H = np.abs(H)
    diagonal = np.diag(H)
    inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0.0)
    size = np.maximum(diagonal, eps * (H * (H * inverse)).max(axis=1, initial=0.0))
    # Where h_j = 0 for every nonzero h_ij, the diagonal says nothing of the units.
    size = np.where(size > 0.0, size, eps * H.max(axis=1, initial=0.0))
    return np.where(size > 0.0, 1.0 / np.sqrt(np.where(size > 0.0, size, 1.0)), 1.0)
