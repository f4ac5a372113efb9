"""The arrays of Hessians of few unknowns in compiled steps."""

from __future__ import annotations

from slomodel.solve.compiled.loop import LoopState, allocate


class HessianArrays:
    """A Hessian (n, n) and its inverse, made positive, and the estimate that begins with that.

    `diagonal` (n,) is that of the Hessian with which the estimate began.
    """

    def __init__(self, loop: LoopState) -> None:
        n = int(loop.n)
        names = ("hessian", "inverse", "own_H", "scaled", "eigenvectors")
        held = allocate(loop, {**dict.fromkeys(names, n * n), "diagonal": n})
        self.hessian, self.inverse, self.estimate = held[: 3 * n * n].reshape(3, n, n)
        self.diagonal = held[5 * n * n :]
