"""The gaps between layers of ‖(W_m + h_m) .. (W_1 + h_1) X - Y‖², as in `chain_norms`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from slomodel.bounds.arithmetic.midpoint_radius import Bounded, exact
from slomodel.bounds.norms.spectral_norm import norms_of

Pair = tuple[int, int]
Layers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Gaps:
    """P_ij for i < j, and B, T, L for all pairs of m layers; `norms` by letter and pair."""

    m: int
    P: dict[Pair, Bounded[float]]
    B: dict[Pair, Bounded[float]]
    T: dict[Pair, Bounded[float]]
    L: dict[Pair, Bounded[float]]
    norms: dict[tuple[str, int, int], float]

    def turned(self) -> Gaps:
        """The gaps of the reversed chain."""
        last = self.m - 1
        swap = {"P": "P", "L": "L", "B": "T", "T": "B"}

        def back(a: dict[Pair, Bounded[float]]) -> dict[Pair, Bounded[float]]:
            return {(last - j, last - i): one.transposed for (i, j), one in a.items()}

        norms = {(swap[x], last - j, last - i): value for (x, i, j), value in self.norms.items()}
        return Gaps(self.m, back(self.P), back(self.T), back(self.B), back(self.L), norms)


def gaps_of(W: Sequence[Bounded[float]], X: Bounded[float], Y: Bounded[float] | None) -> Gaps:
    """The gaps of a chain whose factors W are given from right to left."""
    m = len(W)
    between: dict[Pair, Bounded[float]] = {}
    for i in range(m):
        between[i, i] = exact(np.eye(W[i].value.shape[1]))
        for j in range(i, m):
            between[i, j + 1] = W[j] @ between[i, j] if j > i else W[j]
    between[m, m] = exact(np.eye(W[-1].value.shape[0]))
    gram = X @ X.transposed
    residual = gram @ between[0, m].transposed
    if Y is not None:
        residual = residual - X @ Y.transposed
    above = [between[s + 1, m] for s in range(m)]
    below = [between[0, s] for s in range(m)]
    pairs = list(product(range(m), repeat=2))
    P = {(i, j): between[i + 1, j] for i, j in pairs if i < j}
    B = {(i, j): below[i] @ gram @ below[j].transposed for i, j in pairs}
    T = {(i, j): above[i].transposed @ above[j] for i, j in pairs}
    L = {(i, j): below[i] @ residual @ above[j] for i, j in pairs}
    every = {"P": P, "B": B, "T": T, "L": L}
    norms = norms_of({(x, *key): one for x, own in every.items() for key, one in own.items()})
    return Gaps(m, P, B, T, L, norms)
