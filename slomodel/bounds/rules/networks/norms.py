"""Sums over samples of products of lengths, by Hölder's inequality from weighted power sums.

A term is Σ_i c_i Π s_b(i) over unit t. Its alternative bounds differ in the factors that are
bounded by norms N_b^q; the other factors are bounded by their largest lengths. A residual term
|Σ_i g'_i · w_i| for ‖w_i‖ <= c_i Π s_b is that sum with c ‖g'‖ for c or, by Cauchy–Schwarz, is at
most G (Σ ‖w_i‖²)^½ for G = ‖g'‖_F, or (Σ m_i)^½ (Σ m_i s²)^½ for m = c ‖g'‖ times the lengths of
the other factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.rounding import Array, up_mul
from slomodel.bounds.arithmetic.upper_bounds import floored, rounded_up
from slomodel.bounds.effort import MOST_NUMBERS
from slomodel.bounds.norms.power_sums import Norm, largest_eigenvalues, power_sums
from slomodel.bounds.rules.networks.sample_polynomials import Exponents, Key
from slomodel.bounds.rules.networks.samples import Bundle, power

PLAIN, SLOPES, CAUCHY, ROOT = range(4)
_NEGLIGIBLE = 1e-7
"""Part of a norm at the centre below which its change over the ball is bounded coarsely."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Exponents (M, 2 L), coefficients (M, K), and which terms are residual (M,)."""

    exponents: Exponents
    c: Array
    residual: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Alternative bounds (R,) on the terms `term` (R,).

    The exponents of the factors in norms, `picked` (R, L), and of the others, `rest` (R, L); the
    kind of sum, `kind` (R,), and the power q (R,) of the norms.
    """

    term: NDArray[np.int64]
    picked: Exponents
    rest: Exponents
    kind: NDArray[np.int64]
    q: NDArray[np.int64]

    def take(self, which: NDArray[np.bool_] | NDArray[np.intp] | slice) -> Alternatives:
        return Alternatives(
            self.term[which], self.picked[which], self.rest[which], self.kind[which], self.q[which]
        )


def alternatives(terms: Terms) -> Alternatives:
    layers = terms.exponents.shape[1] // 2
    factors = [tuple(int(e) for e in row[:layers]) for row in terms.exponents]
    result = [_of_one(one, bool(r)) for one, r in zip(factors, terms.residual, strict=True)]
    count = [len(rows) for rows in result]
    table = np.concatenate([rows for rows in result if len(rows)]) if sum(count) else None
    if table is None:
        table = np.zeros((0, 2 * layers + 2), dtype=np.int64)
    term = np.repeat(np.arange(len(result)), count)
    picked, rest = table[:, :layers], table[:, layers : 2 * layers]
    return Alternatives(term, picked, rest, table[:, -2], table[:, -1])


@cache
def _of_one(factors: Key, residual: bool) -> Exponents:
    """Rows of picked, rest, kind and q for a product of factors."""
    degree, rows = sum(factors), []
    kind = SLOPES if residual else PLAIN
    for q in {2, min(degree, 4)} if degree > 1 else ():
        rows += [(*picked, *rest, kind, q) for picked, rest in _choices(factors, q)]
    if residual:
        for picked, rest in _choices(factors, 1):
            rows += [(*picked, *rest, CAUCHY, 2), (*picked, *rest, ROOT, 2)]
        for picked, rest in _choices(factors, 2) if degree > 1 else ():
            rows.append((*picked, *rest, CAUCHY, 4))
    return np.array(rows, dtype=np.int64).reshape(-1, 2 * len(factors) + 2)


def _choices(factors: Key, q: int) -> list[tuple[Key, Key]]:
    """The distinct choices of q factors, and the remaining factors, as exponents."""
    every = [b for b, e in enumerate(factors) for _ in range(e)]
    result = []
    for picked in dict.fromkeys(combinations(every, q)):
        taken = tuple(picked.count(b) for b in range(len(factors)))
        result.append((taken, tuple(e - p for e, p in zip(factors, taken, strict=True))))
    return result


def bounded(own: Bundle, terms: Terms, by: Alternatives, slope: float, norm: Norm) -> Array:
    """Upper bounds on the term's largest value by each alternative (R,)."""
    result = np.full(len(by.term), np.inf)
    rows = max(MOST_NUMBERS // max(terms.c.shape[1], 1), 1)
    for q in (2, 3, 4):
        which = np.flatnonzero(by.q == q)
        for start in range(0, len(which), rows):
            part = which[start : start + rows]
            result[part] = _of_power(own, terms, by.take(part), q, slope, norm)
    return rounded_up(result)


def _of_power(
    own: Bundle, terms: Terms, by: Alternatives, q: int, slope: float, norm: Norm
) -> Array:
    weights, factor = _weights(own, terms, by, slope)
    for b in range(own.layers):
        which = np.flatnonzero(by.picked[:, b])
        if not len(which):
            continue
        norms = power_norm(own, b, weights[which], q, norm)
        for k in range(int(np.max(by.picked[which, b]))):
            more = by.picked[which, b] > k
            factor[which[more]] = rounded_up(factor[which[more]] * norms[more])
    return factor


def _weights(own: Bundle, terms: Terms, by: Alternatives, slope: float) -> tuple[Array, Array]:
    """The weights of samples (R, K), and the factor in front of the norms (R,)."""
    weights = terms.c[by.term]
    for b, lengths in enumerate(own.lengths):
        for k in range(int(np.max(by.rest[:, b], initial=0))):
            which = by.rest[:, b] > k
            weights[which] = rounded_up(weights[which] * lengths)
    factor = np.ones(len(weights))
    sloped = (by.kind == SLOPES) | (by.kind == ROOT)
    weights[sloped] = rounded_up(weights[sloped] * own.slopes)
    squared = by.kind == CAUCHY
    weights[squared] = power(weights[squared], 2)
    factor[squared] = slope
    rooted = by.kind == ROOT
    factor[rooted] = rounded_up(np.sqrt(_total(weights[rooted], own.count)))
    return weights, factor


def power_norm(own: Bundle, b: int, c: Array, q: int, norm: Norm = largest_eigenvalues) -> Array:
    """Upper bounds (R,) on (Σ c_i ‖V z_(b-1),i(x)‖^q)^(1/q) for ‖V‖_F <= 1 over the ball.

    By Minkowski's inequality, the value at the centre plus that of the change of z. With Q = VᵀV,
    of trace 1, Σ c (zᵀQz)^(q/2) is convex in Q: largest at some Q = v vᵀ.
    """
    centre = _root(power_sums(own.moments[b], c, q, norm), q)
    if b == 0:
        return centre
    return rounded_up(centre + _moved_norm(own, b, c, q, norm, _NEGLIGIBLE * centre))


def _moved_norm(own: Bundle, b: int, c: Array, q: int, norm: Norm, enough: Array) -> Array:
    """Upper bounds on (Σ c_i ‖z_i(x) - z_i(c)‖^q)^(1/q); those below `enough` are not refined.

    Per sample, or from the layer below, where the change is φ'(ξ) (W(c) (z - z(c)) + h z(x)) with
    one h for all samples.
    """
    if b == 0:
        return np.zeros(len(c))
    result = _root(_total(c, own.moved[q][b]), q)
    more = np.flatnonzero(result > enough)
    if len(more):
        below = rounded_up(c[more] * power(own.largest[b - 1, 0], q))
        rho, scale = own.rho[b - 1], own.norms[b - 1]
        through = _moved_norm(own, b - 1, below, q, norm, np.zeros(len(more)))
        together = rounded_up(scale * through)
        if rho > 0.0:
            centre = _root(power_sums(own.moments[b - 1], below, q, norm), q)
            together = rounded_up(
                together + floored(up_mul(np.asarray(rho), rounded_up(centre + through)))
            )
        result[more] = np.minimum(result[more], together)
    return result


def _total(c: Array, a: Array) -> Array:
    """Σ c_i a_i of numbers >= 0, rounded up (R,)."""
    return rounded_up(c @ a, len(a))


def _root(x: Array, q: int) -> Array:
    """The q-th root for q = 2, 3, 4."""
    y = np.sqrt(x) if q != 3 else np.cbrt(x)
    return rounded_up(np.sqrt(y) if q == 4 else y)
