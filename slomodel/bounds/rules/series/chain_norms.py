"""Norms of the parts of ‖(W_m + h_m) .. (W_1 + h_1) X - Y‖², sums of traces bounded in pairs.

A part F_α, of degree α_k <= 2 in h_k, is the sum of ⟨R_S, R_T⟩ over the ordered pairs of sets of
layers with S ∩ T and S ∪ T given; R_S = P_(>s) h_s .. h_(s') P_(<s') X, P the products of centres,
and R_∅ = W_m .. W_1 X - Y. With the gaps P_ij between layers i < j,

    B_ij = P_(<i) X Xᵀ P_(<j)ᵀ,   T_ij = P_(>i)ᵀ P_(>j),   L_ij = P_(<i) X R_∅ᵀ P_(>j),

each ⟨R_S, R_T⟩ is the trace of a cyclic product of h's with gaps between, at most the product of
‖h‖_F and of the ‖gaps‖₂. The lowest layer i of a part is treated in pairs of traces, with s, t the
lowest other layers of S and T:

 - i has degree 1, in S or in T: the remaining factors coincide, and between h_s and h_tᵀ there is
   P_is h B_it + B_si hᵀ P_itᵀ. Where S has no other layer, and u is the highest of T, the sum is
   between h_t and h_u (P_it h L_iu + B_ti hᵀ T_iu). For any matrices and unit x, y

     ‖yᵀ(P h Q + U hᵀ V) x‖ <= ‖h‖_F ‖p qᵀ + v uᵀ‖_F,  p = Pᵀy, q = Qx, u = Uᵀy, v = Vx,
     ‖p qᵀ + v uᵀ‖_F² = |p|²|q|² + |v|²|u|² + 2 (p·v)(q·u),

   where the last product is at most ‖PV‖ ‖UQ‖, and the first two terms are at most
   ‖ ‖Q‖² P Pᵀ + ‖V‖² U Uᵀ ‖ and ‖ ‖P‖² Qᵀ Q + ‖U‖² Vᵀ V ‖. By Cauchy–Schwarz the norm is also at
   most |p||q| + |v||u| <= ‖[a P, U/a]‖ ‖[Qᵀ/a, a Vᵀ]‖ for any a > 0.

 - i has degree 2: between h_s and h_tᵀ there is P h B_ii hᵀ V, P = P_is and V = P_itᵀ (or T_iu).
   pᵀ h B hᵀ v = tr(B hᵀ M h), M = (p vᵀ + v pᵀ)/2 with the eigenvalues (p·v ± |p||v|)/2, so with
   B >= 0 it is at most ‖B‖ ‖h‖_F² (|p||v| + |p·v|)/2 <= ‖B‖ ‖h‖_F² (‖P‖‖V‖ + ‖PV‖)/2.

The trace is at most the product of this norm and those of the gaps if at least two h are left for
Frobenius norms: tr(h Z h' Z') <= ‖h‖_F ‖Z‖₂ ‖h'‖_F ‖Z'‖₂. A part of degree 2, with one h left, is
bounded by the product of all norms. In a part of degree 3 with i twice, tr(h_t P h B hᵀ V) = tr(B
hᵀ M h) is at most ‖B‖ ‖h‖_F² max |zᵀ M z| over unit z, M = V h_t P, and for each z that is largest
at an h_t of rank one, for which the above holds.

For the highest layer the same holds with the chain reversed: B and T are exchanged, L and P are
transposed. Where S and T have layers beside both ends, both are treated in this way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod, sqrt

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.midpoint_radius import Bounded, beside, midpoint
from slomodel.bounds.arithmetic.upper_bounds import rounded_up
from slomodel.bounds.norms.spectral_norm import DENSE_EIGEN, norms_of
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.rules.series.chain_gaps import Gaps, Layers, gaps_of
from slomodel.bounds.structure.gram_form import as_written
from slomodel.bounds.structure.matrix_chains import matrix_chain

Monomials = dict[tuple[int, ...], float]


@dataclass(frozen=True, slots=True)
class Ends:
    """Norms of the factors around each layer i as the lowest, of degree 1 (`once`) and 2 (`twice`).

    The key is (i, s, t) with s the next layer of S and t that of T, or (i, s, m + u) with T's
    highest layer u where S has no other layer and s is the lowest of T.
    """

    gaps: Gaps
    once: dict[Layers, float]
    twice: dict[Layers, float]

    @classmethod
    def of(cls, gaps: Gaps) -> Ends:
        m = gaps.m
        known: dict[Layers, _Between] = {}
        needed: dict[tuple[Layers, str], Bounded[float]] = {}
        for i in range(m):
            for s, e in product(range(i + 1, m), range(i + 1, 2 * m)):
                if m <= e <= m + i:
                    continue
                one = known[i, s, e] = _Between.of(gaps, i, s, e)
                needed.update({((i, s, e), word): a for word, a in one.needed().items()})
        norms = norms_of(needed)
        once, twice = {}, {}
        for key, one in known.items():
            words = {word: norms[key, word] for word in one.needed()}
            once[key], twice[key] = one.once(words), one.twice(words)
            twice[key] *= gaps.norms["B", key[0], key[0]]
        return cls(gaps, once, twice)


@dataclass(frozen=True, slots=True)
class _Between:
    """P h Q + U hᵀ V, with the norms of the four matrices."""

    P: Bounded[float]
    Q: Bounded[float]
    U: Bounded[float]
    V: Bounded[float]
    norms: tuple[float, float, float, float]

    @classmethod
    def of(cls, gaps: Gaps, i: int, s: int, e: int) -> _Between:
        size, u = gaps.norms, e - gaps.m
        P, U, p, w = gaps.P[i, s], gaps.B[s, i], size["P", i, s], size["B", s, i]
        if u < 0:
            Q, V, q, v = gaps.B[i, e], gaps.P[i, e].transposed, size["B", i, e], size["P", i, e]
        else:
            Q, V, q, v = gaps.L[i, u], gaps.T[i, u], size["L", i, u], size["T", i, u]
        return cls(P, Q, U, V, (p, q, w, v))

    def needed(self) -> dict[str, Bounded[float]]:
        """The matrices whose norms are required; none if they are large or one of them is 0."""
        p, q, u, v = self.norms
        largest = max(max(one.value.shape) for one in (self.P, self.Q, self.U, self.V))
        if largest > DENSE_EIGEN or not all(0.0 < norm < np.inf for norm in self.norms):
            return {}
        a = self._share()
        return {
            "PV": self.P @ self.V,
            "UQ": self.U @ self.Q,
            "left": beside(self.P, q, self.U, v),
            "right": beside(self.Q.transposed, p, self.V.transposed, u),
            "left shared": beside(self.P, a, self.U, 1.0 / a),
            "right shared": beside(self.Q.transposed, 1.0 / a, self.V.transposed, a),
        }

    def _share(self) -> float:
        p, q, u, v = self.norms
        return float(sqrt(sqrt(u / p) * sqrt(q / v)))

    def once(self, words: dict[str, float]) -> float:
        p, q, u, v = self.norms
        plain = p * q + u * v
        if not words:
            return plain
        aligned = 2.0 * words["PV"] * words["UQ"]
        crossed = sqrt(min(words["left"], words["right"]) ** 2 + aligned)
        return min(plain, crossed, words["left shared"] * words["right shared"])

    def twice(self, words: dict[str, float]) -> float:
        """The bound for degree 2, without the factor ‖B_ii‖."""
        p, v = self.norms[0], self.norms[3]
        return 0.5 * (p * v + words["PV"]) if words else p * v


def parts(gaps: Gaps) -> Monomials:
    """Upper bounds on the parts of degree >= 2, by their degree in each layer."""
    low, high = Ends.of(gaps), Ends.of(gaps.turned())
    result: Monomials = {}
    roundings = 2**gaps.m + 32 * gaps.m  # sums over pairs of sets, products of gaps
    for moves in product(range(3), repeat=gaps.m):
        if sum(moves) >= 2:
            value = _part(moves, low, high)
            result[moves] = float(rounded_up(np.asarray(value), roundings))
    return result


def _part(moves: Layers, low: Ends, high: Ends) -> float:
    layers = [k for k, times in enumerate(moves) if times]
    size = low.gaps.norms
    i, j = layers[0], layers[-1]
    if i == j:
        return size["T", i, i] * size["B", i, i]
    if sum(moves) == 2:
        plain = size["P", i, j] * size["L", i, j] + size["B", i, j] * size["T", i, j]
        return 2.0 * plain
    total = 0.0
    for S, T in _sides(moves, layers[1:-1]):
        if S and T:
            within = _within(size, S) * _within(size, T)
            total += _end(low, moves, S, T) * within * _end(high, moves[::-1], *_back(moves, S, T))
        else:
            above = sum(_one_end(low, moves, *more) for more in _with(moves, j, S, T))
            turned = [_back(moves, *more) for more in _with(moves, i, S, T)]
            below = sum(_one_end(high, moves[::-1], *more) for more in turned)
            total += min(above, below)
    return total


def _sides(moves: Layers, layers: Sequence[int]) -> Iterator[tuple[Layers, Layers]]:
    """All ordered pairs (S, T) of sets of these layers with the given degrees."""
    for chosen in product((0, 1), repeat=sum(moves[k] == 1 for k in layers)):
        side = iter(chosen)
        in_S = {k: moves[k] == 2 or next(side) == 0 for k in layers}
        yield (
            tuple(k for k in layers if in_S[k]),
            tuple(k for k in layers if moves[k] == 2 or not in_S[k]),
        )


def _with(moves: Layers, k: int, S: Layers, T: Layers) -> list[tuple[Layers, Layers]]:
    """The pairs with layer k added to both sets or to either."""
    both = tuple(sorted((*S, k))), tuple(sorted((*T, k)))
    return [both] if moves[k] == 2 else [(both[0], T), (S, both[1])]


def _back(moves: Layers, S: Layers, T: Layers) -> tuple[Layers, Layers]:
    last = len(moves) - 1
    return tuple(last - k for k in S[::-1]), tuple(last - k for k in T[::-1])


def _within(size: dict[tuple[str, int, int], float], S: Layers) -> float:
    return prod(size["P", a, b] for a, b in pairwise(S))


def _end(ends: Ends, moves: Layers, S: Layers, T: Layers) -> float:
    """The norm at the lowest layer; S and T are given without it."""
    i = next(k for k, times in enumerate(moves) if times)
    table = ends.once if moves[i] == 1 else ends.twice
    if S and T:
        return table[i, S[0], T[0]]
    one = S or T
    return table[i, one[0], ends.gaps.m + one[-1]]


def _one_end(ends: Ends, moves: Layers, S: Layers, T: Layers) -> float:
    """The norm at the lowest layer, times the norms of all gaps above it."""
    size = ends.gaps.norms
    top = size["T", S[-1], T[-1]] if S and T else 1.0
    return _end(ends, moves, S, T) * _within(size, S) * _within(size, T) * top


_LEAST, _MOST = 1e-30, 1e30
"""Range of norms of which ten may be multiplied or divided without over- or underflow."""


def chain_parts(part: ObjectivePart, blocks: Sequence[str]) -> Monomials | None:
    """Upper bounds on the parts of f of degree >= 2, by exponents in the blocks' lengths.

    Those of degree 2 are inf where the objective has other quadratic terms. None where it is not
    such a chain.
    """
    part = as_written(part)
    chain = matrix_chain(part)
    if chain is None:
        return None
    data = [chain.X, *([] if chain.Y is None else [chain.Y])]
    ranges = enclose([chain.weight, *(one for one, _ in data)], boxed(part.values), part.sizes)
    weight = float(ranges[chain.weight].magnitude)
    X, *others = (_matrix(ranges[one], turned) for one, turned in data)
    W = [_matrix(point(part.values[one]), turned) for one, turned in chain.factors]
    gaps = gaps_of(W, X, others[0] if others else None)
    if not all(norm == 0.0 or _LEAST <= norm <= _MOST for norm in gaps.norms.values()):
        return None
    names = [blocks.index(one.name) for one, _ in chain.factors]
    result: Monomials = {}
    for layers, value in parts(gaps).items():
        key = [0] * len(blocks)
        for block, power in zip(names, layers, strict=True):
            key[block] = power
        whole = sum(layers) > 2 or chain.is_all
        result[tuple(key)] = float(rounded_up(np.asarray(value * weight))) if whole else np.inf
    return result


def _matrix(a: Interval, turned: bool) -> Bounded[float]:
    row = midpoint(a.each(lambda array: array[np.newaxis]) if len(a.shape) == 1 else a)
    return row.transposed if turned else row
