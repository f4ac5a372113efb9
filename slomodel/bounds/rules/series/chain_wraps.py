"""Chains where only one of S and T has layers between the outer two: four traces as one.

With i the lowest and j the highest layer of a part, each of degree 1, and t .. u the layers between
them, all in one of the sets, the four traces that differ in the sets of i and j have, at that set's
end,

    A K C,  A = [P_it h_i, B_ti h_iᵀ],  K = [L_ij, B_ij; T_ij, P_ijᵀ],  C = [h_j P_uj; h_jᵀ T_ju],

P_it and P_uj the gaps between these layers. For any scales a and c > 0 of the rows and columns of K
its norm is at most ‖[P_it/a_1, B_ti/a_2]‖ ‖diag(a) K diag(c)‖ ‖[P_ujᵀ/c_1, T_juᵀ/c_2]‖ for h with
‖h‖₂ = 1: for unit y, |yᵀA|² <= |P_itᵀy|² + |B_tiᵀy|². If a single layer t is between, the trace is
that of h_t A K C, bounded by a Frobenius norm of A or of C, ‖A‖_F² <= ‖P_it‖²/a_1² + ‖B_ti‖²/a_2²
for ‖h‖_F = 1. The initial scales are those for which, if gaps were numbers, the bound would equal
the sum of their products.
"""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement
from math import exp, hypot, sqrt

import numpy as np

from slomodel.bounds.arithmetic.bounded import Bounded, beside
from slomodel.bounds.norms.spectral import DENSE_EIGEN, norms_of
from slomodel.bounds.rules.series.chain_gaps import Gaps, Layers

# Scales (in powers of e) round the best ones of each factor; every choice proves a bound.
_SHIFTS = ((0.0, 0.0), (0.4, 0.3), (0.4, -0.3), (-0.4, 0.3), (-0.4, -0.3))
Scales = tuple[float, float, float, float]


def wraps_of(gaps: Gaps) -> dict[Layers, float]:
    """Norms at ‖h‖ = 1 of the factors around layers t .. u, by (i, j, t, u); without large ones."""
    known: dict[Layers, list[Scales]] = {}
    needed: dict[tuple[Layers, int, str], Bounded[float]] = {}
    for i, j in combinations(range(gaps.m), 2):
        for t, u in combinations_with_replacement(range(i + 1, j), 2):
            key: Layers = (i, j, t, u)
            largest = max(
                max(one.value.shape) for one in (gaps.L[i, j], gaps.P[i, j], gaps.B[t, i])
            )
            start = _balanced(gaps, key)
            if largest > DENSE_EIGEN or not all(0.0 < one < np.inf for one in start):
                continue
            known[key] = [_shifted(start, *shift) for shift in _SHIFTS]
            for k, scales in enumerate(known[key]):
                needed.update({(key, k, x): a for x, a in _factors(gaps, key, scales).items()})
    norms = norms_of(needed)
    result: dict[Layers, float] = {}
    for key, every in known.items():
        found = []
        for k, scales in enumerate(every):
            A, K, C = (norms[key, k, x] for x in "AKC")
            found.append(K * _ends(gaps, key, scales, A, C))
        result[key] = min(found)
    return result


def _balanced(gaps: Gaps, key: Layers) -> Scales:
    """The scales for which the bound equals the sum of products when each gap is its norm."""
    i, j, t, u = key
    size = gaps.norms
    p, b, q, w = size["P", i, t], size["B", t, i], size["P", u, j], size["T", j, u]
    k = ((size["L", i, j], size["B", i, j]), (size["T", i, j], size["P", i, j]))
    below = [k[0][0] * q + k[0][1] * w, k[1][0] * q + k[1][1] * w]
    above = [k[0][0] * p + k[1][0] * b, k[0][1] * p + k[1][1] * b]
    if not all(below) or not all(above):
        return (0.0, 0.0, 0.0, 0.0)
    return (sqrt(p / below[0]), sqrt(b / below[1]), sqrt(q / above[0]), sqrt(w / above[1]))


def _shifted(scales: Scales, rows: float, columns: float) -> Scales:
    a, b, c, d = scales
    return (a, b * exp(rows), c, d * exp(columns))


def _factors(gaps: Gaps, key: Layers, scales: Scales) -> dict[str, Bounded[float]]:
    i, j, t, u = key
    a, b, c, d = scales
    rows = (
        beside(gaps.L[i, j], a * c, gaps.B[i, j], a * d),
        beside(gaps.T[i, j], b * c, gaps.P[i, j].transposed, b * d),
    )
    return {
        "A": beside(gaps.P[i, t], 1.0 / a, gaps.B[t, i], 1.0 / b),
        "K": beside(rows[0].transposed, 1.0, rows[1].transposed, 1.0),
        "C": beside(gaps.P[u, j].transposed, 1.0 / c, gaps.T[j, u].transposed, 1.0 / d),
    }


def _ends(gaps: Gaps, key: Layers, scales: Scales, A: float, C: float) -> float:
    """‖A‖ ‖C‖; with a single layer between them, one of the two in the Frobenius norm."""
    i, j, t, u = key
    if t < u:
        return A * C
    size = gaps.norms
    whole_A = hypot(size["P", i, t] / scales[0], size["B", t, i] / scales[1])
    whole_C = hypot(size["P", u, j] / scales[2], size["T", j, u] / scales[3])
    return min(whole_A * C, A * whole_C)
