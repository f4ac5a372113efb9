"""The arrays of compiled Levenberg–Marquardt steps."""

from __future__ import annotations

import numpy as np

from slomodel.solve.compiled.loop import LoopState, address, allocate
from slomodel.solve.facts import CompiledResiduals
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Positions

MOST_UNKNOWNS = 40
"""Largest n for which rotations of columns take no longer than LAPACK."""


_OF_UNKNOWNS = (
    *("columns_x", "old_lengths", "units", "first_change", "change", "small"),
    *("singular", "along", "s_all", "b_all"),
)


class JacobianArrays:
    """Two Jacobians, each stored as its columns and the residuals, and the arrays of a step.

    `affine` (k,) are the unknowns in which the residuals are affine, `others` the rest.
    """

    def __init__(
        self, loop: LoopState, residuals: CompiledResiduals, affine: Positions, others: Positions
    ) -> None:
        n, m, function = int(loop.n), len(residuals.root), residuals.function
        self._residuals = residuals
        self._shape = (n, m)
        self._positions = np.concatenate((affine, others, others, affine)).astype(np.int_)
        sizes = {"jacobians": 2 * (n + 1) * m}
        sizes |= dict.fromkeys(("columns", "matrix"), (n + 1) * m)
        sizes |= {"right": m, "V": n * n, "V_all": n * n, **dict.fromkeys(_OF_UNKNOWNS, n)}
        sizes |= dict.fromkeys(("residual_point", "residual_out"), residuals.length)
        held = allocate(loop, sizes)
        self._first = held[: (n + 1) * m].reshape(n + 1, m)
        loop.m, loop.affine_count = m, len(affine)
        loop.root = address(residuals.root)
        # After those of the unknowns there is room for n more.
        at, size = address(self._positions), self._positions.itemsize
        loop.affine, loop.others, loop.kept = at, at + len(affine) * size, at + n * size
        loop.residual, loop.residual_table = function.address, function.table

    def store(self, loop: LoopState, r: Vector, J: Vector, lengths: Vector) -> None:
        """Let a loop begin with r (m,) and J (m, n), and update `lengths` (n,)."""
        n, _ = self._shape
        self._first[:n], self._first[n] = J.T, r
        loop.lengths = address(lengths)

    def load(self) -> tuple[Vector, Vector]:
        """Copies of r (m,) and J (m, n) after steps of a loop."""
        n, _ = self._shape
        return self._first[n].copy(), np.ascontiguousarray(self._first[:n].T)


def jacobian_arrays(
    loop: LoopState, residuals: CompiledResiduals | None, affine: Positions, others: Positions
) -> JacobianArrays | None:
    """The arrays for residuals in C; None without those, or if there are fewer than unknowns."""
    if residuals is None or not loop.n <= min(MOST_UNKNOWNS, len(residuals.root)):
        return None
    return JacobianArrays(loop, residuals, affine, others)
