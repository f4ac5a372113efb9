"""The arrays of compiled steps over a box, and the models that they are taken along."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from slomodel.solve.compiled.loop import LoopState, address
from slomodel.solve.norms import Vector
from slomodel.solve.subroutine import Iterate

MOST_UNKNOWNS = 20
"""Largest n for which a dense matrix costs no more than the compact form of its pairs."""

_VECTORS = ("end", "r", "d", "trial")
_MATRICES = ("model", "factor")
_OF_HESSIANS = ("hessian", "scaled", "eigenvectors")


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
    """The arrays of a model over the box between two limits, (n,)."""

    def __init__(self, loop: LoopState, limits: tuple[Vector, Vector]) -> None:
        n = int(loop.n)
        sizes = dict.fromkeys(_VECTORS, n)
        sizes |= dict.fromkeys((*_MATRICES, *_OF_HESSIANS), n * n)
        self._held = np.zeros(sum(sizes.values()))
        at = address(self._held)
        for name, size in sizes.items():
            setattr(loop, name, at)
            at += size * self._held.itemsize
        self._limits = tuple(np.ascontiguousarray(end, np.float64) for end in limits)
        self._free = np.empty(n, np.int_)
        loop.low, loop.high = map(address, self._limits)
        loop.free = address(self._free)
