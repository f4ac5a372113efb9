"""Newton's method for the KKT conditions, from points where it converges at once.

The constraints that the multiplier estimate y + ρc predicts to be active are treated as equations,
and the variables move in the face of their set. A step solves the quadratic program

    minimise ⟨∇L, d⟩ + ½⟨d, H d⟩  subject to  J d = −c on the active constraints

by a basis of the null space of J, which stands dependent constraints. It is taken if the reduced
Hessian is positive semidefinite, so that the steps lead to minima, and if the residual of the KKT
conditions falls by a constant factor. Birgin & Martínez, *Improving ultimate convergence of an
augmented Lagrangian method*, Optim. Methods Softw. 23 (2008).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slomodel.solve.constrained.objective import ConstrainedObjective, PrimalDual
from slomodel.solve.norms import EPS, Vector
from slomodel.solve.sets.convex_set import Mask, Set

LARGEST = 300
"""Most unknowns for which the matrices of a step are formed."""
FACTOR = 0.5
"""A step is taken if it multiplies the residual by at most this."""
# Singular values and eigenvalues below this fraction of the largest count as 0.
DEPENDENT = 1e-10
Found = Callable[[PrimalDual, float], bool]
"""(point, length of its step) -> whether to go on."""


def newton_steps(
    objective: ConstrainedObjective,
    at: PrimalDual,
    penalty: float,
    within: Set | None,
    found: Found,
) -> PrimalDual:
    """The last of a sequence of Newton steps, each of which was reported to `found`.

    It is `at` if already the first one does not reduce the residual.
    """
    equations = objective.equations
    while at.error > 0.0:
        active = equations | (at.y + penalty * at.c > 0.0)
        step = _step(objective, at, active, within)
        if step is None:
            return at
        d, y = step
        x = at.x + d
        if within is not None:
            within.project(x, x)
        new = PrimalDual.of(x, y, objective.evaluate(x, y), equations, within)
        descends = new.is_finite and new.error <= FACTOR * at.error
        length = float(np.linalg.norm(x - at.x))
        if not found(new if descends else at, length if descends else 0.0) or not descends:
            return new if descends else at
        at = new
    return at


def _step(
    objective: ConstrainedObjective, at: PrimalDual, active: Mask, within: Set | None
) -> tuple[Vector, Vector] | None:
    """The step d (n,) and the new multipliers (m,); None where there is no minimum."""
    n = objective.n
    y = np.where(active, at.y, 0.0)
    columns = [objective.product(at.x, y, unit) for unit in np.eye(n)]
    H = np.array([one[0] for one in columns])
    rows = np.array([one[1] for one in columns]).T
    if not (np.isfinite(H).all() and np.isfinite(rows).all()):
        return None
    H = 0.5 * (H + H.T)
    gradient = at.g - rows[~active].T @ at.y[~active]
    J = rows[active]
    basis = np.eye(n)
    if within is not None:
        face = within.face(at.x, gradient)
        if not face.whole:
            basis = _range(face.project(np.eye(n)))
        if face.shift is not None:
            H = H + np.diag(face.shift)
    B, A, g = basis.T @ H @ basis, J @ basis, basis.T @ gradient
    # The singular values of A show which constraints depend on others.
    U, s, Vt = np.linalg.svd(A, full_matrices=True)
    rank = int((s > DEPENDENT * max(1.0, s[0])).sum()) if s.size else 0
    U, s, V, Z = U[:, :rank], s[:rank], Vt[:rank].T, Vt[rank:].T
    normal = -V @ ((U.T @ at.c[active]) / s)
    along = Z.T @ (g + B @ normal)
    values, vectors = np.linalg.eigh(Z.T @ B @ Z)
    size = float(np.abs(B).max(initial=0.0))
    if values.size and values[0] < -DEPENDENT * size:
        return None
    curved = values > EPS * size
    tangential = -vectors[:, curved] @ ((vectors[:, curved].T @ along) / values[curved])
    d = normal + Z @ tangential
    # The change of the multipliers balances the gradient of the model: g + B d + Aᵀ δ = 0.
    change = -U @ ((V.T @ (g + B @ d)) / s)
    y[active] += change
    return basis @ d, y


def _range(projector: Vector) -> Vector:
    """An orthonormal basis (n, k) of the range of an orthogonal projector (n, n)."""
    values, vectors = np.linalg.eigh(0.5 * (projector + projector.T))
    basis: Vector = vectors[:, values > 0.5]
    return basis
