"""Largest values of polynomials with coefficients >= 0 on the unit sphere, by branch and bound.

With t_b = exp(u_b) the largest p(t)/‖t‖^k of a homogeneous p of degree k is sought over boxes of u.
At a scale one t_b is 1 and the others are at most 1, so as many boxes -∞ <= u <= 0 as there are
blocks cover all. On a box with the middle m, log Σ_b exp(2 u_b) is convex, so at least its tangent

    ‖t‖^-k <= Z^(-k/2) exp(-k Σ_b ω_b (u_b - m_b)),  Z = Σ_b exp(2 m_b), ω_b = exp(2 m_b)/Z,

and p times that is a sum of exponentials of affine functions: convex, so largest at a vertex. A u_b
that is not bounded below is left out of Z, and is at its upper end in p, which rises in it. What
that is above the truth falls with the square of the widths, so that few boxes are ever needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.forms.polynomials import (
    Polynomial,
    largest_value,
    monomials_bound,
    unfolding_bound,
)
from slomodel.bounds.intervals.rounding import Array, up_mul
from slomodel.bounds.stopping import pause

_MOST_BLOCKS = 5
_CLOSE = 3e-4
_MOST_BOXES = 6000
_REACH = 1.5
"""Where a box that is not bounded below is parted, below its upper end."""
_GROWTH = 1.0 + 1e-10
_TINY = 1e-290
_ASCENTS = 60


def largest_closely(p: Polynomial) -> float:
    """As `largest_value`, of degree 3 and more in few blocks within a small share of the truth."""
    scale = float(np.max(p.coefficients, initial=0.0))
    degree = int(p.degrees[0]) if len(p.coefficients) else 0
    if not 0.0 < scale < np.inf or not 1 < p.blocks <= _MOST_BLOCKS or degree < 3:
        return largest_value(p)
    scaled = np.maximum(p.coefficients / scale * (1.0 + 1e-15), _TINY)
    maximum, is_close = sphere_maximum(p.exponents, scaled)
    other = min(monomials_bound(p), unfolding_bound(p)) if is_close else largest_value(p)
    return min(other, float(up_mul(scale, maximum)))


def sphere_maximum(exponents: NDArray[np.int64], coefficients: Array) -> tuple[float, bool]:
    """At least max p(t) over ‖t‖ = 1 of p of one degree, exponents (M, B), coefficients (M,) of
    about 1 at most; and whether that is within a small share of it, as boxes were not many.

    Exponentials of at most 2e4 in size and their products are right to 1e-11, what underflows to
    1e-300.
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
    """A value of p that is attained, about: ascents t <- ∇p / ‖∇p‖, which never fall."""
    k, blocks = powers[0].sum(), powers.shape[1]
    t = np.vstack([np.ones(blocks), np.ones((blocks, blocks)) + 2.0 * np.eye(blocks)])
    values = np.zeros(1)
    for _ in range(_ASCENTS):
        t /= np.linalg.norm(t, axis=1, keepdims=True)
        terms = coefficients * np.prod(t[:, np.newaxis, :] ** powers, axis=2)
        values = np.sum(terms, axis=1)
        t = np.maximum(terms @ powers / (k * t), _TINY)
    return float(np.max(values))


def _over_boxes(
    powers: Array, coefficients: Array, lo: Array, hi: Array
) -> tuple[Array, Array, float]:
    """Bounds (C,) over boxes, how much each block counts in them (C, B), and a value in one."""
    k, blocks = powers[0].sum(), powers.shape[1]
    bounded = np.isfinite(lo)
    middle = np.where(bounded, 0.5 * (lo + hi), hi)
    half = np.where(bounded, 0.5 * (hi - lo) * (1.0 + 1e-15), 0.0)
    squares = np.where(bounded, np.exp(2.0 * middle), 0.0)
    total = np.sum(squares, axis=1)
    share = squares / total[:, np.newaxis]
    terms = coefficients * np.exp(middle @ powers.T) * total[:, np.newaxis] ** (-0.5 * k)
    slopes = np.exp((powers - k * share[:, np.newaxis, :]) * half[:, np.newaxis, :])
    front = _corners(terms, slopes[:, :, : blocks // 2])
    back = _corners(np.ones_like(terms), slopes[:, :, blocks // 2 :])
    found = np.max(front @ back.transpose(0, 2, 1), axis=(1, 2))
    values = np.sum(terms, axis=1)
    mean = terms @ powers / np.maximum(values, _TINY)[:, np.newaxis]
    width = np.where(bounded, 2.0 * half, 2.0 * _REACH)
    seen = float(np.max(values, where=bounded.all(axis=1), initial=0.0))
    return found * _GROWTH + _TINY, width * (mean + k * share), seen


def _corners(terms: Array, slopes: Array) -> Array:
    """Terms (C, M) times or over the slopes (C, M, b) in all 2^b ways, (C, 2^b, M)."""
    found = terms[:, np.newaxis, :]
    for slope in slopes.transpose(2, 0, 1)[:, :, np.newaxis, :]:
        found = np.concatenate([found * slope, found / slope], axis=1)
    return found


def _parted(lo: Array, hi: Array, score: Array) -> tuple[Array, Array]:
    """Each box in two along the block that counts most."""
    rows, b = np.arange(len(lo)), np.argmax(score, axis=1)
    low, high = lo[rows, b], hi[rows, b]
    cut = np.where(np.isfinite(low), 0.5 * (low + high), high - _REACH)
    below, above = hi.copy(), lo.copy()
    below[rows, b] = above[rows, b] = cut
    return np.concatenate([lo, above]), np.concatenate([below, hi])
