"""A Hessian as a matrix, for few unknowns."""

from __future__ import annotations

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.model.scipy_functions import TwiceDifferentiable, Vector

_MOST_ROWS = 5_000


def hessian(f: TwiceDifferentiable, x: Vector) -> Vector:
    """The Hessian (n, n) of f at x (n,), symmetric; n products with a unit vector each."""
    if x.size > _MOST_ROWS:
        message = f"a Hessian of {x.size} rows is too large; the limit is {_MOST_ROWS}"
        raise DomainError(Diagnostic("E320", message, help="use hvp(x, v), its product with v"))
    matrix: Vector = np.array([f.hvp(x, unit) for unit in np.eye(x.size)])
    return 0.5 * (matrix + matrix.T)
