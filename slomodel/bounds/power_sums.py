"""Largest values of Σ_i c_i |z_i·v|^q over unit v, q = 2, 3, 4, for many weights c >= 0 at once."""

from __future__ import annotations

import numpy as np

from slomodel.bounds.loewner import Rows
from slomodel.bounds.rounding import Array, gamma, up, up_add, up_mul, up_sqrt
from slomodel.bounds.spectral import stack_norm

_TINY = 1e-250
_MOST_NUMBERS = 4_000_000


def power_sums(rows: Rows, c: Array, q: int) -> Array:
    """For each of the weights (p, N) at least max Σ_i c_i |z_i·v|^q over unit v, (p,).

    By |z_i·v|^(q-2) <= l_i^(q-2) and the largest eigenvalue; for q = 4, in few variables, by
    `_fourth`, and for q = 3 by Cauchy between the sums for 2 and 4.
    """
    lengths: Array = np.ones_like(rows.length)
    for _ in range(q - 2):
        lengths = up_mul(lengths, rows.length)
    result = _second(rows, up_mul(c, lengths))
    pairs = rows.A.shape[1] * (rows.A.shape[1] + 1) // 2
    if q > 2 and c.shape[1] * pairs**2 <= _MOST_NUMBERS:
        fourth = _fourth(rows, c)
        if q == 3:
            fourth = up_mul(up_sqrt(_second(rows, c)), up_sqrt(fourth))
        result = np.minimum(result, fourth)
    return result


def _second(rows: Rows, c: Array) -> Array:
    """At least λ_max(Σ c z zᵀ); roundings and errors of rows add at most Σ c (γ l² + 3 l e)."""
    m, d = rows.A.shape
    outer = (rows.A[:, :, None] * rows.A[:, None, :]).reshape(m, d * d)
    S = (c @ outer).reshape(len(c), d, d)
    lengths: Array = up_mul(rows.length, rows.length)
    own: Array = up_add(gamma(m + 9) * lengths, up_mul(3.0 * rows.length, rows.error))
    return up_add(stack_norm(S), _slack(c, own))


def _fourth(rows: Rows, c: Array) -> Array:
    """As `fourth_powers`, by pairs of variables: σ + 2 (λ_max(Σ c β z zᵀ) - σ) + (1 - 1/d) ‖K‖."""
    m, d = rows.A.shape
    beta = np.sum(rows.A * rows.A, axis=1) / d
    i, j = np.triu_indices(d)
    R = rows.A[:, i] * rows.A[:, j] * np.where(i == j, 1.0, np.sqrt(2.0)) - beta[:, None] * (i == j)
    outer = (R[:, :, None] * R[:, None, :]).reshape(m, -1)
    K = (c @ outer).reshape(len(c), len(i), len(i))
    lengths: Array = up_mul(rows.length, rows.length)
    fourth = up_mul(lengths, lengths)
    moved = up_mul(up_mul(lengths, rows.length), rows.error)
    own: Array = up_add(17.0 * gamma(8 * (m + d) + 64) * fourth, 65.0 * moved)
    share = np.asarray(up(1.0 - 1.0 / d))
    spread: Array = up_mul(stack_norm(K), share) if d > 1 else np.zeros(len(c))
    middle = c @ (beta * beta)
    tilt = np.maximum(up_add(_second(rows, up_mul(c, beta)), -middle), 0.0)
    total = up_add(up_add(middle, 2.0 * tilt), spread)
    return up_add(total, _slack(c, own))


def _slack(c: Array, own: Array) -> Array:
    growth = np.asarray(up(1.0 + gamma(2 * len(own) + 8)))
    return up_add(up_mul(c @ own, growth), np.asarray(_TINY))
