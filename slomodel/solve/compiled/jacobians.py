"""The arrays of compiled Levenberg–Marquardt steps."""

from __future__ import annotations

import numpy as np

from slomodel.solve.compiled.loop import LoopState, address
from slomodel.solve.facts import CompiledResiduals
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Positions

MOST_UNKNOWNS = 40
"""Largest n for which rotations of columns take no longer than LAPACK."""


class JacobianArrays:
    """Two Jacobians, each stored as its columns and the residuals, and the arrays of a step.

    `affine` (k,) are the unknowns in which the residuals are affine, `others` the rest.
    """

    def __init__(self, residuals: CompiledResiduals, n: int, affine: Positions, others: Positions):
        m = len(residuals.root)
        self._residuals = residuals
        self._shape = (n, m)
        self._positions = (affine.astype(np.int_), others.astype(np.int_), np.empty(n, np.int_))
        self._both = np.zeros((2, n + 1, m))
        self._long = {
            "columns": np.zeros((n + 1, m)),
            "matrix": np.empty((n, m)),
            "right": np.empty(m),
            "residual_point": np.zeros(residuals.length),
            "residual_out": np.empty(residuals.length),
            "V": np.empty((n, n)),
            "V_all": np.empty((n, n)),
        }
        names = "columns_x old_lengths units first_change change small singular along s_all b_all"
        self._short = np.zeros((len(names.split()), n))
        self._names = names.split()

    def store(self, loop: LoopState, r: Vector, J: Vector, lengths: Vector) -> None:
        """Write r (m,), J (m, n) and addresses into the state of a loop; it updates `lengths`."""
        n, loop.m = self._shape
        self._both[0, :n], self._both[0, n] = J.T, r
        loop.jacobians, loop.root = address(self._both), address(self._residuals.root)
        loop.lengths = address(lengths)
        for name, array in self._long.items():
            setattr(loop, name, address(array))
        for name, array in zip(self._names, self._short, strict=True):
            setattr(loop, name, address(array))
        loop.affine, loop.others, loop.kept = map(address, self._positions)
        loop.affine_count = len(self._positions[0])
        function = self._residuals.function
        loop.residual, loop.residual_table = function.address, function.table

    def load(self) -> tuple[Vector, Vector]:
        """Copies of r (m,) and J (m, n) after steps of a loop."""
        n, _ = self._shape
        return self._both[0, n].copy(), np.ascontiguousarray(self._both[0, :n].T)


def jacobian_arrays(
    residuals: CompiledResiduals | None, n: int, affine: Positions, others: Positions
) -> JacobianArrays | None:
    """The arrays for residuals in C; None without those, or if there are fewer than unknowns."""
    if residuals is None or n > MOST_UNKNOWNS or len(residuals.root) < n:
        return None
    return JacobianArrays(residuals, n, affine, others)
