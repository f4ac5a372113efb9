"""The gaps between layers of ‖(W_m + h_m) .. (W_1 + h_1) X - Y‖², as `chain_norms` names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from slomodel.bounds.arithmetic.midrad import Near
from slomodel.bounds.norms.spectral import near_norms

Pair = tuple[int, int]
Layers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Gaps:
    """P_ij for i < j, and B, T, L for all pairs of m layers; `norms` of each by its letter."""

    m: int
    P: dict[Pair, Near]
    B: dict[Pair, Near]
    T: dict[Pair, Near]
    L: dict[Pair, Near]
    norms: dict[tuple[str, int, int], float]

    def turned(self) -> Gaps:
        """Of the chain from the other end."""
        last = self.m - 1
        swap = {"P": "P", "L": "L", "B": "T", "T": "B"}

        def back(a: dict[Pair, Near]) -> dict[Pair, Near]:
            return {(last - j, last - i): one.turned() for (i, j), one in a.items()}

        norms = {(swap[x], last - j, last - i): value for (x, i, j), value in self.norms.items()}
        return Gaps(self.m, back(self.P), back(self.T), back(self.B), back(self.L), norms)


def gaps_of(W: Sequence[Near], X: Near, Y: Near | None) -> Gaps:
    """Of factors from right to left."""
    m = len(W)
    between: dict[Pair, Near] = {}
    for i in range(m):
        between[i, i] = Near(np.eye(W[i].mid.shape[1]))
        for j in range(i, m):
            between[i, j + 1] = W[j] @ between[i, j] if j > i else W[j]
    between[m, m] = Near(np.eye(W[-1].mid.shape[0]))
    gram = X @ X.turned()
    residual = gram @ between[0, m].turned()
    if Y is not None:
        residual = residual - X @ Y.turned()
    above = [between[s + 1, m] for s in range(m)]
    below = [between[0, s] for s in range(m)]
    pairs = list(product(range(m), repeat=2))
    P = {(i, j): between[i + 1, j] for i, j in pairs if i < j}
    B = {(i, j): below[i] @ gram @ below[j].turned() for i, j in pairs}
    T = {(i, j): above[i].turned() @ above[j] for i, j in pairs}
    L = {(i, j): below[i] @ residual @ above[j] for i, j in pairs}
    every = {"P": P, "B": B, "T": T, "L": L}
    norms = near_norms({(x, *key): one for x, own in every.items() for key, one in own.items()})
    return Gaps(m, P, B, T, L, norms)
