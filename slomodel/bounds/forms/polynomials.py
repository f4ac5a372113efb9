"""Polynomials with coefficients >= 0 in the lengths of blocks, and their largest values.

p(t) = Σ_α a_α t^α in t_b >= 0, b = 1..B; `exponents` (M, B) and `coefficients` (M,). Results are
upper bounds: each operation enlarges by the roundings that it made.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.forms.spectral import spectral_norm
from slomodel.bounds.intervals.rounding import Array, gamma, up, up_sqrt
from slomodel.bounds.intervals.settled import FLOOR

Exponents = NDArray[np.int64]
_LARGEST_UNFOLDING = 800


def enlarged(a: Array, roundings: int) -> Array:
    """At least the exact numbers, each off by so many roundings; exact zeros stay."""
    with np.errstate(all="ignore"):
        y = np.asarray(a * up(1.0 + gamma(roundings + 8)))
        y[np.isnan(y)] = np.inf
        y[(y > 0.0) & (y < FLOOR)] = FLOOR
    return y


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
        """The homogeneous part of this degree, without zeros."""
        which = (self.degrees == degree) & (self.coefficients != 0.0)
        return Polynomial(self.exponents[which], self.coefficients[which])

    def as_dict(self) -> dict[tuple[int, ...], float]:
        return {
            tuple(int(e) for e in exponent): float(a)
            for exponent, a in zip(self.exponents, self.coefficients, strict=True)
        }


def collected(exponents: Exponents, coefficients: Array) -> Polynomial:
    """Equal monomials added up."""
    if not len(exponents):
        return Polynomial(exponents, coefficients)
    unique, inverse = np.unique(exponents, axis=0, return_inverse=True)
    inverse = inverse.ravel()
    summed = np.asarray(np.bincount(inverse, coefficients, len(unique)), dtype=np.float64)
    most = int(np.max(np.bincount(inverse)))
    return Polynomial(unique, enlarged(summed, most))


def largest_value(p: Polynomial) -> float:
    """At least max p(t) over t >= 0, ‖t‖ = 1, for homogeneous p: the least of four bounds.

    One is for p itself; as the largest value of a symmetric form on the sphere is that of
    ‖∇p‖/degree (Banach), the root of a bound for Σ_b (∂_b p / degree)² is another.
    """
    if not p.coefficients.any():
        return 0.0
    if not np.isfinite(p.coefficients).all():
        return float(np.inf)
    degree = int(p.degrees[0])
    if p.blocks == 1 or degree == 0:
        return float(np.sum(p.coefficients)) if len(p.coefficients) == 1 else float(np.inf)
    found = [monomials_bound(p), unfolding_bound(p)]
    if degree > 2:
        q = gradient_square(p)
        found += [
            float(up_sqrt(monomials_bound(q))),
            float(up_sqrt(unfolding_bound(q))),
        ]
    return min(found)


def monomials_bound(p: Polynomial) -> float:
    """Σ a_α κ(α), κ(α) the largest value of t^α on the sphere."""
    kappa = largest_monomials(p)
    # Powers are off by a few steps each, of which there are B, and the sum by its terms.
    total = np.asarray([np.sum(p.coefficients * kappa)])
    return float(enlarged(total, 16 * p.blocks + len(kappa))[0])


def largest_monomials(p: Polynomial) -> Array:
    """About κ(α) = Π (α_b/k)^(α_b/2): t^α on the sphere is largest at t_b² = α_b/k."""
    share = np.where(p.exponents > 0, p.exponents / int(p.degrees[0]), 1.0)
    return np.asarray(np.prod(share ** (p.exponents / 2.0), axis=1))


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
    return spectral_norm(enlarged(values * weight / every, 16))


def gradient_square(p: Polynomial) -> Polynomial:
    """Σ_b (∂_b p / k)² for p of degree k."""
    degree = int(p.degrees[0])
    exponents, coefficients = [], []
    for b in range(p.blocks):
        which = p.exponents[:, b] > 0
        lowered = p.exponents[which].copy()
        lowered[:, b] -= 1
        a = enlarged(p.coefficients[which] * p.exponents[which, b] / degree, 2)
        exponents.append((lowered[:, None, :] + lowered[None, :, :]).reshape(-1, p.blocks))
        coefficients.append(enlarged(np.multiply.outer(a, a).ravel(), 1))
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
    """k! / Π α_b!, to a rounding."""
    most = int(exponents.max(initial=0))
    degree = int(exponents[0].sum()) if len(exponents) else 0
    parts = np.array([float(factorial(k)) for k in range(most + 1)])
    return np.asarray(float(factorial(degree)) / np.prod(parts[exponents], axis=1))
