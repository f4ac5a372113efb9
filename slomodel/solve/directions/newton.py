"""Newton directions from the dense Hessian, for few unknowns."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from slomodel.solve.directions.direction import SecantPair, of_search_length
from slomodel.solve.norms import EPS, Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate

LARGEST_DENSE = 300
# Eigenvalues are raised to SMALLEST·eps times the largest: below that their sign may be rounding.
SMALLEST = 16.0

Product = Callable[[Vector, Vector, Vector], None]
"""(x, v, out), all (n,): writes the product of a matrix at x with v into `out`."""


class Newton:
    """v = −S V |Λ|⁻¹ Vᵀ S g, where S H S = V Λ Vᵀ and the scaling S gives H a unit diagonal.

    Negative eigenvalues are replaced by their absolute values. Nocedal & Wright, Numerical
    Optimization (2006), Section 3.4.
    """

    wants_pairs = False
    predicting = None
    in_c = None
    kind = ""

    def __init__(self, evaluate: Evaluator, start: Iterate, delta_bar: float) -> None:
        self.units: Vector | None = None
        self._evaluate = evaluate
        self._delta_bar = delta_bar

    def propose(self, at: Iterate, out: Vector) -> float:
        H = whole_hessian(self._evaluate, at.x)
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
        return of_search_length(at, self._delta_bar, out)


def inverse_magnitude(
    H: Vector, eps: float, at: Iterate | None = None, longest: float = math.inf
) -> Vector | None:
    """S V |Λ|⁻¹ Vᵀ S (n, n) of H, in the notation of `Newton`; None if it is 0 or not finite.

    With the point, elements of Λ are raised where the part of the step along their vector would be
    longer than `longest` and ‖x‖, or where a step of that length would change f by less than
    rounding does: unknowns on which f hardly depends would hide all others. Steps limited to less
    than ‖x‖ would look like convergence far out.
    """
    parts = _magnitude(H, eps)
    if parts is None:
        return None
    scale, values, vectors = parts
    vectors *= scale[:, None]
    if at is not None and longest < math.inf:
        longest = max(longest, norm(at.x))
        lengths = np.sqrt(np.einsum("ij,ij->j", vectors, vectors)) / longest
        values = np.maximum(values, np.abs(at.g @ vectors) * lengths)
        values = np.maximum(values, eps * abs(at.f) * lengths * lengths)
    inverse: Vector = (vectors / values) @ vectors.T
    return inverse if np.isfinite(inverse).all() else None


def _magnitude(H: Vector, eps: float) -> tuple[Vector, Vector, Vector] | None:
    """The diagonal of S (n,), that of |Λ| (n,) and V (n, n); None if H is 0 or not finite."""
    if not np.isfinite(H).all():
        return None
    scale = balance(H, eps)
    values, vectors = np.linalg.eigh(scale[:, None] * H * scale)
    values = np.abs(values)
    largest = float(values.max(initial=0.0))
    if largest == 0.0:
        return None
    return scale, np.maximum(values, SMALLEST * eps * largest), vectors


def positive(H: Vector, eps: float) -> Vector | None:
    """S⁻¹ V |Λ| Vᵀ S⁻¹ (n, n) of H, in the notation of `Newton`; None if it is 0 or not finite."""
    parts = _magnitude(H, eps)
    if parts is None:
        return None
    scale, values, vectors = parts
    B: Vector = ((vectors * values) @ vectors.T) / scale / scale[:, None]
    return B


def dense(product: Product, x: Vector) -> Vector:
    """The symmetric matrix (n, n) of products at x (n,) with the unit vectors, symmetrised."""
    matrix = np.empty((len(x), len(x)))
    for unit, row in zip(np.eye(len(x)), matrix, strict=True):
        product(x, unit, row)
    return 0.5 * (matrix + matrix.T)


def whole_hessian(evaluate: Evaluator, x: Vector) -> Vector:
    """The Hessian (n, n) at x (n,), symmetrised; by one call of compiled code if possible."""
    in_c = evaluate.columns_in_c
    columns = None if in_c is None else in_c(x)
    return dense(evaluate.hvp, x) if columns is None else 0.5 * (columns + columns.T)


def balance(H: Vector, eps: float = EPS) -> Vector:
    """The scaling (n,) of the variables that brings the diagonal of H (n, n) to ±1 where possible.

    A diagonal element h_i below eps·h_ij²/h_j, which is impossible for H ⪰ 0, is raised to that
    value, so that the scaling is equivariant under changes of units.
    """
    H = np.abs(H)
    diagonal = np.diag(H)
    inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0.0)
    size = np.maximum(diagonal, eps * (H * (H * inverse)).max(axis=1, initial=0.0))
    # If h_j = 0 for every nonzero h_ij, the diagonal contains no information about the units.
    size = np.where(size > 0.0, size, eps * H.max(axis=1, initial=0.0))
    return np.where(size > 0.0, 1.0 / np.sqrt(np.where(size > 0.0, size, 1.0)), 1.0)
