"""Norms of stacks of symmetric trilinear forms."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import sqrt

import numpy as np

from slomodel.bounds.forms.spectral import DENSE_EIGEN, stack_norm, upper_eigenvalue
from slomodel.bounds.intervals.rounding import (
    SMALLEST,
    Array,
    gamma,
    up_add,
    up_mul,
    up_norm,
    up_sqrt,
)

_THETAS = (2 / 3, 0.85, 1.0, 1.15)
_FEW_THETAS = (1.0,)
_SHARE = 1e-5
"""To such a share largest eigenvalues of large matrices are found."""
_MANY = 3
"""Beyond so many variables fewer mixtures are tried."""


def trilinear_norm(T: Array) -> Array:
    """At least max |T[u, v, w]| over unit vectors, for each symmetric form of a stack (p, n, n, n).

    By the norm of the unfolding (n, n²) for any form. Where T is symmetric, also: by Banach the
    norm is max ‖T[v, v]‖ over unit v, and ‖T[v, v]‖² = (v⊗v)ᵀ G (v⊗v) for both Gram matrices
    A_ijkl = Σ_m T_ijm T_klm and B_ijkl = ½ Σ_m (T_ikm T_jlm + T_ilm T_jkm), so for every θ its
    square is at most λ_max((1 - θ) A + θ B) on symmetric matrices.
    """
    T = np.asarray(T, dtype=np.float64)
    p, n = T.shape[:2]
    result = stack_norm(T.reshape(p, n, n * n))
    turned = [T.transpose(0, 2, 1, 3), T.transpose(0, 3, 2, 1)]
    alike = np.all([np.equal(T, other) for other in turned], axis=(0, 2, 3, 4))
    fine = np.isfinite(result) & (result > 0.0) & alike
    if n == 1 or not fine.any():
        return result
    e = np.frexp(result[fine])[1]
    proved = _mixed(np.ldexp(T[fine], -e[:, None, None, None]))
    # The scaled forms have norm at most 1; a subnormal result is moved up by more than a step.
    scaled = up_add(np.ldexp(proved, e), np.where(e < -1000, 4.0 * SMALLEST, 0.0))
    result[fine] = np.minimum(result[fine], scaled)
    return result


def _mixed(T: Array) -> Array:
    """The least over θ of the bound, for forms of size 1.

    Each entry of A and B is off by γ Σ|T||T| and each of these sums has a Frobenius norm of at most
    ‖T‖_F²; with a shift s, λ_max(G) = λ_max(G + sI) - s <= ‖G + sI‖ - s.
    """
    n = T.shape[1]
    pairs = list(combinations_with_replacement(range(n), 2))
    i, j = (np.array(one) for one in zip(*pairs, strict=True))
    weight = np.where(i == j, 1.0, sqrt(2.0))
    A = np.einsum("pijm,pklm->pijkl", T, T)
    B = 0.5 * (A.transpose(0, 1, 3, 2, 4) + A.transpose(0, 1, 3, 4, 2))
    squared = np.square(up_norm(T, (1, 2, 3)))
    thetas = _THETAS if n <= _MANY else _FEW_THETAS
    mixed = np.concatenate([(1.0 - theta) * A + theta * B for theta in thetas])
    G = weight[:, None] * mixed[:, i[:, None], j[:, None], i, j] * weight
    shift = np.asarray(up_norm(G, (1, 2)))
    size = up_add(4.0 * np.tile(squared, len(thetas)), 4.0 * shift)
    slack = up_mul(np.asarray(gamma(8 * n + 64)), size)
    if len(pairs) > DENSE_EIGEN:
        ends = np.array([upper_eigenvalue(0.5 * (one + one.T), _SHARE) for one in G])
    else:
        ends = up_add(stack_norm(G + shift[:, None, None] * np.eye(len(pairs))), -shift)
    bounds = up_add(ends, slack)
    least = np.min(bounds.reshape(len(thetas), len(T)), axis=0)
    return np.asarray(up_sqrt(np.maximum(least, 0.0)))
