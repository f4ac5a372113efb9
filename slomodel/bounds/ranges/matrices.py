"""Ranges of operations on matrices: verified solutions for all matrices between two ends.

With an approximate inverse R of the midpoints and G = I - RA, ‖G‖∞ <= ρ < 1 over the box proves
every A regular, and A⁻¹B - X = (I - G)⁻¹R(B - AX) = z + Gz + G²z + … for any X and z = R(B - AX)
(Krawczyk; Rump). With Q = |G| elementwise, |G²z + G³z + …| <= Qw ρ/(1 - ρ) largest elements of each
column for w = |Gz|. Determinants are those of triangular approximations times det(I - G), where
log det(I - G) = -tr G - tr G²/2 - …, and |tr Gᵏ| <= n ρᵏ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.interval import (
    Interval,
    around,
    divide,
    from_zero,
    increasing,
    interval,
    point,
    square,
    total,
)
from slomodel.bounds.arithmetic.interval_einsum import contract
from slomodel.bounds.arithmetic.rounding import (
    Array,
    down,
    down_sqrt,
    up_add,
    up_div,
    up_mul,
    up_sqrt,
    up_sum,
)
from slomodel.bounds.structure.near_identity import triangular_inverses
from slomodel.ir.expr import MatrixFunction


def range_of_operation(function: MatrixFunction, operands: list[Interval]) -> Interval:
    """The interval of an operation, whose operands share or broadcast their leading axes."""
    A = operands[0]
    if function == "solve_lower":
        return solution(A.each(np.tril), operands[1])
    if function == "solve_upper":
        return solution(A.each(np.triu), operands[1])
    if function.startswith("solve"):
        return solution(A, operands[1])
    if function.startswith("inverse"):
        return solution(A, point(np.broadcast_to(np.eye(A.shape[-1]), A.shape)))
    if function == "cholesky":
        return _cholesky(A)
    symmetric = function == "logdet_posdef"
    left, right, sign = triangular_inverses(A.mid, symmetric)
    logarithm = _log_determinant(A, left, right, symmetric)
    if function != "det":
        # Where the determinant is negative, the function is not defined.
        return _where(sign > 0.0, logarithm)
    size = increasing(np.exp, logarithm)
    return interval(
        np.where(sign > 0.0, size.lo, -size.hi), np.where(sign > 0.0, size.hi, -size.lo)
    )


def product(left: Interval, right: Interval) -> Interval:
    """The products of matrices, whose leading axes broadcast."""
    rows, inner, columns = *left.shape[-2:], right.shape[-1]
    batch = left.lo.ndim - 2
    return contract([(left, (0, 1)), (right, (1, 2))], (0, 2), (rows, inner, columns), batch)


def solution(A: Interval, B: Interval) -> Interval:
    """A⁻¹B for all A and B; unbounded where a matrix may be singular."""
    if not A.lo.size or not B.lo.size:
        return B
    R = _inverses(A.mid)
    X = R @ B.mid
    defect, rho = _defect(R, A)
    z = product(point(R), B - product(A, point(X)))
    size = point(defect.magnitude)
    w = product(size, point(z.magnitude)).hi
    tail = up_mul(up_div(rho, down(1.0 - rho))[..., None, None], _column_norms(w))
    result = point(X) + z + around(np.zeros(()), up_add(w, np.broadcast_to(tail, w.shape)))
    return _where(rho < 1.0, result)


def _defect(R: Array, A: Interval) -> tuple[Interval, Array]:
    """G = I - RA, and an upper bound on its norm, the largest sum of a row."""
    eye = point(np.broadcast_to(np.eye(A.shape[-1]), A.shape))
    G = eye - product(point(R), A)
    return G, _row_norm(G)


def _row_norm(G: Interval) -> Array:
    return np.asarray(np.max(up_sum(G.magnitude, -1), axis=-1, initial=0.0))


def _where(holds: NDArray[np.bool_], a: Interval) -> Interval:
    """The interval where a condition on the leading axes holds, and the real line elsewhere."""
    wide = np.reshape(holds, holds.shape + (1,) * (a.lo.ndim - holds.ndim))
    return interval(np.where(wide, a.lo, -np.inf), np.where(wide, a.hi, np.inf))


def _inverses(mid: Array) -> Array:
    """Approximate inverses; zeros, which prove nothing, for matrices that are singular."""
    result = np.zeros_like(mid)
    for k in np.ndindex(mid.shape[:-2]):
        try:
            own = np.linalg.inv(mid[k])
        except np.linalg.LinAlgError:
            continue
        result[k] = own if np.isfinite(own).all() else 0.0
    return result


def _log_determinant(A: Interval, X: Array, Y: Array, symmetric: bool) -> Interval:
    """log |det A| = log det(XAY) - log |det X| - log |det Y|, where X is Yᵀ if symmetric."""
    n = A.shape[-1]
    eye = point(np.broadcast_to(np.eye(n), A.shape))
    G = eye - product(product(point(X), A), point(Y))
    rho = _row_norm(G)
    own = np.diagonal(Y, axis1=-2, axis2=-1)
    pivots = total(increasing(np.log, point(np.abs(own))), -1)
    if symmetric:
        pivots = pivots + pivots
    trace = total(G.each(lambda array: np.diagonal(array, axis1=-2, axis2=-1)), -1)
    # -log(1 - ρ) - ρ <= ρ²/(2(1 - ρ))
    count: Array = np.asarray(float(n))
    rest: Array = up_div(up_mul(count, up_mul(rho, rho)), down(2.0 * down(1.0 - rho)))
    return _where(rho < 1.0, around(np.zeros(()), rest) - trace - pivots)


def _cholesky(A: Interval) -> Interval:
    """L with LLᵀ = A: X⁻¹C, where C is the factor of XAXᵀ, which is near the identity."""
    if not A.lo.size:
        return A
    X = triangular_inverses(A.mid, symmetric=True)[0]
    M = product(product(point(X), A), point(np.swapaxes(X, -1, -2)))
    n = A.shape[-1]
    lo, hi = np.zeros(M.shape), np.zeros(M.shape)
    regular = np.ones(M.shape[:-2], bool)
    for j in range(n):
        row = Interval(lo[..., j, :j], hi[..., j, :j])
        pivot = Interval(M.lo[..., j, j], M.hi[..., j, j]) - total(square(row), -1)
        regular &= pivot.lo > 0.0
        root = interval(down_sqrt(np.maximum(pivot.lo, 0.0)), up_sqrt(np.maximum(pivot.hi, 0.0)))
        lo[..., j, j], hi[..., j, j] = root.lo, root.hi
        below = Interval(lo[..., j + 1 :, :j], hi[..., j + 1 :, :j])
        products = total(below * row.each(lambda a: a[..., None, :]), -1)
        column = Interval(M.lo[..., j + 1 :, j], M.hi[..., j + 1 :, j]) - products
        column = divide(column, root.each(lambda a: a[..., None]))
        lo[..., j + 1 :, j], hi[..., j + 1 :, j] = column.lo, column.hi
    factor = solution(point(X), interval(lo, hi)).each(np.tril)
    return _where(regular, factor)


def remainder_of_operation(
    function: MatrixFunction,
    centre: list[Interval],
    moved: list[Array],
    remainder: list[Array],
    value: Interval,
) -> Array:
    """Upper bounds on the remainders of the first-order Taylor forms of an operation.

    `value` is that at the centre c; operands are within `moved` of theirs and within `remainder` of
    their linear parts. With δ for changes, A_c δX = δB - δA X, so that δX less its linear part is
    at most |A_c⁻¹|(e_B + e_A|X_c| + w_A w_X), w_X from δX itself as in `solution`; the second
    derivative of log det A is -tr(A⁻¹δA A⁻¹δA).
    """
    mask = {"solve_lower": np.tril, "solve_upper": np.triu}.get(function, np.asarray)
    A, w, e = mask(centre[0].mid), mask(moved[0]), mask(remainder[0])
    if function in ("det", "cholesky") or not A.size:
        return np.asarray(np.inf if A.size else 0.0)
    own = centre[0].each(mask)
    eye = point(np.broadcast_to(np.eye(A.shape[-1]), A.shape))
    inverse = from_zero(solution(own, eye).magnitude)
    Q = product(inverse, from_zero(w))
    rho = _row_norm(Q)

    def through(z: Interval) -> Array:
        """Σ Qᵏz for z >= 0."""
        following = product(Q, z).hi
        tail = up_mul(up_div(rho, down(1.0 - rho))[..., None, None], _column_norms(following))
        return up_add(z.hi, up_add(following, np.broadcast_to(tail, following.shape)))

    if function.startswith("logdet"):
        largest = up_add(inverse.hi, through(product(Q, inverse)))
        turned = product(from_zero(largest), from_zero(w)).hi
        second = up_sum(up_mul(turned, np.swapaxes(turned, -1, -2)), (-1, -2))
        first = up_sum(up_mul(np.swapaxes(inverse.hi, -1, -2), e), (-1, -2))
        result = up_add(first, up_mul(np.asarray(0.5), second))
        return np.asarray(np.where(rho < 1.0, result, np.inf))
    X = from_zero(value.magnitude)
    is_inverse = function.startswith("inverse")
    w_right, e_right = (np.zeros(()),) * 2 if is_inverse else (moved[1], remainder[1])
    changed = product(inverse, from_zero(up_add(product(from_zero(w), X).hi, w_right)))
    linear = product(inverse, from_zero(up_add(product(from_zero(e), X).hi, e_right))).hi
    result = up_add(linear, product(Q, from_zero(through(changed))).hi)
    return np.asarray(np.where((rho < 1.0)[..., None, None], result, np.inf))


def _column_norms(w: Array) -> Array:
    return np.asarray(w.max(axis=-2, keepdims=True, initial=0.0))
