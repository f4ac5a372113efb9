"""Proved upper bounds of spectral norms ‖A‖₂ of dense matrices and of stacks of them.

Every function scales by a power of two first, so that nothing over- or underflows, gives +inf for
an array that is not finite, and rounds up. γ_n as in `rounding`. A product of floating-point
matrices has the error |fl(AB) - AB| <= γ_k |A||B|, k the length of the sums (Higham, section 3.5),
whatever the order of summation; scaled entries of at most 1 make each of the underflowed products
wrong by at most 2^-1074, which `_TINY` covers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

from slomodel.bounds.arithmetic.bounded import Bounded
from slomodel.bounds.arithmetic.rounding import (
    Array,
    gamma,
    up,
    up_add,
    up_div,
    up_mul,
    up_norm,
    up_sqrt,
    up_sum,
)
from slomodel.bounds.stopping import pause

DENSE_EIGEN = 160
"""Up to this order a full eigendecomposition costs less than to look for a cheaper proof."""
DENSE_LIMIT = 2000
"""Beyond this order only bounds without a factorisation."""
_TINY = 1e-290
_DAMPING = 1e-12
_STEP = 8
"""Small matrices are padded to multiples of this, so that many are bounded in one stack."""
Key = TypeVar("Key", bound=Hashable)
_SETTLED = 1e-7
_SETTLED_LARGE = 1e-4
"""A bound of ‖|A|‖² within such a share of a value that is attained is not improved."""


def spectral_norm(A: Array) -> float:
    """At least ‖A‖₂ of one matrix, by the sharpest certificate that its size allows."""
    A = np.asarray(A, dtype=np.float64)
    if not A.size:
        return 0.0
    if not np.isfinite(A).all():
        return float(np.inf)
    pause()
    if min(A.shape) == 1:
        return float(up_norm(A))
    if (A >= 0.0).all() or (A <= 0.0).all():
        return min(collatz(A, 24), float(up_norm(A)))
    order = min(A.shape)
    if order <= DENSE_EIGEN:
        return float(stack_norm(A[None])[0])
    cheap = min(collatz(A), float(up_norm(A)))
    if order > DENSE_LIMIT:
        return cheap
    symmetric = A.shape[0] == A.shape[1] and np.array_equal(A, A.T)
    proved = cholesky_norm(A) if symmetric else gram_cholesky(A)
    return min(cheap, proved)


def symmetric_norm(mid: Array, rad: Array) -> float:
    """At least ‖S‖₂ for every symmetric S within `rad` of `mid`, entry by entry.

    M = (mid + midᵀ)/2 is within rad' = max(rad, radᵀ), which bounds also the rounding of M.
    """
    with np.errstate(all="ignore"):
        middle = 0.5 * mid + 0.5 * mid.T
        spread = up_add(np.maximum(rad, rad.T), up(np.abs(middle) * 2.0**-52))
    if not (np.isfinite(middle).all() and np.isfinite(spread).all()):
        return float(np.inf)
    return float(up_add(spectral_norm(middle), spectral_norm(spread)))


def collatz(A: Array, steps: int = 8) -> float:
    """At least ‖|A|‖₂ >= ‖A‖₂; in the limit of many steps equal to ‖|A|‖₂.

    For a vector d > 0: ‖|A|‖₂² = λ_max(|A|ᵀ|A|) <= max_i (|A|ᵀ|A| d)_i / d_i (Collatz-Wielandt).
    """
    B, e = _scaled(np.abs(np.asarray(A, dtype=np.float64)))
    if B is None:
        return float(e)
    if B.shape[0] < B.shape[1]:
        B = B.T
    d = np.ones(B.shape[1])
    excess = 1.0 + (_SETTLED if B.size <= DENSE_EIGEN**2 else _SETTLED_LARGE)
    for _ in range(steps):
        before, d = d, B.T @ (B @ d)
        near = float(np.max(d / before)) <= excess * float(before @ d) / float(before @ before)
        d = d / np.max(d) + _DAMPING
        if near:
            break
    w = up_mul(np.asarray(B.T @ (B @ d)), _number(1.0 + gamma(2 * sum(B.shape) + 8)))
    ratio = float(np.max(up_div(up_add(w, _number(_TINY)), d)))
    return _unscaled(up_sqrt(ratio), e)


def gram_power(A: Array, doublings: int = 3) -> float:
    """At least ‖A‖₂, at most n^(1/2^(doublings+2)) times it, by matrix products alone.

    With G_0 = AᵀA, G_(j+1) = G_j²: ‖A‖² = ‖G_0‖, ‖G_j‖² = ‖G_(j+1)‖ for symmetric G_j and
    ‖G_k‖ <= ‖G_k‖_F. Each computed G_(j+1) is off by at most γ ‖G_j‖_F² in norm.
    """
    B, e = _scaled(np.asarray(A, dtype=np.float64))
    if B is None:
        return float(e)
    if B.shape[0] < B.shape[1]:
        B = B.T
    errors, exponents = [], []
    factor = B
    for step in range(doublings + 1):
        product = factor.T @ factor if step == 0 else factor @ factor
        product = 0.5 * (product + product.T)
        size = float(up_norm(factor))
        relative = gamma(factor.shape[0] + 4)
        errors.append(float(up_add(up_mul(relative, up_mul(size, size)), _TINY)))
        scaled, shift = _scaled(product)
        exponents.append(shift)
        if scaled is None:
            break
        factor = scaled
    bound = 0.0 if scaled is None else float(up_norm(factor))
    for error, shift in zip(reversed(errors), reversed(exponents), strict=True):
        exact = _unscaled(bound, int(shift)) if bound else 0.0
        bound = float(up_sqrt(up_add(exact, error)))
    return _unscaled(bound, e)


def cholesky_norm(H: Array) -> float:
    """At least ‖H‖₂ of a symmetric matrix, at most 1 + 1e-6 times it where the start is good.

    If Cholesky's method runs through on A = tI - H, then A + Δ = RᵀR >= 0 with |Δ| <=
    γ_(n+1) |Rᵀ||R| (Higham, theorem 10.3) and ‖|Rᵀ||R|‖ <= ‖R‖_F² <= tr A / (1 - γ), so that
    λ_max(H) <= t + γ/(1-γ) tr A, to which the rounding of t - h_ii adds (Rump 2006).
    """
    B, e = _scaled(np.asarray(H, dtype=np.float64))
    if B is None:
        return float(e)
    n = len(B)
    largest = _lanczos(B)
    slack_factor = gamma(4 * n + 16)
    for excess in (1e-6, 1e-4, 1e-2, 1.0):
        t = largest * (1.0 + excess) + 1e-14 * n
        if _positive(B, t) and _positive(-B, t):
            trace = up_add(up_mul(float(n), t), float(up_sum(np.abs(np.diag(B)))))
            return _unscaled(float(up_add(t, up_add(up_mul(slack_factor, trace), _TINY))), e)
    return gram_power(H)


def gram_cholesky(A: Array) -> float:
    """At least ‖A‖₂, at most 1 + 1e-4 times it where the start is good: ‖A‖² = λ_max(AᵀA).

    The computed G is off by at most γ ‖A‖_F² in norm.
    """
    B, e = _scaled(np.asarray(A, dtype=np.float64))
    if B is None:
        return float(e)
    if B.shape[0] < B.shape[1]:
        B = B.T
    G = B.T @ B
    G = 0.5 * (G + G.T)
    size = float(up_norm(B))
    slack = up_add(up_mul(gamma(len(B) + 4), up_mul(size, size)), _TINY)
    return _unscaled(float(up_sqrt(up_add(upper_eigenvalue(G, 1e-4), slack))), e)


def upper_eigenvalue(H: Array, share: float = 1e-2) -> float:
    """At least λ_max of a symmetric matrix where that is above 0, to about this share; for large
    orders one factorisation as in `cholesky_norm`, of one sign.
    """
    B, e = _scaled(np.asarray(H, dtype=np.float64))
    if B is None:
        return float(e)
    n = len(B)
    if n <= DENSE_EIGEN:
        return spectral_norm(H)
    largest = _lanczos(B, 16 if share >= 1e-3 else 100, 0.1 * share)
    for excess in (share, 8.0 * share, 64.0 * share, 1.0):
        t = largest * (1.0 + excess) + 1e-14 * n
        if _positive(B, t):
            trace = up_add(up_mul(float(n), t), float(up_sum(np.abs(np.diag(B)))))
            slack = up_add(up_mul(gamma(4 * n + 16), trace), _TINY)
            return _unscaled(float(up_add(t, slack)), e)
    return spectral_norm(H)


def _positive(B: Array, t: float) -> bool:
    pause()
    shifted = -B
    shifted[np.diag_indices(len(B))] += t
    try:
        return bool(np.isfinite(np.linalg.cholesky(shifted)).all())
    except np.linalg.LinAlgError:
        return False


def _lanczos(B: Array, steps: int = 100, close: float = 0.0) -> float:
    """About the largest |eigenvalue| of a symmetric matrix: where a proof starts, no bound.

    It ends where eight more steps change it by a share of `close` or less.
    """
    n, before = len(B), 0.0
    Q = np.zeros((min(steps, n) + 1, n))
    Q[0] = 1.0 + np.cos(np.arange(n) * 1.7) / 3
    Q[0] /= np.linalg.norm(Q[0])
    T = np.zeros((min(steps, n), min(steps, n)))
    for k in range(len(T)):
        pause()
        w = B @ Q[k]
        T[k, k] = w @ Q[k]
        w -= Q[: k + 1].T @ (Q[: k + 1] @ w)
        w -= Q[: k + 1].T @ (Q[: k + 1] @ w)
        length = float(np.linalg.norm(w))
        is_last = length < 1e-13 or k + 1 == len(T)
        if is_last or (close > 0.0 and k % 8 == 7):
            value = float(np.max(np.abs(np.linalg.eigvalsh(T[: k + 1, : k + 1]))))
            if is_last or value - before <= close * value:
                return value
            before = value
        T[k, k + 1] = T[k + 1, k] = length
        Q[k + 1] = w / length
    return 0.0


def stack_norm(A: Array) -> Array:
    """At least ‖A[p]‖₂ for each matrix of a stack (p, m, n).

    With G = fl(AᵀA) (or AAᵀ, the smaller) and the computed eigenpairs V, Λ of G: ‖G‖ <= ‖V‖² max|Λ|
    + ‖G - VΛVᵀ‖_F, ‖V‖² <= 1 + ‖VᵀV - I‖_F; each product has the error of its sums.
    """
    A = np.asarray(A, dtype=np.float64)
    result = np.full(len(A), np.inf)
    if not A.size:
        return np.zeros(len(A))
    pause()
    finite = np.asarray(np.isfinite(A).all(axis=(1, 2)))
    if min(A.shape[1:]) == 1:
        return np.asarray(up_norm(A, (1, 2)))
    e = np.frexp(np.max(np.abs(A), axis=(1, 2), initial=0.0, where=finite[:, None, None]))[1]
    B = np.ldexp(np.where(finite[:, None, None], A, 0.0), -e[:, None, None])
    if B.shape[1] < B.shape[2]:
        B = B.transpose(0, 2, 1)
    proved = np.minimum(_eigen_bound(B), up_norm(B, (1, 2)))
    with np.errstate(over="ignore"):
        scaled = np.ldexp(proved, e)
    small = (scaled < np.finfo(np.float64).tiny) & (proved > 0.0)
    result[finite] = np.where(small, up(scaled), scaled)[finite]
    return result


def _eigen_bound(B: Array) -> Array:
    """The bound of `stack_norm` for entries of at most 1 and m >= n."""
    m, n = B.shape[1:]
    Bt = B.transpose(0, 2, 1)
    G = Bt @ B
    G = 0.5 * (G + G.transpose(0, 2, 1))
    values, V = np.linalg.eigh(G)
    Vt = V.transpose(0, 2, 1)
    slack = _number(gamma(2 * n + 8))
    lengths = up_norm(V, 1)
    total = up_sum(up_mul(lengths, lengths), 1)
    defect = up_norm(Vt @ V - np.eye(n), (1, 2))
    orthogonality = up_add(defect, up_mul(slack, up_add(total, _number(1.0))))
    weight = up_sum(up_mul(np.abs(values), up_mul(lengths, lengths)), 1)
    residual = up_add(up_norm(G - (V * values[:, None, :]) @ Vt, (1, 2)), up_mul(slack, weight))
    size = up_norm(B, (1, 2))
    gram = up_add(up_mul(_number(gamma(2 * m + 8)), up_mul(size, size)), _number(_TINY))
    largest = np.asarray(np.max(np.abs(values), axis=1))
    spectrum = up_mul(up_add(_number(1.0), orthogonality), largest)
    # Rounding of the differences G - VΛVᵀ and VᵀV - I: one unit of their entries.
    rounding = up_mul(_number(4e-16), up_add(up_norm(G, (1, 2)), weight))
    return np.asarray(up_sqrt(up_add(up_add(spectrum, residual), up_add(gram, rounding))))


def _number(x: float) -> Array:
    return np.asarray(x, dtype=np.float64)


def _scaled(A: Array) -> tuple[Array | None, int | float]:
    """A / 2^e with entries of at most 1, and e; no array and the norm where that is 0 or +inf."""
    largest = np.max(np.abs(A), initial=0.0)
    if not np.isfinite(largest):
        return None, np.inf
    if largest == 0.0:
        return None, 0.0
    e = int(np.frexp(largest)[1])
    return np.ldexp(A, -e), e


def _unscaled(norm: float, e: int | float) -> float:
    with np.errstate(over="ignore"):
        result = float(np.ldexp(norm, int(e)))
    return float(up(result)) if result < np.finfo(np.float64).tiny else result


def norms_of(matrices: Mapping[Key, Bounded[float]]) -> dict[Key, float]:
    """At least ‖A‖₂ of each; small ones of about a shape at once, filled up with zeros."""
    groups: dict[tuple[int, int], list[Key]] = {}
    result: dict[Key, float] = {}
    for key, one in matrices.items():
        m, n = sorted(one.value.shape)
        if m > DENSE_EIGEN:
            result[key] = float(up_add(spectral_norm(one.value), one.error))
        else:
            groups.setdefault((-(-m // _STEP) * _STEP, -(-n // _STEP) * _STEP), []).append(key)
    for shape, keys in groups.items():
        stack = np.zeros((len(keys), *shape))
        for row, key in zip(stack, keys, strict=True):
            mid = matrices[key].value
            flat = mid if mid.shape[0] <= mid.shape[1] else mid.T
            row[: flat.shape[0], : flat.shape[1]] = flat
        errors = np.array([matrices[key].error for key in keys])
        result.update(zip(keys, map(float, up_add(stack_norm(stack), errors)), strict=True))
    return result
