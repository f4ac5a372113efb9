"""Polynomials with coefficients >= 0 in the lengths of blocks, and their largest values.

p(t) = Σ_α a_α t^α in t_b >= 0, b = 1..B; `exponents` (M, B) and `coefficients` (M,). Results are
upper bounds: each operation is rounded up by its own rounding errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.rounding import (
    SMALLEST_NORMAL,
    Array,
    up_add,
    up_div,
    up_mul,
    up_sqrt,
)
from slomodel.bounds.arithmetic.upper_bounds import FLOOR, exponentials_rounded_up, rounded_up
from slomodel.bounds.norms.spectral_norm import spectral_norm
from slomodel.bounds.stopping import pause

Exponents = NDArray[np.int64]
_LARGEST_UNFOLDING = 800
"""Largest order of a balanced unfolding, of which the norm is computed: 5 MB."""
_MOST_BLOCKS = 5
"""Blocks up to which boxes are bisected: the number of boxes grows exponentially with them."""
_CLOSE = 3e-4
"""Relative tolerance at which branch and bound ends."""
_MOST_BOXES = 6000
"""Boxes after which it ends with the largest bound of those left."""
_REACH = 1.5
"""Distance below its upper end at which a box that is unbounded below is bisected."""
_ASCENTS = 60
"""Steps of monotone ascents to a lower estimate, with which branch and bound starts."""


@dataclass(frozen=True, slots=True)
class Polynomial:
    exponents: Exponents
    coefficients: Array

    @property
    def blocks(self) -> int:
        return int(self.exponents.shape[1])

    @property
    def degrees(self) -> NDArray[np.int64]:
        return np.asarray(self.exponents.sum(axis=1))

    def part(self, degree: int) -> Polynomial:
        """The homogeneous part of this degree, without zero terms."""
        which = (self.degrees == degree) & (self.coefficients != 0.0)
        return Polynomial(self.exponents[which], self.coefficients[which])


def collected(exponents: Exponents, coefficients: Array) -> Polynomial:
    """The polynomial with equal monomials combined."""
    if not len(exponents):
        return Polynomial(exponents, coefficients)
    unique, inverse = np.unique(exponents, axis=0, return_inverse=True)
    inverse = inverse.ravel()
    summed = np.asarray(np.bincount(inverse, coefficients, len(unique)), dtype=np.float64)
    most = int(np.max(np.bincount(inverse)))
    return Polynomial(unique, rounded_up(summed, most))


def largest_value(p: Polynomial) -> float:
    """Upper bound on max p(t) over t >= 0, ‖t‖ = 1, for homogeneous p: the least of four bounds.

    Two bounds hold for p itself. As the largest value of a symmetric form on the sphere is that of
    ‖∇p‖/degree (Banach), the square roots of both bounds on Σ_b (∂_b p / degree)² hold too.
    """
    if not p.coefficients.any():
        return 0.0
    if not np.isfinite(p.coefficients).all():
        return float(np.inf)
    degree = int(p.degrees[0])
    if p.blocks == 1 or degree == 0:
        return float(np.sum(p.coefficients)) if len(p.coefficients) == 1 else float(np.inf)
    result = [monomials_bound(p), unfolding_bound(p)]
    if degree > 2:
        q = gradient_square(p)
        result += [
            float(up_sqrt(monomials_bound(q))),
            float(up_sqrt(unfolding_bound(q))),
        ]
    return min(result)


def monomials_bound(p: Polynomial) -> float:
    """Σ a_α κ(α), κ(α) the largest value of t^α on the sphere."""
    kappa = largest_monomials(p)
    # Each of B powers has an error of a few steps; the error of the sum grows with its terms.
    total = np.asarray([np.sum(p.coefficients * kappa)])
    return float(rounded_up(total, 16 * p.blocks + len(kappa))[0])


def largest_monomials(p: Polynomial) -> Array:
    """κ(α) = Π (α_b/k)^(α_b/2), not rounded up: on the sphere t^α is largest at t_b² = α_b/k."""
    fraction = np.where(p.exponents > 0, p.exponents / int(p.degrees[0]), 1.0)
    return np.asarray(np.prod(fraction ** (p.exponents / 2.0), axis=1))


def unfolding_bound(p: Polynomial) -> float:
    """‖G‖₂ with p(t) = m_q(t)ᵀ G m_(k-q)(t), m_q(t)_β = √mult(β) t^β, so that |m_q(t)| = |t|^q.

    G_βγ = √(mult β · mult γ) a_(β+γ) / mult(β+γ), q = ⌊k/2⌋: the symmetric form's unfolding.
    """
    degree = int(p.degrees[0])
    low = degree // 2
    rows, columns = _monomials(p.blocks, low), _monomials(p.blocks, degree - low)
    if max(len(rows), len(columns)) > _LARGEST_UNFOLDING:
        return float(np.inf)
    sums = rows[:, None, :] + columns[None, :, :]
    base = (degree + 1) ** np.arange(p.blocks, dtype=np.int64)
    codes = p.exponents @ base
    order = np.argsort(codes)
    place = np.minimum(np.searchsorted(codes[order], sums @ base), len(codes) - 1)
    hit = codes[order][place] == sums @ base
    values = np.where(hit, p.coefficients[order][place], 0.0)
    weight = np.sqrt(np.multiply.outer(_multiplicities(rows), _multiplicities(columns)))
    every = _multiplicities(sums.reshape(-1, p.blocks)).reshape(values.shape)
    return spectral_norm(rounded_up(values * weight / every, 16))


def gradient_square(p: Polynomial) -> Polynomial:
    """Σ_b (∂_b p / k)² for p of degree k."""
    degree = int(p.degrees[0])
    exponents, coefficients = [], []
    for b in range(p.blocks):
        which = p.exponents[:, b] > 0
        lowered = p.exponents[which].copy()
        lowered[:, b] -= 1
        a = rounded_up(p.coefficients[which] * p.exponents[which, b] / degree, 2)
        exponents.append((lowered[:, None, :] + lowered[None, :, :]).reshape(-1, p.blocks))
        coefficients.append(rounded_up(np.multiply.outer(a, a).ravel(), 1))
    return collected(np.concatenate(exponents), np.concatenate(coefficients))


def _monomials(blocks: int, degree: int) -> Exponents:
    """All exponents of this degree (comb(B + k - 1, k), B)."""
    count = comb(blocks + degree - 1, degree)
    if count > _LARGEST_UNFOLDING:
        return np.zeros((count, 0), dtype=np.int64)
    result = np.zeros((count, blocks), dtype=np.int64)
    for row, chosen in enumerate(combinations_with_replacement(range(blocks), degree)):
        for b in chosen:
            result[row, b] += 1
    return result


def _multiplicities(exponents: Exponents) -> Array:
    """The multinomial coefficients k! / Π α_b! (M,) of exponents (M, B), up to rounding."""
    most = int(exponents.max(initial=0))
    degree = int(exponents[0].sum()) if len(exponents) else 0
    parts = np.array([float(factorial(k)) for k in range(most + 1)])
    return np.asarray(float(factorial(degree)) / np.prod(parts[exponents], axis=1))


def largest_closely(p: Polynomial) -> float:
    """Like `largest_value`; almost sharp for degrees >= 3 in few blocks, by branch and bound."""
    scale = float(np.max(p.coefficients, initial=0.0))
    degree = int(p.degrees[0]) if len(p.coefficients) else 0
    if not 0.0 < scale < np.inf or not 1 < p.blocks <= _MOST_BLOCKS or degree < 3:
        return largest_value(p)
    scaled = np.maximum(up_div(p.coefficients, np.asarray(scale)), SMALLEST_NORMAL)
    maximum, is_close = sphere_maximum(p.exponents, scaled)
    other = min(monomials_bound(p), unfolding_bound(p)) if is_close else largest_value(p)
    return min(other, float(up_mul(scale, maximum)))


def sphere_maximum(exponents: NDArray[np.int64], coefficients: Array) -> tuple[float, bool]:
    """Upper bound on max p(t) over ‖t‖ = 1 by branch and bound, and whether it is almost sharp.

    p is homogeneous with exponents (M, B) and coefficients (M,) of magnitude at most about 1. With
    t_b = exp(u_b), p(t)/‖t‖^k, k the degree, is maximised over boxes of u. By homogeneity one t_b
    can be taken as 1 and the others as at most 1, so B boxes -∞ <= u <= 0 cover all directions. On
    a box with the midpoint m, log Σ_b exp(2 u_b) is convex, so it is at least its tangent:

        ‖t‖^-k <= Z^(-k/2) exp(-k Σ_b ω_b (u_b - m_b)),  Z = Σ_b exp(2 m_b), ω_b = exp(2 m_b)/Z,

    and p times that is a sum of exponentials of affine functions: convex, so largest at a vertex. A
    u_b that is unbounded below is left out of Z, and takes its upper end in p, which increases in
    it. The excess falls with the square of the widths, so that few boxes are needed.
    """
    powers = np.asarray(exponents, dtype=np.float64)
    blocks = powers.shape[1]
    reached = _reached(powers, coefficients)
    hi = np.zeros((blocks, blocks))
    lo = np.where(np.eye(blocks, dtype=bool), 0.0, -np.inf)
    count = 0
    while len(lo):
        pause()
        bounds, score, seen = _over_boxes(powers, coefficients, lo, hi)
        count += len(lo)
        if count > _MOST_BOXES:
            return max(reached * (1.0 + _CLOSE), float(np.max(bounds))), False
        reached = max(reached, seen)
        left = bounds > reached * (1.0 + _CLOSE)
        lo, hi = _parted(lo[left], hi[left], score[left])
    return reached * (1.0 + _CLOSE), True


def _reached(powers: Array, coefficients: Array) -> float:
    """Approximation of a value of p on the sphere, by monotone ascents t <- ∇p / ‖∇p‖."""
    k, blocks = powers[0].sum(), powers.shape[1]
    t = np.vstack([np.ones(blocks), np.ones((blocks, blocks)) + 2.0 * np.eye(blocks)])
    values = np.zeros(1)
    for _ in range(_ASCENTS):
        t /= np.linalg.norm(t, axis=1, keepdims=True)
        terms = coefficients * np.prod(t[:, np.newaxis, :] ** powers, axis=2)
        values = np.sum(terms, axis=1)
        t = np.maximum(terms @ powers / (k * t), FLOOR)
    return float(np.max(values))


def _over_boxes(
    powers: Array, coefficients: Array, lo: Array, hi: Array
) -> tuple[Array, Array, float]:
    """Bounds (C,) over boxes, the contribution of each block (C, B), and an attained value."""
    k, blocks = powers[0].sum(), powers.shape[1]
    bounded = np.isfinite(lo)
    middle = np.where(bounded, 0.5 * (lo + hi), hi)
    with np.errstate(invalid="ignore"):
        half = np.maximum(up_add(hi, -middle), up_add(middle, -lo))
    half = np.where(bounded, half, 0.0)
    squares = np.where(bounded, np.exp(2.0 * middle), 0.0)
    total = np.sum(squares, axis=1)
    fraction = squares / total[:, np.newaxis]
    terms = coefficients * np.exp(middle @ powers.T) * total[:, np.newaxis] ** (-0.5 * k)
    slopes = np.exp((powers - k * fraction[:, np.newaxis, :]) * half[:, np.newaxis, :])
    front = _corners(terms, slopes[:, :, : blocks // 2])
    back = _corners(np.ones_like(terms), slopes[:, :, blocks // 2 :])
    result = np.max(front @ back.transpose(0, 2, 1), axis=(1, 2))
    values = np.sum(terms, axis=1)
    mean = terms @ powers / np.maximum(values, SMALLEST_NORMAL)[:, np.newaxis]
    width = np.where(bounded, 2.0 * half, 2.0 * _REACH)
    seen = float(np.max(values, where=bounded.all(axis=1), initial=0.0))
    return _rounded_up(result, powers, middle, half), width * (mean + k * fraction), seen


def _rounded_up(computed: Array, powers: Array, middle: Array, half: Array) -> Array:
    """The bounds of `_over_boxes` rounded up, for M products of powers of degree k.

    A product has the exponentials of Σ p_b m_b, at most k max|m|, of 2 m_b to the power k/2 in
    Z^(k/2) >= 1, as one m_b is 0, and of B slopes, at most k max(half) each. Underflow loses at
    most the least normal double times the slopes.
    """
    (terms, blocks), k = powers.shape, float(powers[0].sum())
    largest, widest = (float(np.max(np.abs(a), initial=0.0)) for a in (middle, half))
    arguments = k * (2.0 * largest + blocks * widest)
    functions = blocks + int(k) + 3
    roundings = terms + (int(k) + 4) * (blocks + 4)
    bounds = exponentials_rounded_up(computed, arguments, blocks + 16, functions, roundings)
    lost = terms * SMALLEST_NORMAL * float(np.exp(k * blocks * widest))
    return np.asarray(up_add(bounds, np.asarray(2.0 * lost)))


def _corners(terms: Array, slopes: Array) -> Array:
    """Terms (C, M) times or divided by the slopes (C, M, b) in all 2^b ways, (C, 2^b, M)."""
    result = terms[:, np.newaxis, :]
    for slope in slopes.transpose(2, 0, 1)[:, :, np.newaxis, :]:
        result = np.concatenate([result * slope, result / slope], axis=1)
    return result


def _parted(lo: Array, hi: Array, score: Array) -> tuple[Array, Array]:
    """Each box bisected along the block with the largest score."""
    rows, b = np.arange(len(lo)), np.argmax(score, axis=1)
    low, high = lo[rows, b], hi[rows, b]
    cut = np.where(np.isfinite(low), 0.5 * (low + high), high - _REACH)
    below, above = hi.copy(), lo.copy()
    below[rows, b] = above[rows, b] = cut
    return np.concatenate([lo, above]), np.concatenate([below, hi])
