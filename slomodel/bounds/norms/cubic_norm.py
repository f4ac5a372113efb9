"""Norms of symmetric trilinear forms: stacks of small ones, and single ones in many variables."""

from __future__ import annotations

from math import sqrt

import numpy as np

from slomodel.bounds.arithmetic.midpoint_radius import Bounded, exact, mean_of_orders, symmetrised
from slomodel.bounds.arithmetic.rounding import (
    SMALLEST_NORMAL,
    Array,
    up_add,
    up_ldexp,
    up_mul,
    up_norm,
    up_sqrt,
)
from slomodel.bounds.arithmetic.sums_of_products import errors_of_grams
from slomodel.bounds.norms.quartic_norm import largest_quartic, square_of_cubic
from slomodel.bounds.norms.spectral_norm import (
    DENSE_EIGEN,
    spectral_norm,
    stack_norm,
    upper_eigenvalue,
)
from slomodel.bounds.stopping import pause

_THETAS = (2 / 3, 0.85, 1.0, 1.15)
"""Mixtures of both Gram matrices that are tried; every real θ proves a bound."""
_FRACTION, _COARSE_FRACTION = 1e-5, 1e-3
"""Relative tolerances of the largest eigenvalues of large matrices, for few columns and for more,
where each step towards them takes milliseconds.
"""
_MANY = 3
"""Largest number of variables for which all mixtures θ are tried; for more, θ = 1 alone."""
_FEW_COLUMNS = 30
"""Variables up to which mixtures of Gram matrices of the whole form are tried."""
_MOST_COLUMNS_SQUARED = 60
"""Variables up to which the form is split, and squared as a quartic form."""
MOST_COLUMNS_CUBIC = 100
"""Variables up to which forms are stored, as n³ numbers: 8 MB."""
_SPACE = 20
"""Largest dimension of the space that is split off, of the largest singular directions."""
_STARTS = 4
"""Directions from which ascents to an attained value start."""
_CLOSE = 1.1
"""A bound within this factor of an attained value is not refined."""


def cubic_norm(one: Bounded[float]) -> float:
    """Upper bound on the norm of the exact symmetric form.

    By `trilinear_norm` for few variables, for more by `split_norm` too, and for many by T = sym(w ⊗
    I) + T': for unit v, sym(w ⊗ I)[v, v, v] = w·v, so that ‖T‖ <= ‖w‖ + ‖T'‖, with w = 3 tr T / (n
    + 2), which makes T' traceless.
    """
    n = len(one.value)
    if not np.isfinite(one.value).all():
        return float(np.inf)
    if n <= _FEW_COLUMNS:
        exactly = symmetrised(one)
        return float(up_add(trilinear_norm(exactly.value[np.newaxis])[0], exactly.error))
    T = mean_of_orders(one)
    w = 3.0 * np.einsum("ijj->i", T.value) / (n + 2)
    rest = exact(T.value) - mean_of_orders(exact(np.multiply.outer(w, np.eye(n))))
    parts = up_add(float(up_norm(w)), spectral_norm(rest.value.reshape(n, n * n)))
    least = min(spectral_norm(T.value.reshape(n, n * n)), float(up_add(parts, rest.error)))
    if n <= _MOST_COLUMNS_SQUARED:
        S = symmetrised(one).value
        split, attained = split_norm(S)
        least = min(least, split)
        if least > _CLOSE * attained:
            least = min(least, float(trilinear_norm(S[np.newaxis])[0]))
    return float(up_add(least, T.error))


def split_norm(T: Array) -> tuple[float, float]:
    """Upper bound on ‖T‖ and a lower estimate, by the directions along which T is large.

    With orthogonal V = (P, Q), unit v = P α + Q β and R the form T in α and β, |T[v, v, v]| is at
    most |R[α, α, α]| + 3 |R[α, α, β]| + 3 |R[α, β, β]| + |R[β, β, β]|: at most the norm of a form
    in |α| and |β|. The first two terms are at most |α|² times the norms of R[α, α, ·], bounded by
    quartic forms of few variables. A computed V is within δ >= ‖VᵀV - I‖_F of an orthogonal matrix,
    which changes R by at most ((1 + δ)³ - 1) ‖T‖; each of three products adds its rounding error.
    """
    n = len(T)
    largest = float(np.max(np.abs(T)))
    if largest == 0.0:
        return 0.0, 0.0
    e = int(np.frexp(largest)[1])
    T = np.ldexp(T, -e)
    M = T.reshape(n, n * n)
    V = np.linalg.eigh(M @ M.T)[1][:, ::-1]
    p, vectors = min(_SPACE, n - 1), exact(V)
    defect = (vectors.transposed @ vectors - exact(np.eye(n))).norm
    along = exact(M)
    for _ in range(3):
        turned = along.transposed @ vectors
        along = Bounded(turned.value.reshape(n, n * n), turned.error)
    mean = Bounded(along.value.reshape(n, n, n).transpose(2, 0, 1), along.error).symmetric()
    R = mean.value.transpose(1, 2, 0)
    moved = up_mul(5.0, up_mul(defect, exact(M).magnitude)) if defect < 0.1 else np.inf
    error = up_add(mean.error, moved)
    own, mixed = (square_norm(R[:p, :p, rest]) for rest in (slice(p), slice(p, n)))
    form = np.zeros((2, 2, 2))
    form[0, 0, 0] = own
    form[0, 0, 1] = form[0, 1, 0] = form[1, 0, 0] = mixed
    form[0, 1, 1] = form[1, 0, 1] = form[1, 1, 0] = _unfolded(R[:p, p:, p:])
    form[1, 1, 1] = _unfolded(R[p:, p:, p:])
    bound = up_add(float(trilinear_norm(form[np.newaxis])[0]), error)
    return float(up_ldexp(float(bound), e)), float(np.ldexp(_attained(T, V[:, :_STARTS]), e))


