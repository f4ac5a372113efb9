"""The sparse Hessian of a quadratic objective, factored on the faces of a box."""

from __future__ import annotations

import numpy as np

from slomodel.solve.coloured_hessian import Sparse
from slomodel.solve.directions.sparse_newton import CALL, SparseNewton, positive_factor
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate

# Products with the Hessian before its pattern is computed, and operations for that for each
# unknown.
WAIT_FOR_PATTERN, PATTERN = 30, 3e3
# Most guesses of the active bounds.
MOST_GUESSES = 30
# Multipliers below this fraction of their terms, and distances from the box below it, count as 0.
RESOLVED = 1e-10


class SparseFaces:
    """Minimisers over boxes by sparse factors, once conjugate gradients on a face cost more.

    The active bounds are guessed; multipliers and violated bounds give the next guess, many at a
    time: Hintermüller, Ito & Kunisch, *The primal-dual active set strategy as a semismooth Newton
    method*, SIAM J. Optim. 13 (2002). The guesses settle for M-matrices, as of discrete elliptic
    operators, and often for others; if they do not, steps on faces continue.
    """

    def __init__(self, evaluate: Evaluator, n: int) -> None:
        self._evaluate = evaluate
        self._sparse = SparseNewton(evaluate, n)
        self._wait = WAIT_FOR_PATTERN + PATTERN * n / (CALL + evaluate.operations)
        self._is_possible = evaluate.has_products
        self._before = evaluate.nhev
        self._on_a_face = 0

    def took(self, products: int) -> None:
        """Note the number of products that conjugate gradients took on a face."""
        self._on_a_face = max(self._on_a_face, products)

    def minimiser(
        self, at: Iterate, limits: tuple[Vector, Vector], y: Vector, r: Vector
    ) -> Vector | None:
        """The minimiser (n,) of the objective over the box between two limits (n,), from y (n,),
        where its gradient is r (n,).

        None if a factor is not worth its work, if the Hessian is not sparse or not positive
        definite on a face, or if no guess is confirmed. There is at most one attempt.
        """
        if not self._is_due():
            return None
        self._is_possible = False
        structure = self._sparse.structure
        assert structure is not None
        entries = structure.entries(lambda v, Hv: self._evaluate.hvp(at.x, v, Hv))
        if not np.isfinite(entries).all():
            return None
        return _by_guesses(structure.matrix(entries).tocsr(), limits, y, r)

    def _is_due(self) -> bool:
        if not self._is_possible or self._evaluate.nhev - self._before < self._wait:
            return False
        if self._sparse.structure is None:
            self._is_possible = False
            return False
        return self._on_a_face >= self._sparse.work


def _by_guesses(H: Sparse, limits: tuple[Vector, Vector], y: Vector, r: Vector) -> Vector | None:
    """The minimiser (n,) of a quadratic with the Hessian H (n, n) and the gradient r at y, (n,)."""
    low, high = limits
    below, above = (y <= low) & (r > 0.0), (y >= high) & (r < 0.0)
    size = abs(H)
    for _ in range(MOST_GUESSES):
        x = np.where(below, low, np.where(above, high, y))
        free = np.flatnonzero(~(below | above))
        if len(free):
            factor = positive_factor(H[free][:, free].tocsc(), 0.0)
            if factor is None:
                return None
            x[free] -= factor.solve((r + H @ (x - y))[free])
        moved = x - y
        multipliers = r + H @ moved
        if not np.isfinite(multipliers).all():
            return None
        resolved = RESOLVED * (np.abs(r) + size @ np.abs(moved))
        outside = RESOLVED * np.maximum(1.0, np.abs(x))
        next_below = np.where(below, multipliers > -resolved, x < low - outside)
        next_above = np.where(above, multipliers < resolved, x > high + outside)
        if np.array_equal(next_below, below) and np.array_equal(next_above, above):
            return x
        below, above = next_below, next_above
    return None
