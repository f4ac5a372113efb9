"""Proved upper bounds on spectral norms ‖A‖₂ of dense matrices and of stacks of them.

Every function first scales by a power of two, so that nothing over- or underflows, returns +inf for
an array that is not finite, and rounds up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import numpy as np

from slomodel.bounds.arithmetic.midpoint_radius import (
    Bounded,
    exact,
    exact_stack,
    normalised,
    normalised_stack,
    proved_end,
    runs_through,
)
from slomodel.bounds.arithmetic.rounding import (
    SMALLEST_NORMAL,
    Array,
    up_add,
    up_div,
    up_ldexp,
    up_matmul,
    up_mul,
    up_norm,
    up_sqrt,
    up_sum,
)
from slomodel.bounds.norms.lanczos import krylov_spaces
from slomodel.bounds.stopping import pause

DENSE_EIGEN = 160
"""Up to this order a full eigendecomposition costs less than trying cheaper certificates."""
DENSE_LIMIT = 2000
"""Largest order at which matrices are factorised."""
_DAMPING = 1e-12
"""Damping that keeps the Collatz–Wielandt vectors positive."""
_MARGIN = 1e-14
"""Where a proof starts for an eigenvalue estimated as 0, per row of the matrix."""
_STEP = 8
"""Small matrices are padded to multiples of this order, so that many are bounded in one stack."""
Key = TypeVar("Key", bound=Hashable)
_CONVERGED = 1e-7
_CONVERGED_LARGE = 1e-4
"""A bound on ‖|A|‖² within this relative tolerance of an attained value is not refined."""


def spectral_norm(A: Array) -> float:
    """Upper bound on ‖A‖₂ of one matrix, by the sharpest certificate affordable at its order."""
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
    """Upper bound on ‖S‖₂ for every symmetric S within `rad` of `mid`, elementwise.

    M = (mid + midᵀ)/2 is within max(rad, radᵀ) of S.
    """
    if mid.size == 1 and np.isfinite(mid).all() and np.isfinite(rad).all():
        return float(up_add(np.abs(mid), rad).item())  # exact, where a norm is a root of a square
    with np.errstate(all="ignore"):
        M = Bounded(mid, np.maximum(rad, rad.T)).symmetric()
    if not (np.isfinite(M.value).all() and np.isfinite(M.error).all()):
        return float(np.inf)
    return float(up_add(spectral_norm(M.value), spectral_norm(M.error)))


def collatz(A: Array, steps: int = 8) -> float:
    """Upper bound on ‖|A|‖₂ >= ‖A‖₂; it tends to ‖|A|‖₂ with the number of steps.

    For a vector d > 0: ‖|A|‖₂² = λ_max(|A|ᵀ|A|) <= max_i (|A|ᵀ|A| d)_i / d_i (Collatz-Wielandt).
    """
    one, e = _scaled(np.abs(np.asarray(A, dtype=np.float64)))
    if one is None:
        return float(e)
    B = one.value if one.value.shape[0] >= one.value.shape[1] else one.value.T
    tolerance = _CONVERGED if B.size <= DENSE_EIGEN**2 else _CONVERGED_LARGE
    d = collatz_vector(lambda d: np.asarray(B.T @ (B @ d)), B.shape[1], steps, tolerance)
    ratio = float(np.max(up_div(up_matmul(B.T, up_matmul(B, d)), d)))
    return float(up_ldexp(up_add(up_sqrt(ratio), one.error), int(e)))


def collatz_vector(
    apply: Callable[[Array], Array], n: int, steps: int = 6, tolerance: float = _CONVERGED_LARGE
) -> Array:
    """A vector v > 0 (n,) for which max_i (M v)_i / v_i is close to λ_max(M), M >= 0 symmetric.

    `apply` is v ↦ M v. For every v > 0 that ratio is an upper bound on λ_max(M) (Collatz–Wielandt),
    which power iteration does not increase; it ends within the tolerance of a Rayleigh quotient.
    """
    v = np.ones(n)
    with np.errstate(all="ignore"):
        for _ in range(steps):
            pause()
            image = apply(v)
            attained = float(v @ image) / float(v @ v)
            is_close = float(np.max(image / v, initial=0.0)) <= (1.0 + tolerance) * attained
            v = image / max(float(np.max(image, initial=0.0)), SMALLEST_NORMAL) + _DAMPING
            if is_close:
                break
    return v


def cholesky_norm(H: Array) -> float:
    """Upper bound on ‖H‖₂ of a symmetric matrix; at most 1 + 1e-6 times it if the start is good."""
    B, e = _scaled(np.asarray(H, dtype=np.float64))
    if B is None:
        return float(e)
    largest = _lanczos(B.value)
    for excess in (1e-6, 1e-4, 1e-2, 1.0):
        t = _above(largest, excess, len(B.value))
        if _is_above(t, B.value) and _is_above(t, -B.value):
            return _proved(t, B, int(e))
    return float(up_norm(H))


def gram_cholesky(A: Array) -> float:
    """Upper bound on ‖A‖₂ by ‖A‖² = λ_max(AᵀA); at most 1 + 1e-4 times it if the start is good."""
    one, e = _scaled(np.asarray(A, dtype=np.float64))
    if one is None:
        return float(e)
    B = exact(one.value if one.value.shape[0] >= one.value.shape[1] else one.value.T)
    G = (B.transposed @ B).symmetric()
    norm = up_sqrt(up_add(upper_eigenvalue(G.value, 1e-4), G.error))
    return float(up_ldexp(up_add(norm, one.error), int(e)))


def upper_eigenvalue(H: Array, tolerance: float = 1e-2) -> float:
    """Upper bound on λ_max of a symmetric matrix where positive, to a relative `tolerance`.

    For large orders by one factorisation as in `cholesky_norm`, for one sign only.
    """
    B, e = _scaled(np.asarray(H, dtype=np.float64))
    if B is None:
        return float(e)
    n = len(B.value)
    if n <= DENSE_EIGEN:
        return spectral_norm(H)
    largest = _lanczos(B.value, 16 if tolerance >= 1e-3 else 100, 0.1 * tolerance)
    for excess in (tolerance, 8.0 * tolerance, 64.0 * tolerance, 1.0):
        t = _above(largest, excess, n)
        if _is_above(t, B.value):
            return _proved(t, B, int(e))
    return spectral_norm(H)


def _above(largest: float, excess: float, n: int) -> float:
    """The shift at which a factorisation is tried, from an estimate of the largest eigenvalue."""
    return largest * (1.0 + excess) + _MARGIN * n


def _is_above(t: float, B: Array) -> bool:
    pause()
    return runs_through(B, np.asarray(t))


def _proved(t: float, B: Bounded[float], e: int) -> float:
    end = proved_end(t, float(up_sum(np.abs(np.diag(B.value)))), len(B.value))
    return float(up_ldexp(up_add(end, B.error), e))


def _lanczos(B: Array, steps: int = 100, close: float = 0.0) -> float:
    """Estimate of the largest |eigenvalue| of a symmetric matrix, from which a proof starts.

    It stops once eight more steps change it by a relative amount of at most `close`.
    """
    start, before = 1.0 + np.cos(np.arange(len(B)) * 1.7) / 3, 0.0
    T = np.zeros((1, 1))
    spaces = krylov_spaces(lambda v: np.asarray(B @ v), start / np.linalg.norm(start), steps)
    for k, space in enumerate(spaces):
        pause()
        T = space.operator
        if space.outside < 1e-13:
            break
        if close > 0.0 and k % 8 == 7:
            value = float(np.max(np.abs(np.linalg.eigvalsh(T))))
            if value - before <= close * value:
                return value
            before = value
    return float(np.max(np.abs(np.linalg.eigvalsh(T))))


def stack_norm(A: Array) -> Array:
    """Upper bounds on ‖A[p]‖₂ for each matrix of a stack (p, m, n).

    With G = AᵀA (or AAᵀ, the smaller) and the computed eigenpairs V, Λ of G: ‖G‖ <= ‖V‖² max|Λ| +
    ‖G - VΛVᵀ‖, ‖V‖² <= 1 + ‖VᵀV - I‖.
    """
    A = np.asarray(A, dtype=np.float64)
    result = np.full(len(A), np.inf)
    if not A.size:
        return np.zeros(len(A))
    pause()
    finite = np.asarray(np.isfinite(A).all(axis=(1, 2)))
    if min(A.shape[1:]) == 1:
        return np.asarray(up_norm(A, (1, 2)))
    B, e = normalised_stack(np.where(finite[:, None, None], A, 0.0))
    if A.shape[1] < A.shape[2]:
        B = B.transposed
    proved = np.minimum(_eigen_bound(exact_stack(B.value)), B.magnitude)
    result[finite] = up_ldexp(up_add(proved, B.error), e)[finite]
    return result


def _eigen_bound(B: Bounded[Array]) -> Array:
    """The bound of `stack_norm` for entries of magnitude at most 1 and m >= n."""
    G = (B.transposed @ B).symmetric()
    values, V = np.linalg.eigh(G.value)
    vectors = exact_stack(V)
    eye = exact_stack(np.broadcast_to(np.eye(V.shape[1]), V.shape))
    defect = (vectors.transposed @ vectors - eye).norm
    residual = (G - vectors.columns_times(values) @ vectors.transposed).norm
    largest = np.asarray(np.max(np.abs(values), axis=1))
    spectrum = up_mul(up_add(np.ones(len(V)), defect), largest)
    return np.asarray(up_sqrt(up_add(spectrum, residual)))


def _scaled(A: Array) -> tuple[Bounded[float] | None, int | float]:
    """A / 2^e with |entries| <= 1, and e; or no array and the norm if it is 0 or +inf."""
    largest = np.max(np.abs(A), initial=0.0)
    if not np.isfinite(largest):
        return None, np.inf
    return (None, 0.0) if largest == 0.0 else normalised(A)


def norms_of(matrices: Mapping[Key, Bounded[float]]) -> dict[Key, float]:
    """Upper bounds on ‖A‖₂ of each matrix; small ones of similar shapes are padded and stacked."""
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
