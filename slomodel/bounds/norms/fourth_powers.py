"""Upper bounds on sums of fourth powers Σ d_i (a_i·v)⁴, and of cubes by them, over unit v."""

from __future__ import annotations

import numpy as np

from slomodel.bounds.arithmetic.rounding import Array, up, up_add, up_div, up_mul, up_sqrt
from slomodel.bounds.arithmetic.sums_of_products import error_of_sum
from slomodel.bounds.norms.loewner import Rows, dot, largest_eigenvalue, quadratic_sum
from slomodel.bounds.norms.spectral_norm import upper_eigenvalue

_MOST_SYMMETRIC = 800
"""Pairs of variables up to which the Gram matrix is formed over pairs: its order."""
_MOST_ROWS = 2048
"""Rows up to which it is formed over rows: 32 MB."""
_MOST_PRODUCTS = 2e9
"""Multiplications for the matrix over pairs, rows times pairs²."""
_BITS = 20
"""Binary digits that weights are rounded up to, so that nearly equal ones share a cached bound."""
_RELATIVE = 2.0**-48
"""Relative enlargement of the largest weight, so that its quotient is exactly 1 on the grid."""
_STEPS = 12
"""Ascent steps to a lower estimate, by which bounds are compared before they are computed."""


def cubic_by_fourth_powers(rows: Rows, d: Array) -> float:
    """Upper bound on max Σ d_i |a_i·v|³, unit v, d >= 0: the root of Σ d (a·v)² Σ d (a·v)⁴."""
    fourth = fourth_powers(rows, d)
    if not np.isfinite(fourth):
        return fourth
    second = largest_eigenvalue(quadratic_sum([rows], {(0, 0): d}))
    return float(up_sqrt(up_mul(second, fourth)))


def attained(rows: Rows, d: Array, order: int) -> float:
    """Estimate of the least possible value of `fourth_powers` or `cubic_by_fourth_powers`.

    It comes from values that Σ d_i |a_i·v|^k attains at some v, and is not a bound.
    """
    if not np.isfinite(d).all():
        return float(np.inf)
    fourth = _by_ascent(rows.value, d, 4)
    return fourth if order == 4 else float(np.sqrt(fourth * _by_ascent(rows.value, d, 2)))


def _by_ascent(A: Array, d: Array, k: int) -> float:
    """A value of Σ d_i |a_i·v|^k after some ascent steps that replace v by the gradient."""
    v, value = A[int(np.argmax(d * np.linalg.norm(A, axis=1) ** k))], 0.0
    for _ in range(_STEPS):
        length = float(np.linalg.norm(v))
        if not 0.0 < length < np.inf:
            break
        u = A @ (v / length)
        pull = d * np.abs(u) ** (k - 2) * u
        value, v = float(pull @ u), A.T @ pull
    return value


def fourth_powers(rows: Rows, d: Array) -> float:
    """Upper bound on max Σ d_i (a_i·v)⁴ over unit v, for d >= 0; inf where it is too expensive.

    With β_i = ‖a_i‖²/n and R_i = a_i a_iᵀ - β_i I, of trace 0: (a_i·v)² = β_i + ⟨R_i, v vᵀ - I/n⟩,
    the second factor of Frobenius norm (1 - 1/n)^½, so that with σ = Σ d β² the sum is at most

        σ + 2 λ_max(Σ d_i β_i R_i) + (1 - 1/n) ‖K‖,  K_ij = √(d_i d_j) ⟨R_i, R_j⟩,

    ⟨R_i, R_j⟩ = (a_i·a_j)² - β_i‖a_j‖² - β_j‖a_i‖² + n β_i β_j; or K is formed over pairs of
    variables, where these are fewer. Exact for one row, and for rows spread evenly. The rows may be
    embedded in a space of any larger dimension; in the limit β = 0, which is better for few rows.
    """
    largest = float(np.max(d, initial=0.0))
    if not 0.0 < largest < np.inf:
        return _found(rows, d) if largest else 0.0
    scale = float(up_mul(largest, 1.0 + _RELATIVE))
    weights = _on_grid(up_div(d, np.asarray(scale)))
    key = weights.tobytes()
    if key not in rows.fourths:
        own = np.flatnonzero(weights)
        rows.fourths[key] = _found(rows.take(own), weights[own])
    return float(up_mul(scale, rows.fourths[key]))


def _on_grid(d: Array) -> Array:
    """Numbers that are not smaller, with `_BITS` binary digits each."""
    mantissa, exponent = np.frexp(d)
    rounded = np.ldexp(np.ceil(np.ldexp(mantissa, _BITS)), exponent - _BITS)
    return np.asarray(np.maximum(rounded, d))


def _found(rows: Rows, d: Array) -> float:
    m, n = rows.value.shape
    if m == 0:
        return 0.0
    beta = np.sum(np.square(rows.value), axis=1) / n
    least = _fourth_powers(rows, d, beta, float(up(1.0 - 1.0 / n)))
    return least if m > n else min(least, _fourth_powers(rows, d, np.zeros(m), 1.0))


def _fourth_powers(rows: Rows, d: Array, beta: Array, factor: float) -> float:
    """The bound for one β; `factor` is the squared Frobenius norm of v vᵀ - I/n."""
    m, n = rows.value.shape
    K = _gram_of_squares(rows.value, beta, np.sqrt(d)) if np.isfinite(d).all() else None
    if K is None:
        return float(np.inf)
    # The Frobenius norm of R is at most twice l², so that K and the other two terms are, for the
    # computed rows, at most 16 such sums of products of squares of sums of n products each.
    roundings = 16 * (8 * (m + n) + 64)
    error = error_of_sum(d, [rows.length] * 4, [rows.error] * 4, roundings, K.size)
    spread = up_mul(factor, upper_eigenvalue(K)) if factor > 0.0 else 0.0
    middle = dot(d, np.square(beta))
    tilted = largest_eigenvalue(quadratic_sum([rows], {(0, 0): d * beta}))
    tilt = max(up_add(tilted, -middle), 0.0)
    return float(up_add(up_add(middle, up_mul(2.0, tilt)), up_add(spread, error)))


def _gram_of_squares(A: Array, beta: Array, weight: Array) -> Array | None:
    """K over rows or, with the same norm, over pairs of variables; either triangle may be read."""
    m, n = A.shape
    pairs = n * (n + 1) // 2
    if pairs <= min(m, _MOST_SYMMETRIC) and m * pairs**2 <= _MOST_PRODUCTS:
        i, j = np.triu_indices(n)
        B = A[:, i] * A[:, j] * np.where(i == j, 1.0, np.sqrt(2.0)) - beta[:, None] * (i == j)
        B *= weight[:, None]
        return np.asarray(B.T @ B)
    if m > _MOST_ROWS:
        return None
    scaled = A * np.sqrt(weight)[:, np.newaxis]
    K = scaled @ scaled.T
    np.multiply(K, K, out=K)
    if beta.any():
        K -= np.multiply.outer(n * weight * beta, weight * beta)
    return np.asarray(K)
