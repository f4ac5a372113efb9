"""The arrays of compiled steps over a box, and the models that they are taken along."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from slomodel.solve.compiled.loop import LoopState, address, allocate
from slomodel.solve.norms import Vector
from slomodel.solve.subroutine import Iterate

MOST_UNKNOWNS = 20
"""Largest n for which a dense matrix costs no more than the compact form of its pairs."""

_VECTORS = ("end", "r", "d", "Bd", "trial")
_OF_MATRICES = ("model", "factor", "hessian", "scaled", "eigenvectors")
_OF_PAIRS = ("SS", "SY", "YY", "free_SS", "free_SY", "free_YY")


@runtime_checkable
class ModelInC(Protocol):
    """A quadratic model along which a compiled loop takes steps."""

    def store(self, loop: LoopState, at: Iterate) -> bool:
        """Let a compiled loop work on the model; False where the step from a point cannot."""
        ...

    def load(self, loop: LoopState) -> None:
        """Read the state after steps of a compiled loop."""
        ...


class BoxArrays:
    """The arrays of a model over the box between two limits, (n,).

    For more than MOST_UNKNOWNS it is the compact form of at most `pairs` pairs.
    """

    def __init__(self, loop: LoopState, limits: tuple[Vector, Vector], pairs: int) -> None:
        n, rows = int(loop.n), 2 * pairs
        sizes = dict.fromkeys(_VECTORS, n)
        if n <= MOST_UNKNOWNS:
            sizes |= dict.fromkeys(_OF_MATRICES, n * n)
        else:
            sizes |= dict.fromkeys((*_OF_PAIRS, "inner_matrix", "factors"), rows * rows)
            sizes |= {"taken": rows * n, "moves_now": n, "moved_before": n, "c": rows}
        self._held = allocate(loop, sizes)
        self._limits = tuple(np.ascontiguousarray(end, np.float64) for end in limits)
        self._positions = np.empty(2 * (n + rows), np.int_)
        loop.low, loop.high = map(address, self._limits)
        at, size = address(self._positions), self._positions.itemsize
        loop.free, loop.changed = at, at + n * size
        loop.order, loop.order_of_face = at + 2 * n * size, at + (2 * n + rows) * size