def square_norm(T: Array) -> float:
    """Upper bound on max ‖T[w, w]‖ over unit w, T (p, p, m)."""
    norm = spectral_norm(T.reshape(len(T) ** 2, -1))
    if len(T) == 1 or not 0.0 < norm < np.inf:
        return norm
    T = 0.5 * (T + T.transpose(1, 0, 2))
    e = int(np.frexp(norm)[1])
    root = up_sqrt(largest_quartic(square_of_cubic(np.ldexp(T, -e))))
    return min(norm, float(up_ldexp(root, e)))


def _unfolded(T: Array) -> float:
    """Upper bound on the norm of a form (p, m, m) from two of its unfoldings."""
    p, m = T.shape[:2]
    return min(spectral_norm(T.reshape(p, m * m)), spectral_norm(T.reshape(p * m, m)))


def _attained(T: Array, starts: Array) -> float:
    """Estimate of max ‖T[v, v]‖ by a shifted power method from the starts (n, s)."""
    best = 0.0
    for v in starts.T:
        for _ in range(20):
            image = T @ v @ v
            length = float(np.linalg.norm(image))
            best = max(best, length)
            v = image + 0.3 * length * v
            v = v / max(float(np.linalg.norm(v)), SMALLEST_NORMAL)
    return best


def trilinear_norm(T: Array) -> Array:
    """Upper bounds on max |T[u, v, w]| over unit vectors, for symmetric forms (p, n, n, n).

    For any form, by the norm of the unfolding (n, n²). Where T is symmetric, also by Banach's
    theorem: the norm is max ‖T[v, v]‖ over unit v, and ‖T[v, v]‖² = (v⊗v)ᵀ G (v⊗v) for both Gram
    matrices A_ijkl = Σ_m T_ijm T_klm and B_ijkl = ½ Σ_m (T_ikm T_jlm + T_ilm T_jkm), so for every θ
    its square is at most λ_max((1 - θ) A + θ B) on symmetric matrices.
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
    result[fine] = np.minimum(result[fine], up_ldexp(proved, e))
    return result


def _mixed(T: Array) -> Array:
    """The least of the bounds over θ, for forms of magnitude 1.

    With a shift s, λ_max(G) = λ_max(G + sI) - s <= ‖G + sI‖ - s.
    """
    p, n = T.shape[:2]
    i, j = np.triu_indices(n)
    rows, columns = i[:, np.newaxis], j[:, np.newaxis]
    weight = np.where(i == j, 1.0, sqrt(2.0))
    M = T.reshape(p, n * n, n)
    products = (M @ M.transpose(0, 2, 1)).reshape(p, n, n, n, n)
    pause()
    B = 0.5 * (products[:, rows, i, columns, j] + products[:, rows, j, columns, i])
    mixed = [B]
    if n <= _MANY:
        A = products[:, rows, columns, i, j]
        mixed = [(1.0 - theta) * A + theta * B for theta in _THETAS]
    G = np.concatenate(mixed)
    G *= weight[:, np.newaxis] * weight
    pause()
    near = Bounded(G, np.tile(errors_of_grams(M), len(mixed))).symmetric()
    if len(i) > DENSE_EIGEN:
        fraction = _FRACTION if n <= _FEW_COLUMNS else _COARSE_FRACTION
        ends = np.array([upper_eigenvalue(one, fraction) for one in near.value])
        bounds = up_add(ends, near.error)
    else:
        shift = near.magnitude
        shifted = near.plus_identity(shift)
        bounds = up_add(up_add(stack_norm(shifted.value), -shift), shifted.error)
    least = np.min(bounds.reshape(len(mixed), p), axis=0)
    return np.asarray(up_sqrt(np.maximum(least, 0.0)))
