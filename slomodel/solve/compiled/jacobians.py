"""The arrays of compiled Levenberg–Marquardt steps."""

from __future__ import annotations

import numpy as np

from slomodel.solve.compiled.loop import LoopState, address
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
        self._positions = (affine.astype(np.int_), others.astype(np.int_), np.empty(n, np.int_))
        self._both = np.zeros((2, n + 1, m))
        sizes = dict.fromkeys(("columns", "matrix"), (n + 1) * m)
        sizes |= {"right": m, "V": n * n, "V_all": n * n, **dict.fromkeys(_OF_UNKNOWNS, n)}
        sizes |= dict.fromkeys(("residual_point", "residual_out"), residuals.length)
        self._held = np.zeros(sum(sizes.values()))
        at = address(self._held)
        for name, size in sizes.items():
            setattr(loop, name, at)
            at += size * self._held.itemsize
        loop.m, loop.affine_count = m, len(affine)
        loop.jacobians, loop.root = address(self._both), address(residuals.root)
        loop.affine, loop.others, loop.kept = map(address, self._positions)
        loop.residual, loop.residual_table = function.address, function.table

    def store(self, loop: LoopState, r: Vector, J: Vector, lengths: Vector) -> None:
        """Let a loop begin with r (m,) and J (m, n), and update `lengths` (n,)."""
        n, _ = self._shape
        self._both[0, :n], self._both[0, n] = J.T, r
        loop.lengths = address(lengths)

    def load(self) -> tuple[Vector, Vector]:
        """Copies of r (m,) and J (m, n) after steps of a loop."""
        n, _ = self._shape
        return self._both[0, n].copy(), np.ascontiguousarray(self._both[0, :n].T)


def jacobian_arrays(
    loop: LoopState, residuals: CompiledResiduals | None, affine: Positions, others: Positions
) -> JacobianArrays | None:
    """The arrays for residuals in C; None without those, or if there are fewer than unknowns."""
    if residuals is None or not loop.n <= min(MOST_UNKNOWNS, len(residuals.root)):
        return None
    return JacobianArrays(loop, residuals, affine, others)
